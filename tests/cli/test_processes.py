"""The command as a process: its output closed or full, terminated, and two of it at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ridgefold import KernelRidge, RidgefoldRegressor
from ridgefold.errors import OutputExistsError
from ridgefold.storage.atomic import created_whole, written_whole

COMMAND = [sys.executable, "-c", "from ridgefold.cli import main; main()"]


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=40), "b": rng.normal(size=40)})
    table["y"] = table["a"] - table["b"]
    table.to_csv(tmp_path / "t.csv", index=False)
    model = KernelRidge(0.1, kernel="rbf")
    RidgefoldRegressor(model=model).fit(table[["a", "b"]], table["y"]).save(tmp_path / "m")
    return tmp_path


def command(*arguments):
    return [*COMMAND, *map(str, arguments)]


def said_by(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def started(*arguments, **options):
    shown = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen(command(*arguments), **shown)  # noqa: S603


@pytest.mark.parametrize("arguments", [["predict", "m", "t.csv"], ["methods"], ["--help"]], ids=str)
def test_a_full_output_is_a_typed_error(arguments, folder):
    with Path("/dev/full").open("w") as full:
        code, _, err = said_by(started(*arguments, stdout=full, cwd=folder))
    assert code == 7
    assert "No space left on device" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("arguments", [["predict", "m", "t.csv"], ["inspect", "m", "--json"]])
def test_a_reader_that_has_seen_enough_is_no_error(arguments, folder):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        code, _, err = said_by(started(*arguments, stdout=writing, cwd=folder))
    finally:
        os.close(writing)
    assert (code, err) == (0, "")


@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_get_into_files(streams, folder):
    output = folder / "out.csv"
    line = f'exec "$0" "$@" {streams}'
    arguments = command("predict", folder / "m", folder / "t.csv", "-o", output)
    shell = ["/bin/sh", "-c", line, *arguments]
    code = subprocess.run(shell, check=False, timeout=120).returncode  # noqa: S603
    assert code == 0
    assert output.read_text().splitlines()[0] == "prediction"
    assert len(output.read_text().splitlines()) == 41


def test_a_terminated_command_leaves_no_file(tmp_path):
    lines = """
import os, signal, typer
from pathlib import Path
from ridgefold.cli.exit_codes import command
from ridgefold.storage.atomic import created_whole, written_whole

@command
def write():
    with written_whole(Path("a")) as file, created_whole(Path("b"), replace=False) as path:
        file.write(b"half")
        path.write_text("half")
        assert len(os.listdir()) == 2
        os.kill(os.getpid(), signal.SIGTERM)

before = signal.getsignal(signal.SIGTERM)
try:
    write()
except typer.Exit as end:
    assert signal.getsignal(signal.SIGTERM) == before
    raise SystemExit(end.exit_code)
"""
    found = subprocess.run(  # noqa: S603
        [sys.executable, "-c", lines], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (found.returncode, found.stderr) == (143, "terminated; nothing was written\n")
    assert list(tmp_path.iterdir()) == []


def test_importing_the_library_leaves_signals_alone():
    line = "import signal, ridgefold, ridgefold.cli as c; print(signal.getsignal(signal.SIGTERM))"
    python = [sys.executable, "-c", line]
    found = subprocess.run(python, capture_output=True, text=True, check=True)  # noqa: S603
    assert found.stdout.strip() == str(signal.SIG_DFL)


@pytest.mark.parametrize("kind", ["predict", "fit", "report"])
def test_of_several_processes_that_write_one_new_file_one_succeeds(kind, folder):
    out = folder / {"predict": "out.csv", "fit": "new", "report": "r.html"}.get(kind, "unused")
    fixed = ["-t", "y", "--alpha", 0.1, "--length-scale", 1, "-q", "--json"]
    arguments = {
        "predict": ["predict", folder / "m", folder / "t.csv", "-o", out, "--json"],
        "fit": ["fit-kernel", folder / "t.csv", *fixed, "-o", out],
        "report": ["report", folder / "m", "-o", out, "--json"],
    }[kind]
    processes = [started(*arguments) for _ in range(3)]
    results = [said_by(process) for process in processes]
    codes = sorted(code for code, _, _ in results)
    assert codes == [0, 7, 7], [err for _, _, err in results]
    for code, said, err in results:
        if code:
            assert json.loads(said)["error"]["type"] == "OutputExistsError"
            assert "exists" in err
    assert not list(folder.glob(".*.part"))


def test_of_two_fits_in_one_run_directory_one_goes_on(folder):
    work = ["--partitions", 2, "--run-dir", folder / "run"]
    processes = [
        started("fit-kernel", folder / "t.csv", "-t", "y", "-o", folder / f"new{i}", *work)
        for i in range(2)
    ]
    results = [said_by(process) for process in processes]
    # One after the other both may use it; at once, only one.
    codes = sorted(code for code, _, _ in results)
    assert codes in ([0, 0], [0, 8]), [err for _, _, err in results]


def test_a_file_that_came_in_the_meantime_stays(tmp_path):
    def bytes_too_late():
        with written_whole(path, replace=False) as file:
            path.write_text("first")
            file.write(b"second")

    def file_too_late():
        with created_whole(path, replace=False) as new:
            path.write_text("first")
            new.write_text("second")

    path = tmp_path / "out"
    for writer in (bytes_too_late, file_too_late):
        with pytest.raises(OutputExistsError, match="exists"):
            writer()
        assert [each.read_text() for each in tmp_path.iterdir()] == ["first"]
        path.unlink()


def test_file_systems_without_links_create_whole_files_too(tmp_path, monkeypatch):
    def no_links(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with written_whole(tmp_path / "a", replace=False) as file:
        file.write(b"all")
    assert (tmp_path / "a").read_bytes() == b"all"

    def too_late():
        with written_whole(tmp_path / "b", replace=False):
            (tmp_path / "b").write_text("first")

    with pytest.raises(OutputExistsError):
        too_late()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]

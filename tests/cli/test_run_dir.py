"""`ridgefold fit --run-dir`: the same command goes on where it was stopped."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from typer.testing import CliRunner

from ridgefold.cli import app
from ridgefold.engine import cell_rows
from ridgefold.storage.run_directory import RunDirectory


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "400"})
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-2, 2, (2, 320))
    columns = {"a": a, "b": b, "y": np.sin(2 * a) + b}
    pa_csv.write_csv(pa.table(columns), tmp_path / "rows.csv")
    return tmp_path


def command(folder, output, *more):
    return ["fit", folder / "rows.csv", "-t", "y", "-o", folder / output, "--partitions", 6, *more]


def test_an_interrupted_command_goes_on(table, monkeypatch):
    monkeypatch.setattr(cell_rows, "_ROWS_A_BATCH", 64)
    run(*command(table, "reference.ridgefold"))
    original, seen = RunDirectory.record, []

    def interrupted(self, name, sha256):
        original(self, name, sha256)
        seen.append(name)
        if len(seen) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(RunDirectory, "record", interrupted)
    with_folder = command(table, "model.ridgefold", "--run-dir", table / "run")
    stopped = run(*with_folder, code=130)
    assert f"what is done is kept in {table / 'run'}" in stopped.output.replace("\n", "")
    assert not (table / "model.ridgefold").exists()
    monkeypatch.setattr(RunDirectory, "record", original)
    run(*with_folder)
    one, other = ((table / f"{n}.ridgefold").read_bytes() for n in ("reference", "model"))
    assert one == other


def test_other_settings_are_refused_with_a_code_of_their_own(table):
    run(*command(table, "model.ridgefold", "--run-dir", table / "run"))
    refused = run(*command(table, "b.ridgefold", "--run-dir", table / "run", "--alpha", 1), code=8)
    assert "alpha was null and is 1.0" in refused.output


def test_a_run_directory_needs_cells(table):
    arguments = ["fit", table / "rows.csv", "-t", "y", "-o", table / "m.ridgefold"]
    refused = run(*arguments, "--run-dir", table / "run", code=3)
    assert "needs --partitions" in refused.output

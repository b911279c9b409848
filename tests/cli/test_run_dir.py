"""`ridgefold fit-kernel --run-dir`: the same command goes on where it was stopped."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from typer.testing import CliRunner

import ridgefold
from ridgefold.cells import cell_rows
from ridgefold.cli import app
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
    return [
        "fit-kernel",
        folder / "rows.csv",
        "-t",
        "y",
        "-o",
        folder / output,
        "--partitions",
        6,
        *more,
    ]


def without_times(path):
    """The bytes of a model that does not say how long it took, which is never the same."""
    model = ridgefold.load(path)
    del model.model_.run_record_
    model.save(path.with_suffix(".bare"))
    return path.with_suffix(".bare").read_bytes()


def test_an_interrupted_command_goes_on(table, monkeypatch):
    monkeypatch.setattr(cell_rows, "ROWS_A_BATCH", 64)
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
    one, other = (without_times(table / f"{n}.ridgefold") for n in ("reference", "model"))
    assert one == other


def test_other_settings_are_refused_with_a_code_of_their_own(table):
    run(*command(table, "model.ridgefold", "--run-dir", table / "run"))
    refused = run(*command(table, "b.ridgefold", "--run-dir", table / "run", "--alpha", 1), code=8)
    assert "alpha was null and is 1.0" in refused.output


def test_a_search_keeps_its_kernels_and_may_run_elsewhere(table):
    arguments = ["fit-kernel", table / "rows.csv", "-t", "y", "--cv", 3, "--force"]
    run(*arguments, "-o", table / "reference.ridgefold")
    elsewhere = ["--executor", "threads", "--jobs", 2, "--run-dir", table / "kernels"]
    for _ in range(2):
        run(*arguments, "-o", table / "model.ridgefold", *elsewhere)
    assert len(list((table / "kernels" / "kernels").glob("*.piece"))) >= 3
    one, other = (ridgefold.load(table / f"{n}.ridgefold") for n in ("reference", "model"))
    assert one.model_.best_params_ == other.model_.best_params_
    assert np.array_equal(one.model_.dual_coef_, other.model_.dual_coef_)


@pytest.mark.parametrize("executor", [[], ["--executor", "threads"]], ids=str)
def test_a_wait_for_workers_is_for_a_cluster(executor, table):
    arguments = [
        "fit-kernel",
        table / "rows.csv",
        "-t",
        "y",
        "-o",
        table / "m.ridgefold",
        *executor,
    ]
    refused = run(*arguments, "--wait-for-workers", 5, code=3)
    assert "--wait-for-workers 5 is for a Dask cluster" in " ".join(refused.output.split())


def test_a_cluster_without_workers_ends_the_command_in_time(table):
    pytest.importorskip("distributed")
    from ridgefold.executors import dask

    with dask.local_cluster(0) as client:
        arguments = ["fit-kernel", table / "rows.csv", "-t", "y", "-o", table / "m.ridgefold"]
        there = ["--executor", client.scheduler.address, "--wait-for-workers", 0]
        given_up = run(*arguments, *there, code=9)
    assert "has had no workers for 0 s" in " ".join(given_up.output.split())


@pytest.mark.parametrize(
    "option", [("--run-dir", "run"), ("--executor", "threads"), ("--jobs", 2)], ids=lambda o: o[0]
)
def test_one_fit_has_nothing_to_keep_or_to_send(option, table):
    arguments = ["fit-kernel", table / "rows.csv", "-t", "y", "-o", table / "m.ridgefold"]
    refused = run(*arguments, "--alpha", 1, "--length-scale", 1, *option, code=2)
    assert f"{option[0]} is for kernels or cells" in " ".join(refused.output.split())

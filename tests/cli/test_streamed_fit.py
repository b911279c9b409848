"""`ridgefold fit-kernel` of tables larger than its memory gives what reading them whole gives."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest
from typer.testing import CliRunner

import ridgefold
from ridgefold.cli import app, streaming

N = 1200
FIXED = ("--partitions", 5, "--alpha", 0.1, "--length-scale", 1.0, "--no-shuffle")


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "300"})
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(params=["csv", "parquet"])
def table(request, tmp_path, monkeypatch):
    monkeypatch.setattr("ridgefold.tables.csv_file._BLOCK_BYTES", 8000)
    monkeypatch.setattr("ridgefold.tables.tables._BATCH_ROWS", 250)
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-2, 2, (2, N))
    columns = {
        "a": pa.array(a, mask=np.arange(N) % 97 == 5),
        "whole": np.where(np.arange(N) < 900, 3, 3.5) if request.param == "csv" else b,
        "colour": pa.array(rng.choice(["red", "green", "blue"], N), mask=np.arange(N) % 50 == 7),
        "flag": b > 0,
        "row": rng.uniform(0, 1, N),  # no two rows are the same
        "y": pa.array(np.sin(2 * a) + b, mask=np.arange(N) % 100 == 1),
        "side": np.where(a > 0, "right", "left"),
    }
    path = tmp_path / f"rows.{request.param}"
    write = pa_csv.write_csv if request.param == "csv" else pa_parquet.write_table
    write(pa.table(columns), path)
    return path


@pytest.mark.parametrize("target", ["y", "side"])
def test_a_streamed_table_gives_the_model_of_the_whole_one(table, target, tmp_path):
    arguments = ("fit-kernel", table, "-t", target, *FIXED)
    ignored = ("--drop", "side" if target == "y" else "y")
    run(*arguments, *ignored, "-o", tmp_path / "whole.ridgefold")
    said = run(*arguments, *ignored, "-o", tmp_path / "parts.ridgefold", "--memory", "200kB")
    assert "read in batches" in said.output
    whole, parts = (ridgefold.load(tmp_path / f"{n}.ridgefold") for n in ("whole", "parts"))
    assert parts.columns_ == whole.columns_
    assert parts.columns_.names == ("a", "whole", "colour", "flag", "row")
    assert np.allclose(parts.model_.X_fit_, whole.model_.X_fit_, rtol=1e-12, atol=1e-12)
    run("predict", tmp_path / "parts.ridgefold", table, "-o", tmp_path / "out.csv")
    if target == "y":
        new = np.random.default_rng(1).standard_normal((50, parts.model_.n_features_in_))
        ours, theirs = (m.model_.predict(new) for m in (parts, whole))
        assert np.allclose(ours, theirs, rtol=1e-8, atol=1e-8)


def test_columns_are_understood_from_some_rows_of_a_long_table(table, tmp_path, monkeypatch):
    monkeypatch.setattr("ridgefold.tables.table_stream._MOST_ROWS", 400)
    ignored, path = ("--drop", "side"), tmp_path / "m.ridgefold"
    run("fit-kernel", table, "-t", "y", *ignored, *FIXED, "-o", path, "--memory", "200kB")
    model = ridgefold.load(path)
    assert model.model_.X_fit_.shape == (N - 12, len(model.columns_.feature_names))
    rows = model.model_.X_fit_[:, model.columns_.feature_names.index("row")]
    assert abs(rows.mean()) < 0.15
    assert 0.9 < rows.std() < 1.1
    assert rows.mean() != pytest.approx(0.0, abs=1e-9)  # those of the 400 rows are 0 and 1
    predicted = run("predict", path, table).stdout.splitlines()[1:]
    errors = np.array(predicted, dtype=float) - truth(table)
    assert np.nanmean(errors**2) < 0.3


def truth(path):
    read = pa_csv.read_csv if path.suffix == ".csv" else pa_parquet.read_table
    return read(path)["y"].to_numpy()


def test_what_a_streamed_target_holds_is_said(table, tmp_path):
    arguments = ("fit-kernel", table, "-o", tmp_path / "m.ridgefold", *FIXED, "--memory", "200kB")
    refused = run(*arguments, "-t", "side", "--task", "regression", code=3)
    assert "'side'" in refused.output


def test_a_streamed_fit_has_a_run_directory_and_a_summary(table, tmp_path):
    arguments = ("fit-kernel", table, "-t", "y", "--drop", "side", *FIXED)
    more = ("--memory", "200kB", "--run-dir", tmp_path / "run", "--json", "--force")
    for _ in range(2):
        said = run(*arguments, "-o", tmp_path / "m.ridgefold", *more)
        summary = json.loads(said.stdout)
        assert summary["rows"] == N - 12
        assert summary["held_out_rmse"] < summary["rmse_of_the_mean"]
    assert (tmp_path / "run" / "run.json").exists()


@pytest.mark.parametrize("memory", ["200kB", "1GB"], ids=["streamed", "whole"])
def test_cells_are_fitted_on_the_device(table, memory, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from ridgefold.cells.stacked_fit import CellStack

    stacks, make = [], CellStack.__init__

    def noting(self, cells, settings, device):
        stacks.append(device)
        make(self, cells, settings, device)

    monkeypatch.setattr(CellStack, "__init__", noting)
    arguments = ("fit-kernel", table, "-t", "y", "--drop", "side", *FIXED)
    more = ("--memory", memory, "--device")
    run(*arguments, *more, "cpu", "-o", tmp_path / "m.ridgefold")
    assert set(stacks) == {"cpu"}
    assert "device" in run(*arguments, *more, "abacus", "-o", tmp_path / "n", code=2).output


def test_small_tables_are_read_whole(table):
    assert not streaming.worth_streaming(table, "1GB")
    assert streaming.worth_streaming(table, "100kB")

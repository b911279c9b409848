"""Models of rows on disk are those of the same rows in memory, in bounded memory."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

import ridgefold
from ridgefold import (
    CellOptions,
    Compute,
    KernelRidge,
    PartitionedKernelRidge,
    PartitionedLSSVMClassifier,
    PartitionedLSSVMRegressor,
)
from ridgefold.cells import cell_rows
from ridgefold.cells.cut import base
from ridgefold.errors import BudgetError, InvalidInputError, TableError

SMALL = "64kB"
"""So small a budget that every data set here is worked on from disk."""
N = 1500
FIXED = {
    "n_partitions": 8,
    "alpha": 0.1,
    "kernel_params": {"length_scale": 1.0},
    "intervals": "jackknife+",
}


def data(n=N, d=3, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, d)).astype(dtype)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    return X, y.astype(dtype)


def mapped(folder, array, name="X"):
    np.save(folder / f"{name}.npy", array)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def as_parquet(folder, X, y):
    """A folder of two files."""
    (folder / "parts").mkdir()
    half = len(X) // 2
    for number, some in enumerate((slice(0, half), slice(half, None))):
        columns = {f"x{j}": X[some, j] for j in range(X.shape[1])} | {"y": y[some]}
        pa_parquet.write_table(
            pa.table(columns), folder / "parts" / f"{number}.parquet", row_group_size=300
        )
    return folder / "parts", "y"


def as_zarr(folder, X, y):
    zarr = pytest.importorskip("zarr")
    stored = zarr.create_array(folder / "X.zarr", shape=X.shape, chunks=(400, 2), dtype=X.dtype)
    stored[:] = X
    return stored, y


def as_dask(folder, X, y):
    dask_array = pytest.importorskip("dask.array")
    chunks = dask_array.from_array(X, chunks=((800, 100, len(X) - 900), X.shape[1]))
    return chunks, dask_array.from_array(y, chunks=700)


KINDS = {
    "mapped": lambda folder, X, y: (mapped(folder, X), mapped(folder, y, "y")),
    "path": lambda folder, X, y: (mapped(folder, X).filename, y),
    "part of a file": lambda folder, X, y: (
        mapped(folder, np.concatenate([X[:17], X]))[17:],
        y,
    ),
    "parquet": as_parquet,
    "zarr": as_zarr,
    "dask": as_dask,
}


def same(one, other):
    assert np.array_equal(one._cells.rows, other._cells.rows)
    assert np.array_equal(one._cells.offsets, other._cells.offsets)
    for name in ("dual_coef", "intercept", "alpha"):
        assert np.array_equal(getattr(one._models, name), getattr(other._models, name))
    assert one.kernels_ == other.kernels_
    assert one.trials_ == other.trials_
    if one.held_out_residuals_ is not None:
        assert np.array_equal(one.held_out_residuals_, other.held_out_residuals_)
    return True


@pytest.fixture(scope="module")
def reference():
    return PartitionedLSSVMRegressor().set_params(**FIXED).fit(*data())


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_rows_gives_the_model_of_the_rows_in_memory(kind, tmp_path, reference):
    X, y = data()
    rows, targets = KINDS[kind](tmp_path, X, y)
    model = PartitionedLSSVMRegressor(memory_budget=SMALL).set_params(**FIXED).fit(rows, targets)
    assert model._stored is not None
    assert same(model, reference)
    new = data(200, seed=1)[0]
    assert np.array_equal(model.predict(new), reference.predict(new))
    for ours, theirs in zip(
        model.predict_interval(new[:5]), reference.predict_interval(new[:5]), strict=True
    ):
        assert np.array_equal(ours, theirs)
    # And rows to predict may be of any of these kinds.
    rows = (tmp_path / "parts") if kind == "parquet" else rows
    assert np.allclose(model.predict(rows), reference.predict(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_fit_in_memory_are_fitted_there(kind, tmp_path, reference):
    X, y = data()
    rows, targets = KINDS[kind](tmp_path, X, y)
    model = PartitionedLSSVMRegressor().set_params(**FIXED).fit(rows, targets)
    assert not hasattr(model, "_stored")
    assert same(model, reference)


@pytest.mark.parametrize(
    "settings",
    [
        {"partition": "hyperplanes", "n_partitions": 9},
        {"partition": "kmeans", "n_partitions": 7},
        {"partition": "tree", "n_partitions": 10, "combine": "route"},
        {"partition": "tree", "n_partitions": 10, "metric": "learned"},
        {"partition": "tree", "n_partitions": 1},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_cells_learned_from_a_sample_are_the_same_on_disk(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "_LEARNING_NUMBERS", 2400)
    X, y = data()
    settings = {**settings, "cells__tuning": "shared", "alpha": [0.1, 1.0]}
    disk = (
        PartitionedLSSVMRegressor(memory_budget=SMALL)
        .set_params(**settings)
        .fit(mapped(tmp_path, X), y)
    )
    memory = PartitionedLSSVMRegressor().set_params(**settings).fit(X, y)
    new = data(300, seed=1)[0]
    if settings["partition"] == "kmeans":  # blocks of products may round differently
        assert np.allclose(disk.predict(new), memory.predict(new), rtol=1e-10, atol=1e-10)
    else:
        assert same(disk, memory)
        assert np.array_equal(disk.predict(new), memory.predict(new))


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_weights_enter_the_cells_on_disk(fit_intercept, tmp_path):
    X, y = data()
    weights = np.random.default_rng(3).integers(0, 3, N).astype(float)
    model = PartitionedKernelRidge(
        "tree",
        4,
        "route",
        kernel_params={"length_scale": 1.0},
        alpha=0.1,
        fit_intercept=fit_intercept,
        memory_budget=SMALL,
        cells=CellOptions(clip=False),
    ).fit(mapped(tmp_path, X), y, mapped(tmp_path, weights, "w"))
    cells = model._cells
    for cell in range(4):
        rows = cells.rows[cells.offsets[cell] : cells.offsets[cell + 1]]
        whole = KernelRidge(0.1, kernel=model.kernels_[cell], fit_intercept=fit_intercept)
        whole.fit(X[rows], y[rows], weights[rows])
        np.testing.assert_allclose(model.predict(X[rows]), whole.predict(X[rows]), atol=1e-8)


def test_no_cell_is_spent_on_rows_without_weight(tmp_path):
    X = np.concatenate([np.linspace(0, 1, 1200), np.linspace(100, 101, 1200)])[:, None]
    weights = np.concatenate([np.ones(1200), np.zeros(1200)])
    model = PartitionedLSSVMRegressor("tree", 2, "route", memory_budget=SMALL, alpha=0.1)
    model.fit(mapped(tmp_path, X), np.sin(X[:, 0]), mapped(tmp_path, weights, "w"))
    assert model.partition_sizes_.tolist() == [600, 600]
    assert np.max(model._cells.rows) == 1199


@pytest.mark.parametrize("settings", [FIXED, {"n_partitions": 6}, {}], ids=str)
@pytest.mark.parametrize("of_rows_that_count", [1.0, None], ids=["a mask", "weights"])
def test_rows_of_weight_zero_are_no_rows_on_disk(settings, of_rows_that_count, tmp_path):
    X, y = data()
    rng = np.random.default_rng(2)
    used = rng.random(N) < 0.7
    weights = used * (rng.uniform(0.3, 3.0, N) if of_rows_that_count is None else 1.0)
    X[~used] += 30.0
    y[~used] = 1e3
    (tmp_path / "some").mkdir()
    model = PartitionedLSSVMRegressor(
        memory_budget=SMALL, compute=Compute(run_dir=tmp_path / "run")
    ).set_params(**settings)
    model.fit(mapped(tmp_path, X), y, weights)
    without = PartitionedLSSVMRegressor(memory_budget=SMALL).set_params(**settings)
    without.fit(mapped(tmp_path / "some", X[used]), y[used], weights[used])
    again = PartitionedLSSVMRegressor(
        memory_budget=SMALL, compute=Compute(run_dir=tmp_path / "run")
    ).set_params(**settings)
    again.fit(mapped(tmp_path, X), y, weights)
    new = data(100, seed=5)[0]
    for each in (model, again, without):
        each.set_params(memory_budget="auto")  # intervals take more than rows that are read
    for each in (model, again):
        np.testing.assert_allclose(each.predict(new), without.predict(new), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(
            each.predict_interval(new), without.predict_interval(new), rtol=1e-8, atol=1e-10
        )
        np.testing.assert_allclose(
            each.held_out_residuals_[used], without.held_out_residuals_, rtol=1e-8, atol=1e-10
        )
        np.testing.assert_allclose(
            each.held_out_residuals_[~used, 0], 1e3 - each.predict(X[~used]), rtol=1e-10
        )


def test_the_number_of_cells_is_chosen_alike(tmp_path):
    X, y = data(8300, d=3)
    settings = {"alpha": 0.1, "kernel_params": {"length_scale": 1.0}}
    disk = (
        PartitionedLSSVMRegressor(memory_budget=SMALL)
        .set_params(**settings)
        .fit(mapped(tmp_path, X), y)
    )
    assert len(disk.trials_) >= 2
    assert same(disk, PartitionedLSSVMRegressor().set_params(**settings).fit(X, y))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_several_targets_and_types(dtype, tmp_path):
    X, y = data(1500, dtype=dtype)
    y = np.column_stack([y, -y])
    settings = {"n_partitions": 9, "alpha": 0.1, "kernel_params": {"length_scale": 1.0}}
    disk = (
        PartitionedLSSVMRegressor(memory_budget=SMALL)
        .set_params(**settings)
        .fit(mapped(tmp_path, X), y)
    )
    memory = PartitionedLSSVMRegressor().set_params(**settings).fit(X, y)
    assert same(disk, memory)
    assert disk.predict(X).dtype == dtype
    assert np.array_equal(disk.y_fit_, y)


def test_the_classifier_reads_from_disk_too(tmp_path):
    X, y = data()
    labels = np.where(y > 0, "up", "down")
    settings = {"n_partitions": 6, "probability": True, "class_weight": "balanced"}
    disk = PartitionedLSSVMClassifier(
        memory_budget=SMALL, cells=CellOptions(tuning="shared")
    ).set_params(**settings)
    disk.fit(mapped(tmp_path, X), labels)
    memory = (
        PartitionedLSSVMClassifier(cells=CellOptions(tuning="shared"))
        .set_params(**settings)
        .fit(X, labels)
    )
    assert same(disk, memory)
    assert np.array_equal(disk.predict(X), memory.predict(X))
    assert np.array_equal(disk.predict_proba(X[:50]), memory.predict_proba(X[:50]))


def test_probabilities_from_disk_with_weights_in_a_file(tmp_path):
    X, y = data()
    labels, weights = (y > 0).astype(int), np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    settings = {"n_partitions": 6, "probability": True, "cells__tuning": "shared"}
    disk = (
        PartitionedLSSVMClassifier(memory_budget=SMALL)
        .set_params(**settings)
        .fit(mapped(tmp_path, X), labels, mapped(tmp_path, weights, "w"))
    )
    np.save(tmp_path / "v.npy", weights)
    by_path = (
        PartitionedLSSVMClassifier(memory_budget=SMALL)
        .set_params(**settings)
        .fit(mapped(tmp_path, X), labels, str(tmp_path / "v.npy"))
    )
    memory = PartitionedLSSVMClassifier().set_params(**settings).fit(X, labels, weights)
    for model in (disk, by_path):
        assert np.allclose(model.predict_proba(X[:20]), memory.predict_proba(X[:20]), atol=1e-12)


def test_one_weight_for_all_rows_on_disk(tmp_path):
    X, y = data()
    disk = (
        PartitionedLSSVMRegressor(memory_budget=SMALL)
        .set_params(**FIXED)
        .fit(mapped(tmp_path, X), y, 1.5)
    )
    memory = PartitionedLSSVMRegressor().set_params(**FIXED).fit(X, y, 1.5)
    assert same(disk, memory)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("settings", [{"combine": "average"}, {"cells__refine": 3}])
def test_what_needs_all_rows_gets_them(settings, tmp_path):
    X, y = data(1000)
    rows, targets = as_parquet(tmp_path, X, y)
    settings = {"n_partitions": 5, "alpha": 0.1, "kernel_params": {"length_scale": 1.0}, **settings}
    read = PartitionedLSSVMRegressor().set_params(**settings).fit(rows, targets)
    memory = PartitionedLSSVMRegressor().set_params(**settings).fit(X, y)
    assert np.allclose(read.predict(X), memory.predict(X), rtol=1e-10, atol=1e-10)
    with pytest.raises(BudgetError, match="memory_budget is 64 kB"):
        PartitionedLSSVMRegressor(memory_budget=SMALL).set_params(**settings).fit(rows, targets)


def test_a_model_of_rows_on_disk_can_be_saved_and_sent(tmp_path, reference):
    X, y = data()
    model = (
        PartitionedLSSVMRegressor(memory_budget=SMALL)
        .set_params(**FIXED)
        .fit(mapped(tmp_path, X), y)
    )
    new = data(100, seed=1)[0]
    model.save(tmp_path / "m.ridgefold")
    loaded = ridgefold.load(tmp_path / "m.ridgefold")
    sent = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own bytes
    folder = model._workspace.path
    assert folder.exists()
    del model
    assert not folder.exists()
    for other in (loaded, sent):
        assert np.array_equal(other.predict(new), reference.predict(new))


def test_a_stopped_fit_from_disk_goes_on(tmp_path, monkeypatch, reference):
    from ridgefold.storage.run_directory import RunDirectory

    class Stop(BaseException):
        pass

    monkeypatch.setattr(cell_rows, "ROWS_A_BATCH", 400)
    X, y = data()
    rows = mapped(tmp_path, X)
    original, seen = RunDirectory.record, []

    def record(self, name, sha256):
        original(self, name, sha256)
        seen.append(name)
        if len(seen) in (6, 9):
            raise Stop

    monkeypatch.setattr(RunDirectory, "record", record)

    def fit(**k):
        return (
            PartitionedLSSVMRegressor(compute=Compute(run_dir=tmp_path / "run"))
            .set_params(**FIXED, **k)
            .fit(rows, y)
        )

    for _ in range(2):
        with pytest.raises(Stop):
            fit(memory_budget=SMALL)
    # Another budget changes neither blocks nor the way that was begun.
    assert same(fit(), reference)
    assert len(seen) == len(set(seen))
    assert any(name.startswith("rows/") for name in seen)


def test_a_row_that_is_no_number_is_named(tmp_path):
    X, y = data(1500)
    X[1234, 1] = np.nan
    with pytest.raises(InvalidInputError, match="X holds NaN or infinity in row 1234"):
        PartitionedLSSVMRegressor(memory_budget=SMALL).fit(mapped(tmp_path, X), y)
    good, bad = mapped(tmp_path, np.nan_to_num(X)), np.where(np.arange(1500) == 7, np.inf, y)
    with pytest.raises(InvalidInputError, match="y holds NaN or infinity in row 7"):
        PartitionedLSSVMRegressor(memory_budget=SMALL).fit(good, bad)


def test_files_and_shapes_that_cannot_be_used_are_refused(tmp_path):
    X, y = data(1500)
    model = PartitionedLSSVMRegressor(memory_budget=SMALL)
    with pytest.raises(TableError, match=r"\.npy file, a \.parquet file"):
        model.fit("rows.csv", y)
    with pytest.raises(InvalidInputError, match="X has 1500 rows, y 1499"):
        model.fit(mapped(tmp_path, X), y[:-1])
    with pytest.raises(InvalidInputError, match="sample_weight must hold one number for each"):
        model.fit(mapped(tmp_path, X), y, np.ones(5))
    with pytest.raises(InvalidInputError, match="sample_weight must be >= 0"):
        model.fit(mapped(tmp_path, X), y, -np.ones(1500))
    pa_parquet.write_table(pa.table({"a": ["x"], "y": [1.0]}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"column 'a' .* holds string, not numbers"):
        model.fit(tmp_path / "t.parquet", "y")
    with pytest.raises(TableError, match="has no column 'z'"):
        model.fit(tmp_path / "t.parquet", "z")


MEMORY = """
import json, sys
import numpy as np
from ridgefold import Compute, PartitionedLSSVMRegressor

folder, budget = sys.argv[1], int(sys.argv[2])

def status(entry):
    with open("/proc/self/status") as file:
        return next(int(l.split()[1]) * 1024 for l in file if l.startswith(entry + ":"))

warm = np.random.default_rng(0).standard_normal((600, 5))
PartitionedLSSVMRegressor(n_partitions=2).fit(warm, warm[:, 0]).predict(warm)
X = np.load(folder + "/X.npy", mmap_mode="r")
y = np.load(folder + "/y.npy", mmap_mode="r")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = status("VmRSS")
model = PartitionedLSSVMRegressor(
    combine="route",
    n_partitions=len(X) // 200,
    alpha=1.0,
    kernel_params={"length_scale": 10.0},
    memory_budget=budget,
).fit(X, y)
fitted = status("VmHWM") - before
part = slice(0, len(X) // 3)
predictions = model.predict(X[part])
print(json.dumps({
    "fitted": fitted,
    "predicted": status("VmHWM") - before,
    "error": float(np.mean((predictions - y[part]) ** 2)),
    "predicted_bytes": X[part].nbytes,
}))
"""


def test_rows_of_four_times_the_budget_are_fitted_and_predicted_within_it(tmp_path):
    import json

    budget, n, d = 96 << 20, 170_000, 300
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (n, d))
    mixing = rng.standard_normal((3, d))  # many columns, few directions
    for start in range(0, n, 10_000):
        X[start : start + 10_000] = rng.uniform(-1, 1, (10_000, 3)) @ mixing
    np.save(tmp_path / "y.npy", np.tanh(X[:, 0]))
    X.flush()
    assert X.nbytes > 4 * budget
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", MEMORY, str(tmp_path), str(budget)],
        capture_output=True,
        check=True,
        text=True,
    )
    found = json.loads(done.stdout)
    assert found["error"] < 1.0
    assert found["fitted"] < budget
    assert found["predicted"] < budget < found["predicted_bytes"]


def test_batches_on_disk_are_those_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(cell_rows, "ROWS_A_BATCH", 300)
    X, y = data(1500)
    settings = {"n_partitions": 12, "kernel_params": {"length_scale": 1.0}, "alpha": [0.1, 1.0]}
    disk = PartitionedLSSVMRegressor(
        memory_budget=SMALL, compute=Compute(executor="threads", n_jobs=2)
    ).set_params(**settings)
    assert same(
        disk.fit(mapped(tmp_path, X), y),
        PartitionedLSSVMRegressor().set_params(**settings).fit(X, y),
    )

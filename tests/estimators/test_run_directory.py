"""A fit that was stopped goes on from its run directory, and gives the same model bit for bit."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest

from ridgefold import (
    CellOptions,
    Compute,
    PartitionedLSSVMClassifier,
    PartitionedLSSVMRegressor,
)
from ridgefold.cells import cell_rows
from ridgefold.cells import run_cells as partitioned
from ridgefold.errors import (
    InvalidInputError,
    RunDirectoryError,
    RunDirectoryLockedError,
    RunDirectoryMismatchError,
    UnsupportedInputError,
)
from ridgefold.kernels import RBF
from ridgefold.storage.run_directory import NoRunDirectory, RunDirectory

N = 320


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (N, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(N)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr(cell_rows, "ROWS_A_BATCH", 64)


@pytest.fixture
def fitted_batches(monkeypatch):
    """Counts the tasks that are computed."""
    calls = []
    original = partitioned._fit_batch

    def counting(task):
        calls.append(task)
        return original(task)

    monkeypatch.setattr(partitioned, "_fit_batch", counting)
    return calls


def same(one, other):
    arrays = [
        (getattr(one._models, name), getattr(other._models, name))
        for name in ("dual_coef", "intercept", "alpha", "kernel_of_cell", "lowest", "highest")
    ]
    arrays += [
        (one._cells.rows, other._cells.rows),
        (one._cells.weights, other._cells.weights),
        (one.held_out_residuals_, other.held_out_residuals_),
        (one.length_scales_, other.length_scales_),
    ]
    assert one.kernels_ == other.kernels_
    assert one.trials_ == other.trials_
    for a, b in arrays:
        assert (a is None) == (b is None)
        assert a is None or np.array_equal(a, b)
    X = data(9)[0]
    return bool(np.array_equal(one.predict(X), other.predict(X)))


class Stop(BaseException):
    """As sudden as Ctrl-C."""


def stop_after(monkeypatch, count):
    """Stop when `count` files were finished, before the last of them is noted."""
    seen = []
    original = RunDirectory.record

    def record(self, name, sha256):
        seen.append(name)
        if len(seen) == count:
            raise Stop
        original(self, name, sha256)

    monkeypatch.setattr(RunDirectory, "record", record)
    return lambda: monkeypatch.setattr(RunDirectory, "record", original)


MODELS = {
    "cells": lambda **k: PartitionedLSSVMRegressor("tree", 8).set_params(**k),
    "auto": lambda **k: PartitionedLSSVMRegressor("tree").set_params(**k),
    "kmeans": lambda **k: PartitionedLSSVMRegressor(
        "kmeans", 6, "route", cells=CellOptions(tuning="shared")
    ).set_params(**k),
    "average": lambda **k: PartitionedLSSVMRegressor("random", combine="average").set_params(**k),
    "scales": lambda **k: PartitionedLSSVMRegressor("tree", 6, metric="learned").set_params(**k),
    "classes": lambda **k: PartitionedLSSVMClassifier(
        "hyperplanes", 5, probability=True
    ).set_params(**k),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_stopped_fit_goes_on_to_the_same_model(name, tmp_path, monkeypatch):
    X, y = data()
    if name == "classes":
        y = np.where(y > 0, "up", "down")
    reference = MODELS[name]().fit(X, y)
    stops = 0
    for count in (2, 3, 2, 4):
        resume = stop_after(monkeypatch, count)
        try:
            MODELS[name](compute__run_dir=tmp_path / "run").fit(X, y)
        except Stop:
            stops += 1
        resume()
    assert stops >= 1
    model = MODELS[name](compute__run_dir=tmp_path / "run").fit(X, y)
    assert same(model, reference)


def test_finished_cells_are_not_fitted_again(tmp_path, monkeypatch, fitted_batches):
    X, y = data()
    fit = MODELS["cells"]
    resume = stop_after(monkeypatch, 8)  # five steps, two tasks noted, one written
    with pytest.raises(Stop):
        fit(compute__run_dir=tmp_path).fit(X, y)
    resume()
    before = len(fitted_batches)
    model = fit(compute__run_dir=tmp_path).fit(X, y)
    in_all = len(fitted_batches)
    assert before == 3
    fit().fit(X, y)
    assert in_all == len(fitted_batches) - in_all
    # A run that is complete computes nothing at all.
    before = len(fitted_batches)
    again = fit(compute__run_dir=tmp_path).fit(X, y)
    assert len(fitted_batches) == before
    assert same(again, model)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_cells_that_run_elsewhere_are_kept_too(executor, tmp_path):
    X, y = data()
    model = MODELS["cells"](
        compute__run_dir=tmp_path, compute__executor=executor, compute__n_jobs=2
    ).fit(X, y)
    assert len(list((tmp_path / "cells").glob("*.piece"))) > 1
    # Neither the executor nor the number of workers is part of what was asked.
    assert same(MODELS["cells"](compute__run_dir=tmp_path).fit(X, y), model)


@pytest.mark.parametrize("harm", ["cut", "flip", "swap", "empty", "unlisted"])
def test_a_damaged_file_is_made_again_and_never_read(harm, tmp_path, fitted_batches):
    X, y = data()
    reference = MODELS["cells"](compute__run_dir=tmp_path).fit(X, y)
    pieces = sorted((tmp_path / "cells").glob("*.piece"))
    victim, other = pieces[1], pieces[2]
    content = bytearray(victim.read_bytes())
    if harm == "cut":
        victim.write_bytes(content[: len(content) // 2])
    elif harm == "empty":
        victim.write_bytes(b"")
    elif harm == "swap":
        victim.write_bytes(other.read_bytes())
    else:
        content[len(content) // 2] ^= 1
        victim.write_bytes(content)
    if harm == "unlisted":  # then its own digests must show it
        (tmp_path / "manifest.jsonl").unlink()
    before = len(fitted_batches)
    model = MODELS["cells"](compute__run_dir=tmp_path).fit(X, y)
    assert len(fitted_batches) == before + 1
    assert same(model, reference)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": 1}, "the values of X"),
        ({"y": 1}, "the values of y"),
        ({"rows": 1}, r"X shape was \[320,2\] and is \[300,2\]"),
        ({"weights": 1}, "sample_weight"),
        ({"alpha": 0.5}, "alpha was null and is 0.5"),
        ({"n_partitions": 9}, "n_partitions was 8 and is 9"),
        ({"kernel": RBF(2.0)}, "kernel was"),
        ({"random_state": 5}, "random_state was 0 and is 5"),
    ],
)
def test_other_data_or_settings_are_refused_by_name(change, words, tmp_path):
    X, y = data()
    MODELS["cells"](compute__run_dir=tmp_path).fit(X, y)
    arguments = {"X": X.copy(), "y": y.copy(), "sample_weight": None}
    if "X" in change:
        arguments["X"][7, 1] += 1e-15
    elif "y" in change:
        arguments["y"][7] += 1e-13
    elif "rows" in change:
        arguments.update(X=X[:300], y=y[:300])
    elif "weights" in change:
        arguments["sample_weight"] = np.ones(N)
    settings = {k: v for k, v in change.items() if k not in ("X", "y", "rows", "weights")}
    model = MODELS["cells"](compute__run_dir=tmp_path).set_params(**settings)
    with pytest.raises(RunDirectoryMismatchError, match=words):
        model.fit(**arguments)


def test_another_version_is_refused(tmp_path, monkeypatch):
    X, y = data()
    MODELS["cells"](compute__run_dir=tmp_path).fit(X, y)
    monkeypatch.setattr("ridgefold.__version__", "99.0")
    with pytest.raises(RunDirectoryMismatchError, match="versions ridgefold was"):
        MODELS["cells"](compute__run_dir=tmp_path).fit(X, y)


def test_a_fit_without_a_seed_goes_on_with_the_one_it_had(tmp_path, monkeypatch):
    X, y = data()
    fit = lambda: MODELS["average"](compute__run_dir=tmp_path, random_state=None).fit(X, y)  # noqa: E731
    resume = stop_after(monkeypatch, 2)
    with pytest.raises(Stop):
        fit()
    resume()
    assert same(fit(), fit())


def test_a_folder_with_other_files_is_refused(tmp_path):
    X, y = data()
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(RunDirectoryError, match="empty folder"):
        MODELS["cells"](compute__run_dir=tmp_path).fit(X, y)
    with pytest.raises(RunDirectoryError, match="is a file"):
        MODELS["cells"](compute__run_dir=tmp_path / "thesis.tex").fit(X, y)
    with pytest.raises(InvalidInputError, match="run_dir must be a path"):
        MODELS["cells"](compute__run_dir=3).fit(X, y)


def test_a_kernel_that_cannot_be_compared_is_refused(tmp_path):
    X, y = data()
    model = PartitionedLSSVMRegressor(
        kernel=lambda a, b: float(a @ b), compute=Compute(run_dir=tmp_path)
    )
    with pytest.raises(UnsupportedInputError, match="run_dir cannot be used with kernel="):
        model.fit(X, y)


def test_a_second_process_is_told_who_works_there(tmp_path):
    X, y = data()
    model = MODELS["cells"](compute__run_dir=tmp_path)
    with (
        RunDirectory(tmp_path, {}).opened(),
        pytest.raises(RunDirectoryLockedError, match=r"another process \(process \d+ on"),
    ):
        model.fit(X, y)


def test_the_folder_is_no_part_of_the_model(tmp_path):
    import ridgefold

    X, y = data()
    for name, folder in (("a", tmp_path / "run"), ("b", None)):
        model = MODELS["cells"](compute__run_dir=folder).fit(X, y)
        del model.run_record_  # how long it took, which is never the same
        model.save(tmp_path / f"{name}.ridgefold")
    one, other = ((tmp_path / name).read_bytes() for name in ("a.ridgefold", "b.ridgefold"))
    assert one == other
    assert ridgefold.load(tmp_path / "a.ridgefold").compute is None


CHILD = """
import os, signal, sys
import numpy as np
from ridgefold import Compute, PartitionedLSSVMRegressor
from ridgefold.cells import cell_rows
from ridgefold.storage.run_directory import RunDirectory
cell_rows.ROWS_A_BATCH = 64
folder, how = sys.argv[1:]
rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (320, 2))
y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(320)
original, seen = RunDirectory.record, []
def record(self, name, sha256):
    original(self, name, sha256)
    seen.append(name)
    if len(seen) == 6:
        os.kill(os.getpid(), getattr(signal, how))
RunDirectory.record = record
PartitionedLSSVMRegressor("tree", 8, compute=Compute(run_dir=folder)).fit(X, y)
"""


@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_a_killed_process_is_continued(how, tmp_path, fitted_batches):
    child = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", CHILD, str(tmp_path), how], capture_output=True, check=False
    )
    assert child.returncode in (-signal.Signals[how], 1, 130)
    finished = len(list((tmp_path / "cells").glob("*.piece")))
    assert finished >= 1
    X, y = data()
    model = MODELS["cells"](compute__run_dir=tmp_path).fit(X, y)
    made = len(fitted_batches)
    reference = MODELS["cells"]().fit(X, y)
    assert made == len(fitted_batches) - made - finished
    assert same(model, reference)


def test_tasks_of_other_folders_and_other_fits_have_other_names(tmp_path):
    """Two of them may run on one cluster at the same time."""
    here, there = (RunDirectory(tmp_path / name, {"fit": 1}) for name in ("here", "there"))
    names = {run.key("cells/0") for run in (here, there, NoRunDirectory(), NoRunDirectory())}
    assert len(names) == 4
    assert RunDirectory(tmp_path / "here", {"fit": 1}).key("cells/0") == here.key("cells/0")

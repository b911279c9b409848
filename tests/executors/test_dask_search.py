"""The grid of an exact model on a cluster: the bits of one process, whatever happens there."""

from __future__ import annotations

import os
import pickle
import signal
import sys

import numpy as np
import pytest
import scipy.sparse

pytest.importorskip("distributed")
import cloudpickle

from ridgefold import Compute, KernelRidgeCV, LSSVMClassifierCV, LSSVMRegressorCV
from ridgefold.errors import NumericalError, WorkerLostError
from ridgefold.executors import Dask
from ridgefold.executors.dask import local_cluster
from ridgefold.selection import kernel_paths
from ridgefold.storage.run_directory import RunDirectory

cloudpickle.register_pickle_by_value(sys.modules[__name__])
RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(150)
GRID = {
    "kernel_params": {"length_scale": [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]},
    "alpha": [1e-3, 1e-1, 10.0],
}
KERNELS = len(GRID["kernel_params"]["length_scale"])


@pytest.fixture(scope="module")
def client():
    with local_cluster(2) as client:
        yield client


def same(one, other):
    assert one.best_params_ == other.best_params_
    scores = [k for k in one.cv_results_ if k.startswith(("split", "mean_test", "bound"))]
    for key in scores:
        np.testing.assert_array_equal(one.cv_results_[key], other.cv_results_[key])
    np.testing.assert_array_equal(one._held_out_columns(), other._held_out_columns())
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
    return len(scores) > 1


@pytest.mark.parametrize(
    ("cls", "rows", "targets", "arguments"),
    [
        (KernelRidgeCV, X, Y, {"search__race": "full"}),
        (KernelRidgeCV, X, Y, {"search__race": "race"}),
        (KernelRidgeCV, np.asfortranarray(X), Y, {"cv": "loo"}),
        (KernelRidgeCV, scipy.sparse.csr_array(np.maximum(X, 0)), Y, {}),
        (KernelRidgeCV, X @ X.T, Y, {"kernel": "precomputed", "kernel_params": None}),
        (LSSVMRegressorCV, X, np.column_stack([Y, X[:, 2]]), {"search__race": "race"}),
        (LSSVMClassifierCV, X, np.where(Y > 0, "high", "low"), {"search__race": "race"}),
    ],
    ids=["full", "race", "leave-one-out", "sparse", "precomputed", "two targets", "classes"],
)
def test_the_choice_is_that_of_one_process(cls, rows, targets, arguments, client):
    settings = {**GRID, **arguments}
    model = cls().set_params(**settings, compute__executor=client).fit(rows, targets)
    assert same(model, cls().set_params(**settings).fit(rows, targets))
    choosing = str(model.explain()).splitlines()
    place = choosing.index("├─ on a Dask cluster, one kernel a task")
    assert choosing[place + 1].startswith("├─ moves ")


def test_tasks_name_their_rows_and_keys_are_the_same_every_time(client, tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", X)
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    original, seen = Dask.map, []

    def watched(self, task, items, keys=None):
        seen.append((list(keys), [cloudpickle.dumps(item) for item in items]))
        return original(self, task, items, keys)

    monkeypatch.setattr(Dask, "map", watched)
    for kept in ("first", "second"):
        KernelRidgeCV(compute=Compute(executor=client, run_dir=tmp_path / "run")).set_params(
            **GRID
        ).fit(rows, Y)
        (tmp_path / "run").rename(tmp_path / kept)
    (first, tasks), (second, _) = seen
    assert first == second
    assert len(set(first)) == KERNELS
    for task, _ in map(pickle.loads, tasks):
        assert task.common.X.path == tmp_path / "rows.npy"
    assert max(map(len, tasks)) < X.nbytes + Y.nbytes
    assert not (tmp_path / "first" / "data" / "X.npy").exists()
    assert len(list((tmp_path / "first" / "kernels").glob("*.piece"))) == KERNELS


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_killed_worker_changes_nothing(share, client, tmp_path, monkeypatch):
    original, seen, finished = RunDirectory.record, [], {}

    def record(self, name, sha256):
        original(self, name, sha256)
        seen.append(name)
        if len(seen) == max(1, round(share * KERNELS)):
            for path in (tmp_path / "kernels").glob("*.piece"):
                finished[path] = path.stat().st_ino
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    monkeypatch.setattr(RunDirectory, "record", record)
    model = (
        KernelRidgeCV(compute=Compute(executor=client, run_dir=tmp_path))
        .set_params(**GRID)
        .fit(X, Y)
    )
    assert same(model, KernelRidgeCV().set_params(**GRID).fit(X, Y))
    # What was finished when the worker died was not made again.
    assert finished
    assert all(path.stat().st_ino == inode for path, inode in finished.items())


def deadly(task):
    from ridgefold.selection.path_tasks import cross_validated

    if task.kernel.length_scale == 1.0:
        os.kill(os.getpid(), signal.SIGKILL)
    return cross_validated(task)


@pytest.mark.full
def test_a_kernel_that_always_kills_its_worker_is_named(client, tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_paths, "cross_validated", deadly)
    with pytest.raises(WorkerLostError, match=r"kernels/[0-9a-f]* was begun 3 times"):
        KernelRidgeCV(compute=Compute(executor=client, run_dir=tmp_path)).set_params(**GRID).fit(
            X, Y
        )


def counted(item):
    path, message = item
    with open(path, "a") as file:
        file.write("x")
    raise NumericalError(message)


def test_an_error_of_ours_is_not_tried_again(client, tmp_path):
    path = tmp_path / "tries"
    with pytest.raises(NumericalError, match="overflows"):
        list(Dask(client=client).map(counted, [(str(path), "it overflows")]))
    assert path.read_text() == "x"


def test_workers_of_this_machine_are_as_many_as_the_budget_holds():
    own = Dask(4)
    assert own.place == "4 workers of this machine"
    assert own.at_most(9) is own
    assert own.at_most(2).n_workers == 2
    assert own.at_most(0).n_workers == 1
    away = Dask(address="tcp://10.0.0.1:8786")
    assert away.at_most(1) is away
    assert away.place == "the workers of the Dask cluster at tcp://10.0.0.1:8786"


def test_workers_stay_between_rounds():
    executor = Dask(1)
    with executor.held():
        first = list(executor.map(process_of, [0]))
        assert list(executor.map(process_of, [0])) == first
        assert list(executor.at_most(1).map(process_of, [0])) == first
    assert first != [os.getpid()]


def process_of(_):
    return os.getpid()

"""A cluster gives the model of one process, bit for bit, whatever happens to its workers."""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import partial

import numpy as np
import pytest

pytest.importorskip("distributed")
import cloudpickle

from ridgefold import Compute, PartitionedLSSVMClassifier, PartitionedLSSVMRegressor, explain
from ridgefold.cells.local_fit import CellSystem
from ridgefold.errors import ClusterError, InvalidInputError, WorkerLostError
from ridgefold.executors import Dask
from ridgefold.executors.dask import local_cluster
from ridgefold.storage.run_directory import RunDirectory

cloudpickle.register_pickle_by_value(sys.modules[__name__])
SETTINGS = {
    "alpha": 0.1,
    "kernel_params": {"length_scale": 1.0},
    "n_partitions": 100,
    "intervals": "jackknife+",
}
N = 24_000
"""Rows enough for eight tasks."""


def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (N, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(N)


@pytest.fixture(scope="module")
def client():
    with local_cluster(2) as client:
        yield client


@pytest.fixture(scope="module")
def reference():
    return PartitionedLSSVMRegressor().set_params(**SETTINGS).fit(*data())


def same(one, other):
    for name in ("dual_coef", "intercept", "alpha", "lowest", "highest"):
        assert np.array_equal(getattr(one._models, name), getattr(other._models, name))
    assert np.array_equal(one._cells.rows, other._cells.rows)
    assert np.array_equal(one.held_out_residuals_, other.held_out_residuals_)
    new = np.random.default_rng(1).uniform(-2, 2, (100, 2))
    return bool(np.array_equal(one.predict(new), other.predict(new)))


def test_the_scheduler_and_workers_listen_on_this_machine_only(client):
    import psutil

    processes = [os.getpid(), *client.run(os.getpid).values()]
    assert len(processes) == 3
    listening = [
        connection.laddr.ip
        for number in processes
        for connection in psutil.Process(number).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 3
    assert set(listening) == {"127.0.0.1"}


@pytest.mark.parametrize("where", ["run_dir", "temporary folder"])
def test_the_model_is_that_of_one_process(where, client, reference, tmp_path):
    folder = tmp_path / "run" if where == "run_dir" else None
    model = (
        PartitionedLSSVMRegressor(compute=Compute(executor=client, run_dir=folder))
        .set_params(**SETTINGS)
        .fit(*data())
    )
    assert same(model, reference)
    if folder is not None:  # and the run is any executor's
        again = PartitionedLSSVMRegressor(
            compute=Compute(run_dir=folder, executor="threads", n_jobs=2)
        ).set_params(**SETTINGS)
        assert same(again.fit(*data()), reference)


def test_a_plan_counts_the_workers_of_the_cluster(client):
    shapes = {"n_samples": 20_000, "n_features": 5, "memory_budget": "4GB"}
    paper = str(explain(PartitionedLSSVMRegressor(), n_workers=2, **shapes))
    for executor in (client, client.scheduler.address):
        assert (
            str(explain(PartitionedLSSVMRegressor(compute=Compute(executor=executor)), **shapes))
            == paper
        )


def test_the_classifier_runs_there_too(client):
    X, y = data()
    settings = {"alpha": 0.1, "kernel_params": {"length_scale": 1.0}, "n_partitions": 20}
    ours = (
        PartitionedLSSVMClassifier(compute=Compute(executor=client))
        .set_params(**settings)
        .fit(X[:4000], y[:4000] > 0)
    )
    theirs = PartitionedLSSVMClassifier().set_params(**settings).fit(X[:4000], y[:4000] > 0)
    assert np.array_equal(ours.decision_function(X[:99]), theirs.decision_function(X[:99]))


def test_workers_choose_how_many_cells_and_their_pair(client, tmp_path, monkeypatch):
    X, y = (part[:8500] for part in data())
    weights = np.random.default_rng(2).integers(1, 3, len(X)) / 1.5
    settings = {"cells__tuning": "shared", "fit_intercept": True, "random_state": 0}
    # Slopes and lines are found by the process that drives.
    settings |= {"partition": "principal", "cells__linear_part": None}
    expected = PartitionedLSSVMRegressor().set_params(**settings).fit(X, y, sample_weight=weights)
    sent, keys, original = {}, [], Dask.map

    def watched(self, task, items, names=None):
        sent.setdefault(getattr(task, "task", task).__name__, []).extend(
            cloudpickle.dumps(item) for item in items
        )
        keys.extend(names)
        return original(self, task, items, names)

    def not_here(*_):
        raise AssertionError("a system was solved by the process that drives")

    monkeypatch.setattr(Dask, "map", watched)
    monkeypatch.setattr(CellSystem, "score", not_here)
    monkeypatch.setattr(CellSystem, "fit", not_here)
    model = PartitionedLSSVMRegressor(
        compute=Compute(executor=client, run_dir=tmp_path / "run")
    ).set_params(**settings)
    model.fit(X, y, sample_weight=weights)
    assert model.trials_ == expected.trials_
    assert len(model.trials_) > 1
    assert np.array_equal(model._models.dual_coef, expected._models.dual_coef)
    # Tasks name their rows, and hold none.
    assert {"_score", "_fit_batch"} < set(sent)
    rows = [row.tobytes() for row in X[::100]]
    assert not any(row in task for tasks in sent.values() for task in tasks for row in rows)
    # Their own names are those of the run, the region, the size and the cell.
    assert len(set(keys)) == len(keys)
    run = RunDirectory(tmp_path / "run", json.loads((tmp_path / "run/run.json").read_text()))
    assert {run.key(f"region-{r}-size-256-cells/0000000") for r in (0, 1)} <= set(keys)
    assert all(key.startswith(f"ridgefold-{run.run[:16]}-") for key in keys)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_killed_worker_changes_nothing(share, client, reference, tmp_path, monkeypatch):
    original, seen, finished = RunDirectory.record, [], {}

    def record(self, name, sha256):
        original(self, name, sha256)
        if name.startswith("cells/"):
            seen.append(name)
            if len(seen) == max(1, round(share * 8)):
                for path in (tmp_path / "cells").glob("*.piece"):
                    finished[path] = path.stat().st_ino
                victim = next(iter(client.run(os.getpid).values()))
                os.kill(victim, signal.SIGKILL)

    monkeypatch.setattr(RunDirectory, "record", record)
    model = (
        PartitionedLSSVMRegressor(compute=Compute(executor=client, run_dir=tmp_path))
        .set_params(**SETTINGS)
        .fit(*data())
    )
    assert same(model, reference)
    # What was finished when the worker died was not made again.
    assert finished
    assert all(path.stat().st_ino == inode for path, inode in finished.items())


DEADLY = 1e3


def deadly_kernel(a, b, spared):
    """Kills the process that works on certain rows, unless it is the one that is spared."""
    if max(a.max(), b.max()) >= DEADLY and os.getpid() != spared:
        os.kill(os.getpid(), signal.SIGKILL)
    return np.exp(-np.sum((a - b) ** 2))


def test_a_cell_that_always_kills_its_worker_is_named(client):
    X, y = (part[:300] for part in data())
    X[:40] += 2 * DEADLY
    model = PartitionedLSSVMRegressor(
        kernel=partial(deadly_kernel, spared=os.getpid()),
        alpha=0.1,
        n_partitions=8,
        partition="kmeans",
        combine="route",
        compute=Compute(executor=client),
    )
    with pytest.raises(WorkerLostError, match=r"cells/\d+ was begun 3 times"):
        model.fit(X, y)


def test_what_workers_cannot_load_is_an_error_and_no_endless_wait(client, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text(
        "import numpy as np\n\ndef kernel(A, B):\n    return A @ B.T\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from only_here import kernel

    model = PartitionedLSSVMRegressor(
        kernel=kernel, alpha=0.1, n_partitions=4, compute=Compute(executor=client)
    )
    with pytest.raises(ClusterError, match=r"cannot load .*only_here.*modules that your kernels"):
        model.fit(*(part[:2000] for part in data()))


def blas_threads(_):
    from threadpoolctl import threadpool_info

    return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]


def square(number):
    return number * number


def test_results_come_in_order_on_one_thread(client):
    executor = Dask(client=client)
    keys = [f"square-{k}" for k in range(50)]
    assert list(executor.map(square, range(50), keys)) == [k * k for k in range(50)]
    assert list(executor.map(square, [])) == []
    for threads in executor.map(blas_threads, [0, 1]):
        assert set(threads) <= {1}


def test_what_cannot_run_there_is_refused(client):
    X, y = data()
    for settings in ({"combine": "average"}, {"cells__refine": 2}):
        with pytest.raises(
            InvalidInputError, match=r'combine="blend" or "route", and cells\.refine=None'
        ):
            PartitionedLSSVMRegressor(compute=Compute(executor=client)).set_params(**settings).fit(
                X, y
            )


def test_an_address_where_nobody_listens_is_an_error(monkeypatch):
    from ridgefold.executors import dask

    monkeypatch.setattr(dask, "_SECONDS_TO_CONNECT", 1)
    with pytest.raises(ClusterError, match="there is no Dask scheduler at 'tcp:"):
        list(Dask(address="tcp://127.0.0.1:9").map(square, [1]))

"""A cluster without workers, without a scheduler, with a closed client, or that loses its workers
on the way: a typed error that says what to do, in time, and nothing that was finished is lost."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("distributed")
import cloudpickle
from distributed import Client

import ridgefold
from ridgefold import Compute, KernelRidgeCV, PartitionedLSSVMRegressor
from ridgefold.errors import ClusterError, InvalidInputError, NoWorkersError
from ridgefold.executors import Dask
from ridgefold.executors.dask import local_cluster
from ridgefold.storage.run_directory import RunDirectory

cloudpickle.register_pickle_by_value(sys.modules[__name__])
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (900, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(len(X))
MANY_NEW_ROWS = np.zeros((200_000, 2))
"""With the rows of one cell more kernel values than are worth sending."""
PAIR = {"alpha": 0.1, "kernel_params": {"length_scale": 1.0}}
GRID = {
    "kernel_params": {"length_scale": [0.5, 1.0, 2.0, 4.0]},
    "alpha": [0.1, 1.0],
    "search__race": "full",
}
AT_ONCE = 0.0
"""Seconds to wait, where workers are known not to come."""


class Workers:
    """Worker processes that nobody starts again, of a scheduler without any."""

    def __init__(self, client):
        self.client, self.started = client, []

    def start(self, *_):
        """One, if there is none."""
        self.started = [worker for worker in self.started if worker.poll() is None]
        if not self.started:
            command = [sys.executable, "-m", "distributed.cli.dask_worker"]
            command += [self.client.scheduler.address, "--no-nanny", "--nthreads", "1"]
            command += ["--host", "127.0.0.1", "--no-dashboard"]
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            self.started.append(subprocess.Popen(command, **quiet))  # noqa: S603
        self.client.wait_for_workers(1, timeout=60)

    def end(self):
        """All of them."""
        for worker in self.started:
            worker.kill()
            worker.wait()
        self.started = []
        soon(lambda: not self.client.nthreads())


def soon(holds):
    """Look until it holds: what a scheduler is told, it does in its own time."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end


@pytest.fixture(scope="module")
def client():
    with local_cluster(0) as client:
        yield client


@pytest.fixture(scope="module")
def workers(client):
    workers = Workers(client)
    yield workers
    workers.end()


@pytest.fixture
def no_workers(workers):
    workers.end()


def fit_search(executor, **settings):
    return (
        KernelRidgeCV(compute=Compute(executor=executor))
        .set_params(**GRID, **settings)
        .fit(X[:200], Y[:200])
    )


def fit_cells(executor, **settings):
    return (
        PartitionedLSSVMRegressor(n_partitions=6, compute=Compute(executor=executor))
        .set_params(**PAIR, **settings)
        .fit(X, Y)
    )


def choose_cells(executor, **settings):
    return (
        PartitionedLSSVMRegressor(compute=Compute(executor=executor))
        .set_params(**settings)
        .fit(X, Y)
    )


def predict(executor, **settings):
    model = PartitionedLSSVMRegressor(n_partitions=1).set_params(**PAIR, **settings).fit(X, Y)
    return model.set_params(compute__executor=executor).predict(MANY_NEW_ROWS)


WORK = [fit_search, fit_cells, choose_cells, predict]


@pytest.mark.parametrize("work", WORK)
def test_without_workers_work_is_given_up_when_it_was_to_be(work, client, no_workers, capsys):
    with pytest.raises(NoWorkersError, match=r"had no workers for 0 s.*\(dask worker tcp://") as it:
        work(Dask(client=client, wait_for_workers=AT_ONCE))
    assert "wait_for_workers=600" in str(it.value)
    assert capsys.readouterr().err == ""


def test_it_says_what_it_waits_for_and_until_when(client, no_workers, capsys):
    with pytest.raises(NoWorkersError):
        fit_cells(Dask(client=client, wait_for_workers=0.5), compute__verbose=1)
    said = re.sub(r"\x1b\S*|[\r\n]+", " ", capsys.readouterr().err)
    assert "waiting for workers: none since 0 s, gives up at 0.5 s" in said


@pytest.mark.parametrize("work", [fit_search, fit_cells, choose_cells])
def test_a_closed_client_is_an_error_that_says_so(work, client):
    with Client(client.scheduler.address, set_as_default=False) as closed:
        pass
    with pytest.raises(ClusterError, match=r"client of the Dask cluster is closed.*open one"):
        work(closed)


def test_with_a_closed_client_this_process_predicts(client):
    with Client(client.scheduler.address, set_as_default=False) as closed:
        pass
    model = fit_cells("serial")
    expected = model.predict(X)
    assert np.array_equal(model.set_params(compute__executor=closed).predict(X), expected)


@pytest.mark.parametrize("work", [fit_search, fit_cells])
def test_a_scheduler_that_is_gone_is_an_error_that_says_so(work):
    with local_cluster(0) as owner:
        client = Client(owner.scheduler.address, timeout=1, set_as_default=False)
    # The client may have seen it already, or sees it now.
    with pytest.raises(ClusterError, match=r"scheduler .* was lost|because its scheduler was gone"):
        work(client)
    client.close()


def test_a_client_that_is_closed_on_the_way_is_an_error(client, workers):
    workers.start()
    with Client(client.scheduler.address, set_as_default=False) as mine:
        results = Dask(client=mine).map(abs, range(-40, 0))
        assert next(results) == 40
    with pytest.raises(ClusterError, match="is closed"):
        list(results)


def test_a_scheduler_that_is_lost_on_the_way_is_an_error():
    with local_cluster(1) as owner:
        client = Client(owner.scheduler.address, timeout=1, set_as_default=False)
        results = Dask(client=client).map(abs, range(-40, 0))
        assert next(results) == 40
    with pytest.raises(ClusterError, match=r"scheduler .* was lost|because its scheduler was gone"):
        list(results)
    client.close()


def fit_many_cells(executor, **settings):
    rows = np.random.default_rng(1).uniform(-2, 2, (12_000, 2))
    model = PartitionedLSSVMRegressor(
        n_partitions=50, compute=Compute(executor=executor)
    ).set_params(**PAIR, **settings)
    return model.fit(rows, np.sin(rows[:, 0]))


def dies_after_the_first_result(workers, monkeypatch):
    """The only worker, with all results that were not yet taken from it."""
    original = RunDirectory.record

    def record(self, name, sha256):
        original(self, name, sha256)
        if name.startswith(("cells/", "kernels/")):
            monkeypatch.undo()
            workers.end()

    monkeypatch.setattr(RunDirectory, "record", record)


def kept_in(run):
    return {path: path.stat().st_ino for path in run.glob("*/*.piece")}


def goes_on_with_what_was_finished(fit, client, workers, tmp_path, monkeypatch):
    workers.start()
    dies_after_the_first_result(workers, monkeypatch)
    with pytest.raises(NoWorkersError, match="with a run_dir goes on with what is finished"):
        fit(Dask(client=client, wait_for_workers=AT_ONCE), compute__run_dir=tmp_path)
    kept = kept_in(tmp_path)
    assert any(path.parent.name in ("cells", "kernels") for path in kept)
    workers.start()
    model = fit(client, compute__run_dir=tmp_path)
    now = kept_in(tmp_path)
    assert {path: now[path] for path in kept} == kept
    assert np.array_equal(model.predict(X), fit("serial").predict(X))
    return True


def test_what_was_finished_before_the_only_worker_died_is_kept(
    client, workers, tmp_path, monkeypatch
):
    assert goes_on_with_what_was_finished(fit_many_cells, client, workers, tmp_path, monkeypatch)


@pytest.mark.full
def test_kernels_that_were_finished_before_the_only_worker_died_are_kept(
    client, workers, tmp_path, monkeypatch
):
    assert goes_on_with_what_was_finished(fit_search, client, workers, tmp_path, monkeypatch)


def goes_on_with_workers_that_come_back(fit, client, workers, tmp_path, monkeypatch):
    workers.start()
    dies_after_the_first_result(workers, monkeypatch)
    executor, said = Dask(client=client), []

    def say(line):
        said.append(line)
        workers.start()

    executor.say = say
    model = fit(executor, compute__run_dir=tmp_path)
    assert said == ["waiting for workers: none since 0 s, gives up at 60 s", "there are workers: 1"]
    assert np.array_equal(model.predict(X), fit("serial").predict(X))
    return True


def test_workers_that_come_back_in_time_go_on(client, workers, tmp_path, monkeypatch):
    assert goes_on_with_workers_that_come_back(fit_search, client, workers, tmp_path, monkeypatch)


@pytest.mark.full
def test_workers_that_come_back_in_time_go_on_with_cells(client, workers, tmp_path, monkeypatch):
    assert goes_on_with_workers_that_come_back(
        fit_many_cells, client, workers, tmp_path, monkeypatch
    )


def interrupting(item):
    driver, number = item
    if number == 1:
        os.kill(driver, signal.SIGINT)
    return number


def tasks_of(client):
    return client.run_on_scheduler(lambda dask_scheduler: sorted(map(str, dask_scheduler.tasks)))


def test_a_driver_that_is_interrupted_leaves_no_tasks(client, workers):
    workers.start()
    with pytest.raises(KeyboardInterrupt):
        list(Dask(client=client).map(interrupting, [(os.getpid(), k) for k in range(200)]))
    soon(lambda: not tasks_of(client))


def test_neither_does_one_that_is_interrupted_while_it_gathers(client, workers):
    workers.start()
    executor = Dask(client=client)

    def interrupted():
        with executor.held():
            for _ in executor.map(abs, range(200)):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as kept:
        interrupted()
    assert kept.tb is not None  # which keeps the frames alive
    soon(lambda: not tasks_of(client))


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), "60", None, True])
def test_a_wait_that_is_no_number_of_seconds_is_refused(seconds):
    with pytest.raises(InvalidInputError, match="wait_for_workers must be a number of seconds"):
        Dask(wait_for_workers=seconds)


def test_two_clusters_are_refused():
    with pytest.raises(InvalidInputError, match="two clusters"):
        Dask(client="one", address="tcp://127.0.0.1:1")


def test_an_executor_with_a_wait_is_an_argument_like_others(client, tmp_path):
    from sklearn.base import clone

    executor = Dask(client=client, wait_for_workers=7)
    model = PartitionedLSSVMRegressor(
        n_partitions=2, compute=Compute(executor=executor)
    ).set_params(**PAIR)
    assert clone(model).compute.executor is executor
    assert "wait_for_workers=7" in repr(executor)
    model.set_params(compute__executor="serial").fit(X, Y).set_params(compute__executor=executor)
    model.save(tmp_path / "model.ridgefold")
    assert ridgefold.load(tmp_path / "model.ridgefold").compute is None

"""Many rows are predicted by the workers of a cluster, to the same bits as by one process."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

pytest.importorskip("distributed")

import ridgefold
from ridgefold import CellOptions, Compute, PartitionedLSSVMClassifier, PartitionedLSSVMRegressor
from ridgefold.cells import named_prediction
from ridgefold.errors import NumericalError
from ridgefold.estimators import partitioned_predict
from ridgefold.executors.dask import local_cluster
from ridgefold.storage.run_directory import Piece

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (9000, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(len(X))
NEW = RNG.uniform(-2.2, 2.2, (2500, 2))
SETTINGS = {"alpha": 0.1, "kernel_params": {"length_scale": 0.7}, "n_partitions": 40}


@pytest.fixture(scope="module")
def client():
    with local_cluster(2) as client:
        yield client


@pytest.fixture
def sent(monkeypatch):
    """What is worth sending, and the predictions that were."""
    done = []
    original = partitioned_predict.predict_elsewhere

    def watched(*arguments, **named):
        done.append(original(*arguments, **named))
        return done[-1]

    monkeypatch.setattr(partitioned_predict, "WORTH_SENDING", 1.0)
    monkeypatch.setattr(partitioned_predict, "predict_elsewhere", watched)
    return done


def here(model, new):
    """The prediction of the same model by this process."""
    elsewhere = model.compute.executor
    try:
        return model.set_params(compute__executor="serial").predict(new)
    finally:
        model.set_params(compute__executor=elsewhere)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"combine": "route"},
        {"metric": "learned"},
        {"cells__clip": False, "fit_intercept": True},
    ],
    ids=lambda s: ",".join(s) or "default",
)
def test_predictions_are_those_of_one_process(settings, client, sent, tmp_path):
    if "metric" in settings:
        settings = {**settings, "kernel_params": None, "alpha": None, "cells__tuning": "shared"}
    model = (
        PartitionedLSSVMRegressor(compute=Compute(executor=client, run_dir=tmp_path / "run"))
        .set_params(**{**SETTINGS, **settings})
        .fit(X, Y)
    )
    found = model.predict(NEW)
    assert len(sent) == 1
    assert np.array_equal(found, here(model, NEW))
    # Nothing is left behind.
    assert not list((tmp_path / "run").glob("ridgefold-predict-*"))


def test_a_model_fitted_elsewhere_or_loaded_from_a_file_predicts_there_too(client, sent, tmp_path):
    for settings in (SETTINGS, {**SETTINGS, "partition": "random", "combine": "average"}):
        model = PartitionedLSSVMRegressor().set_params(**settings).fit(X, np.column_stack([Y, X]))
        expected = model.predict(NEW)
        model.save(tmp_path / "m.ridgefold")
        loaded = ridgefold.load(tmp_path / "m.ridgefold")
        assert loaded.compute is None
        for each in (model, loaded):
            assert np.array_equal(each.set_params(compute__executor=client).predict(NEW), expected)
    assert len(sent) == 4


def test_classes_and_intervals(client, sent):
    model = (
        PartitionedLSSVMClassifier(compute=Compute(executor=client))
        .set_params(**SETTINGS)
        .fit(X, Y > 0)
    )
    assert np.array_equal(model.predict(NEW), here(model, NEW))
    kept = PartitionedLSSVMRegressor(intervals="jackknife+").set_params(**SETTINGS).fit(X, Y)
    expected = kept.predict_interval(NEW[:200])
    found = kept.set_params(compute__executor=client).predict_interval(NEW[:200])
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert len(sent) == 2


def test_new_rows_in_a_file_are_named_and_not_copied(client, sent, tmp_path, monkeypatch):
    np.save(tmp_path / "new.npy", NEW)
    new = np.load(tmp_path / "new.npy", mmap_mode="r")
    tasks, original = [], Piece.read
    model = (
        PartitionedLSSVMRegressor(compute=Compute(executor=client, run_dir=tmp_path / "run"))
        .set_params(**SETTINGS)
        .fit(X, Y)
    )

    def read(self):
        tasks.append(sorted(path.name for path in (self.path.parents[1] / "data").iterdir()))
        return original(self)

    monkeypatch.setattr(Piece, "read", read)
    found = model.predict(new)
    assert tasks[0] == ["assigned.npy", "shares.npy"]
    assert np.array_equal(found, here(model, NEW))


def test_a_killed_worker_changes_nothing(client, sent, monkeypatch):
    model = (
        PartitionedLSSVMRegressor(compute=Compute(executor=client)).set_params(**SETTINGS).fit(X, Y)
    )
    original, seen = Piece.read, []

    def read(self):
        seen.append(self.name)
        if len(seen) == 1:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return original(self)

    with monkeypatch.context() as patched:
        patched.setattr(Piece, "read", read)
        found = model.predict(NEW)
    assert len(seen) > 1
    assert np.array_equal(found, here(model, NEW))


def test_few_rows_and_a_closed_client_stay_here(client, sent, monkeypatch):
    model = (
        PartitionedLSSVMRegressor(compute=Compute(executor=client)).set_params(**SETTINGS).fit(X, Y)
    )
    monkeypatch.setattr(partitioned_predict, "WORTH_SENDING", named_prediction.WORTH_SENDING)
    few = model.predict(NEW[:5])
    assert not sent
    monkeypatch.setattr(partitioned_predict, "WORTH_SENDING", 1.0)
    assert np.array_equal(model.predict(NEW[:5]), few)
    assert len(sent) == 1

    class Closed:
        """What is left of a client that was closed."""

        status = "closed"
        submit = scheduler_info = nthreads = None

    assert np.array_equal(model.set_params(compute__executor=Closed()).predict(NEW[:5]), few)
    assert len(sent) == 1


def test_predictions_that_overflow_are_an_error(client, sent):
    model = PartitionedLSSVMRegressor(
        kernel="polynomial",
        kernel_params={"degree": 3},
        alpha=1.0,
        n_partitions=4,
        cells=CellOptions(clip=False),
        compute=Compute(executor=client),
    ).fit(X[:600], Y[:600])
    with pytest.raises(NumericalError, match="some predictions are NaN or infinite"):
        model.predict(1e200 * NEW)

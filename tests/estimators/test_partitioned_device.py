"""Cells stacked on a device give what they give one by one; torch's processor is the device."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ridgefold
from cases import condition
from ridgefold import (
    CellOptions,
    Compute,
    PartitionedLSSVMClassifier,
    PartitionedLSSVMRegressor,
    RidgefoldRegressor,
)
from ridgefold.cells import stacked_fit
from ridgefold.cells.local_fit import CellSystem
from ridgefold.errors import InvalidInputError, NumericalError
from ridgefold.kernels import RBF
from ridgefold.linalg.torch_routines import TorchNamespace

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (420, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(420)
NEW = rng.uniform(-2, 2, (300, 2))
WEIGHTS = rng.uniform(0.2, 2.0, 420)
HOLES = np.where(rng.random(420) < 0.1, 0.0, WEIGHTS)


def bound(model, predictions, dtype=np.float64):
    """The library's promise, for the worst of the cells."""
    worst, largest = 0.0, 0
    for cell, (kernel, alpha) in enumerate(zip(model.kernels_, model.alpha_, strict=True)):
        rows = model._cells.rows[model._cells.offsets[cell] : model._cells.offsets[cell + 1]]
        K = kernel(X[rows])
        worst = max(worst, condition(K + alpha * np.eye(len(rows))))
        largest = max(largest, len(rows))
    return 10.0 * (largest + worst) * float(np.finfo(dtype).eps) * np.abs(predictions).max()


def both(weights=None, y=Y, **settings):
    """The same model one by one on the processor, and in stacks."""
    settings = {"n_partitions": 5, **settings}
    alone = PartitionedLSSVMRegressor().set_params(**settings).fit(X, y, weights)
    stacked = (
        PartitionedLSSVMRegressor(compute=Compute(device="cpu"))
        .set_params(**settings)
        .fit(X, y, weights)
    )
    return alone, stacked


@pytest.fixture
def counted(monkeypatch):
    """How many cells were fitted alone."""
    alone = []
    fit = CellSystem.fit

    def counting(self, *arguments, **settings):
        alone.append(self.n_rows)
        return fit(self, *arguments, **settings)

    monkeypatch.setattr(CellSystem, "fit", counting)
    return alone


CASES = {
    "own pairs": {},
    "own pairs by the cores of large cells": {"n_partitions": 2},
    "a shared pair": {"cells__tuning": "shared"},
    "no bias": {"fit_intercept": False, "partition": "kmeans", "combine": "route"},
    "a mean": {"partition": "random", "combine": "average"},
    "one pair": {"alpha": 0.1, "kernel_params": {"length_scale": 1.0}},
    "all kernels of a list": {"kernel": ["rbf", "laplacian"], "alpha": [0.01, 0.1]},
    "another kernel": {"kernel": "laplacian", "alpha": [0.01, 0.1]},
    "no limits": {"cells__clip": False, "partition": "hyperplanes"},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_stacked_cells_give_the_same_model(name, weights):
    alone, stacked = both(weights, **CASES[name])
    np.testing.assert_array_equal(stacked.alpha_, alone.alpha_)
    assert stacked.kernels_ == alone.kernels_
    expected = alone.predict(NEW)
    off = np.abs(stacked.predict(NEW) - expected).max()
    assert off <= bound(alone, expected)
    if alone.held_out_residuals_ is not None:
        np.testing.assert_allclose(
            stacked.held_out_residuals_,
            alone.held_out_residuals_,
            rtol=0,
            atol=bound(alone, Y),
        )


def test_no_cell_of_an_ordinary_fit_is_fitted_alone(counted):
    PartitionedLSSVMRegressor("principal", 5, compute=Compute(device="cpu")).fit(X, Y, WEIGHTS)
    assert counted == []
    PartitionedLSSVMRegressor("principal", 5).fit(X, Y, WEIGHTS)
    assert len(counted) == 5


def test_the_number_of_cells_is_chosen_as_without_a_device():
    alone, stacked = both(n_partitions="auto", cells__tuning="shared")
    assert stacked.n_partitions_ == alone.n_partitions_
    assert [t.cell_rows for t in stacked.trials_] == [t.cell_rows for t in alone.trials_]
    errors = [t.error for t in alone.trials_]
    assert [t.error for t in stacked.trials_] == pytest.approx(errors, rel=1e-9)


def test_rows_of_weight_zero_are_left_out_and_predicted():
    alone, stacked = both(HOLES)
    expected = alone.predict(NEW)
    assert np.abs(stacked.predict(NEW) - expected).max() <= bound(alone, expected)
    np.testing.assert_allclose(
        stacked.held_out_residuals_, alone.held_out_residuals_, rtol=0, atol=1e-9
    )


def test_cells_without_weight_and_of_one_row_are_fitted():
    weights = np.where(X[:, 0] < 0, 0.0, 1.0)
    for settings in (
        {"n_partitions": 4},
        {"n_partitions": 300, "alpha": 0.1, "kernel_params": {"length_scale": 1.0}},
    ):
        alone, stacked = both(weights, **settings)
        np.testing.assert_allclose(stacked.predict(NEW), alone.predict(NEW), rtol=0, atol=1e-8)


def test_singular_cells_fall_back_as_they_do_alone(counted):
    """More rows than columns, and no ridge to speak of: the solution of least norm."""
    settings = {"n_partitions": 2, "alpha": 1e-17, "kernel": "linear", "cells__clip": False}
    settings["partition"] = "principal"
    expected = (
        PartitionedLSSVMRegressor().set_params(**settings).fit(X[:60], Y[:60]).predict(X[:60])
    )
    counted.clear()
    stacked = (
        PartitionedLSSVMRegressor(compute=Compute(device="cpu"))
        .set_params(**settings)
        .fit(X[:60], Y[:60])
    )
    assert len(counted) == 2
    np.testing.assert_allclose(stacked.predict(X[:60]), expected, rtol=0, atol=1e-6)


def test_several_targets_and_float32():
    y = np.stack([Y, Y**2], axis=1)
    alone, stacked = both(y=y)
    expected = alone.predict(NEW)
    assert np.abs(stacked.predict(NEW) - expected).max() <= bound(alone, expected)
    single = PartitionedLSSVMRegressor(
        kernel_params={"length_scale": 1.0},
        n_partitions=5,
        alpha=0.1,
        compute=Compute(device="cpu"),
    )
    single.fit(X.astype(np.float32), Y.astype(np.float32))
    assert single.predict(NEW).dtype == np.float32
    double = PartitionedLSSVMRegressor(
        kernel_params={"length_scale": 1.0}, n_partitions=5, alpha=0.1
    ).fit(X, Y)
    expected = double.predict(NEW)
    assert np.abs(single.predict(NEW) - expected).max() <= bound(double, expected, np.float32)


def test_stacks_are_bounded_by_the_memory(monkeypatch):
    """Whatever fits on the device: the model is the same."""
    stacks = []
    make = stacked_fit.CellStack.__init__

    def noting(self, cells, settings, device):
        stacks.append(len(cells))
        make(self, cells, settings, device)

    monkeypatch.setattr(stacked_fit.CellStack, "__init__", noting)
    expected = PartitionedLSSVMRegressor("principal", 6, compute=Compute(device="cpu")).fit(X, Y)
    together, stacks[:] = max(stacks), []
    monkeypatch.setattr(TorchNamespace, "accelerator", lambda self, like: "Toy")
    monkeypatch.setattr(TorchNamespace, "free_bytes", lambda self, like: 6e6)
    small = PartitionedLSSVMRegressor("principal", 6, compute=Compute(device="cpu")).fit(X, Y)
    assert max(stacks) < together
    np.testing.assert_allclose(small.predict(NEW), expected.predict(NEW), rtol=0, atol=1e-9)


def test_many_new_rows_of_a_cell_are_predicted_in_pieces():
    alone, stacked = both(n_partitions=2)
    many = rng.uniform(-2, 2, (1500, 2))
    expected = alone.predict(many)
    assert np.abs(stacked.predict(many) - expected).max() <= bound(alone, expected)
    assert stacked.predict(NEW[:1]).shape == (1,)


# -- tensors -----------------------------------------------------------------------------


def test_tensors_come_back_as_tensors():
    tensors = torch.from_numpy(X), torch.from_numpy(Y), torch.from_numpy(WEIGHTS)
    model = PartitionedLSSVMRegressor(n_partitions=4).fit(*tensors)
    expected = PartitionedLSSVMRegressor(n_partitions=4).fit(X, Y, WEIGHTS)
    predicted = model.predict(torch.from_numpy(NEW))
    assert isinstance(predicted, torch.Tensor)
    np.testing.assert_array_equal(predicted.numpy(), expected.predict(NEW))
    assert isinstance(model.predict(NEW), np.ndarray)
    lower, upper = model.predict_interval(torch.from_numpy(NEW[:20]))
    assert isinstance(lower, torch.Tensor)
    np.testing.assert_array_equal(upper.numpy(), expected.predict_interval(NEW[:20])[1])


def test_cells_are_worked_on_where_the_tensors_are(monkeypatch):
    """A tensor of torch's "meta" device says where it is; nothing else is asked of it here."""
    model = PartitionedLSSVMRegressor()
    assert model._device() is None
    model._taken(torch.from_numpy(X))
    assert model._device() is None  # tensors of the processor are NumPy arrays

    class Elsewhere:
        type = "cuda"

        def __str__(self):
            return "cuda:1"

    class Tensor:
        device = Elsewhere()

    monkeypatch.setattr("ridgefold.estimators.partitioned_base.is_tensor", lambda a: True)
    monkeypatch.setattr("ridgefold.estimators.partitioned_base.namespace_of", lambda a: here)
    here = type("Here", (), {"to_numpy": staticmethod(lambda a: a)})
    model._taken(Tensor())
    assert model._device() == "cuda:1"


def test_the_classifier_on_a_device():
    labels = np.where(Y > 0.5, 2, 1)
    settings = {"n_partitions": 4, "probability": True}
    expected = PartitionedLSSVMClassifier().set_params(**settings).fit(X, labels)
    model = PartitionedLSSVMClassifier(compute=Compute(device="cpu")).set_params(**settings)
    model.fit(torch.from_numpy(X), torch.from_numpy(labels))
    new = torch.from_numpy(NEW)
    np.testing.assert_allclose(
        model.decision_function(new).numpy(), expected.decision_function(NEW), rtol=0, atol=1e-9
    )
    assert isinstance(model.predict(new), torch.Tensor)
    np.testing.assert_array_equal(model.predict(new).numpy(), expected.predict(NEW))
    np.testing.assert_allclose(
        model.predict_proba(new).numpy(), expected.predict_proba(NEW), rtol=0, atol=1e-6
    )
    words = PartitionedLSSVMClassifier(n_partitions=4, compute=Compute(device="cpu")).fit(
        X, labels.astype(str)
    )
    assert words.predict(new).dtype.kind == "U"


def test_tables_go_to_cells_on_a_device():
    settings = {"n_partitions": 3, "alpha": 0.1}
    cells = PartitionedLSSVMRegressor().set_params(**settings)
    model = RidgefoldRegressor(model=cells, device="cpu").fit(X, Y)
    expected = RidgefoldRegressor(model=cells).fit(X, Y)
    np.testing.assert_array_equal(model.predict(NEW), expected.predict(NEW))


# -- files and refusals ------------------------------------------------------------------


def test_a_model_file_knows_no_device(tmp_path):
    model = PartitionedLSSVMRegressor(n_partitions=3, alpha=0.1, compute=Compute(device="cpu")).fit(
        X, Y
    )
    model.save(tmp_path / "m.ridgefold")
    loaded = ridgefold.load(tmp_path / "m.ridgefold")
    assert loaded.compute is None
    np.testing.assert_allclose(loaded.predict(NEW), model.predict(NEW), rtol=0, atol=1e-10)


def test_a_run_on_a_device_goes_on_where_it_was_stopped(tmp_path):
    settings = {"n_partitions": 3, "compute__device": "cpu", "compute__run_dir": tmp_path / "run"}
    first = PartitionedLSSVMRegressor().set_params(**settings).fit(X, Y)
    again = PartitionedLSSVMRegressor().set_params(**settings).fit(X, Y)
    np.testing.assert_array_equal(first.predict(NEW), again.predict(NEW))


def test_rows_on_disk_are_fitted_on_a_device(tmp_path):
    np.save(tmp_path / "X.npy", X)
    settings = {"n_partitions": 4, "alpha": 0.1, "kernel_params": {"length_scale": 1.0}}
    expected = PartitionedLSSVMRegressor().set_params(**settings).fit(X, Y)
    model = (
        PartitionedLSSVMRegressor(
            memory_budget="20kB", compute=Compute(device="cpu", run_dir=tmp_path / "run")
        )
        .set_params(**settings)
        .fit(tmp_path / "X.npy", Y)
    )
    assert model._stored is not None
    np.testing.assert_allclose(model.predict(NEW), expected.predict(NEW), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"compute__device": "cuda:99"}, r"device='cuda:99' cannot be used"),
        ({"compute__device": 3}, r'compute.device must be a name such as "cuda", or None, got 3'),
        (
            {"compute__device": "cpu", "compute__n_jobs": 2},
            r"device='cpu' works on many cells at once",
        ),
    ],
)
def test_what_a_device_cannot_do_is_named(settings, message):
    model = PartitionedLSSVMRegressor().set_params(**settings)
    before = dict(vars(model))
    with pytest.raises(InvalidInputError, match=message):
        model.fit(X, Y)
    assert vars(model) == before


def test_numbers_that_overflow_are_named():
    with pytest.raises(NumericalError, match="overflow"):
        PartitionedLSSVMRegressor(
            n_partitions=2, kernel=RBF(1.0), alpha=0.1, compute=Compute(device="cpu")
        ).fit(1e160 * X, Y)


@pytest.mark.parametrize("weights", [None, WEIGHTS, HOLES], ids=["none", "some", "zeros"])
@pytest.mark.parametrize("bias", [False, True])
def test_refining_on_a_device_ends_at_the_same_model(weights, bias):
    alone, there = both(
        weights,
        cells__refine="exact",
        alpha=0.05,
        kernel_params={"length_scale": 0.7},
        fit_intercept=bias,
        combine="blend",
    )
    whole = ridgefold.KernelRidge(0.05, kernel=RBF(0.7), fit_intercept=bias)
    expected = whole.fit(X, Y, weights).predict(NEW)
    assert np.abs(there.predict(NEW) - expected).max() <= 1e-8 * np.abs(expected).max()
    assert np.abs(alone.predict(NEW) - expected).max() <= 1e-8 * np.abs(expected).max()
    assert isinstance(there.certificate_, np.ndarray)


def test_refining_works_where_the_cells_do(monkeypatch):
    seen = []
    plain = TorchNamespace.take_rows
    monkeypatch.setattr(
        TorchNamespace, "take_rows", lambda self, a, rows: seen.append(1) or plain(self, a, rows)
    )
    PartitionedLSSVMRegressor(
        kernel_params={"length_scale": 0.7}, n_partitions=5, alpha=0.05, cells=CellOptions(refine=3)
    ).fit(X, Y)
    assert not seen
    PartitionedLSSVMRegressor(
        kernel_params={"length_scale": 0.7},
        n_partitions=5,
        alpha=0.05,
        cells=CellOptions(refine=3),
        compute=Compute(device="cpu"),
    ).fit(X, Y)
    assert seen


@pytest.mark.parametrize("weights", [None, HOLES], ids=["none", "zeros"])
@pytest.mark.parametrize("bias", [False, True])
def test_the_pair_for_a_mean_is_chosen_on_the_device_as_without(weights, bias):
    alone, there = both(weights, partition="random", combine="average", fit_intercept=bias)
    assert there.kernels_ == alone.kernels_
    np.testing.assert_array_equal(there.alpha_, alone.alpha_)
    predictions = alone.predict(NEW)
    assert np.abs(there.predict(NEW) - predictions).max() <= bound(alone, predictions)

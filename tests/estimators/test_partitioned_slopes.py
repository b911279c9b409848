"""Cells that are cut across directions in which targets change."""

from __future__ import annotations

import numpy as np
import pytest

import ridgefold
from ridgefold import PartitionedLSSVMRegressor
from ridgefold.cells.sample_slopes import mean_slopes
from ridgefold.errors import NumericalError
from ridgefold.kernels import RBF

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (200, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(200)


def test_cells_follow_the_directions_in_which_targets_change():
    """One column of eight counts, which rows alone do not tell."""
    rows = rng.standard_normal((3000, 8))
    y = np.sin(2 * rows[:, 0]) + 0.1 * rng.standard_normal(3000)
    errors = {}
    for name in ("tree", "principal"):
        model = PartitionedLSSVMRegressor(name, 16).fit(rows[:2000], y[:2000])
        errors[name] = np.sqrt(np.mean((model.predict(rows[2000:]) - y[2000:]) ** 2))
        assert ("finding slopes" in str(ridgefold.explain(model))) == (name == "tree")
    assert errors["tree"] < 0.8 * errors["principal"]


def test_a_fit_does_without_slopes_that_cannot_be_computed(monkeypatch):
    def fails(*_):
        raise NumericalError("no")

    monkeypatch.setattr("ridgefold.cells.cell_metric.mean_slopes", fails)
    settings = {"n_partitions": 4, "alpha": 0.1, "kernel_params": {"length_scale": 1.0}}
    ours, plain = (
        PartitionedLSSVMRegressor(name).set_params(**settings) for name in ("tree", "principal")
    )
    assert np.array_equal(ours.fit(X, Y).predict(X), plain.fit(X, Y).predict(X))


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({"alpha": 0.1, "kernel_params": {"length_scale": 0.5}}, True),
        ({"alpha": 0.1, "kernel": RBF(0.5)}, True),
        ({"alpha": 0.1, "kernel": RBF((0.5, 1.0))}, False),
        ({"alpha": 0.1, "kernel": "laplacian", "kernel_params": {"length_scale": 0.5}}, False),
        ({"kernel_params": {"length_scale": 0.5}}, False),
        ({"alpha": [0.1, 1.0], "kernel_params": {"length_scale": 0.5}}, False),
    ],
    ids=str,
)
def test_slopes_are_those_of_the_given_pair_if_there_is_one(settings, given, monkeypatch):
    grids = []

    def watched(X, y, weights, grid):
        grids.append(grid)
        return mean_slopes(X, y, weights, grid)

    monkeypatch.setattr("ridgefold.cells.cell_metric.mean_slopes", watched)
    PartitionedLSSVMRegressor(n_partitions=4).set_params(**settings).fit(X, Y)
    (grid,) = grids
    assert all(isinstance(kernel, RBF) for kernel in grid.kernels)
    assert grid.is_choice != given
    if given:
        assert (grid.kernels[0], grid.alphas.tolist()) == (RBF(0.5), [0.1])


def test_one_cell_needs_no_slopes():
    for model in (PartitionedLSSVMRegressor(), PartitionedLSSVMRegressor(n_partitions=1)):
        names = [step.name for step in model.fit(X, Y).run_record_.steps]
        assert "finding slopes" not in names

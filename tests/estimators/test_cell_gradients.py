"""Slopes, standard deviations and effects of models in cells."""

from __future__ import annotations

import numpy as np
import pytest

import ridgefold
from ridgefold import (
    CellOptions,
    KernelRidge,
    LSSVMRegressor,
    PartitionedKernelRidge,
    PartitionedLSSVMClassifier,
    PartitionedLSSVMRegressor,
)
from ridgefold.cells.cell_rows import rows_of
from ridgefold.errors import InvalidInputError
from ridgefold.kernels import RBF, Laplacian

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (400, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(400)
NEW = rng.uniform(-1.9, 1.9, (60, 2))
GIVEN = {"alpha": 0.1, "kernel": RBF(1.0), "n_partitions": 4}


def by_differences(predict, new, step=1e-6):
    steps = step * np.eye(new.shape[1])
    slopes = [(predict(new + e) - predict(new - e)) / (2 * step) for e in steps]
    return np.stack(slopes, axis=1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"partition": "hyperplanes"},
        {"partition": "kmeans"},
        {"combine": "route"},
        {"combine": "average", "partition": "random"},
        {"cells": CellOptions(refine=3)},
        {"kernel": Laplacian(1.0)},
        {"metric": "learned", "kernel": "rbf", "alpha": [0.01, 0.1]},
        {"fit_intercept": True, "kernel": "matern", "alpha": [0.01, 0.1]},
    ],
    ids=str,
)
def test_slopes_in_cells_are_those_of_differences(options):
    model = PartitionedKernelRidge(**{**GIVEN, **options}).fit(X, Y)
    found = model.predict_gradient(NEW)
    np.testing.assert_allclose(found, by_differences(model.predict, NEW), rtol=1e-5, atol=2e-5)


def test_the_change_of_the_weights_counts():
    """Cells that know nothing but their own level: all that changes is their weights."""
    steps = np.round(X[:, 0])
    model = PartitionedLSSVMRegressor(n_partitions=4, alpha=1e9, kernel=RBF(1.0)).fit(X, steps)
    found = model.predict_gradient(NEW)
    assert np.abs(found).max() > 1.0
    np.testing.assert_allclose(found, by_differences(model.predict, NEW), rtol=1e-5, atol=2e-5)


def test_a_coarse_model_behind_the_cells_has_its_share_of_the_slope():
    smooth = np.random.default_rng(0).uniform(-2, 2, (700, 3))
    y = np.sin(smooth[:, 0]) + 0.5 * smooth[:, 1]
    y += 1.5 * np.random.default_rng(1).standard_normal(700)
    model = PartitionedLSSVMRegressor(n_partitions=5).fit(smooth, y)
    assert model.coarse_model_share_ is not None
    found = model.predict_gradient(smooth[:50])
    expected = by_differences(model.predict, smooth[:50], step=2e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)


def test_several_targets_and_classes_have_slopes():
    both = PartitionedLSSVMRegressor(**GIVEN).fit(X, np.column_stack([Y, 2 * Y]))
    found = both.predict_gradient(NEW)
    assert found.shape == (60, 2, 2)
    np.testing.assert_allclose(found[:, :, 1], 2 * found[:, :, 0], rtol=1e-6, atol=1e-8)
    classes = PartitionedLSSVMClassifier(n_partitions=4).fit(X, Y > 1)
    found = classes.predict_gradient(NEW)
    np.testing.assert_allclose(
        found, by_differences(classes.decision_function, NEW), rtol=1e-5, atol=2e-5
    )


@pytest.mark.parametrize("weights", [None, np.arange(400) % 3])
@pytest.mark.parametrize("combine", ["blend", "route"])
def test_standard_deviations_are_those_of_the_cells_weighted_as_their_predictions(combine, weights):
    model = PartitionedLSSVMRegressor(combine=combine, **GIVEN).fit(X, Y, weights)
    mean, std = model.predict(NEW, return_std=True)
    assert np.array_equal(mean, model.predict(NEW))
    assignment = model._assignment(NEW)
    expected = np.zeros(60)
    for cell in range(4):
        rows = rows_of(model._cells, cell)
        own = None if weights is None else weights[rows]
        alone = LSSVMRegressor(0.1, kernel=RBF(1.0)).fit(X[rows], Y[rows], own)
        chosen, shares = assignment.of_cell(cell)
        expected[chosen] += shares * alone.predict(NEW[chosen], return_std=True)[1]
    np.testing.assert_allclose(std, expected, rtol=1e-8)


def test_one_cell_is_the_exact_model():
    model = PartitionedKernelRidge(n_partitions=1, alpha=0.1, kernel=RBF(1.0)).fit(X, Y)
    exact = KernelRidge(0.1, kernel=RBF(1.0)).fit(X, Y)
    for options in ({}, {"noise": True}, {"variance": 2.0}):
        found = model.predict(NEW, return_std=True, **options)[1]
        expected = exact.predict(NEW, return_std=True, **options)[1]
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    np.testing.assert_allclose(model.predict_gradient(NEW), exact.predict_gradient(NEW), atol=1e-9)


def test_a_model_from_a_file_has_the_same_slopes_and_deviations(tmp_path):
    model = PartitionedLSSVMRegressor(**GIVEN).fit(X, Y)
    model.save(tmp_path / "m")
    again = ridgefold.load(tmp_path / "m")
    assert np.array_equal(again.predict_gradient(NEW), model.predict_gradient(NEW))
    assert np.array_equal(
        again.predict(NEW, return_std=True)[1], model.predict(NEW, return_std=True)[1]
    )


def test_effects_in_cells_are_means_of_slopes_without_standard_errors():
    garden = np.column_stack([X, np.arange(400) % 2])
    model = PartitionedLSSVMRegressor(**GIVEN).fit(garden, Y + garden[:, 2])
    found = model.marginal_effects()
    slopes = model.predict_gradient(garden).mean(axis=0)
    np.testing.assert_allclose(found.average[:2], slopes[:2])
    assert found.names[2] == "column 2: 0 → 1"
    assert found.average[2] == pytest.approx(1.0, abs=0.1)
    assert found.standard_error is None
    assert "KernelRidge" in found.note
    assert found.note in str(found)


def test_effects_on_probabilities_are_there_in_cells():
    model = PartitionedLSSVMClassifier(n_partitions=4, probability=True).fit(X, Y > 1)
    found = model.marginal_effects(NEW)
    expected = by_differences(lambda rows: model.predict_proba(rows)[:, 1], NEW)
    np.testing.assert_allclose(found.pointwise, expected, rtol=1e-5, atol=2e-5)


def test_arguments_without_use_are_named():
    model = PartitionedKernelRidge(**GIVEN).fit(X, Y)
    with pytest.raises(InvalidInputError, match="return_std=True"):
        model.predict(NEW, noise=True)

"""Learned scales find what matters, give way to isotropic ones, and repeat themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ridgefold.errors import InvalidInputError
from ridgefold.kernels import RBF, Linear, Matern, RationalQuadratic
from ridgefold.learning import FAMILIES, learn_metric


def interactions(n: int = 300, d: int = 12):
    """Three columns matter, two of them only through their product; the others are noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.tanh(X[:, 0] * X[:, 2]) + 0.5 * np.sin(2 * X[:, 1])
    return X, y + 0.05 * rng.normal(size=n)


def relevant(kernel, count: int = 3) -> set[int]:
    return set(np.argsort(kernel.length_scale)[:count].tolist())


@pytest.mark.parametrize("folds", [None, 5])
def test_relevant_columns_get_the_smallest_scales(folds):
    X, y = interactions()
    metric = learn_metric(X, y, "rbf", folds=folds)
    assert not metric.isotropic
    assert relevant(metric.kernel) == {0, 1, 2}
    assert metric.outside_error < 0.5 * metric.isotropic_error


def test_scales_follow_the_units_of_the_columns():
    X, y = interactions(200)
    units = 10.0 ** np.arange(-6, 6)
    metric, scaled = learn_metric(X, y, "rbf"), learn_metric(X * units, y, "rbf")
    found = np.asarray(scaled.kernel.length_scale) / units
    np.testing.assert_allclose(found[:3], metric.kernel.length_scale[:3], rtol=0.3)
    assert np.min(found[3:]) > 2 * np.max(found[:3])


def test_scales_that_help_nobody_give_way_to_an_isotropic_kernel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6))
    metric = learn_metric(X, rng.normal(size=150), "rbf")
    assert metric.isotropic
    spread = np.asarray(metric.kernel.length_scale) / X.std(axis=0)
    assert spread.max() / spread.min() < 1.3


def test_few_rows_and_one_column_are_not_learned_from():
    X, y = interactions(30)
    assert learn_metric(X, y, "rbf").isotropic
    X, y = interactions(100)
    assert learn_metric(X[:, 1:2], y, "matern12").isotropic


def test_the_same_state_gives_the_same_metric():
    X, y = interactions(120, 5)
    first, second = (learn_metric(X, y, "matern32", random_state=3) for _ in range(2))
    assert first.kernel == second.kernel
    assert first.alpha == second.alpha
    assert first.history == second.history


def test_max_rows_bounds_the_criterion():
    X, y = interactions(400, 5)
    metric = learn_metric(X, y, "rbf", max_rows=100)
    assert metric.rows == 100
    assert max(step.rows for step in metric.history) == 100


@pytest.mark.parametrize("family", [*FAMILIES, Matern(7.0, nu=2.5), RationalQuadratic(shape=0.5)])
def test_every_family_learns(family):
    X, y = interactions(150)
    metric = learn_metric(X[:, :4], y, family, max_rows=120)
    assert len(metric.kernel.length_scale) == 4
    assert metric.outside_error <= metric.isotropic_error * 1.0001


def test_constant_and_repeated_columns_and_rows_do_no_harm():
    X, y = interactions(200, 5)
    X = np.column_stack([X, np.full(200, 3.0), X[:, 1], np.round(X[:, 2])])
    X, y = np.concatenate([X, X[:40]]), np.concatenate([y, y[:40]])
    metric = learn_metric(X, y, "matern12")
    assert np.argmax(metric.kernel.length_scale) == 5
    assert np.all(np.isfinite(metric.kernel.length_scale))


def test_several_targets_weights_and_torch():
    X, y = interactions(150, 5)
    Y = np.column_stack([y, X[:, 2] ** 2])
    weights = np.where(np.arange(150) < 20, 0.0, 1.0 + np.arange(150) / 150)
    metric = learn_metric(X, Y, "rbf", weights=weights, bias=False)
    other = learn_metric(
        torch.from_numpy(X), torch.from_numpy(Y), "rbf", weights=torch.from_numpy(weights),
        bias=False,
    )  # fmt: skip
    np.testing.assert_allclose(metric.kernel.length_scale, other.kernel.length_scale, rtol=1e-3)
    # Rows of weight zero say nothing: their targets may be anything.
    Y[:20] = 1e6
    assert learn_metric(X, Y, "rbf", weights=weights, bias=False).kernel == metric.kernel


def test_repeating_rows_does_what_weights_do():
    X, y = interactions(80, 4)
    weights = 1 + np.arange(80) % 3
    repeated = np.repeat(np.arange(80), weights)[::-1]
    a = learn_metric(X, y, "rbf", weights=weights.astype(float))
    b = learn_metric(X[repeated], y[repeated], "rbf")
    np.testing.assert_allclose(a.length_scales, b.length_scales, rtol=0.02)


def test_the_unit_of_the_targets_does_not_matter():
    X, y = interactions(80, 4)
    metric = learn_metric(X, y, "rbf")
    for unit in (1e-150, 1e6, 1e200):
        other = learn_metric(X, y * unit, "rbf")
        np.testing.assert_allclose(other.length_scales[:3], metric.length_scales[:3], rtol=0.5)
    assert learn_metric(X, y * 4.0, "rbf").outside_error < 1.0


def test_constant_targets_are_no_error():
    X, _ = interactions(60, 3)
    assert learn_metric(X, np.full(60, 2.0), "rbf").isotropic


def test_bad_input_is_named():
    X, y = interactions(60, 3)
    with pytest.raises(InvalidInputError, match="family must be one of"):
        learn_metric(X, y, "gaussian")
    with pytest.raises(InvalidInputError, match="one kernel of distances"):
        learn_metric(X, y, RBF() + Linear())
    with pytest.raises(InvalidInputError, match="max_rows must be"):
        learn_metric(X, y, "rbf", max_rows=1)
    with pytest.raises(InvalidInputError, match="one entry a row"):
        learn_metric(X, y[:-1], "rbf")
    with pytest.raises(InvalidInputError, match="folds must be at least 2"):
        learn_metric(X, y, "rbf", folds=1)

"""Learned scales find what matters, give way to isotropic ones, and repeat themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from ridgefold import LSSVMRegressor
from ridgefold.errors import InvalidInputError
from ridgefold.kernels import (
    RBF,
    Categorical,
    Columns,
    Laplacian,
    Linear,
    Matern,
    RationalQuadratic,
)
from ridgefold.metric import FAMILIES, learn_metric


def interactions(n: int = 300, d: int = 12):
    """Three columns matter, two of them only through their product; the others are noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.tanh(X[:, 0] * X[:, 2]) + 0.5 * np.sin(2 * X[:, 1])
    return X, y + 0.05 * rng.normal(size=n)


def relevant(metric, count: int = 3) -> set[int]:
    return set(np.argsort(metric.length_scales)[:count].tolist())


@pytest.mark.parametrize("folds", [None, 5])
def test_relevant_columns_get_the_smallest_scales(folds):
    X, y = interactions()
    metric = learn_metric(X, y, "rbf", folds=folds)
    assert not metric.isotropic
    assert relevant(metric) == {0, 1, 2}
    assert metric.outside_error < 0.5 * metric.isotropic_error


def test_scales_follow_the_units_of_the_columns():
    X, y = interactions(200)
    units = 10.0 ** np.arange(-6, 6)
    metric, scaled = learn_metric(X, y, "rbf"), learn_metric(X * units, y, "rbf")
    found = scaled.length_scales / units
    np.testing.assert_allclose(found[:3], metric.length_scales[:3], rtol=0.3)
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
    assert len(metric.length_scales) == 4
    assert metric.outside_error <= metric.isotropic_error * 1.0001


def test_constant_and_repeated_columns_and_rows_do_no_harm():
    X, y = interactions(200, 5)
    X = np.column_stack([X, np.full(200, 3.0), X[:, 1], np.round(X[:, 2])])
    X, y = np.concatenate([X, X[:40]]), np.concatenate([y, y[:40]])
    metric = learn_metric(X, y, "matern12")
    assert np.isinf(metric.length_scales[5])
    assert metric.relevance[5] < 1e-12
    whole = learn_metric(X, y, "matern12", leave_out=False)
    assert np.all(np.isfinite(whole.kernel.length_scale))


def test_several_targets_weights_and_torch():
    X, y = interactions(150, 5)
    Y = np.column_stack([y, X[:, 2] ** 2])
    weights = np.where(np.arange(150) < 20, 0.0, 1.0 + np.arange(150) / 150)
    metric = learn_metric(X, Y, "rbf", weights=weights, bias=False)
    other = learn_metric(
        torch.from_numpy(X), torch.from_numpy(Y), "rbf", weights=torch.from_numpy(weights),
        bias=False,
    )  # fmt: skip
    np.testing.assert_allclose(metric.length_scales, other.length_scales, rtol=1e-3)
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


def predictions(kernel, alpha, X, y, new):
    return LSSVMRegressor(alpha, kernel=kernel).fit(X, y).predict(new)


@pytest.mark.parametrize("family", ["rbf", "matern12"])
def test_columns_that_say_nothing_are_left_out_and_hardly_missed(family):
    X, y = interactions(600, 30)
    whole = learn_metric(X[:400], y[:400], family, leave_out=False)
    metric = learn_metric(X[:400], y[:400], family)
    kept = np.isfinite(metric.length_scales)
    assert kept[:3].all()
    assert kept.sum() < 20
    assert metric.kernel.columns == tuple(np.flatnonzero(kept))
    assert metric.relevance[~kept].max() == 0.0
    assert metric.relevance.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(metric.length_scales[kept], whole.length_scales[kept])
    error, without = (
        np.sqrt(np.mean((predictions(m.kernel, m.alpha, X[:400], y[:400], X[400:]) - y[400:]) ** 2))
        for m in (whole, metric)
    )
    assert without < 1.01 * error


def test_an_isotropic_metric_leaves_nothing_out():
    rng = np.random.default_rng(0)
    metric = learn_metric(rng.normal(size=(150, 6)), rng.normal(size=150), "rbf")
    assert np.all(np.isfinite(metric.length_scales))


def categories(n: int = 300):
    """A number, a category that matters and one that does not; one-hot, and as codes."""
    rng = np.random.default_rng(1)
    x, codes = rng.normal(size=(n, 1)), rng.integers(0, 5, size=(n, 2))
    y = np.sin(2 * x[:, 0]) + np.array([0.0, 2.0, -1.0, 0.5, 1.0])[codes[:, 0]] * x[:, 0]
    one_hot = [(codes[:, [j]] == np.arange(5)).astype(float) for j in range(2)]
    groups = [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]
    return x, codes, np.column_stack([x, *one_hot]), y + 0.05 * rng.normal(size=n), groups


@pytest.mark.parametrize("preprocess", [None, "standardise", "auto"])
def test_columns_of_a_group_share_a_scale_and_their_unit(preprocess):
    _, _, X, y, groups = categories(900)
    metric = learn_metric(X, y, "rbf", scale_groups=groups, preprocess=preprocess, max_rows=250)
    assert len(set(metric.length_scales[groups[0]])) == 1
    assert len(set(metric.length_scales[groups[1]])) == 1
    assert metric.relevance[groups[0]].sum() > 20 * metric.relevance[groups[1]].sum()
    if preprocess is not None:
        assert set(metric.transforms[1:]) == {"none"}


@pytest.mark.parametrize("family", [RBF(), Laplacian()])
def test_a_learned_group_is_a_factor_of_a_product(family):
    x, codes, X, y, groups = categories(200)
    metric = learn_metric(X, y, family, scale_groups=groups, leave_out=False)
    scales = metric.length_scales
    of_code = [scales[group[0]] for group in groups]
    of_code = [s * s if isinstance(family, RBF) else s / 2 for s in of_code]
    product = Columns(replace(family, length_scale=scales[0]), [0]) * Columns(
        Categorical(of_code), [1, 2]
    )
    rows = np.column_stack([x, codes]).astype(float)
    np.testing.assert_allclose(product(rows), metric.kernel(X), atol=1e-12)
    np.testing.assert_allclose(
        predictions(product, metric.alpha, rows[:150], y[:150], rows[150:]),
        predictions(metric.kernel, metric.alpha, X[:150], y[:150], X[150:]),
        atol=1e-8,
    )


def test_bad_groups_are_named():
    _, _, X, y, _ = categories(60)
    for groups, message in (
        ([[1, 2], [2, 3]], "names column 2 twice"),
        ([[1, 11]], "from 0 to 10, got 11"),
        ([[1, "a"]], "from 0 to 10, got 'a'"),
        ([1, 2], "must be lists of column numbers"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            learn_metric(X, y, "rbf", scale_groups=groups)


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


@pytest.mark.parametrize("seconds", [1e-9, 0.1, 0.3, 0.7, 2.0])
def test_wherever_a_limit_ends_the_race_a_kernel_comes_of_it(seconds):
    X, y = interactions(900, 5)
    metric = learn_metric(X, y, "auto", preprocess="auto", seconds=seconds)
    assert metric.outside_error < 1.1 * np.var(y)
    assert metric.kernel(X[:3]).shape == (3, 3)
    assert 400 <= metric.rows <= 720

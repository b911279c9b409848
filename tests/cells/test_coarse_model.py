"""The coarse model behind the cells: its leave-one-out residuals, and how much it counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ridgefold.cells.cell_rows import RowsToFit
from ridgefold.cells.coarse_model import (
    _Fits,
    directions,
    fit_coarse_model,
    mix_predictions,
    mix_residuals,
    residuals_without,
    with_share,
)
from ridgefold.cells.distinct_rows import distinct_rows
from ridgefold.errors import NumericalError
from ridgefold.kernels import RBF, Laplacian

KERNELS = [RBF(1.0), RBF(2.0), Laplacian(4.0)]
rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (90, 2))
Y = np.sin(X) + 0.3 * rng.standard_normal((90, 2))
WEIGHTS = rng.uniform(0.2, 3.0, 90)


def coarse(weights=None):
    return fit_coarse_model(RowsToFit(X, Y, weights), KERNELS, np.random.default_rng(1))


def predicted(coarse_model, rows):
    return coarse_model.intercept + directions(coarse_model, rows) @ coarse_model.coefficients


def refit(coarse_model, alpha, kept, weights):
    """A ridge fit with a bias in the span of the centres, by dense algebra: predictions at X."""
    K = coarse_model.kernel(coarse_model.centres)
    across = coarse_model.kernel(X, coarse_model.centres)
    w = np.ones(len(X)) if weights is None else weights
    # Minimise Σ w(y − b − across·a)² + α aᵀK a over a and b.
    A = np.column_stack([across, np.ones(len(X))])
    left = A[kept].T @ (w[kept, None] * A[kept])
    left[:-1, :-1] += alpha * K
    found = np.linalg.lstsq(left, A[kept].T @ (w[kept, None] * Y[kept]), rcond=1e-13)[0]
    return A @ found


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_residuals_and_predictions_without_a_row_are_those_of_refits(weights):
    training = RowsToFit(X, Y, weights)
    fits = _Fits(training, RBF(0.8), X[::4].copy())
    coarse_model = fits.best()
    alpha = float(fits.alphas[np.argmin(fits.scores)])
    everything = np.arange(len(X))
    np.testing.assert_allclose(
        predicted(coarse_model, X), refit(coarse_model, alpha, everything, weights), atol=1e-7
    )
    psi = directions(coarse_model, X)
    residuals = residuals_without(coarse_model, psi, Y, weights)
    w = np.ones(len(X)) if weights is None else weights
    for i in (0, 7, 50):
        without = refit(coarse_model, alpha, np.delete(everything, i), weights)
        np.testing.assert_allclose(Y[i] - without[i], residuals[i], atol=1e-7)
        pull = w[i] * (1.0 / coarse_model.total_weight + psi @ psi[i])
        moved = predicted(coarse_model, X) - pull[:, None] * residuals[i]
        np.testing.assert_allclose(moved, without, atol=1e-7)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("weighted_scores", [False, True])
def test_ridges_are_scored_by_these_residuals(weights, weighted_scores):
    fits = _Fits(RowsToFit(X, Y, weights, weighted_scores=weighted_scores), RBF(1.0), X[:30].copy())
    coarse_model = fits.best()
    residuals = residuals_without(coarse_model, directions(coarse_model, X), Y, weights)
    counts = weights if weighted_scores and weights is not None else np.ones(len(X))
    expected = np.average(np.mean(residuals**2, axis=1), weights=counts)
    assert fits.scores.min() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_merged_rows_give_the_model_and_the_scores_of_the_rows_behind_them(weights):
    places = np.round(X)
    merged = distinct_rows(places, Y, weights)
    centres = merged.X[::2].copy()
    one = _Fits(RowsToFit(places, Y, weights), RBF(1.0), centres)
    other = _Fits(
        RowsToFit(merged.X, merged.targets, merged.weights, members=merged.members),
        RBF(1.0),
        centres,
    )
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-6)
    np.testing.assert_allclose(
        predicted(one.best(), X), predicted(other.best(), X), rtol=0, atol=1e-6
    )


def test_the_share_is_the_one_with_the_least_error():
    coarse_model, training = coarse(), RowsToFit(X, Y, None)
    own = residuals_without(coarse_model, directions(coarse_model, X), Y, None)
    local = own + np.random.default_rng(2).standard_normal(own.shape) * [0.4, 0.1]
    found = with_share(coarse_model, training, local, np.ones(len(X)))
    for j in range(2):
        errors = [np.mean((local[:, j] + s * (own - local)[:, j]) ** 2) for s in (-1e-3, 0, 1e-3)]
        at = found.share[j]
        nearby = [
            np.mean((local[:, j] + s * (own - local)[:, j]) ** 2)
            for s in (at - 0.01, at, at + 0.01)
        ]
        assert 0 < at <= 1
        assert nearby[1] == min(nearby) or at == 1
        assert nearby[1] < errors[1]


def test_a_model_that_gains_nothing_is_left_out():
    coarse_model, training = coarse(), RowsToFit(X, Y, None)
    exact = np.zeros_like(Y)
    assert with_share(coarse_model, training, exact, np.ones(len(X))) is None
    unknown = np.full_like(Y, np.nan)
    assert with_share(coarse_model, training, unknown, np.ones(len(X))) is None
    one = np.column_stack([np.full(90, 3.0) * np.sign(Y[:, 0]), np.zeros(90)])
    found = with_share(coarse_model, training, one, np.ones(len(X)))
    assert found.share[0] > 0
    assert found.share[1] == 0


def test_predictions_and_residuals_are_mixed_in_parts():
    coarse_model = replace(coarse(WEIGHTS), share=np.array([0.25, 0.0]))
    values = np.ones((90, 2))
    mix_predictions(coarse_model, X, values)
    np.testing.assert_allclose(values[:, 0], 0.75 + 0.25 * predicted(coarse_model, X)[:, 0])
    assert np.all(values[:, 1] == 1.0)
    residuals = np.ones((90, 2))
    mix_residuals(coarse_model, RowsToFit(X, Y, WEIGHTS), residuals)
    own = residuals_without(coarse_model, directions(coarse_model, X), Y, WEIGHTS)
    np.testing.assert_allclose(residuals[:, 0], 0.75 + 0.25 * own[:, 0])
    assert np.all(residuals[:, 1] == 1.0)


def test_equal_rows_and_constant_columns_are_no_trouble():
    same = RowsToFit(np.ones((40, 3)), Y[:40], None)
    coarse_model = fit_coarse_model(same, [RBF(1.0)], np.random.default_rng(0))
    np.testing.assert_allclose(predicted(coarse_model, np.ones((2, 3))), [Y[:40].mean(axis=0)] * 2)


@pytest.mark.parametrize("size", [1e-200, 1e150, 1e200, 1e300])
def test_targets_of_any_size_give_a_model_that_can_be_used_or_none(size):
    training = RowsToFit(X, size * Y, None)
    coarse_model = fit_coarse_model(training, KERNELS, np.random.default_rng(0))
    found = with_share(coarse_model, training, 2.0 * size * Y, np.ones(len(X)))
    if found is not None:
        values = np.zeros_like(Y)
        mix_predictions(found, X, values)
        assert np.all(np.isfinite(values))


def test_weights_that_overflow_are_an_error_of_ours():
    with pytest.raises(NumericalError, match="overflow"):
        fit_coarse_model(RowsToFit(X, Y, np.full(90, 1e308)), KERNELS, np.random.default_rng(0))


def test_a_row_with_all_the_weight_has_no_residual():
    weights = np.zeros(90)
    weights[3] = 1.0
    coarse_model = fit_coarse_model(RowsToFit(X, Y, weights), KERNELS, np.random.default_rng(0))
    found = residuals_without(coarse_model, directions(coarse_model, X), Y, weights)
    assert np.all(np.isnan(found[3]))
    assert np.all(np.isfinite(np.delete(found, 3, axis=0)))


def test_a_large_mean_of_the_targets_takes_no_digits():
    near, far = (
        fit_coarse_model(RowsToFit(X, Y + shift, None), KERNELS, np.random.default_rng(0))
        for shift in (0.0, 1e9)
    )
    np.testing.assert_allclose(predicted(far, X) - 1e9, predicted(near, X), atol=1e-5)

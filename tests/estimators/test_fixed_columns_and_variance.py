"""What a model with unpenalised columns knows of itself: variances, likelihoods, effects."""

from __future__ import annotations

import numpy as np
import pytest

from fixed_effects_oracle import bordered_fit, generalised_least_squares
from ridgefold import CellOptions, KernelRidge, KernelRidgeCV, PartitionedKernelRidge
from ridgefold.kernels import RBF, Columns

N = 60
rng = np.random.default_rng(4)
X = rng.standard_normal((N, 4))
X[:, 1] = 2000.0 + 5.0 * X[:, 1]  # years
Y = np.sin(X[:, 0]) + 0.2 * (X[:, 1] - 2000.0) + X[:, 2] + 0.1 * rng.standard_normal(N)
WEIGHTS = rng.uniform(0.3, 2.0, N)
ALPHA, KERNEL = 0.3, Columns(RBF(1.5), [0, 2, 3])
NEW = rng.standard_normal((6, 4)) + np.array([0.0, 2000.0, 0.0, 0.0])
FIXED = [1, 2]


def columns(rows, bias):
    return np.column_stack([np.ones((len(rows), int(bias))), rows[:, FIXED]])


def system(bias, weights=None):
    """H, C, M = (FᵀHF)⁻¹ and s², densely; years counted from 2000 for the sake of digits."""
    w = np.ones(N) if weights is None else weights
    F = columns(X, bias)
    H = np.linalg.inv(KERNEL(X) + ALPHA * np.diag(1.0 / w))
    M = np.linalg.inv(F.T @ H @ F)
    C = H - H @ F @ M @ F.T @ H
    return H, C, M, float(Y @ C @ Y) / (N - F.shape[1])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_standard_deviations_are_those_of_universal_kriging(bias, weights):
    model = KernelRidge(ALPHA, kernel=KERNEL, fit_intercept=bias, fixed=FIXED).fit(X, Y, weights)
    _, std = model.predict(NEW, return_std=True)
    H, _, M, s2 = system(bias, weights)
    cross, phi = KERNEL(X, NEW), columns(NEW, bias).T
    u = phi - columns(X, bias).T @ H @ cross
    variance = np.diagonal(KERNEL(NEW) - cross.T @ H @ cross + u.T @ M @ u)
    np.testing.assert_allclose(std, np.sqrt(s2 * variance), rtol=1e-5)
    assert model.prior_variance_ == pytest.approx(s2, rel=1e-7)


@pytest.mark.parametrize("bias", [False, True])
def test_the_likelihood_is_the_restricted_one_of_all_unpenalised_columns(bias):
    model = KernelRidge(ALPHA, kernel=KERNEL, fit_intercept=bias, fixed=FIXED).fit(X, Y)
    F = columns(X, bias)
    H, _, _, s2 = system(bias)
    free = N - F.shape[1]
    logs = [np.linalg.slogdet(each)[1] for each in (np.linalg.inv(H), F.T @ H @ F, F.T @ F)]
    expected = -0.5 * (free * np.log(2 * np.pi * s2) + logs[0] + logs[1] - logs[2] + free)
    assert model.log_marginal_likelihood() == pytest.approx(expected, rel=1e-7)


def test_a_search_by_likelihood_takes_the_columns_into_account():
    alphas = [0.01, 0.3, 10.0]
    settings = {"kernel": KERNEL, "fit_intercept": True, "fixed": FIXED}
    search = KernelRidgeCV(alphas, scoring="marginal_likelihood", **settings).fit(X, Y)
    one_by_one = [
        KernelRidge(alpha, **settings).fit(X, Y).log_marginal_likelihood() for alpha in alphas
    ]
    assert search.alpha_ == alphas[int(np.argmax(one_by_one))]
    assert search.best_score_ == pytest.approx(max(one_by_one), rel=1e-6)


@pytest.mark.parametrize("bias", [False, True])
def test_average_effects_of_fixed_columns_have_the_errors_of_their_coefficients(bias):
    """A column that the kernel does not see has one effect: its coefficient."""
    kernel = Columns(RBF(1.5), [0, 3])
    model = KernelRidge(ALPHA, kernel=kernel, fit_intercept=bias, fixed=FIXED).fit(X, Y)
    effects = model.marginal_effects()
    np.testing.assert_allclose(effects.average[FIXED], model.fixed_coef_, rtol=1e-8)
    np.testing.assert_allclose(effects.posterior_std[FIXED], model.fixed_coef_std_, rtol=1e-5)


@pytest.mark.parametrize("bias", [False, True])
def test_average_slopes_are_linear_in_the_targets_with_the_errors_that_follow(bias):
    model = KernelRidge(ALPHA, kernel=KERNEL, fit_intercept=bias, fixed=FIXED).fit(X, Y)
    effects = model.marginal_effects()
    np.testing.assert_allclose(effects.average, model.predict_gradient(X).mean(axis=0), rtol=1e-9)
    _, C, _, _ = system(bias)
    H, _, M, _ = system(bias)
    smoother_free = N - np.trace(np.eye(N) - ALPHA * C)
    sigma2 = np.sum((ALPHA * C @ Y) ** 2) / smoother_free
    # The effect of column 2, which the kernel sees and which is fixed: a slope and a coefficient.
    step = 1e-5
    up, down = X.copy(), X.copy()
    up[:, 2] += step
    down[:, 2] -= step
    a = (KERNEL(X, up) - KERNEL(X, down)).mean(axis=1) / (2 * step)
    F = columns(X, bias)
    phi = np.zeros(F.shape[1])
    phi[-1] = 1.0
    L = C @ a + H @ F @ M @ phi
    assert effects.average[2] == pytest.approx(L @ Y, rel=1e-6)
    assert effects.standard_error[2] == pytest.approx(np.sqrt(sigma2) * np.linalg.norm(L), rel=1e-4)


def test_diagnostics_count_the_columns_as_degrees_of_freedom():
    huge = KernelRidge(1e9, kernel=KERNEL, fit_intercept=True, fixed=FIXED).fit(X, Y)
    diagnostics = huge.diagnostics()
    assert float(np.ravel(diagnostics.degrees_of_freedom)[0]) == pytest.approx(3.0, abs=1e-3)
    _, beta = bordered_fit(1e-12 * np.eye(N), columns(X, True), Y[:, None], 1.0)
    np.testing.assert_allclose(huge.fixed_coef_, beta[1:, 0], rtol=1e-5)


def test_importances_leave_rows_out_with_the_columns():
    model = KernelRidge(ALPHA, kernel=KERNEL, fit_intercept=True, fixed=FIXED).fit(X, Y)
    found = model.held_out_importances()
    assert found.error < 0.03  # held-out predictions with the columns, or it would be near 1
    assert int(np.argmax(found.rises)) == 1
    cells = PartitionedKernelRidge(
        alpha=ALPHA, kernel=KERNEL, n_partitions=2, fit_intercept=True, fixed=FIXED
    ).fit(X, Y)
    assert np.all(np.isfinite(cells.held_out_importances().rises))


@pytest.mark.parametrize("bias", [False, True])
def test_one_cell_has_the_variance_and_the_slopes_of_the_exact_model(bias):
    settings = {"kernel": KERNEL, "fit_intercept": bias, "fixed": FIXED}
    cell = PartitionedKernelRidge(
        alpha=ALPHA, n_partitions=1, cells=CellOptions(clip=False), **settings
    ).fit(X, Y)
    whole = KernelRidge(ALPHA, **settings).fit(X, Y)
    mean, std = cell.predict(NEW, return_std=True)
    expected, exact = whole.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-8)
    np.testing.assert_allclose(std, exact, rtol=1e-6)
    np.testing.assert_allclose(
        cell.predict_gradient(NEW), whole.predict_gradient(NEW), rtol=1e-6, atol=1e-9
    )


def test_blended_cells_have_slopes_that_are_those_of_their_predictions():
    model = PartitionedKernelRidge(
        alpha=ALPHA,
        kernel=RBF(2.0),
        n_partitions=3,
        fit_intercept=True,
        fixed=FIXED,
        cells=CellOptions(clip=False),
    ).fit(X, Y)
    slopes = model.predict_gradient(NEW)
    for j in range(4):
        step = 1e-4 * np.eye(4)[j]
        difference = (model.predict(NEW + step) - model.predict(NEW - step)) / 2e-4
        np.testing.assert_allclose(slopes[:, j], difference, atol=1e-4)


def test_coefficients_agree_with_generalised_least_squares_although_years_are_far_from_zero():
    model = KernelRidge(ALPHA, kernel=KERNEL, fit_intercept=True, fixed=FIXED).fit(X, Y)
    shifted = columns(X, True)
    shifted[:, 1] -= 2000.0  # so that the oracle has digits
    beta, covariance = generalised_least_squares(KERNEL(X), shifted, Y, ALPHA)
    np.testing.assert_allclose(model.fixed_coef_, beta[1:], rtol=1e-9)
    np.testing.assert_allclose(
        model.fixed_coef_std_, np.sqrt(np.diagonal(covariance))[1:], rtol=1e-9
    )

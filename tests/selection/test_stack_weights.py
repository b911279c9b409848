"""Weights of a stack are constrained least squares and likelihood; nested ones are refits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from sklearn.linear_model import LogisticRegression

from cases import rows, targets
from ridgefold import KernelRidge
from ridgefold.crossval import Folds, leave_one_out
from ridgefold.errors import InvalidInputError
from ridgefold.exact.leave_two_out import leave_two_out
from ridgefold.kernels import RBF, KernelGram, Laplacian, Matern
from ridgefold.selection.stack.nested import (
    fold_groups,
    nested_stack,
    require_stackable,
    rows_of_groups,
)
from ridgefold.selection.stack.weights import (
    SMALLEST_SHARE,
    decisions_of,
    weights_for_classes,
    weights_for_numbers,
)

N = 60
X, Y = rows(N, 3), targets(rows(N, 3), 2) + np.asarray([0.0, 40.0])
RANDOM = np.random.default_rng(3)
WEIGHTS = RANDOM.uniform(0.2, 3.0, N)
FOLDS = Folds(N, tuple(np.array_split(np.random.default_rng(5).permutation(N), 5)))
KERNELS = ((RBF(2.0), 0.1), (Laplacian(3.0), 0.3), (Matern(1.0, nu=1.5), 0.05))
ONES = np.ones(N)


def noisy(count, t=1, spread=0.5):
    """Candidates that are the targets with errors of their own, of different size."""
    errors = np.random.default_rng(8).standard_normal((count, N, t))
    return Y[None, :, :t] + spread * np.arange(1, count + 1)[:, None, None] * errors


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", [ONES, WEIGHTS], ids=["", "weights"])
def test_weights_of_numbers_are_constrained_least_squares(bias, weights):
    P = noisy(3, 2)
    found = weights_for_numbers(P, Y, weights, bias=bias)
    for j in range(2):
        design = np.column_stack([*P[:, :, j], ONES]) if bias else P[:, :, j].T
        roots = np.sqrt(weights)
        low = [0.0] * 3 + [-np.inf] * bias
        best = lsq_linear(design * roots[:, None], Y[:, j] * roots, (low, np.inf), tol=1e-14)
        np.testing.assert_allclose(found.weights[:, j], best.x[:3], rtol=1e-6)
        np.testing.assert_allclose(found.offset[j], best.x[3] if bias else 0.0, atol=1e-6)
        expected = design @ best.x
        np.testing.assert_allclose(found.combined(P)[:, j], expected, rtol=1e-6, atol=1e-6)


def test_a_candidate_that_adds_next_to_nothing_is_dropped_and_the_others_found_again():
    P = noisy(2)
    useless = Y[None, :, :1] + 10.0 * np.random.default_rng(0).standard_normal((1, N, 1))
    whole = np.concatenate([P, useless])
    share = SMALLEST_SHARE
    with_it = weights_for_numbers(whole, Y[:, :1], ONES, bias=True, smallest_share=share)
    without = weights_for_numbers(P, Y[:, :1], ONES, bias=True)
    design = np.column_stack([*whole[:, :, 0], ONES])
    unrestricted = lsq_linear(design, Y[:, 0], ([0.0] * 3 + [-np.inf], np.inf), tol=1e-14).x
    assert 0 < unrestricted[2] < share * unrestricted[:3].sum()
    assert with_it.weights[2] == 0
    np.testing.assert_allclose(with_it.weights[:2], without.weights, rtol=1e-10)


def test_repeating_a_row_is_the_weight_two():
    counts = np.random.default_rng(1).integers(1, 4, N)
    again = np.repeat(np.arange(N), counts)
    P = noisy(3)
    repeated = weights_for_numbers(P[:, again], Y[again, :1], np.ones(len(again)), bias=True)
    weighted = weights_for_numbers(P, Y[:, :1], counts.astype(float), bias=True)
    np.testing.assert_allclose(repeated.weights, weighted.weights, rtol=1e-8)
    codes = (Y[:, 0] > 0).astype(int)
    repeated = weights_for_classes(P[:, again], codes[again], np.ones(len(again)))
    weighted = weights_for_classes(P, codes, counts.astype(float))
    np.testing.assert_allclose(repeated.weights, weighted.weights, rtol=1e-4)


def test_pure_noise_gives_no_weight_at_all():
    noise = np.random.default_rng(0).standard_normal((N, 1))
    P = -0.1 * np.stack([noise, noise + 0.1 * Y[:, :1]])
    found = weights_for_numbers(P, noise, ONES, bias=True)
    np.testing.assert_array_equal(found.weights, 0.0)
    np.testing.assert_allclose(found.combined(P), noise.mean())


def test_weights_of_two_classes_are_logistic_regression():
    codes = (Y[:, 0] + 0.5 * RANDOM.standard_normal(N) > 0).astype(int)
    P = noisy(2)
    found = weights_for_classes(P, codes, WEIGHTS)
    unit = np.sqrt((WEIGHTS @ np.square(P[:, :, 0]).T / WEIGHTS.sum()).max())
    # The penalty is 1e-3 of the mean log-likelihood: C counts the sum of weights, and a half.
    oracle = LogisticRegression(C=0.5e3 / WEIGHTS.sum(), tol=1e-10, max_iter=1000)
    oracle.fit(P[:, :, 0].T / unit, codes, WEIGHTS)
    assert np.all(oracle.coef_ > 0)
    np.testing.assert_allclose(found.weights[:, 0] * unit, oracle.coef_[0], rtol=1e-5)
    np.testing.assert_allclose(found.offset, oracle.intercept_, rtol=1e-4, atol=1e-5)


def test_several_classes_share_weights_and_decide_by_log_odds():
    codes = np.digitize(Y[:, 0], [-0.5, 0.5])
    P = np.where(codes[:, None] == np.arange(3), 1.0, -1.0)[None] + noisy(2, 1) * 0.8
    P = P + np.random.default_rng(2).standard_normal((2, N, 3))
    found = weights_for_classes(P, codes, ONES)
    assert np.ptp(found.weights, axis=1).max() == 0.0
    total = np.tensordot(found.weights[:, 0], P, axes=1) + found.offset
    shares = np.exp(total) / np.exp(total).sum(axis=1, keepdims=True)
    decisions = found.combined(P)
    np.testing.assert_allclose(decisions, np.log(shares / (1 - shares)), rtol=1e-8, atol=1e-8)
    # At the optimum probabilities and classes agree in the mean, for every class.
    np.testing.assert_allclose(shares.mean(axis=0), np.bincount(codes) / N, rtol=0, atol=1e-5)
    np.testing.assert_allclose(decisions_of(total[:, :1]), total[:, :1])


def computed(y, bias, weights, folds):
    """Held-out predictions of the kernels, single and double, by the shortcuts."""
    groups = fold_groups(folds)
    single, double = [], []
    for kernel, alpha in KERNELS:
        alphas = np.full(y.shape[1], alpha)
        gram = KernelGram(kernel, X)
        double.append(leave_two_out(gram, y, alphas, folds, groups, weights=weights, bias=bias))
        own = np.empty_like(y)
        for test in folds.test:
            kept = np.setdiff1d(np.arange(N), test)
            model = KernelRidge(alpha, kernel=kernel, fit_intercept=bias)
            model.fit(X[kept], y[kept], None if weights is None else weights[kept])
            own[test] = model.predict(X[test])
        single.append(own)
    return np.stack(single), np.stack(double), rows_of_groups(folds, groups)


def refitted(y, fit_weights, inner, new, *, bias, weights):
    """A stack made of refits alone: from the folds `inner`, for the rows `new`."""
    kept = np.sort(np.concatenate(inner))
    P, Q = np.empty((3, N, y.shape[1])), np.empty((3, len(new), y.shape[1]))
    for m, (kernel, alpha) in enumerate(KERNELS):
        model = KernelRidge(alpha, kernel=kernel, fit_intercept=bias)
        for test in inner:
            train = np.setdiff1d(kept, test)
            model.fit(X[train], y[train], None if weights is None else weights[train])
            P[m, test] = model.predict(X[test])
        model.fit(X[kept], y[kept], None if weights is None else weights[kept])
        Q[m] = model.predict(X[new])
    return fit_weights(P[:, kept], kept).combined(Q)


@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
def test_a_stack_predicts_a_fold_as_its_refit_without_the_fold_does(bias, weights):
    row_weights = ONES if weights is None else weights

    def fit_weights(P, some):
        return weights_for_numbers(P, Y[some], row_weights[some], bias=bias)

    single, double, group_rows = computed(Y, bias, weights, FOLDS)
    found = nested_stack(single, double, group_rows, fit_weights, np.full(N, True))
    for k, test in enumerate(FOLDS.test):
        inner = [each for j, each in enumerate(FOLDS.test) if j != k]
        expected = refitted(Y, fit_weights, inner, test, bias=bias, weights=weights)
        np.testing.assert_allclose(found.held_out[test], expected, rtol=1e-6, atol=1e-8)


def test_a_stack_of_classifiers_is_its_refit_without_the_fold_too():
    codes = (Y[:, 0] > 0).astype(int)
    signs = np.where(codes == 1, 1.0, -1.0)[:, None]

    def fit_weights(P, some):
        return weights_for_classes(P, codes[some], ONES[some])

    single, double, group_rows = computed(signs, True, None, FOLDS)
    found = nested_stack(single, double, group_rows, fit_weights, np.full(N, True))
    for k, test in enumerate(FOLDS.test):
        inner = [each for j, each in enumerate(FOLDS.test) if j != k]
        expected = refitted(signs, fit_weights, inner, test, bias=True, weights=None)
        np.testing.assert_allclose(found.held_out[test], expected, rtol=1e-3, atol=1e-4)


def test_with_single_rows_held_out_weights_are_found_without_a_tenth_of_them():
    folds = leave_one_out(N)

    def fit_weights(P, some):
        return weights_for_numbers(P, Y[some], ONES[some], bias=True)

    single, double, group_rows = computed(Y, True, None, folds)
    found = nested_stack(single, double, group_rows, fit_weights, np.full(N, True))
    assert len(found.without) == 10
    test = group_rows[3]
    kept = np.setdiff1d(np.arange(N), test)
    P = double[:, 3][:, kept]
    expected = weights_for_numbers(P, Y[kept], ONES[kept], bias=True).combined(single[:, test])
    np.testing.assert_allclose(found.held_out[test], expected, rtol=1e-9)


def test_folds_that_leave_nothing_to_stack_from_are_refused():
    with pytest.raises(InvalidInputError, match="at least 3 folds"):
        require_stackable(Folds(N, tuple(np.array_split(np.arange(N), 2))), None, 2)
    one_fold = np.where(np.isin(np.arange(N), FOLDS.test[0]), 1.0, 0.0)
    with pytest.raises(InvalidInputError, match="positive sample_weight in at least 3 folds"):
        require_stackable(FOLDS, one_fold, 5)

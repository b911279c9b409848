"""Singular systems get the same fallback and the same warning on every path."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cases import rows, targets
from ridgefold import Compute, KernelRidge, LSSVMClassifier
from ridgefold.errors import ConditionWarning, SingularSystemWarning
from ridgefold.kernels import RBF

DISTINCT = rows(12, 2)
X = np.vstack([DISTINCT, DISTINCT[:5]])
WEIGHTS = np.random.default_rng(0).random(17) + 0.5
KERNEL = RBF(0.4)
PATHS = {
    "one target": (0.0, None),
    "many targets": (0.0, 3),
    "an alpha each": (np.array([0.0, 1.0, 0.0]), 3),
    "an alpha each, all different": (np.array([0.0, 1.0, 0.5]), 3),
}


def least_norm(y, alpha, weights, bias):
    """Coefficients by the pseudo-inverse of the weighted, centred system."""
    K, n = KERNEL(X), len(X)
    root = np.ones(n) if weights is None else np.sqrt(weights)
    u = root / np.linalg.norm(root) if bias else np.zeros(n)
    P = np.eye(n) - np.outer(u, u)
    system = P @ (K * np.outer(root, root)) @ P + alpha * P
    scaled = np.linalg.pinv(system, rcond=1e-12, hermitian=True) @ P @ (root * y)
    coefficients = root * scaled
    intercept = (u @ (root * (y - K @ coefficients))) / np.linalg.norm(root) if bias else 0.0
    return coefficients, intercept


@pytest.mark.parametrize(("alpha", "many"), PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("solver", ["auto", "cholesky", "eigendecomposition"])
def test_repeated_rows_without_ridge_give_the_solution_of_least_norm(
    alpha, many, weights, bias, solver
):
    y = targets(X, many)
    model = KernelRidge(alpha, kernel=KERNEL, fit_intercept=bias, compute=Compute(solver=solver))
    with pytest.warns(SingularSystemWarning) as caught:
        model.fit(X, y, sample_weight=weights)
    columns = y.reshape(len(X), -1)
    for j, ridge in enumerate(np.broadcast_to(alpha, columns.shape[1])):
        dual, intercept = least_norm(columns[:, j], ridge, weights, bias)
        found = model.dual_coef_.reshape(len(X), -1)[:, j]
        np.testing.assert_allclose(found, dual, atol=1e-9 * np.abs(dual).max())
        np.testing.assert_allclose(np.atleast_1d(model.intercept_)[j], intercept, atol=1e-9)
    text = str(caught[0].message)
    assert re.search(r"alpha=0\) is singular .*condition number (inf|\d\.\de\+1\d)", text)
    assert re.search(r"expect about 0 correct digits", text)
    assert "larger alpha" in text


def test_identical_rows_predict_their_mean():
    same, y = np.ones((6, 2)), np.arange(6.0)
    for bias in (False, True):
        with pytest.warns(SingularSystemWarning):
            model = KernelRidge(0, kernel="rbf", fit_intercept=bias).fit(same, y)
        np.testing.assert_allclose(model.predict(same[:1]), [2.5], rtol=1e-12)


def test_columns_of_zeros_predict_zero_or_the_mean():
    empty, y = np.zeros((6, 2)), np.arange(6.0)
    with pytest.warns(SingularSystemWarning, match="condition number inf"):
        assert KernelRidge(0).fit(empty, y).predict(empty[:1]) == 0.0
    with pytest.warns(SingularSystemWarning):
        model = KernelRidge(0, fit_intercept=True).fit(empty, y)
    np.testing.assert_allclose(model.predict(empty[:1]), [2.5])


def test_more_rows_than_features_without_ridge_are_least_squares():
    y = targets(X)
    with pytest.warns(SingularSystemWarning):
        model = KernelRidge(0, kernel="linear").fit(X, y)
    expected = X @ np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-12)


def test_float32_is_warned_about_where_float64_is_not():
    y = targets(DISTINCT)
    kernel = RBF(2.0)
    with pytest.warns(ConditionWarning, match="float64 instead of float32|singular"):
        KernelRidge(1e-5, kernel=kernel).fit(DISTINCT.astype(np.float32), y.astype(np.float32))
    assert np.all(np.isfinite(KernelRidge(1e-5, kernel=kernel).fit(DISTINCT, y).dual_coef_))


def test_ill_conditioned_systems_name_condition_and_digits():
    with pytest.warns(ConditionWarning, match="condition number") as caught:
        model = KernelRidge(1e-13, kernel=RBF(20.0)).fit(DISTINCT, targets(DISTINCT))
    assert re.search(r"alpha=1e-13\).*expect about \d correct digits", str(caught[0].message))
    assert np.all(np.isfinite(model.predict(DISTINCT)))


def test_classifier_falls_back_alike():
    labels = (X[:, 0] > 0).astype(int)
    with pytest.warns(SingularSystemWarning):
        model = LSSVMClassifier(0, kernel=KERNEL).fit(X, labels)
    np.testing.assert_array_equal(model.predict(X), labels)


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_indefinite_kernel_with_bias_solves_the_bordered_system(alpha):
    K = np.tanh(DISTINCT @ DISTINCT.T - 0.5)
    y, n = targets(DISTINCT), len(DISTINCT)
    model = KernelRidge(alpha, kernel="sigmoid", gamma=1.0, coef0=-0.5, fit_intercept=True)
    with pytest.warns(SingularSystemWarning, match="not positive definite"):
        model.fit(DISTINCT, y)
    system = np.block(
        [[np.zeros((1, 1)), np.ones((1, n))], [np.ones((n, 1)), K + alpha * np.eye(n)]]
    )
    expected = np.linalg.solve(system, np.append(0.0, y))
    bound = 1e-12 * np.linalg.cond(system)
    np.testing.assert_allclose(model.dual_coef_, expected[1:], atol=bound)
    np.testing.assert_allclose(model.intercept_, expected[0], atol=bound)

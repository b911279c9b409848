"""Leave-one-out residuals against refits without the row."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold.linalg import numpy_namespace
from ridgefold.linalg.leave_one_out import leave_one_out
from ridgefold.linalg.unpenalised import bias_only

WEIGHTS = {
    "none": lambda rng, n: None,
    "some": lambda rng, n: rng.uniform(0.3, 2.0, n),
    "over 24 decades": lambda rng, n: 10.0 ** rng.uniform(-24, 0, n),
    "nearly all on one row": lambda rng, n: np.where(
        np.arange(n) == 3, 1.0, 1e-12 * rng.uniform(0.3, 2.0, n)
    ),
}


def system(bias, weighted, n=25, targets=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2))
    K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    y = rng.standard_normal((n, targets)) + 3.0
    w = WEIGHTS[weighted](rng, n)
    return K, y, np.ones(n) if w is None else w, bias


def refit(K, y, w, bias, alpha):
    """Coefficients a and bias b from the bordered system."""
    n = len(K)
    border = float(bias)
    matrix = np.zeros((n + 1, n + 1))
    matrix[:n, :n] = K + alpha * np.diag(1 / w)
    matrix[n, :n] = matrix[:n, n] = border
    matrix[n, n] = 1.0 - border
    solution = np.linalg.solve(matrix, np.vstack([y, np.zeros((1, y.shape[1]))]))
    return solution[:n], solution[n] * border


def held_out(K, y, w, bias, alpha):
    residuals = np.empty_like(y)
    for i in range(len(K)):
        rest = np.delete(np.arange(len(K)), i)
        a, b = refit(K[np.ix_(rest, rest)], y[rest], w[rest], bias, alpha)
        residuals[i] = y[i] - K[i, rest] @ a - b
    return residuals


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weighted", WEIGHTS)
@pytest.mark.parametrize("alpha", [1e-3, 0.5])
def test_residuals_are_those_of_refits(bias, weighted, alpha):
    K, y, w, bias = system(bias, weighted)
    roots = None if weighted == "none" else np.sqrt(w)
    scaled = K if roots is None else K * roots[:, None] * roots[None, :]
    right = y if roots is None else y * roots[:, None]
    space = bias_only(numpy_namespace(), np.sqrt(w)) if bias else None
    expected = held_out(K, y, w, bias, alpha)

    def write(out):
        out[...] = scaled

    solved = leave_one_out(numpy_namespace(), write, right, alpha, space=space, roots=roots)
    assert np.allclose(solved.residuals, expected, rtol=1e-8, atol=1e-9)
    a, b = refit(K, y, w, bias, alpha)
    coefficients = solved.coefficients * (1.0 if roots is None else roots[:, None])
    assert np.allclose(coefficients, a, rtol=1e-8, atol=1e-9)
    assert np.allclose(solved.unpenalised[0] if bias else 0.0 * b, b, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("bias", [False, True])
def test_rows_that_are_there_twice_are_predicted_by_their_twins_with_a_ridge_below_rounding(bias):
    K = system(bias, weighted="none", n=12)[0]
    K = 0.9 * np.eye(12) + 0.1 * K  # regular but for the twins
    twins = np.repeat(np.arange(12), 2)
    K, y = K[np.ix_(twins, twins)], np.random.default_rng(1).standard_normal((24, 2))
    wanted = y - y[np.arange(24) ^ 1]
    space = bias_only(numpy_namespace(), np.ones(24)) if bias else None

    def write(out):
        out[...] = K

    found = leave_one_out(numpy_namespace(), write, y, 1e-17, space=space, roots=None)
    np.testing.assert_allclose(found.residuals, wanted, atol=1e-6)


def test_a_single_row_with_a_bias_leaves_nothing_behind():
    def write(out):
        out[...] = 1.0

    y = np.array([[3.0, 0.1]])
    space = bias_only(numpy_namespace(), np.ones(1))
    found = leave_one_out(numpy_namespace(), write, y, 0.3, space=space, roots=None)
    assert np.isnan(found.residuals).all()
    assert found.unpenalised[0] == pytest.approx(y[0])

"""Refits in extended precision, for problems on which refits in float64 lose digits themselves.

`numpy.longdouble` has 64 bits on x86, eps = 1e-19: with a condition number of 1e15 four digits are
left, far more than anything in float64 is held to. Where a platform has no more than float64, these
are ordinary refits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ridgefold.kernels import RBF, Kernel, Laplacian, Linear, Matern, Polynomial

LONG = np.longdouble


def _scaled_differences(X: np.ndarray, Z: np.ndarray, width: float) -> np.ndarray:
    return (X.astype(LONG)[:, None, :] - Z.astype(LONG)[None, :, :]) / LONG(width)


def _distances(X: np.ndarray, Z: np.ndarray, width: float) -> np.ndarray:
    return np.sqrt(np.sum(_scaled_differences(X, Z, width) ** 2, axis=2))


def _products(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return X.astype(LONG) @ Z.astype(LONG).T


def kernel_matrix(kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """k(x, z) from its formula."""
    if isinstance(kernel, Linear):
        return _products(X, Z)
    if isinstance(kernel, Polynomial):
        return (LONG(kernel.gamma) * _products(X, Z) + LONG(kernel.coef0)) ** kernel.degree
    width = float(kernel.length_scale)
    if isinstance(kernel, Laplacian):
        return np.exp(-np.sum(np.abs(_scaled_differences(X, Z, width)), axis=2))
    r = _distances(X, Z, width)
    if isinstance(kernel, RBF):
        return np.exp(-r * r / 2)
    assert isinstance(kernel, Matern)
    assert kernel.nu == 1.5
    r = np.sqrt(LONG(3)) * r
    return (1 + r) * np.exp(-r)


def solve(matrices: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solutions for a stack of positive definite matrices (a, m, m) and one right side (m, t).

    By Cholesky factorisation, which scaling of rows and columns does not disturb.
    """
    a, m, _ = matrices.shape
    lower, x = np.zeros_like(matrices), np.empty((a, m, right.shape[1]), dtype=LONG)
    for j in range(m):
        left = lower[:, j:, :j] @ lower[:, j, :j, None]
        column = matrices[:, j:, j] - left[:, :, 0]
        lower[:, j:, j] = column / np.sqrt(column[:, :1])
    for j in range(m):
        known = (lower[:, None, j, :j] @ x[:, :j, :])[:, 0, :]
        x[:, j, :] = (right[j] - known) / lower[:, j, j, None]
    for j in reversed(range(m)):
        known = (lower[:, None, j + 1 :, j] @ x[:, j + 1 :, :])[:, 0, :]
        x[:, j, :] = (x[:, j, :] - known) / lower[:, j, j, None]
    return x


def ridge(
    K: np.ndarray, y: np.ndarray, weights: np.ndarray, alphas: np.ndarray, *, bias: bool
) -> Callable[[np.ndarray], np.ndarray]:
    """The fits for every α: from K between new and training rows to predictions (a, new, t)."""
    shifts = alphas.astype(LONG)[:, None] / weights.astype(LONG)[None, :]
    matrices = K[None, :, :] + shifts[:, :, None] * np.eye(len(K), dtype=LONG)
    y = y.astype(LONG)
    solved = solve(matrices, np.column_stack([y, np.ones(len(K), dtype=LONG)]))
    coefficients, along = solved[:, :, :-1], solved[:, :, -1]
    intercepts = np.zeros((len(alphas), y.shape[1]), dtype=LONG)
    if bias:
        intercepts = coefficients.sum(axis=1) / along.sum(axis=1)[:, None]
        coefficients = coefficients - along[:, :, None] * intercepts[:, None, :]
    return lambda new: new @ coefficients + intercepts[:, None, :]

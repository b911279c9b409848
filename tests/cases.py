"""Data, tolerances and kernels that many tests share."""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgefold.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Constant,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Sobolev,
)


def rows(n: int = 40, d: int = 3, seed: int = 0, *, positive: bool = False) -> np.ndarray:
    """Well-spread rows, in [0, 1] if a kernel needs that."""
    generator = np.random.default_rng(seed)
    return generator.random((n, d)) if positive else generator.standard_normal((n, d))


def targets(X: np.ndarray, t: int | None = None, seed: int = 1) -> np.ndarray:
    """A smooth function of the rows with noise; `t` columns, or one dimension if None."""
    noise = np.random.default_rng(seed).standard_normal((X.shape[0], t or 1))
    y = np.sin(X.sum(axis=1, keepdims=True) * np.arange(1, (t or 1) + 1)) + 0.1 * noise
    return y[:, 0] if t is None else y


def condition(matrix: np.ndarray) -> float:
    """2-norm condition number of a symmetric matrix, in float64."""
    values = np.abs(np.linalg.eigvalsh(np.asarray(matrix, dtype=np.float64)))
    return float(values.max() / values.min())


def tolerance(K: Any, alpha: Any, predictions: Any, dtype: Any) -> float:
    """The library's promise: 10(n + cond)·eps·max|ŷ|, with cond of K + alpha·I."""
    K = np.asarray(K, dtype=np.float64)
    n = K.shape[0]
    worst = max(condition(K + a * np.eye(n)) for a in np.unique(np.atleast_1d(alpha)))
    size = float(np.max(np.abs(np.asarray(predictions, dtype=np.float64))))
    return 10.0 * (n + worst) * float(np.finfo(dtype).eps) * size


def symmetric_matrix(n: int, cond: float, spectrum: str = "geometric", seed: int = 0) -> np.ndarray:
    """A positive definite matrix of norm one and a given condition number."""
    basis, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))
    values = {
        "geometric": np.logspace(0.0, -np.log10(cond), n),
        "one small": np.append(np.ones(n - 1), 1.0 / cond),
        "one large": np.append(np.full(n - 1, 1.0 / cond), 1.0),
    }[spectrum]
    matrix = (basis * values) @ basis.T
    return (matrix + matrix.T) / 2


def bordered(K: np.ndarray, alpha: float, weights: np.ndarray | None = None) -> np.ndarray:
    """[[0, 1ᵀ], [1, K + alpha·W⁻¹]], the system of an LS-SVM."""
    n = K.shape[0]
    ridge = alpha * np.diag(np.ones(n) if weights is None else 1.0 / weights)
    return np.block([[np.zeros((1, 1)), np.ones((1, n))], [np.ones((n, 1)), K + ridge]])


def least_squares(
    features: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and intercepts of least squares, what ridge regression tends to as α goes to zero."""
    root = np.ones(len(y)) if weights is None else np.sqrt(weights)
    columns = np.column_stack([features, np.ones(len(y))]).astype(np.float64)
    found = np.linalg.lstsq(columns * root[:, None], (y.T * root).T.astype(np.float64), rcond=None)
    return found[0][:-1], found[0][-1]


def residual_ratio(A: np.ndarray, x: np.ndarray, b: np.ndarray) -> float:
    """‖b − Ax‖/(‖A‖‖x‖ + ‖b‖), the worst over the columns, without overflow."""
    A, x, b = (np.asarray(m, dtype=np.float64) for m in (A, x, b))
    unit = float(np.max(np.abs(A)))
    length = max(float(np.max(np.abs(x))), 1e-300)
    residual = np.linalg.norm(b - A @ x, axis=0)
    size = np.linalg.norm(A / unit, 2) * unit * length * np.linalg.norm(x / length, axis=0)
    return float(np.max(residual / (size + np.linalg.norm(b, axis=0))))


KERNELS: dict[str, Kernel] = {
    "rbf": RBF(0.8),
    "rbf, a scale a column": RBF((0.5, 1.0, 2.0)),
    "rbf, gamma": RBF(gamma=0.3),
    "laplacian": Laplacian(1.5),
    "laplacian, a scale a column": Laplacian((0.5, 1.0, 2.0)),
    "matern 1/2": Matern(1.2, nu=0.5),
    "matern 3/2": Matern(1.2, nu=1.5),
    "matern 5/2": Matern((0.7, 1.0, 1.3), nu=2.5),
    "rational quadratic": RationalQuadratic(0.9, shape=1.5),
    "linear": Linear(),
    "polynomial": Polynomial(3),
    "polynomial, general": Polynomial(2, gamma=0.4, coef0=0.5),
    "polynomial, homogeneous": Polynomial(3, coef0=0.0),
    "polynomial, fifth": Polynomial(5, gamma=0.2),
    "cosine": Cosine(),
    "constant": Constant(2.5),
    "sobolev": Sobolev(),
    "chi2": Chi2(0.7),
    "sum": RBF(0.8) + 1,
    "product": Matern(1.1) * Linear(),
    "scaled": 3.0 * Laplacian(0.9),
    "nested": 0.5 * (Linear() + 1) * Polynomial(2) + 2 * Cosine(),
}
"""Positive semi-definite kernels on three columns of values in [0, 1]."""

INDEFINITE: dict[str, Kernel] = {
    "sigmoid": Sigmoid(0.4, coef0=-0.2),
    "additive chi2": AdditiveChi2(),
}

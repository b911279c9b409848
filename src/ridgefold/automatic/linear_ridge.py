"""Linear ridge regression with the ridge chosen by exact cross-validation, whatever the columns.

With A = Σ w_i x_i x_iᵀ and b = Σ w_i x_i y_iᵀ over the training rows of a fold, centred,
coefficients are (A + alpha I)⁻¹b. One eigendecomposition of A a fold serves every alpha; A of a
fold is that of all rows without what its own rows add. Unlike low-rank factors of the kernel matrix
this never gives up where columns depend on each other, and its time is known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.crossval import Folds

RIDGES = 10.0 ** np.arange(-6.0, 1.5, 0.5)
"""Tried, in units of the weight of all rows: of standardised columns the eigenvalues of A are of
that size."""


@dataclass(frozen=True)
class LinearPath:
    """The ridge of the least squared error, and what it predicts for rows held out."""

    alpha: float
    held_out: np.ndarray
    """Shape (n, t); NaN for rows that no fold tests."""


@dataclass
class _Moments:
    """Sums over some rows."""

    weight: float
    rows: np.ndarray
    targets: np.ndarray
    squares: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, w: np.ndarray) -> _Moments:
        weighted = X * w[:, None]
        return cls(float(w.sum()), w @ X, w @ y, weighted.T @ X, weighted.T @ y)

    def without(self, other: _Moments) -> _Moments:
        return _Moments(
            self.weight - other.weight,
            self.rows - other.rows,
            self.targets - other.targets,
            self.squares - other.squares,
            self.products - other.products,
        )


def linear_path(
    X: np.ndarray, targets: np.ndarray, weights: np.ndarray | None, folds: Folds
) -> LinearPath:
    """Choose one ridge for all targets by the squared error of rows held out."""
    w = np.ones(len(X)) if weights is None else weights
    total = float(w.sum())
    centre, middle = w @ X / total, w @ targets / total
    Z, y = X - centre, targets - middle
    whole = _Moments.of(Z, y, w) if folds.complement else None
    alphas = total * RIDGES
    held_out = np.full((len(alphas), *targets.shape), np.nan)
    for k, test in enumerate(folds.test):
        if whole is not None:
            training = whole.without(_Moments.of(Z[test], y[test], w[test]))
        else:
            kept = folds.training_rows(k)
            training = _Moments.of(Z[kept], y[kept], w[kept])
        held_out[:, test] = _predicted(training, alphas, Z[test]) + middle
    tested = folds.stacked
    squares = np.mean((held_out[:, tested] - targets[tested]) ** 2, axis=2) @ w[tested]
    best = int(np.argmin(squares))
    return LinearPath(float(alphas[best]), held_out[best])


def _predicted(training: _Moments, alphas: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Predictions for every alpha, shape (alphas, rows, t)."""
    if training.weight <= 0:
        return np.zeros((len(alphas), len(rows), training.targets.shape[0]))
    mean, middle = training.rows / training.weight, training.targets / training.weight
    A = training.squares - training.weight * np.outer(mean, mean)
    b = training.products - training.weight * np.outer(mean, middle)
    values, vectors = np.linalg.eigh(A)
    values = np.maximum(values, 0.0)
    turned, rotated = vectors.T @ b, (rows - mean) @ vectors
    return np.stack([rotated @ (turned / (values + alpha)[:, None]) + middle for alpha in alphas])

"""Ridge fits of all rows on a few features, for every ridge value at once, with leave-one-out.

With features φ(x), weighted means φ̄ and ȳ, and S = Σ w_i(φ_i − φ̄)(φ_i − φ̄)ᵀ,

    f(x) = ȳ + (φ(x) − φ̄)ᵀ(S + αI)⁻¹ Σ w_i(φ_i − φ̄)(y_i − ȳ),

and what is left of it without row i is exact: r_i = (y_i − f(x_i))/(1 − h_i) with
h_i = w_i(1/Σw + (φ_i − φ̄)ᵀ(S + αI)⁻¹(φ_i − φ̄)). Rows are gone through in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from scipy.linalg import eigh

from ridgefold.cells.cell_rows import RowsToFit
from ridgefold.errors import NumericalError
from ridgefold.linalg.blocks import row_blocks

_RIDGES = 10.0 ** np.arange(-8.0, -0.5, 0.5)
"""Ridge values to choose from, as shares of the sum of weights."""
_BYTES_AT_ONCE = float(1 << 21)
"""Bytes of one array of features of a block of rows; some four are worked on at a time."""


def blocks_of(n_rows: int, width: int) -> Iterator[slice]:
    """Rows whose features, so many for each, are worked on at once."""
    return row_blocks(n_rows, 8.0 * width, _BYTES_AT_ONCE)


def spectrum(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors; a typed error if a number is none."""
    if not np.all(np.isfinite(matrix)):
        raise NumericalError("sums over all rows overflow: scale the columns of X, or the weights")
    values, vectors = eigh(matrix)
    return values, vectors


def targets_and_weights(training: RowsToFit, some: slice) -> tuple[np.ndarray, np.ndarray]:
    """Targets and weights of some rows."""
    y, w = np.asarray(training.targets[some], dtype=np.float64), training.weights
    return y, np.ones(len(y)) if w is None else np.asarray(w[some], dtype=np.float64)


class FeatureRidge:
    """The fits with all ridge values."""

    def __init__(
        self,
        training: RowsToFit,
        features: Callable[[slice], np.ndarray],
        n_features: int,
        width: int,
    ) -> None:
        """`features` gives φ of some rows; `width` says how many numbers a row takes to make."""
        self.training, self._features, self._width = training, features, width
        self._gather(n_features)
        self.alphas = _RIDGES * self.total_weight

    def _gather(self, k: int) -> None:
        """Sums over all rows, then the axes of S."""
        t = self.training.targets.shape[1]
        total, y_sum = 0.0, np.zeros(t)
        for some in self._blocks():
            y, w = targets_and_weights(self.training, some)
            total, y_sum = total + float(w.sum()), y_sum + w @ y
        self.total_weight, self.y_mean = total, y_sum / total
        first, S, q = np.zeros(k), np.zeros((k, k)), np.zeros((k, t))
        for some in self._blocks():
            phi, (y, w) = self._features(some), targets_and_weights(self.training, some)
            weighted = phi * w[:, None]
            first += weighted.sum(axis=0)
            S += weighted.T @ phi
            q += weighted.T @ (y - self.y_mean)  # a large mean would take the digits
        self.mean = first / total
        values, self.axes = spectrum(S - total * np.outer(self.mean, self.mean))
        self.values = np.maximum(values, 0.0)
        self.right = self.axes.T @ q

    def _blocks(self) -> Iterator[slice]:
        n, t = self.training.targets.shape
        return blocks_of(n, max(self._width, 2 * len(_RIDGES) * t))

    @cached_property
    def scores(self) -> np.ndarray:
        """The leave-one-out mean squared error with every ridge value."""
        squares, counted = np.zeros(len(self.alphas)), 0.0
        shrunk = 1.0 / (self.values[:, None] + self.alphas[None, :])  # (k, a)
        # (k, a, t), as one matrix.
        solved = (shrunk[:, :, None] * self.right[:, None, :]).reshape(len(shrunk), -1)
        for some in self._blocks():
            phi, rows = self._features(some), self.training.scored(some)
            along = (phi - self.mean) @ self.axes
            fitted = self.y_mean + (along @ solved).reshape(len(phi), len(self.alphas), -1)
            leverage = 1.0 / self.total_weight + (along * along) @ shrunk
            left = 1.0 - rows.spread(leverage) * rows.weights[:, None]
            residuals = (rows.targets[:, None, :] - rows.spread(fitted)) / left[:, :, None]
            squares += rows.counts @ np.mean(residuals**2, axis=2)
            counted += float(rows.counts.sum())
        found = squares / counted
        return np.where(np.isfinite(found), found, np.inf)

    @property
    def best_alpha(self) -> float:
        """The ridge value with the least leave-one-out error."""
        return float(self.alphas[np.argmin(self.scores)])

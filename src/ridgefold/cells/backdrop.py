"""A coarse model of all rows behind the cells, and how much it counts beside theirs.

Where targets are noise for the most part, a cell of a few hundred rows varies more than it needs
to, and no size of cells that is affordable mends that. A ridge fit of all rows in the span of few
of them, z_1 … z_r (Nyström), has next to no variance, and takes n·r² operations: with features
φ(x) = k(x, Z)B, B Bᵀ = K_ZZ⁻¹, weighted means φ̄ and ȳ, and S = Σ w_i(φ_i − φ̄)(φ_i − φ̄)ᵀ,

    f(x) = ȳ + ψ(x)ᵀ Σ w_i ψ_i y_i,    ψ(x) = (S + αI)^(−½)(φ(x) − φ̄),

is also what is left of it without row i, exactly:

    r_i = (y_i − f(x_i))/(1 − h_i),    h_i = w_i(1/Σw + ‖ψ_i‖²),
    f(x) − f₋ᵢ(x) = r_i w_i(1/Σw + ψ(x)ᵀψ_i).

It is mixed in with the share s that lowers the leave-one-out error most: with r_c the residuals of
the cells, those of (1 − s)f_cells + s·f are (1 − s)r_c + s·r.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.linalg import eigh

from ridgefold.cells.cell_rows import Training, spaced
from ridgefold.errors import NumericalError
from ridgefold.kernels import Kernel, KernelGram
from ridgefold.linalg.blocks import row_blocks
from ridgefold.linalg.threads import threads
from ridgefold.records import CELL_SEARCH, Backdrop

_RIDGES = 10.0 ** np.arange(-8.0, -0.5, 0.5)
"""Ridge values to choose from, in parts of the sum of weights."""
_DEPENDENT = 1e-10
"""Directions of the span with eigenvalues below this, in parts of the largest, are left out."""
_LEAST_GAIN = 0.002
"""Of the mean square, by which it must lower it: less is not worth keeping a second model."""
_BYTES_AT_ONCE = float(1 << 21)
"""Of one array of features; some four are worked on at a time."""


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def fit_backdrop(
    training: Training, kernels: Sequence[Kernel], rng: np.random.Generator
) -> Backdrop:
    """The coarse model with the best of some kernels and ridges, by its leave-one-out error.

    Kernels are compared on some of the rows. A `NumericalError` says that numbers overflow.
    """
    n = training.X.shape[0]
    some = np.sort(rng.choice(n, min(n, CELL_SEARCH.backdrop_rows), replace=False))
    centres = np.ascontiguousarray(training.X[some], dtype=np.float64)
    part = training.taken(spaced(n, CELL_SEARCH.backdrop_pair_rows))
    with threads(1):
        best = min(kernels, key=lambda kernel: float(_Fits(part, kernel, centres).scores.min()))
        return _Fits(training, best, centres).best()


def _features(kernel: Kernel, centres: np.ndarray, X: np.ndarray, map_: np.ndarray) -> np.ndarray:
    """k(x, Z) times a matrix."""
    gram = KernelGram(kernel, centres)
    return np.asarray(gram.against(np.ascontiguousarray(X, dtype=np.float64)).block() @ map_)


def _spectrum(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not np.all(np.isfinite(matrix)):
        raise NumericalError("sums over all rows overflow: scale the columns of X, or the weights")
    values, vectors = eigh(matrix)
    return values, vectors


def _blocks(n: int, r: int) -> Iterator[slice]:
    return row_blocks(n, 8.0 * r, _BYTES_AT_ONCE)


class _Fits:
    """All ridge values with one kernel."""

    def __init__(self, training: Training, kernel: Kernel, centres: np.ndarray) -> None:
        self.training, self.kernel, self.centres = training, kernel, centres
        values, vectors = _spectrum(KernelGram(kernel, centres).full())
        kept = values > _DEPENDENT * values[-1]
        self._map = vectors[:, kept] / np.sqrt(values[kept])
        self._gather()
        self.alphas = _RIDGES * self._total

    def _gather(self) -> None:
        """Sums over all rows, then the axes of S."""
        k, t = self._map.shape[1], self.training.targets.shape[1]
        total, first, y_sum = 0.0, np.zeros(k), np.zeros(t)
        S, q = np.zeros((k, k)), np.zeros((k, t))
        for some in self._blocks():
            y, w = _targets(self.training, some)
            total, y_sum = total + float(w.sum()), y_sum + w @ y
        self._total, self._y_mean = total, y_sum / total
        for some in self._blocks():
            phi, (y, w) = self._features_of(some), _targets(self.training, some)
            weighted = phi * w[:, None]
            first += weighted.sum(axis=0)
            S += weighted.T @ phi
            q += weighted.T @ (y - self._y_mean)  # a large mean would take the digits
        self._mean = first / total
        values, self._axes = _spectrum(S - total * np.outer(self._mean, self._mean))
        self._values = np.maximum(values, 0.0)
        self._right = self._axes.T @ q

    def _blocks(self) -> Iterator[slice]:
        n, t = self.training.targets.shape
        return _blocks(n, max(len(self.centres), 2 * len(_RIDGES) * t))

    def _features_of(self, some: slice) -> np.ndarray:
        """φ of some rows."""
        return _features(self.kernel, self.centres, self.training.X[some], self._map)

    @cached_property
    def scores(self) -> np.ndarray:
        """The leave-one-out mean squared error with every ridge value."""
        squares, counted = np.zeros(len(self.alphas)), 0.0
        shrunk = 1.0 / (self._values[:, None] + self.alphas[None, :])  # (k, a)
        # (k, a, t), as one matrix.
        solved = (shrunk[:, :, None] * self._right[:, None, :]).reshape(len(shrunk), -1)
        for some in self._blocks():
            phi, rows = self._features_of(some), self.training.scored(some)
            along = (phi - self._mean) @ self._axes
            fitted = self._y_mean + (along @ solved).reshape(len(phi), len(self.alphas), -1)
            leverage = 1.0 / self._total + (along * along) @ shrunk
            left = 1.0 - rows.spread(leverage) * rows.weights[:, None]
            residuals = (rows.targets[:, None, :] - rows.spread(fitted)) / left[:, :, None]
            squares += rows.counts @ np.mean(residuals**2, axis=2)
            counted += float(rows.counts.sum())
        found = squares / counted
        return np.where(np.isfinite(found), found, np.inf)

    def best(self) -> Backdrop:
        alpha = float(self.alphas[np.argmin(self.scores)])
        roots = np.sqrt(self._values + alpha)
        axes = self._axes / roots
        return Backdrop(
            centres=self.centres,
            kernel=self.kernel,
            # In the order that files keep: products round by it.
            projection=np.ascontiguousarray(self._map @ axes),
            offset=self._mean @ axes,
            coefficients=np.ascontiguousarray(self._right / roots[:, None]),
            intercept=self._y_mean,
            total_weight=self._total,
            share=np.ones(len(self._y_mean)),
        )


def _targets(training: Training, some: slice) -> tuple[np.ndarray, np.ndarray]:
    """Targets and weights of some rows."""
    y, w = np.asarray(training.targets[some], dtype=np.float64), training.weights
    return y, np.ones(len(y)) if w is None else np.asarray(w[some], dtype=np.float64)


# -- a fitted one ----------------------------------------------------------------------------


def directions(backdrop: Backdrop, X: np.ndarray) -> np.ndarray:
    """ψ of some rows."""
    psi = _features(backdrop.kernel, backdrop.centres, X, backdrop.projection)
    return np.asarray(psi - backdrop.offset)


def residuals_without(
    backdrop: Backdrop, psi: np.ndarray, targets: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """Leave-one-out residuals of rows of the fit, with ψ of each."""
    w = np.ones(len(psi)) if weights is None else np.asarray(weights, dtype=np.float64)
    leverage = w * (1.0 / backdrop.total_weight + np.einsum("ij,ij->i", psi, psi))
    fitted = backdrop.intercept + psi @ backdrop.coefficients
    left = (1.0 - leverage)[:, None]
    # Nothing is left without a row that has all the weight there is.
    unknown = np.full(fitted.shape, np.nan)
    return np.asarray(np.divide(targets - fitted, left, where=left > 0, out=unknown))


def mix_predictions(backdrop: Backdrop, X: np.ndarray, values: np.ndarray) -> None:
    """Predictions of cells become those of the mixture, in place."""
    with threads(1):
        for some in _blocks(len(X), len(backdrop.centres)):
            coarse = backdrop.intercept + directions(backdrop, X[some]) @ backdrop.coefficients
            values[some] += backdrop.share * (coarse - values[some])


def mix_residuals(backdrop: Backdrop, training: Training, residuals: np.ndarray) -> None:
    """Leave-one-out residuals of cells become those of the mixture, in place."""
    X = training.X
    with threads(1):
        for some in _blocks(X.shape[0], len(backdrop.centres)):
            psi = directions(backdrop, np.asarray(X[some]))
            coarse = residuals_without(backdrop, psi, *_targets(training, some))
            residuals[some] += backdrop.share * (coarse - residuals[some])


@np.errstate(over="ignore", invalid="ignore")
def with_share(
    backdrop: Backdrop, training: Training, residuals: np.ndarray, counts: np.ndarray
) -> Backdrop | None:
    """With the share of every target that lowers the mean square most; None if it hardly does.

    Parameters
    ----------
    residuals : array of shape (rows, t)
        Those of the cells, at the rows that scores leave out; `counts` is what these count.
    """
    at, t = 0, residuals.shape[1]
    across, square, before = np.zeros(t), np.zeros(t), np.zeros(t)
    with threads(1):
        for some in _blocks(training.X.shape[0], len(backdrop.centres)):
            rows = training.scored(some)
            psi = rows.spread(directions(backdrop, np.asarray(training.X[some])))
            coarse = residuals_without(backdrop, psi, rows.targets, rows.weights)
            here = slice(at, at + len(coarse))
            at += len(coarse)
            local = np.asarray(residuals[here], dtype=np.float64)
            known = np.isfinite(local) & np.isfinite(coarse)
            c = np.where(known, counts[here, None], 0.0)
            local, apart = np.where(known, local, 0.0), np.where(known, local - coarse, 0.0)
            across += np.sum(c * local * apart, axis=0)
            square += np.sum(c * apart**2, axis=0)
            before += np.sum(c * local**2, axis=0)
    share = np.divide(across, square, out=np.zeros(t), where=square > 0)
    share = np.clip(share, 0.0, 1.0)
    gain = 2.0 * share * across - share**2 * square
    share = np.where(gain >= _LEAST_GAIN * before, share, 0.0)
    return replace(backdrop, share=share) if np.any(share > 0) else None

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

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ridgefold.cells.cell_rows import RowsToFit, spaced
from ridgefold.cells.feature_ridge import (
    FeatureRidge,
    blocks_of,
    spectrum,
    targets_and_weights,
)
from ridgefold.kernels import Kernel, KernelGram
from ridgefold.linalg.threads import threads
from ridgefold.records import CELL_SEARCH, Backdrop

_DEPENDENT = 1e-10
"""Directions of the span whose eigenvalues are below this share of the largest are left out."""
_LEAST_GAIN = 0.002
"""The coarse model is kept only if it lowers the held-out mean square by this share: a smaller gain
does not justify a second model."""


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def fit_coarse_model(
    training: RowsToFit, kernels: Sequence[Kernel], rng: np.random.Generator
) -> Backdrop:
    """The coarse model whose kernel and ridge have the least leave-one-out error.

    Kernels are compared on a sample of the rows. A `NumericalError` says that numbers overflow.
    """
    n = training.X.shape[0]
    spanning = np.sort(rng.choice(n, min(n, CELL_SEARCH.backdrop_rows), replace=False))
    centres = np.ascontiguousarray(training.X[spanning], dtype=np.float64)
    sample = training.taken(spaced(n, CELL_SEARCH.backdrop_pair_rows))
    with threads(1):
        best = min(kernels, key=lambda kernel: float(_Fits(sample, kernel, centres).scores.min()))
        return _Fits(training, best, centres).best()


def _features(kernel: Kernel, centres: np.ndarray, X: np.ndarray, map_: np.ndarray) -> np.ndarray:
    """k(x, Z) of the rows of X, times the matrix `map_`."""
    gram = KernelGram(kernel, centres)
    return np.asarray(gram.against(np.ascontiguousarray(X, dtype=np.float64)).block() @ map_)


class _Fits(FeatureRidge):
    """The coarse models of one kernel with every ridge value."""

    def __init__(self, training: RowsToFit, kernel: Kernel, centres: np.ndarray) -> None:
        self.kernel, self.centres = kernel, centres
        values, vectors = spectrum(KernelGram(kernel, centres).full())
        kept = values > _DEPENDENT * values[-1]
        self._map = vectors[:, kept] / np.sqrt(values[kept])
        super().__init__(training, self._of_rows, self._map.shape[1], len(centres))

    def _of_rows(self, block: slice) -> np.ndarray:
        return _features(self.kernel, self.centres, self.training.X[block], self._map)

    def best(self) -> Backdrop:
        """The fit with the best ridge."""
        roots = np.sqrt(self.values + self.best_alpha)
        axes = self.axes / roots
        return Backdrop(
            centres=self.centres,
            kernel=self.kernel,
            # In the order that files keep: products round by it.
            projection=np.ascontiguousarray(self._map @ axes),
            offset=self.mean @ axes,
            coefficients=np.ascontiguousarray(self.right / roots[:, None]),
            intercept=self.y_mean,
            total_weight=self.total_weight,
            share=np.ones(len(self.y_mean)),
        )


# -- a fitted one ----------------------------------------------------------------------------


def directions(coarse_model: Backdrop, X: np.ndarray) -> np.ndarray:
    """ψ(x) of the rows of X."""
    psi = _features(coarse_model.kernel, coarse_model.centres, X, coarse_model.projection)
    return np.asarray(psi - coarse_model.offset)


def residuals_without(
    coarse_model: Backdrop, psi: np.ndarray, targets: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """Leave-one-out residuals of training rows, from the ψ, target and weight of each."""
    w = np.ones(len(psi)) if weights is None else np.asarray(weights, dtype=np.float64)
    leverage = w * (1.0 / coarse_model.total_weight + np.einsum("ij,ij->i", psi, psi))
    fitted = coarse_model.intercept + psi @ coarse_model.coefficients
    left = (1.0 - leverage)[:, None]
    # Nothing is left without a row that has all the weight there is.
    unknown = np.full(fitted.shape, np.nan)
    return np.asarray(np.divide(targets - fitted, left, where=left > 0, out=unknown))


def mix_predictions(coarse_model: Backdrop, X: np.ndarray, values: np.ndarray) -> None:
    """Mix the coarse model into predictions of the cells, in place."""
    with threads(1):
        for block in blocks_of(len(X), len(coarse_model.centres)):
            coarse = (
                coarse_model.intercept
                + directions(coarse_model, X[block]) @ coarse_model.coefficients
            )
            values[block] += coarse_model.share * (coarse - values[block])


def mix_residuals(coarse_model: Backdrop, training: RowsToFit, residuals: np.ndarray) -> None:
    """Mix those of the coarse model into leave-one-out residuals of the cells, in place."""
    X = training.X
    with threads(1):
        for block in blocks_of(X.shape[0], len(coarse_model.centres)):
            psi = directions(coarse_model, np.asarray(X[block]))
            coarse = residuals_without(coarse_model, psi, *targets_and_weights(training, block))
            residuals[block] += coarse_model.share * (coarse - residuals[block])


@np.errstate(over="ignore", invalid="ignore")
def with_share(
    coarse_model: Backdrop, training: RowsToFit, residuals: np.ndarray, counts: np.ndarray
) -> Backdrop | None:
    """The model with the best share for every target; None if the error hardly falls with it.

    Parameters
    ----------
    residuals : array of shape (rows, t)
        Those of the cells, at the rows that scores leave out; `counts` is what these count.
    """
    at, t = 0, residuals.shape[1]
    across, square, before = np.zeros(t), np.zeros(t), np.zeros(t)
    with threads(1):
        for block in blocks_of(training.X.shape[0], len(coarse_model.centres)):
            rows = training.scored(block)
            psi = rows.spread(directions(coarse_model, np.asarray(training.X[block])))
            coarse = residuals_without(coarse_model, psi, rows.targets, rows.weights)
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
    return replace(coarse_model, share=share) if np.any(share > 0) else None

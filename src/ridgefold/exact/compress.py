"""Project a fitted model onto a few of its training rows, and say what that loses.

f = Σ a_i k(x_i, ·) becomes g = Σ c_j k(z_j, ·) on r centres z_j, the closest such function
in the kernel's own norm. With d the coefficients of f − g, ‖f − g‖² = dᵀKd whatever the c are,
and with it |f(x) − g(x)| ≤ ‖f − g‖·√k(x, x) for every x.

The c that are returned are measured, not the factor that led to them, and in float64 whatever the
model is in. Rounding of the entries of K is added: with S = Σ √k(x_i, x_i)|d_i|, an error of
δ√k(x, x)k(z, z) in each changes dᵀKd by at most δS². Coefficients are large where α is small; the
bound then is mostly this, and no finer one can be had from such entries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.linalg.pivoted_cholesky import PivotedCholesky
from ridgefold.linalg.units import units_of_columns

_ENTRY_ROUNDING = 16.0
"""What entries of K, and sums over them, are off by, in units of eps. Measured beside extended
precision, dᵀKd was off by up to 5 eps·S² (narrow kernels in one dimension), mostly by 0.1."""


@dataclass(frozen=True)
class Compressed:
    """A model on few centres."""

    centres: np.ndarray
    """Indices of the training rows that were kept."""
    dual_coef: Array
    """Coefficients of the centres, shape (r, t)."""
    bound: np.ndarray
    """|f(x) − g(x)| ≤ bound·√k(x, x), one number a target."""


def compress(gram: Gram, dual_coef: Array, n_centres: int, tolerance: float = 0.0) -> Compressed:
    """Keep at most `n_centres` rows, fewer if the bound falls below `tolerance` before.

    Parameters
    ----------
    gram : Gram
        In float64.
    dual_coef : array of shape (n, t)
        In the precision in which the model predicts.

    Notes
    -----
    Taking row i as a centre lowers ‖f − g‖² by (Ea)_i²/E_ii, so the next centre is the row
    where that is largest, summed over targets. E a = K a − F(Fᵀa) needs one product with K.
    """
    xp = gram.namespace.xp
    model = _Model(gram, dual_coef)
    partial = PivotedCholesky(gram.namespace, gram.column, gram.diagonal(), n_centres)
    residual = gram.namespace.copy(model.values)  # E a
    while not partial.full:
        lost = gram.namespace.to_numpy(xp.sum(residual * model.dual, axis=0))
        if partial.pivots and bool(
            np.all(np.sqrt(np.maximum(lost, 0.0)) <= tolerance / model.units)
        ):
            projected = model.projected(partial)
            if np.all(projected.bound <= tolerance):
                return projected
        safe = xp.where(partial.usable(), partial.remainder, xp.ones_like(partial.remainder))
        new = partial.add(partial.best_pivot(xp.sum(residual * residual, axis=1) / safe))
        residual -= new[:, None] * (new @ model.dual)[None, :]
    return model.projected(partial)


class _Model:
    """f, and what its projections lose."""

    def __init__(self, gram: Gram, dual_coef: Array) -> None:
        self._gram, self._like = gram, dual_coef
        dual = gram.namespace.astype(dual_coef, gram.namespace.double())
        # Each target in a unit of its own: squares of tiny coefficients would be zero.
        self._units = units_of_columns(gram.namespace, dual)
        self.units = gram.namespace.to_numpy(self._units)
        self.dual = dual / self._units[None, :]
        self.values = gram.matmat(self.dual)
        self._roots = gram.namespace.xp.sqrt(gram.diagonal())

    def projected(self, partial: PivotedCholesky) -> Compressed:
        """f on the pivots as centres: c = K_zz⁻¹ K_z· a, where K_zz = L Lᵀ."""
        namespace = self._gram.namespace
        if not partial.pivots:  # K is zero, and f with it: any row will do
            centres = np.zeros(1, dtype=np.intp)
            coefficients = namespace.zeros((1, self.dual.shape[1]), self._like)
            return Compressed(centres, coefficients, np.zeros(self.dual.shape[1]))
        centres = np.asarray(partial.pivots, dtype=np.intp)
        coefficients = namespace.astype(
            namespace.solve_triangular(
                partial.lower_at_pivots(), partial.factor.T @ self.dual, transposed=True
            )
            * self._units[None, :],
            self._like.dtype,
        )
        return Compressed(centres, coefficients, self._bound(centres, coefficients))

    def _bound(self, centres: np.ndarray, coefficients: Array) -> np.ndarray:
        namespace, xp = self._gram.namespace, self._gram.namespace.xp
        kept = namespace.astype(coefficients, self.dual.dtype) / self._units[None, :]
        difference = namespace.copy(self.dual)
        for place, row in enumerate(centres.tolist()):
            difference[row, :] -= kept[place, :]
        left = self.values - self._gram.product(slice(None), centres, kept)
        lost = namespace.to_numpy(xp.sum(difference * left, axis=0))
        rounding = _ENTRY_ROUNDING * namespace.eps(self.dual) * self._size(difference) ** 2
        # What rounding does to predictions themselves, of f and of g, which both are made of a.
        predicting = _ENTRY_ROUNDING * namespace.eps(self._like) * self._size(self.dual)
        return np.asarray(self.units * (np.sqrt(np.maximum(lost, 0.0) + rounding) + predicting))

    def _size(self, coefficients: Array) -> np.ndarray:
        """S, for every target."""
        namespace = self._gram.namespace
        return namespace.to_numpy(
            namespace.xp.sum(self._roots[:, None] * namespace.xp.abs(coefficients), axis=0)
        )

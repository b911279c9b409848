"""Project a fitted model onto a few of its training rows, and say what that loses.

f = Σ a_i k(x_i, ·) becomes g = Σ c_j k(z_j, ·) on r centres z_j, the closest such function
in the kernel's own norm. The remainder E of the pivoted Cholesky factorisation gives the
loss exactly, ‖f − g‖² = aᵀEa, and with it |f(x) − g(x)| ≤ ‖f − g‖·√k(x, x) for every x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.linalg.pivoted_cholesky import PivotedCholesky


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

    Notes
    -----
    Taking row i as a centre lowers ‖f − g‖² by (Ea)_i²/E_ii, so the next centre is the row
    where that is largest, summed over targets. E a = K a − F(Fᵀa) needs one product with K.
    """
    namespace, xp = gram.namespace, gram.namespace.xp
    values = gram.matmat(dual_coef)
    partial = PivotedCholesky(namespace, gram.column, gram.diagonal(), n_centres)
    residual = namespace.copy(values)  # E a
    while not partial.full:
        lost = xp.sum(residual * dual_coef, axis=0)
        if partial.pivots and bool(xp.all(lost <= tolerance * tolerance)):
            break
        safe = xp.where(partial.usable(), partial.remainder, xp.ones_like(partial.remainder))
        new = partial.add(partial.best_pivot(xp.sum(residual * residual, axis=1) / safe))
        residual -= new[:, None] * (new @ dual_coef)[None, :]
    if partial.pivots:
        # g is the projection of f: c = K_zz⁻¹ K_z· a, and K_zz = L Lᵀ at the pivots.
        centres = np.asarray(partial.pivots, dtype=np.intp)
        coefficients = namespace.solve_triangular(
            partial.lower_at_pivots(), partial.factor.T @ dual_coef, transposed=True
        )
    else:  # K is zero, and f with it: any row will do
        centres = np.zeros(1, dtype=np.intp)
        coefficients = namespace.zeros((1, dual_coef.shape[1]), dual_coef)
    lost = namespace.to_numpy(xp.sum(residual * dual_coef, axis=0))
    # Rounding in E a is no smaller than this; a bound must cover it.
    size = namespace.to_numpy(xp.sum(xp.abs(dual_coef) * xp.abs(values), axis=0))
    rounding = dual_coef.shape[0] * namespace.eps(dual_coef) * size
    bound = np.sqrt(np.maximum(lost, 0.0) + rounding)
    return Compressed(centres, coefficients, bound)

"""What a ridge fit says of its own rows: leverages, residuals without a row, influence.

With C̃ = W^(−½)CW^(−½) (`exact.posterior`) and ã = C̃ỹ, the smoother in weighted coordinates is
S̃ = I − αC̃. So the leverage of row i is h_i = 1 − αC̃_ii, its residual αã_i/√w_i, and that of the
model without it ã_i/(C̃_ii√w_i) (An, Liu and Venkatesh 2007). Leaving it out moves the fitted
values by column i of S̃ times that residual, so that

    D_i = Σ_j w_j (f(x_j) − f₋ᵢ(x_j))²/(df σ²) = (S̃²)_ii (w_i r_i²)/(df σ²),

Cook's distance (1977), exactly: for least squares S̃² = S̃ makes it the textbook's.
"""

from __future__ import annotations

from dataclasses import dataclass

from ridgefold.exact.posterior import Posterior
from ridgefold.linalg import Array


@dataclass(frozen=True)
class RowDiagnostics:
    """Of the rows of positive weight; all targets share one ridge."""

    degrees_of_freedom: float
    noise_variance: Array
    """σ² of every target, shape (t,)."""
    leverage: Array
    """h, of shape (n,)."""
    residuals: Array
    """y − f, of shape (n, t)."""
    left_out: Array
    """y − f₋ᵢ."""
    standardised: Array
    """√w(y − f)/(σ√(1 − h))."""
    influence: Array
    """D."""


def row_diagnostics(found: Posterior, targets: Array) -> RowDiagnostics:
    """All of it from one inverse."""
    namespace, alpha = found.namespace, found.alpha
    xp, free = namespace.xp, found.free
    inverse = found.inverse()
    diagonal = namespace.diagonal(inverse)
    squares = namespace.squares_of_rows(inverse)  # (C̃²)_ii
    del inverse
    coefficients = found.dual(targets)
    variance = alpha**2 * xp.sum(coefficients * coefficients, axis=0) / free
    degrees = found.n_rows - free
    left_out = coefficients / diagonal[:, None]  # times √w
    moved = 1.0 - 2.0 * alpha * diagonal + alpha**2 * squares  # (S̃²)_ii
    influence = moved[:, None] * left_out * left_out / (degrees * variance)[None, :]
    rest = alpha * diagonal  # 1 − h
    standardised = alpha * coefficients / xp.sqrt(rest[:, None] * variance[None, :])
    residuals = alpha * coefficients
    if found.roots is not None:
        residuals, left_out = (each / found.roots[:, None] for each in (residuals, left_out))
    return RowDiagnostics(
        degrees, variance, 1.0 - rest, residuals, left_out, standardised, influence
    )

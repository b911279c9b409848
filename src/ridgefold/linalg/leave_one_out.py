"""Leave-one-out residuals of a ridge system whose kernel matrix is at hand.

With H = (K̃ + αI)⁻¹, and with a bias (s = √w, ones without weights)

    C = H − H s sᵀH/(sᵀH s),    b = sᵀHỹ/(sᵀH s),    ã = H(ỹ − b s) = Cỹ,

the residual of row i by the model that never saw it is w_i^(−½)·ã_i/C_ii (An, Liu and
Venkatesh 2007 for folds of one row; the bias as in Cawley and Talbot 2007). H comes from a
Cholesky factor and the inverse of its triangle, 2n³/3 operations; where there is none, C from the
centred matrix (`linalg.centring`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ridgefold.linalg.centring import solve_with_bias
from ridgefold.linalg.namespace import Array, Namespace
from ridgefold.linalg.ridge import Write, factorise_ridge, with_bias, without_bias
from ridgefold.linalg.symmetric import SpectralFactor


@dataclass(frozen=True)
class LeaveOneOut:
    """A fitted system with its leave-one-out residuals; the last axis runs over targets."""

    coefficients: Array
    """ã, of shape (n, t)."""
    intercept: Array
    residuals: Array
    """w^(−½)·ã/C_ii; NaN where there is a bias and one row, which leaves nothing behind."""


def _scaled(residuals: Array, roots: Array | None) -> Array:
    return residuals if roots is None else residuals / roots[:, None]


def leave_one_out(
    namespace: Namespace,
    write: Write,
    targets: Array,
    alpha: float,
    *,
    direction: Array | None,
    roots: Array | None,
) -> LeaveOneOut:
    """The solution for one α with its leave-one-out residuals.

    Parameters
    ----------
    write : callable
        Writes the lower triangle of K̃ into the array it is given.
    targets : array of shape (n, t)
        ỹ.
    direction : array of shape (n,), optional
        s, if there is a bias.
    roots : array of shape (n,), optional
        √w.
    """
    factor, centring = factorise_ridge(namespace, write, targets, alpha, direction)
    if direction is not None and centring is None:
        solved = factor.solve(with_bias(namespace, targets, direction))
        coefficients, intercept = without_bias(solved, direction)
        held_out, along = coefficients, solved[:, -1]
        diagonal = factor.inverse_diagonal_in_place()
        diagonal = diagonal - along * along / (direction @ along)
    else:
        coefficients, intercept = solve_with_bias(factor, centring, targets)
        held_out = coefficients
        if isinstance(factor, SpectralFactor) and (regular := factor.regular(alpha)) is not factor:
            # Below rounding the solution is that of least norm, but residuals follow from the
            # inverse.
            factor = regular
            held_out, _ = solve_with_bias(factor, centring, targets)
        diagonal = factor.inverse_diagonal_in_place()
        if centring is not None:
            diagonal = diagonal - centring.direction**2 / (centring.shift + alpha)
    if direction is not None and targets.shape[0] == 1:
        # Nothing is left without it, and rounding would say what that predicts.
        diagonal = diagonal * float("nan")
    return LeaveOneOut(coefficients, intercept, _scaled(held_out / diagonal[:, None], roots))

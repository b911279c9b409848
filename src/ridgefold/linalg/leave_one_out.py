"""Leave-one-out residuals of a ridge system whose kernel matrix is at hand.

With H = (K̃ + αI)⁻¹, and with a bias (s = √w, ones without weights)

    C = H − H s sᵀH/(sᵀH s),    b = sᵀHỹ/(sᵀH s),    ã = H(ỹ − b s) = Cỹ,

the residual of row i by the model that never saw it is w_i^(−½)·ã_i/C_ii (An, Liu and
Venkatesh 2007 for folds of one row; the bias as in Cawley and Talbot 2007). H comes from a
Cholesky factor and the inverse of its triangle, 2n³/3 operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ridgefold.linalg.namespace import Array, Namespace, namespace_of
from ridgefold.linalg.symmetric import (
    SpectralFactor,
    factorise,
)


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
    write: Callable[[Array], object],
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
    n = targets.shape[0]

    def refill(storage: Array) -> None:
        write(storage)
        namespace.add_to_diagonal_in_place(storage, alpha)

    matrix = namespace.empty((n, n), targets)
    refill(matrix)
    factor = factorise(namespace, matrix, refill)
    right = targets
    if direction is not None:
        right = namespace.xp.concat([targets, direction[:, None]], axis=1)
    solved = factor.solve(right)
    coefficients, intercept = without_bias(solved, direction)
    if isinstance(factor, SpectralFactor) and (regular := factor.regular(alpha)) is not factor:
        # Below rounding the solution is that of least norm, but residuals follow from the inverse.
        factor = regular
        solved = factor.solve(right)
    held_out, _ = without_bias(solved, direction)
    diagonal = factor.inverse_diagonal_in_place()
    if direction is not None:
        along = solved[:, -1]
        diagonal = diagonal - along * along / (direction @ along)
        if n == 1:  # nothing is left without it, and rounding would say what that predicts
            diagonal = diagonal * float("nan")
    return LeaveOneOut(coefficients, intercept, _scaled(held_out / diagonal[:, None], roots))


def without_bias(solved: Array, direction: Array | None) -> tuple[Array, Array]:
    """ã and b from H[ỹ, s], or from Hỹ where there is no bias."""
    if direction is None:
        return solved, namespace_of(solved).zeros(solved.shape[1], solved)
    along, part = solved[:, -1], solved[:, :-1]
    intercept = direction @ part / (direction @ along)
    return part - along[:, None] * intercept[None, :], intercept

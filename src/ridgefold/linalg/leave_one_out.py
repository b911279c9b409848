"""Leave-one-out residuals of a ridge system whose kernel matrix is at hand.

With H = (K̃ + αI)⁻¹, and with a bias (s = √w, ones without weights)

    C = H − H s sᵀH/(sᵀH s),    b = sᵀHỹ/(sᵀH s),    ã = H(ỹ − b s) = Cỹ,

the residual of row i by the model that never saw it is w_i^(−½)·ã_i/C_ii (An, Liu and
Venkatesh 2007 for folds of one row; the bias as in Cawley and Talbot 2007). H comes from a
Cholesky factor and the inverse of its triangle, 2n³/3 operations; where there is none, C from the
centred matrix (`linalg.centring`).

A row k that holds nearly all the weight has ã_k and C_kk near zero: both are differences of near
numbers. But sᵀã = 0 and Cs = 0 with a bias, so that they follow from the other rows.
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
    """The coefficients ã, of shape (n, t)."""
    intercept: Array
    residuals: Array
    """The residuals w^(−½)·ã/C_ii. NaN for the only row of a system with a bias: without that row
    there is no model."""


def heaviest_row(namespace: Namespace, direction: Array) -> int | None:
    """Of several rows the one with more than half of the weight, given s = √w, if there is one."""
    if direction.shape[0] == 1:
        return None
    squares = direction * direction
    row = int(namespace.xp.argmax(squares))
    return row if 2.0 * float(squares[row]) > float(namespace.xp.sum(squares)) else None


def _unit(namespace: Namespace, like: Array, row: int) -> Array:
    out = namespace.zeros((like.shape[0], 1), like)
    out[row, 0] = 1.0
    return out


def from_the_others(direction: Array, columns: Array, row: int) -> Array:
    """One row of columns v with sᵀv = 0."""
    others = direction[:row] @ columns[:row, :] + direction[row + 1 :] @ columns[row + 1 :, :]
    return -others / direction[row]


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
    heavy = None if direction is None else heaviest_row(namespace, direction)
    own: Array | float = 0.0
    if direction is not None and centring is None:
        solved = factor.solve(with_bias(namespace, targets, direction))
        coefficients, intercept = without_bias(solved, direction)
        held_out, along = coefficients, solved[:, -1]
        if heavy is not None:
            column = factor.solve(_unit(namespace, targets, heavy))
            column = column - along[:, None] * (direction @ column) / (direction @ along)
            own = from_the_others(direction, column, heavy)[0]
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
        if heavy is not None and centring is not None:
            unit = centring.project(_unit(namespace, targets, heavy))
            column = centring.project(factor.solve(unit))
            own = from_the_others(centring.direction, column, heavy)[0]
        diagonal = factor.inverse_diagonal_in_place()
        if centring is not None:
            diagonal = diagonal - centring.direction**2 / (centring.shift + alpha)
    if direction is not None and heavy is not None:
        diagonal[heavy] = own
        held_out[heavy, :] = from_the_others(direction, held_out, heavy)
    if direction is not None and targets.shape[0] == 1:
        # Without its only row there is no model: what rounding leaves is not a residual.
        diagonal = diagonal * float("nan")
    return LeaveOneOut(coefficients, intercept, _scaled(held_out / diagonal[:, None], roots))

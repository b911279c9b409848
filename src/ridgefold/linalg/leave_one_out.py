"""Leave-one-out residuals of a ridge system whose kernel matrix is at hand.

With H = (K̃ + αI)⁻¹ and C what unpenalised columns make of it (`linalg.unpenalised`), the residual
of row i by the model that never saw it is w_i^(−½)·ã_i/C_ii with ã = Cỹ (An, Liu and Venkatesh 2007
for folds of one row; a bias as in Cawley and Talbot 2007). H comes from a Cholesky factor and the
inverse of its triangle, 2n³/3 operations; where there is none, C from the centred matrix
(`linalg.centring`).

A row that holds nearly all of some direction Q of the unpenalised columns (with a bias, nearly all
the weight) has ã_i and C_ii near zero: both are differences of near numbers. But Qᵀã = 0 and
QᵀC = 0, so that they follow from the other rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from ridgefold.linalg.centring import solve_centred
from ridgefold.linalg.namespace import Array, Namespace
from ridgefold.linalg.ridge import Write, beside, factorise_ridge
from ridgefold.linalg.symmetric import SpectralFactor
from ridgefold.linalg.unpenalised import (
    Unpenalised,
    from_the_others,
    heavy_rows,
    rows_that_keep_the_rank,
    without_penalty,
)


@dataclass(frozen=True)
class LeaveOneOut:
    """A fitted system with its leave-one-out residuals; the last axis runs over targets."""

    coefficients: Array
    """The coefficients ã, of shape (n, t)."""
    unpenalised: Array
    """The coefficients β of the unpenalised columns, of shape (q, t)."""
    residuals: Array
    """The residuals w^(−½)·ã/C_ii. NaN for a row without which the unpenalised columns would not be
    determined, as the only row of a system with a bias: without it there is no model."""


def _unit(namespace: Namespace, like: Array, row: int) -> Array:
    out = namespace.zeros((like.shape[0], 1), like)
    out[row, 0] = 1.0
    return out


def _scaled(residuals: Array, roots: Array | None) -> Array:
    return residuals if roots is None else residuals / roots[:, None]


def leave_one_out(
    namespace: Namespace,
    write: Write,
    targets: Array,
    alpha: float,
    *,
    space: Unpenalised | None,
    roots: Array | None,
) -> LeaveOneOut:
    """The solution for one α with its leave-one-out residuals.

    Parameters
    ----------
    write : callable
        Writes the lower triangle of K̃ into the array it is given.
    targets : array of shape (n, t)
        ỹ.
    space : Unpenalised, optional
        That of the unpenalised columns, if there are any.
    roots : array of shape (n,), optional
        √w.
    """
    factor, centring = factorise_ridge(namespace, write, targets, alpha, space)
    own: dict[int, Array] = {}
    if space is not None and centring is None:
        solved = factor.solve(beside(namespace, targets, space))
        for row in heavy_rows(namespace, space):
            column = factor.solve(_unit(namespace, targets, row))
            column = namespace.xp.concat([column, solved[:, targets.shape[1] :]], axis=1)
            column, _, _ = without_penalty(namespace.xp, column, space.basis)
            own[row] = from_the_others(space.basis, column, row)[0]
        coefficients, coordinates, diagonal = without_penalty(
            namespace.xp, solved, space.basis, factor.inverse_diagonal_in_place()
        )
        assert diagonal is not None
        unpenalised, held_out = space.coefficients(coordinates), coefficients
    else:
        coefficients, unpenalised = solve_centred(factor, centring, targets)
        held_out = coefficients
        if isinstance(factor, SpectralFactor) and (regular := factor.regular(alpha)) is not factor:
            # Below rounding the solution is that of least norm, but residuals follow from the
            # inverse.
            factor = regular
            held_out, _ = solve_centred(factor, centring, targets)
        if centring is not None:
            for row in heavy_rows(namespace, centring.space):
                unit = centring.project(_unit(namespace, targets, row))
                column = centring.project(factor.solve(unit))
                own[row] = from_the_others(centring.space.basis, column, row)[0]
        diagonal = factor.inverse_diagonal_in_place()
        if centring is not None:
            diagonal = centring.take_off_diagonal(diagonal, alpha)
    if space is not None and own:
        held_out = namespace.copy(held_out)
        for row, value in own.items():
            diagonal[row] = value
            held_out[row, :] = from_the_others(space.basis, held_out, row)
    for row in [] if space is None else rows_that_keep_the_rank(namespace, space):
        # Without this row there is no model: what rounding leaves is not a residual.
        diagonal[row] = float("nan")
    return LeaveOneOut(coefficients, unpenalised, _scaled(held_out / diagonal[:, None], roots))

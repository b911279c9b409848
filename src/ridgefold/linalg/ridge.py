"""One ridge system for one α, with or without unpenalised columns.

With H = (K̃ + αI)⁻¹, solves for ỹ and for the basis of the unpenalised columns give the solution
(`linalg.unpenalised`) without the two passes over the matrix that centring takes. Where K̃ + αI is
singular to rounding error there is no H, and a pseudo-inverse in its place would lose what the
columns have outside the range of K̃: the matrix is centred then (`linalg.centring`), as it always is
in models of all rows.
"""

from __future__ import annotations

from collections.abc import Callable

from ridgefold.linalg.centring import Centring, centre, solve_centred
from ridgefold.linalg.namespace import Array, Namespace
from ridgefold.linalg.symmetric import Factor, factorise, factorise_by_cholesky
from ridgefold.linalg.unpenalised import Unpenalised, without_penalty

Write = Callable[[Array], object]
"""Writes the lower triangle of K̃ into the array it is given."""


def factorise_ridge(
    namespace: Namespace, write: Write, targets: Array, alpha: float, space: Unpenalised | None
) -> tuple[Factor, Centring | None]:
    """K̃ + αI, with `space` projected out where it is singular; then with its centring."""
    n = targets.shape[0]
    matrix = namespace.empty((n, n), targets)

    def fill(storage: Array) -> None:
        write(storage)
        namespace.add_to_diagonal_in_place(storage, alpha)

    fill(matrix)
    if space is None:
        return factorise(namespace, matrix, fill), None
    factor = factorise_by_cholesky(namespace, matrix)
    if factor is not None:
        return factor, None

    def fill_centred(storage: Array) -> Centring:
        write(storage)
        centring = centre(namespace, storage, space)
        namespace.add_to_diagonal_in_place(storage, alpha)
        return centring

    centring = fill_centred(matrix)
    return factorise(namespace, matrix, fill_centred), centring


def solve_ridge(
    namespace: Namespace, write: Write, targets: Array, alpha: float, space: Unpenalised | None
) -> tuple[Array, Array]:
    """ã, of shape (n, t), and β, of shape (q, t).

    Parameters
    ----------
    targets : array of shape (n, t)
        ỹ.
    space : Unpenalised, optional
        That of the unpenalised columns, if there are any.
    """
    factor, centring = factorise_ridge(namespace, write, targets, alpha, space)
    if space is None or centring is not None:
        return solve_centred(factor, centring, targets)
    solved = factor.solve(beside(namespace, targets, space))
    coefficients, coordinates, _ = without_penalty(namespace.xp, solved, space.basis)
    return coefficients, space.coefficients(coordinates)


def beside(namespace: Namespace, targets: Array, space: Unpenalised) -> Array:
    """[ỹ, Q]."""
    return namespace.xp.concat([targets, space.basis], axis=1)

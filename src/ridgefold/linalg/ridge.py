"""One ridge system for one α, with or without a bias.

With H = (K̃ + αI)⁻¹ and s = √w (ones without weights), two solves give

    b = sᵀHỹ/(sᵀH s),    ã = H(ỹ − b s),

without the two passes over the matrix that centring takes. Where K̃ + αI is singular to rounding
error there is no H, and a pseudo-inverse in its place would lose what s has outside the range of
K̃: the matrix is centred then (`linalg.centring`), as it always is in models of all rows.
"""

from __future__ import annotations

from collections.abc import Callable

from ridgefold.linalg.centring import Centring, centre_for_bias, solve_with_bias
from ridgefold.linalg.namespace import Array, Namespace, namespace_of
from ridgefold.linalg.symmetric import Factor, factorise, factorise_by_cholesky

Write = Callable[[Array], object]
"""Writes the lower triangle of K̃ into the array it is given."""


def factorise_ridge(
    namespace: Namespace, write: Write, targets: Array, alpha: float, direction: Array | None
) -> tuple[Factor, Centring | None]:
    """K̃ + αI, centred along `direction` where it is singular; then with its centring."""
    n = targets.shape[0]
    matrix = namespace.empty((n, n), targets)

    def fill(storage: Array) -> None:
        write(storage)
        namespace.add_to_diagonal_in_place(storage, alpha)

    fill(matrix)
    if direction is None:
        return factorise(namespace, matrix, fill), None
    factor = factorise_by_cholesky(namespace, matrix)
    if factor is not None:
        return factor, None

    def fill_centred(storage: Array) -> Centring:
        write(storage)
        centring = centre_for_bias(namespace, storage, direction)
        namespace.add_to_diagonal_in_place(storage, alpha)
        return centring

    centring = fill_centred(matrix)
    return factorise(namespace, matrix, fill_centred), centring


def solve_ridge(
    namespace: Namespace, write: Write, targets: Array, alpha: float, direction: Array | None
) -> tuple[Array, Array]:
    """ã, of shape (n, t), and b.

    Parameters
    ----------
    targets : array of shape (n, t)
        ỹ.
    direction : array of shape (n,), optional
        s, if there is a bias.
    """
    factor, centring = factorise_ridge(namespace, write, targets, alpha, direction)
    if direction is None or centring is not None:
        return solve_with_bias(factor, centring, targets)
    return without_bias(factor.solve(with_bias(namespace, targets, direction)), direction)


def with_bias(namespace: Namespace, targets: Array, direction: Array) -> Array:
    """[ỹ, s]."""
    return namespace.xp.concat([targets, direction[:, None]], axis=1)


def without_bias(solved: Array, direction: Array | None) -> tuple[Array, Array]:
    """ã and b from H[ỹ, s], or from Hỹ where there is no bias."""
    if direction is None:
        return solved, namespace_of(solved).zeros(solved.shape[1], solved)
    along, unbiased = solved[:, -1], solved[:, :-1]  # H s and Hỹ
    intercept = direction @ unbiased / (direction @ along)
    return unbiased - along[:, None] * intercept[None, :], intercept

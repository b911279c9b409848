"""Columns without a penalty, of which a bias is one: what they do to an inverse.

A model f(x) = Σ aᵢ k(xᵢ, x) + φ(x)ᵀβ has columns F (n × q) whose coefficients β are not penalised;
a bias is the column of ones. With weights K̃ = W^½KW^½, ỹ = W^½y and S = W^½F. For a only the
space that the columns of S span matters; with an orthonormal basis Q of it (n × r) and
H = (K̃ + αI)⁻¹,

    M = QᵀHQ,    γ = M⁻¹QᵀHỹ,    C = H − HQM⁻¹QᵀH,    ã = H(ỹ − Qγ) = Cỹ,    β = Tγ,

where T (q × r) turns coordinates in Q into coefficients of the columns. The residuals of a fold k
by the model that never saw it are C_kk⁻¹ã_k. Everything that knows H, in whatever form, comes here
for the rest (`without_penalty`); everything that factorises anew takes the space out of K̃ first
(`linalg.centring`).

*Columns that depend on each other.* r < q then, and there is more than one β. That of least norm is
taken, in units of the spread of each column; beside a bias, which is free, columns count from their
means. So a column that is constant on the rows has the coefficient zero beside a bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.linalg.blocks import CACHE_BYTES, row_blocks
from ridgefold.linalg.namespace import Array, Namespace

_ROUNDING = 10.0
"""Singular values of unit columns up to this times √n·eps are rounding error."""


@dataclass(frozen=True)
class Unpenalised:
    """The space of the unpenalised columns on the rows of a system."""

    namespace: Namespace
    basis: Array
    """Q, of shape (n, r)."""
    transform: Array
    """T, of shape (q, r): coefficients of the columns are T·(coordinates in Q)."""
    bias: bool
    """True if the first of the q columns is the bias."""

    @property
    def n_columns(self) -> int:
        return int(self.transform.shape[0])

    @property
    def rank(self) -> int:
        return int(self.transform.shape[1])

    def project(self, y: Array) -> Array:
        """Py = y − QQᵀy for a matrix y."""
        return y - self.basis @ (self.basis.T @ y)

    def coefficients(self, coordinates: Array) -> Array:
        """β (q, t) from coordinates γ in the basis."""
        return self.transform @ coordinates

    def intercept(self, coefficients: Array) -> Array:
        """The bias among coefficients (q, t), shape (t,); zero without one."""
        if self.bias:
            return coefficients[0, :]
        return self.namespace.zeros(coefficients.shape[1], coefficients)

    def others(self, coefficients: Array) -> Array | None:
        """The coefficients of the columns beside the bias; None if there are none."""
        found = coefficients[1:, :] if self.bias else coefficients
        return found if found.shape[0] else None

    def at(self, columns: Array | None, n_rows: int) -> Array:
        """ΦT at other rows, (n_rows, r): what coordinates in the basis mean there.

        `columns` (n_rows, p) are the unpenalised columns of these rows beside the bias.
        """
        values = self.namespace.zeros((n_rows, self.rank), self.transform)
        if self.bias:
            values = values + self.transform[:1, :]
        return values if columns is None else values + columns @ self.transform[int(self.bias) :, :]

    def taken(self, rows: Any) -> Array:
        """Q at some rows."""
        return self.namespace.take_rows(self.basis, rows)


def bias_only(namespace: Namespace, direction: Array) -> Unpenalised:
    """The space of a bias, given s = √w (ones without weights)."""
    size = namespace.norm(direction)
    basis = (direction / size)[:, None]
    return Unpenalised(namespace, basis, namespace.asarray([[1.0 / size]], direction), bias=True)


def unpenalised_space(
    namespace: Namespace,
    columns: Array | None,
    roots: Array | None,
    *,
    bias: bool,
    n_rows: int,
    like: Array,
) -> Unpenalised | None:
    """The space of a bias, of further columns (n, p) or of both; None where there is nothing.

    Parameters
    ----------
    roots : array of shape (n,), optional
        √w. Zero for rows that take no part.
    """
    if columns is None or columns.shape[1] == 0:
        if not bias:
            return None
        return bias_only(namespace, namespace.ones(n_rows, like) if roots is None else roots)
    numbers = namespace.to_numpy(columns).astype(np.float64)
    scale = None if roots is None else namespace.to_numpy(roots).astype(np.float64)
    basis, transform = _space(numbers, scale, bias)
    return Unpenalised(
        namespace, namespace.asarray(basis, like), namespace.asarray(transform, like), bias
    )


def _space(columns: np.ndarray, roots: np.ndarray | None, bias: bool) -> tuple[Any, Any]:
    """Q and T in float64: they are few columns, and everything else is relative to them."""
    n, p = columns.shape
    s = np.ones(n) if roots is None else roots
    negligible = _ROUNDING * math.sqrt(n) * float(np.finfo(np.float64).eps)
    means = np.zeros(p)
    u = s / np.linalg.norm(s)
    centred = columns
    if bias:
        means = (s * s) @ columns / float(s @ s)
        centred = columns - means
    weighted = centred * s[:, None]
    if bias:  # what rounding left of the means
        weighted = weighted - np.outer(u, u @ weighted)
    given = np.linalg.norm(columns * s[:, None], axis=0)
    spreads = np.linalg.norm(weighted, axis=0)
    spreads = np.where(spreads > negligible * given, spreads, np.inf)
    left, sizes, right = np.linalg.svd(weighted / spreads, full_matrices=False)
    kept = sizes > negligible * max(1.0, float(sizes[0]))
    basis, inner = left[:, kept], right[kept].T / sizes[kept]
    transform = inner / spreads[:, None]
    if not bias:
        return basis, transform
    first = np.concatenate([[1.0 / np.linalg.norm(s)], -means @ transform])
    below = np.concatenate([np.zeros((p, 1)), transform], axis=1)
    return np.concatenate([u[:, None], basis], axis=1), np.concatenate([first[None, :], below])


def without_penalty(
    xp: Any, solved: Array, basis: Array, diagonal: Array | None = None
) -> tuple[Array, Array, Array | None]:
    """ã, γ and diag C from H[ỹ, Q] and diag H, of one system or, with an axis in front, of many.

    A column of Q that is zero (of a system in a stack with fewer than the others) has no part.
    """
    r = basis.shape[-1]
    plain, along = solved[..., :-r], solved[..., -r:]
    if r == 1 and solved.ndim == 2:  # a bias in one system: calls are what takes time in small ones
        across = basis[:, 0]
        total = across @ along[:, 0]
        coordinates = (across @ plain / total)[None, :]
        if diagonal is not None:
            diagonal = diagonal - along[:, 0] * along[:, 0] / total
        return plain - along * coordinates, coordinates, diagonal
    across = xp.matrix_transpose(basis)
    inner = across @ along
    if r == 1:
        inner = inner + (inner == 0.0)
        coordinates = (across @ plain) / inner
        shares = along / inner
    else:
        empty = xp.all(basis == 0.0, axis=-2)
        inner = inner + xp.eye(r, dtype=inner.dtype) * xp.astype(empty, inner.dtype)[..., None, :]
        inner = (inner + xp.matrix_transpose(inner)) / 2.0
        coordinates = xp.linalg.solve(inner, across @ plain)
        shares = xp.matrix_transpose(xp.linalg.solve(inner, xp.matrix_transpose(along)))
    if diagonal is not None:
        diagonal = diagonal - xp.sum(along * shares, axis=-1)
    return plain - along @ coordinates, coordinates, diagonal


def take_off_inverse(namespace: Namespace, inverse: Array, basis: Array, y: Array) -> Array | None:
    """Make C of H, in its place; returns γ of the targets y, or None where M has no factor.

    `basis` may be any columns that span the space: γ are then coordinates in these.
    """
    blocks = row_blocks(inverse.shape[0], inverse.shape[0] * 8, CACHE_BYTES // 4)
    if basis.shape[1] == 1:  # a bias, as in `without_penalty`
        column = inverse @ basis[:, 0]
        total = float(namespace.xp.sum(basis[:, 0] * column))
        if not total > 0:
            return None
        for rows in blocks:
            inverse[rows, :] -= (column[rows] / total)[:, None] * column[None, :]
        return (column @ y)[None, :] / total
    along = inverse @ basis
    inner = basis.T @ along
    inner = (inner + inner.T) / 2.0
    if not namespace.cholesky_in_place(inner):
        return None
    coordinates = namespace.solve_cholesky(inner, along.T @ y)
    half = namespace.solve_triangular(inner, along.T)
    for rows in blocks:
        inverse[rows, :] -= half[:, rows].T @ half
    return coordinates


def heavy_rows(namespace: Namespace, space: Unpenalised | None) -> list[int]:
    """Rows that hold more than half of some direction of Q: 2r of them at most.

    ã and C are nearly zero there, as differences of near numbers (`from_the_others`). With a bias
    alone it is the row with more than half of the weight.
    """
    if space is None or int(space.basis.shape[0]) <= space.rank:
        return []
    return np.flatnonzero(leverages(namespace, space) > 0.5).tolist()


def leverages(namespace: Namespace, space: Unpenalised) -> np.ndarray:
    """‖Q_i‖² of every row, 1 where the row alone keeps up the rank."""
    return namespace.to_numpy(namespace.squares_of_rows(space.basis)).astype(np.float64)


def from_the_others(basis: Array, columns: Array, row: int) -> Array:
    """One row of columns v with Qᵀv = 0, from the others."""
    own = basis[row, :]
    pulls = basis @ own
    others = pulls[:row] @ columns[:row, :] + pulls[row + 1 :] @ columns[row + 1 :, :]
    return -others / pulls[row]


def rows_that_keep_the_rank(namespace: Namespace, space: Unpenalised) -> list[int]:
    """Rows without which the columns would span less: no model without them is determined."""
    n = int(space.basis.shape[0])
    if n <= space.rank:
        return list(range(n))
    if space.n_columns == int(space.bias):  # a bias, which any other row of positive weight keeps
        return []
    eps = namespace.eps(space.basis)
    return np.flatnonzero(leverages(namespace, space) > 1.0 - 100.0 * n * eps).tolist()

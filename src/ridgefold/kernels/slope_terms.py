"""Derivatives of a kernel in the columns of its rows, in a form that contracts by products.

For rows x_r and z_i and a column j,

    ∂k(x_r, z_i)/∂x_rj = Σ over terms of pairs_ri · left_rj · right_ij .

Kernels of Euclidean distances and of products have one or two terms for all columns together;
others have one a column. Whatever is asked of slopes is then a few products of matrices: no array
of rows × rows × columns is ever made. Sums, products and multiples of kernels, and kernels of
transformed columns, work on the terms of the kernels that they are made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ridgefold.linalg import Array, Namespace


@dataclass(frozen=True)
class SlopeTerm:
    """pairs_ri · left_rj · right_ij for some columns j; what is None counts as 1."""

    pairs: Array
    """One number for each pair of rows. Terms may share it, so it is never changed in place."""
    left: Array | None = None
    """For the left rows, one number a column: shape (rows, columns), or (1, columns)."""
    right: Array | None = None
    columns: np.ndarray | None = None
    """Which columns of X these are, in increasing order; None for all of them."""

    def times(self, pairs: Array | float) -> SlopeTerm:
        """The term with its pairs multiplied."""
        return replace(self, pairs=self.pairs * pairs)

    def scaled(self, left: Array | None = None, right: Array | None = None) -> SlopeTerm:
        """The term multiplied by numbers for the rows and all the columns of X."""
        return replace(
            self,
            left=_product(self.left, self._of_columns(left)),
            right=_product(self.right, self._of_columns(right)),
        )

    def turned(self) -> SlopeTerm:
        """The term with the roles of the two sets of rows exchanged."""
        return SlopeTerm(self.pairs.T, self.right, self.left, self.columns)

    def within(self, columns: np.ndarray) -> SlopeTerm:
        """The term of a kernel that sees these columns only, as a term of all columns."""
        return replace(self, columns=columns if self.columns is None else columns[self.columns])

    def _of_columns(self, values: Array | None) -> Array | None:
        return values if self.columns is None or values is None else values[:, self.columns]


def _product(first: Array | None, second: Array | None) -> Array | None:
    if first is None or second is None:
        return second if first is None else first
    return first * second


def products_of_terms(
    first: list[SlopeTerm], second: Iterable[SlopeTerm], n_columns: int
) -> Iterator[SlopeTerm]:
    """The terms of the product, column by column, of two sums of terms."""
    every = np.arange(n_columns)
    for b in second:
        for a in first:
            ours, theirs = (every if t.columns is None else t.columns for t in (a, b))
            common = np.intersect1d(ours, theirs)
            if len(common) == 0:
                continue
            a_part, b_part = _only(a, ours, common), _only(b, theirs, common)
            yield SlopeTerm(
                a.pairs * b.pairs,
                _product(a_part.left, b_part.left),
                _product(a_part.right, b_part.right),
                common,
            )


def _only(term: SlopeTerm, columns: np.ndarray, wanted: np.ndarray) -> SlopeTerm:
    """The term with the numbers of some of its columns only."""
    places = np.searchsorted(columns, wanted)
    left, right = (
        values if values is None or values.shape[1] == 1 else values[:, places]
        for values in (term.left, term.right)
    )
    return SlopeTerm(term.pairs, left, right, wanted)


def add_row_slopes(terms: Iterable[SlopeTerm], coefficients: Array, out: Array) -> None:
    """Add Σ_i a_i ∂k(x_r, z_i)/∂x_rj to `out`, of shape (left rows, columns, targets)."""
    for term in terms:
        for t in range(coefficients.shape[1]):
            a = coefficients[:, t : t + 1]
            values = term.pairs @ (a if term.right is None else term.right * a)
            if term.left is not None:
                values = values * term.left
            if term.columns is None:
                out[:, :, t] += values
            else:
                out[:, term.columns, t] += values


def add_column_slopes(terms: Iterable[SlopeTerm], weights: Array, out: Array) -> None:
    """Add Σ_r u_rj ∂k(x_r, z_i)/∂x_rj to `out`, of shape (right rows, columns)."""
    for term in terms:
        u = weights if term.columns is None else weights[:, term.columns]
        values = term.pairs.T @ (u if term.left is None else u * term.left)
        if term.right is not None:
            values = values * term.right
        if term.columns is None:
            out += values
        else:
            out[:, term.columns] += values


def add_both_slopes(
    namespace: Namespace, terms: Iterable[SlopeTerm], left: Array, right: Array, out: Array
) -> None:
    """Add Σ_ri u_rj v_ij (the terms) to `out`, one number a column."""
    for term in terms:
        u, v = (each if term.columns is None else each[:, term.columns] for each in (left, right))
        if term.left is not None:
            u = u * term.left
        if term.right is not None:
            v = v * term.right
        sums = namespace.xp.sum(u * (term.pairs @ v), axis=0)
        if term.columns is None:
            out += sums
        else:
            out[term.columns] += sums

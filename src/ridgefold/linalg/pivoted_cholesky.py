"""Partial pivoted Cholesky factorisation of a matrix known by its columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ridgefold.linalg.namespace import Array, Namespace

Column = Callable[[int], Array]
"""The i-th column of a symmetric positive semi-definite matrix, computed when asked for."""

_LEAST_SHARE = 0.1
"""A pivot is at least this share of the largest: entries of E that are off by δ then leave those
after the next step off by no more than some ten δ. A smaller one, mostly rounding error, would take
several times too much off all the others, and E would be semi-definite no more."""

_CLEAR_OF_ROUNDING = 4.0
"""A pivot is at least so many times what rounding has been seen to take off the diagonal of E too
much: its own value is then right to a quarter."""


class PivotedCholesky:
    """K = F Fᵀ + E with E ⪰ 0, one pivot more with every call of `add`.

    The rows and columns of E at the pivots are zero. Harbrecht, Peters, Schneider 2012.
    """

    def __init__(
        self, namespace: Namespace, column: Column, diagonal: Array, most_pivots: int
    ) -> None:
        self.namespace = namespace
        self._column = column
        self.remainder = namespace.copy(diagonal)
        """The diagonal of E; its sum bounds ‖E‖."""
        self._rows = namespace.zeros(
            (min(most_pivots, diagonal.shape[0]), diagonal.shape[0]), diagonal
        )
        self.pivots: list[int] = []
        self._floor = 32.0 * namespace.eps(diagonal) * float(namespace.xp.max(diagonal))
        """Entries of the remainder below this are rounding error; raised where they show more."""

    @property
    def full(self) -> bool:
        """No more room, or nothing left but rounding error."""
        return len(self.pivots) == self._rows.shape[0] or not bool(
            self.namespace.xp.any(self.usable())
        )

    def usable(self) -> Array:
        """Which rows may still become a pivot."""
        largest = float(self.namespace.xp.max(self.remainder))
        return self.remainder > max(self._floor, _LEAST_SHARE * largest)

    @property
    def factor(self) -> Array:
        """F, of shape (n, number of pivots)."""
        return self._rows[: len(self.pivots), :].T

    @property
    def trace(self) -> float:
        """The trace of E."""
        return float(self.namespace.xp.sum(self.remainder))

    def lower_at_pivots(self) -> Array:
        """F at the pivots: the lower-triangular Cholesky factor of K there."""
        return self.namespace.xp.asarray(
            self.namespace.take_rows(self.factor, np.asarray(self.pivots)), copy=True
        )

    def best_pivot(self, merit: Array) -> int:
        """The usable row of highest merit (which must not be negative)."""
        xp = self.namespace.xp
        return int(xp.argmax(xp.where(self.usable(), merit, xp.full_like(merit, -1.0))))

    def add(self, pivot: int) -> Array:
        """Take a row as the next pivot; returns the new column of F."""
        taken = len(self.pivots)
        new = self._column(pivot)
        if taken:
            new = new - self._rows[:taken, pivot] @ self._rows[:taken, :]
        new = new / float(self.remainder[pivot]) ** 0.5
        self._rows[taken, :] = new
        self.remainder = self.remainder - new * new
        too_much = -float(self.namespace.xp.min(self.remainder))
        self._floor = max(self._floor, _CLEAR_OF_ROUNDING * too_much)
        self.namespace.maximum_in_place(self.remainder, 0.0)
        self.remainder[pivot] = 0.0
        self.pivots.append(pivot)
        return new


def pivoted_cholesky(
    namespace: Namespace,
    column: Column,
    diagonal: Array,
    *,
    rank: int,
    trace_tolerance: float = 0.0,
) -> PivotedCholesky:
    """Take the row that is represented worst, until `rank` rows or a trace that is small."""
    partial = PivotedCholesky(namespace, column, diagonal, rank)
    while not partial.full and partial.trace > trace_tolerance:
        partial.add(partial.best_pivot(partial.remainder))
    return partial

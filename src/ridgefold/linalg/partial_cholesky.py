"""Low-rank factors of a positive semi-definite matrix, many pivots at a time.

K = F Fᵀ + E with E ⪰ 0. Each round draws candidates spread over the diagonal of E (where rows
are represented badly), picks the best of them by a small pivoted Cholesky factorisation among
themselves, and adds a whole block of columns to F: nearly the rank of the greedy choice, at the
speed of matrix products. Compare RPCholesky (Chen, Epperly, Tropp, Webber 2022).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack

from ridgefold.linalg.namespace import Array, Namespace

Columns = Callable[[np.ndarray], Array]
"""Columns of the matrix, shape (n, number of indices)."""
Entries = Callable[[np.ndarray], Array]
"""The square submatrix of some indices."""


_FIRST_ROWS = 128
"""Rows of the factor that there is room for at first; memory is taken as they are written."""


class PartialCholesky:
    """A factor that grows until the trace of the remainder is small enough."""

    def __init__(
        self, namespace: Namespace, columns: Columns, entries: Entries, diagonal: Array
    ) -> None:
        self.namespace = namespace
        self._columns, self._entries = columns, entries
        self._diagonal = diagonal
        self.remainder = namespace.copy(diagonal)
        """The diagonal of E."""
        self._storage = namespace.empty((0, diagonal.shape[0]), diagonal)
        self.pivots: list[int] = []
        self.floor = 32.0 * namespace.eps(diagonal) * float(namespace.xp.max(diagonal))
        """Entries of the remainder below this are rounding error; raised where they show more."""

    @property
    def rank(self) -> int:
        return len(self.pivots)

    @property
    def trace(self) -> float:
        """The trace of E, which bounds ‖E‖, up to rounding error."""
        return float(self.namespace.xp.sum(self.remainder))

    @property
    def rounding(self) -> float:
        """What rounding may add to the trace."""
        return self.floor * int(self.remainder.shape[0])

    def factor_rows(self) -> Array:
        """Fᵀ, of shape (rank, n)."""
        return self._storage[: self.rank, :]

    def _reserve(self, rank: int) -> None:
        """Make room for `rank` rows, and for as many again so that rows are seldom moved."""
        if rank <= self._storage.shape[0]:
            return
        n = self._diagonal.shape[0]
        storage = self.namespace.empty((max(2 * rank, _FIRST_ROWS), n), self._diagonal)
        storage[: self.rank, :] = self.factor_rows()
        self._storage = storage

    def grow(self, most: int) -> int:
        """Add up to `most` pivots; returns how many were worth adding."""
        if most < 1:
            return 0
        namespace, xp = self.namespace, self.namespace.xp
        remainder = namespace.to_numpy(self.remainder)
        candidates = _spread(remainder, 3 * most)
        rows = self.factor_rows()
        known = xp.take(rows, namespace.indices(candidates, rows), axis=1)
        small = namespace.to_numpy(self._entries(candidates) - known.T @ known)
        order, lower = _pivot(small, most, max(self.floor, 0.01 * float(remainder.mean())))
        if len(order) == 0:
            return 0
        pivots = candidates[order]
        self._reserve(self.rank + len(pivots))
        rows, new = self.factor_rows(), self._storage[self.rank : self.rank + len(pivots), :]
        chosen = xp.take(known, namespace.indices(order, rows), axis=1)
        namespace.multiply_transposed(-chosen.T, rows.T, new)
        new += self._columns(pivots).T
        namespace.solve_triangular_in_place(namespace.asarray(lower, rows), new)
        kept, taken = self._above_rounding(new, np.diagonal(lower) ** 2)
        self.remainder -= taken
        namespace.maximum_in_place(self.remainder, 0.0)
        self.pivots.extend(int(p) for p in pivots[:kept])
        return kept

    def _above_rounding(self, new: Array, pivots: np.ndarray) -> tuple[int, Array]:
        """How many new rows are more than rounding error, and what they take off the diagonal.

        Entries of a kernel may be off by far more than eps: narrow ones by eps·‖z‖². An error δ
        takes δ²/p off with a pivot p, and more than p too much once p falls below δ. Where that
        shows, the rows from there on, those of the smaller pivots, are left, and p is the floor.
        """
        xp = self.namespace.xp
        kept = len(pivots)
        taken = xp.sum(new * new, axis=0)
        while float(xp.max(taken - self.remainder)) > max(self.floor, pivots[kept - 1]):
            kept -= 1
            self.floor = max(self.floor, float(pivots[kept]))
            taken = xp.sum(new[:kept, :] * new[:kept, :], axis=0)
            if kept == 0:
                break
        return kept, taken


def _spread(weights: np.ndarray, count: int) -> np.ndarray:
    """Indices drawn evenly from the cumulative weights, and the heaviest."""
    cumulative = np.cumsum(weights)
    marks = (np.arange(count) + 0.5) * (cumulative[-1] / count)
    return np.unique(np.append(np.searchsorted(cumulative, marks), np.argmax(weights)))


def _pivot(matrix: np.ndarray, most: int, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """Pivoted Cholesky factorisation of a small matrix, stopped at `most` or at the floor."""
    pstrf = lapack.spstrf if matrix.dtype == np.float32 else lapack.dpstrf
    factor, pivots, rank, _ = pstrf(matrix, tol=floor, lower=1)
    kept = min(int(rank), most)
    # The diagonal falls, so what is above the floor comes first.
    kept = int(np.sum(np.diagonal(factor)[:kept] ** 2 > floor))
    return pivots[:kept] - 1, np.ascontiguousarray(np.tril(factor[:kept, :kept]))

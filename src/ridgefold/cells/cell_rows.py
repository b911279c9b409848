"""The rows that cells are fitted to: all of them, or those of one cell.

`RowsByCell` gives the rows of every cell, wherever they are: `RowsToFit` takes them by their
numbers from arrays that are in memory or mapped, and `cells.cell_store` reads them from files in
which they lie cell by cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ridgefold.cells.merged_rows import MergedRows
from ridgefold.linalg import Array, namespace_of
from ridgefold.linalg.leave_one_out import LeaveOneOut
from ridgefold.linalg.namespace import is_foreign_array
from ridgefold.planning.cell_memory import ROWS_A_TASK
from ridgefold.records import CELL_SEARCH, Cells


class Batch(Protocol):
    """The rows of some cells, in a form that can be sent to a worker: read where they are used."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[np.ndarray]:
        """X of every one of them, one after the other."""

    def data(self, position: int) -> RowsToFit:
        """The rows of one of them, with targets and weights."""


class RowsByCell(Protocol):
    """The rows of a fit, by cell."""

    @property
    def n_targets(self) -> int: ...

    @property
    def dtype(self) -> np.dtype: ...

    def batch(self, cells: Cells, numbers: Sequence[int]) -> Batch:
        """The rows of some cells, by the numbers of these in ascending order."""


@dataclass(frozen=True)
class ScoredRows:
    """The rows that scores leave out: those of a fit, or the given ones behind merged rows."""

    rows: np.ndarray
    """Which rows of the fit they are, or were merged into; in ascending order."""
    targets: np.ndarray
    weights: np.ndarray
    counts: np.ndarray
    """What each of them counts."""
    members: MergedRows | None
    """What each is to its merged row, if rows were merged."""

    def spread(self, values: np.ndarray) -> np.ndarray:
        """What is known of the rows of the fit, for each of these."""
        return values if self.members is None else self.members.spread(values)


@dataclass(frozen=True)
class RowsToFit:
    """Rows with targets and weights; X may be memory-mapped, and is read where rows are taken."""

    X: Array
    targets: Array
    """Shape (n, t)."""
    weights: Array | None
    shares: np.ndarray | None = None
    """The cell's part in the combined prediction of each row; None if it is all of it."""
    weighted_scores: bool = False
    """True if rows count in scores by their weights, too."""
    members: MergedRows | None = None
    """The given rows, if scores are to leave out each of them by itself."""

    @property
    def n_targets(self) -> int:
        return int(self.targets.shape[1])

    @property
    def dtype(self) -> np.dtype:
        dtype: np.dtype = self.targets.dtype
        return dtype

    def taken(self, rows: np.ndarray) -> RowsToFit:
        """Some of the rows, as arrays of their own."""
        return replace(
            self,
            X=_taken(self.X, rows),
            targets=_taken(self.targets, rows),
            weights=_taken(self.weights, rows),
            shares=_taken(self.shares, rows),
            members=None if self.members is None else self.members.taken(rows),
        )

    def batch(self, cells: Cells, numbers: Sequence[int]) -> Batch:
        inside = tuple((rows_of(cells, c), shares_of(cells, c)) for c in numbers)
        return _TakenBatch(self, inside)

    # -- in scores -----------------------------------------------------------------------

    def scored(self, some: slice) -> ScoredRows:
        """The rows that scores leave out, of a stretch of all rows."""
        rows = np.arange(some.start, some.stop)
        if self.members is not None:
            return self._members_scored(self.members.taken(rows), rows)
        return self._themselves(some, rows)

    def scored_sample(self, most: int, rng: np.random.Generator) -> ScoredRows:
        """Some rows of positive weight among those that scores leave out."""
        if self.members is not None:
            candidates = np.arange(len(self.members.weights))
        elif self.weights is not None:
            candidates = np.flatnonzero(self.weights > 0)
        else:
            candidates = np.arange(self.X.shape[0])
        drawn = np.sort(rng.choice(candidates, min(len(candidates), most), replace=False))
        if self.members is not None:
            return self._members_scored(*self.members.apart(drawn))
        return self._themselves(drawn, drawn)

    def _themselves(self, taken: slice | np.ndarray, rows: np.ndarray) -> ScoredRows:
        weights = np.ones(len(rows)) if self.weights is None else self.weights[taken]
        counts = np.asarray(weights, dtype=np.float64)
        counts = counts if self.weighted_scores else (counts > 0).astype(np.float64)
        return ScoredRows(rows, self.targets[taken], weights, counts, None)

    def _members_scored(self, members: MergedRows, rows: np.ndarray) -> ScoredRows:
        targets = members.spread(self.targets[rows]) + members.deviations
        counts = members.weights if self.weighted_scores else np.ones(len(members.weights))
        return ScoredRows(members.spread(rows), targets, members.weights, counts, members)

    def counts(self) -> np.ndarray | None:
        """What each row of a cell (of the given ones, if they are known) counts in scores; None if
        alike."""
        shares, weights = self.shares, self.weights
        if self.members is not None:
            shares = None if shares is None else self.members.spread(shares)
            weights = self.members.weights
        if not self.weighted_scores or weights is None:
            return shares
        weights = namespace_of(weights).to_numpy(weights)
        if not np.any(weights > 0):
            return shares
        return weights if shares is None else shares * weights

    def mean_square(
        self, solved: LeaveOneOut, alpha: float, rows: np.ndarray | None = None
    ) -> float:
        """The mean squared residual of rows left out, each counted as scores count it, averaged
        over targets; infinite if it overflows.

        `solved` is a fit with this ridge of all rows, or of `rows`.
        """
        counts = self.counts()
        residuals = self._left_out(solved, alpha)
        if counts is None:
            counts = np.ones(len(residuals))
        elif rows is not None:
            counts = counts[rows]
        parts = np.asarray(counts / counts.sum(), dtype=np.float64)
        mean = float(np.mean(parts @ residuals**2))
        return mean if math.isfinite(mean) else math.inf

    def _left_out(self, solved: LeaveOneOut, alpha: float) -> np.ndarray:
        """Residuals of the rows that scores are of, each left out by itself."""
        namespace = namespace_of(solved.residuals)
        residuals = np.asarray(namespace.to_numpy(solved.residuals), dtype=np.float64)
        if self.members is None:
            return residuals
        assert self.weights is not None  # of merged rows, none of them zero
        roots = np.sqrt(namespace_of(self.weights).to_numpy(self.weights))
        errors = alpha * namespace.to_numpy(solved.coefficients) / roots[:, None]
        return self.members.residuals(errors, residuals)

    def core(self) -> RowsToFit:
        """The rows that the cell has the largest parts in, on which pairs are compared.

        A third of the work: rows that overlap with other cells are near its edge, and tell less
        about it. As dense as all of them, unlike a sample.
        """
        parts = self.shares
        count = CELL_SEARCH.core_rows(len(self.X), overlap=parts is not None)
        if parts is None or count == len(self.X):
            return self
        if self.weights is not None:
            parts = np.where(namespace_of(self.weights).to_numpy(self.weights) > 0, parts, 0.0)
        return self.taken(np.sort(np.argsort(-parts, kind="stable")[:count]))


@dataclass(frozen=True)
class _TakenBatch:
    """Cells whose rows are taken by their numbers."""

    all_rows: RowsToFit
    inside: tuple[tuple[np.ndarray, np.ndarray | None], ...]
    """Numbers and shares of the rows of every cell."""

    def __len__(self) -> int:
        return len(self.inside)

    def __iter__(self) -> Iterator[np.ndarray]:
        for rows, _ in self.inside:
            yield _taken(self.all_rows.X, rows)

    def data(self, position: int) -> RowsToFit:
        rows, shares = self.inside[position]
        return replace(self.all_rows.taken(rows), shares=shares)


def _taken(array: Any, rows: np.ndarray) -> Any:
    """Some entries of an array, as an array of their own."""
    if array is None or not is_foreign_array(array):
        return None if array is None else np.ascontiguousarray(array[rows])
    return namespace_of(array).take_rows(array, rows)


def rows_alone(X: Any) -> RowsToFit:
    """Rows to predict with, whose targets nobody asks for."""
    return RowsToFit(X, np.empty((X.shape[0], 0), dtype=X.dtype), None)


def spaced(n: int, most: int) -> np.ndarray:
    """At most so many of n places, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)


def rows_of(cells: Cells, cell: int) -> np.ndarray:
    return cells.rows[cells.offsets[cell] : cells.offsets[cell + 1]]


def shares_of(cells: Cells, cell: int) -> np.ndarray | None:
    if cells.weights is None:
        return None
    return cells.weights[cells.offsets[cell] : cells.offsets[cell + 1]]


def number_of(cells: Cells) -> int:
    return len(cells.offsets) - 1


ROWS_A_BATCH = ROWS_A_TASK
"""Cells are handed out in batches of about so many rows: the same for any number of workers."""
_ROWS_A_STACKED_BATCH = 1 << 17
"""To a device, which takes many cells at once."""


def batches_of(
    sizes: list[int], *, stacked: bool = False, most_batches: int | None = None
) -> list[slice]:
    """Runs of cells of about so many rows together, of more if there would be too many runs."""
    found, start, held = [], 0, 0
    most = _ROWS_A_STACKED_BATCH if stacked else ROWS_A_BATCH
    if most_batches is not None:
        most = max(most, sum(sizes) // most_batches)
    for cell, size in enumerate(sizes):
        held += size
        if held >= most:
            found.append(slice(start, cell + 1))
            start, held = cell + 1, 0
    if start < len(sizes):
        found.append(slice(start, len(sizes)))
    return found

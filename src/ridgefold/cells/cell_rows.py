"""Rows of cells: in memory (or mapped), taken by their numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ridgefold.cells.local_fit import CellData
from ridgefold.cells.merged_rows import MergedRows
from ridgefold.records import Cells


class Batch(Protocol):
    """The rows of some cells, in a form that can be sent to a worker."""

    def __len__(self) -> int: ...

    def data(self, position: int) -> CellData:
        """The rows of one of them."""


class CellRows(Protocol):
    """The rows to fit, by cell."""

    @property
    def n_targets(self) -> int: ...

    @property
    def dtype(self) -> np.dtype: ...

    def batch(self, cells: Cells, some: slice) -> Batch:
        """A run of cells."""


@dataclass(frozen=True)
class ScoredRows:
    """The rows that scores leave out: those of a fit, or the given ones behind merged rows."""

    targets: np.ndarray
    weights: np.ndarray
    counts: np.ndarray
    """What each of them counts."""
    spread: Callable[[np.ndarray], np.ndarray]
    """What is known of the rows of the fit, for each of these."""


@dataclass(frozen=True)
class Training:
    """All rows; X may be memory-mapped and is only read cell by cell."""

    X: np.ndarray
    targets: np.ndarray
    """Shape (n, t)."""
    weights: np.ndarray | None
    weighted_scores: bool = False
    """True if rows count in scores by their weights."""
    members: MergedRows | None = None
    """The given rows, if scores are to leave out each of them by itself."""

    def taken(self, rows: np.ndarray) -> Training:
        """Some of the rows, as an array of their own."""
        return Training(
            np.ascontiguousarray(self.X[rows]),
            self.targets[rows],
            None if self.weights is None else self.weights[rows],
            self.weighted_scores,
            None if self.members is None else self.members.taken(rows),
        )

    def counts(self, rows: np.ndarray) -> np.ndarray:
        """How much some rows count in scores; those of weight zero not at all."""
        if self.weights is None:
            return np.ones(len(rows))
        weights = np.asarray(self.weights[rows], dtype=np.float64)
        return weights if self.weighted_scores else (weights > 0).astype(np.float64)

    def scored(self, some: slice) -> ScoredRows:
        """The rows that scores leave out, of some rows."""
        targets, numbers = self.targets[some], np.arange(some.start, some.stop)
        if self.members is None:
            weights = np.ones(len(targets)) if self.weights is None else self.weights[some]
            return ScoredRows(targets, weights, self.counts(numbers), lambda values: values)
        members = self.members.taken(numbers)
        counts = members.weights if self.weighted_scores else np.ones(len(members.weights))
        targets = members.spread(targets) + members.deviations
        return ScoredRows(targets, members.weights, counts, members.spread)

    @property
    def n_targets(self) -> int:
        return int(self.targets.shape[1])

    @property
    def dtype(self) -> np.dtype:
        return self.targets.dtype

    def cell(self, rows: np.ndarray, shares: np.ndarray | None) -> CellData:
        some = self.taken(rows)
        return CellData(
            some.X, some.targets, some.weights, shares, some.weighted_scores, some.members
        )

    def batch(self, cells: Cells, some: slice) -> Batch:
        numbers = range(some.start, some.stop)
        return _RowsOfCells(self, tuple((rows_of(cells, c), shares_of(cells, c)) for c in numbers))


@dataclass(frozen=True)
class _RowsOfCells:
    training: Training
    cells: tuple[tuple[np.ndarray, np.ndarray | None], ...]
    """Rows and shares of every cell."""

    def __len__(self) -> int:
        return len(self.cells)

    def data(self, position: int) -> CellData:
        return self.training.cell(*self.cells[position])


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


ROWS_A_BATCH = 4096
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

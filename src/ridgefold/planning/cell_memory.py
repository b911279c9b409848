"""What the steps of a partitioned fit hold in memory, and how large a search a budget holds.

Counted is what a fit holds beyond the process as it was called: matrices of cells, what the model
is made of, and copies of rows. The rows themselves, which the caller has, are not. All of it is
known from shapes but for the sizes of cells, which are known once they are cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ridgefold.errors import BudgetError
from ridgefold.planning.amounts import in_bytes
from ridgefold.records import CELL_SEARCH, CellSearch, Problem

WORK_BYTES = 8e6
"""Blocks of the kernel and of rows, buffers of BLAS, and what Python itself needs on the way."""
_MAPPED_BYTES = float(1 << 25)
"""Arrays of more bytes are given back to the system as soon as they are let go. Smaller ones are
kept for later, and those of the next cell may not fit where these were: they count twice."""
_REPEATS = 2.0
"""Cells that overlap hold every row so many times at most."""
ROWS_A_TASK = 4096
"""Rows of the cells that are read and fitted together, as one task."""
_LEAST_REFINING = 2e6
"""Products with blocks of the whole matrix, at least."""
_ROWS_OF_A_TYPICAL_CELL = 1024
"""By which workers are counted before cells are cut."""
_FEWEST_CELL_ROWS = 64
"""Cells of fewer rows predict next to nothing: a budget that holds no larger ones is refused."""
_FEWEST_SLOPE_ROWS = 128
"""Rows of the fits that slopes are taken from, however small a budget is."""
_SLOPE_POINTS = 1024
"""Rows at which slopes are taken (`cells.sample_slopes`)."""
_COARSE_MODEL_BYTES = 12e6
"""Blocks of kernel values, as measured, in which the coarse model is fitted."""
_SCALE_BYTES = 24.0
"""Of a criterion in which scales are learned, an entry of its matrix: values, slopes, products."""
_OUTSIDE_BYTES = 16e6
"""Blocks of kernel values between the rows that are learned from and those outside."""
_MOST_OUTSIDE = 2000
"""Rows outside the criterion (`metric.sample.MOST_OUTSIDE`)."""
_FEWEST_LEARNING_ROWS = 200
"""Scales are not learned from fewer rows because of a budget: it is refused instead."""


def largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest whole number up to `most` that fits, where all smaller ones do; else 0."""
    if most >= 1 and fits(most):
        return most
    low, high = 0, max(most, 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def learning_bytes(rows: int, n_rows: int, n_columns: int) -> float:
    """Memory in which scales are learned from so many of all rows."""
    outside = min(_MOST_OUTSIDE, n_rows)
    sample = 3 * 8.0 * (rows + outside) * n_columns
    blocks = min(_OUTSIDE_BYTES, 8.0 * rows * outside)
    return _SCALE_BYTES * rows**2 + blocks + sample + WORK_BYTES


def learning_rows_within(memory_bytes: float, most: int, n_rows: int, n_columns: int) -> int:
    """From how many rows, `most` at best, scales are learned within a budget; or a refusal."""
    most = min(most, n_rows)
    found = largest(lambda m: learning_bytes(m, n_rows, n_columns) <= memory_bytes, most)
    if found < min(most, _FEWEST_LEARNING_ROWS):
        needed = learning_bytes(min(most, _FEWEST_LEARNING_ROWS), n_rows, n_columns)
        raise BudgetError(
            f"learning scales needs {in_bytes(needed)} even from few rows, and memory_budget "
            f"leaves {in_bytes(max(0.0, memory_bytes))}: raise memory_budget, or leave scales and "
            "kernels to the grid (metric=None)"
        )
    return found


@dataclass(frozen=True)
class CellMemory:
    """Bytes of one fit."""

    problem: Problem
    overlap: bool
    choose: bool = True
    """Whether every cell looks for a pair of its own."""
    held_out: bool = True
    """Whether leave-one-out residuals are kept."""
    in_files: bool = False
    """Whether rows and models are in files, not in memory."""
    copied: float = 0.0
    """Bytes of rows that had to be copied, to be of one type."""
    alphas: int = 30
    """Ridge values that are tried, at most."""

    # -- arrays that stay ----------------------------------------------------------------

    @property
    def held(self) -> float:
        """Copies of rows and what a model is made of; and the order of the rows on the way."""
        p = self.problem
        if self.in_files:
            return 0.0
        n, t, size = float(p.n_rows), p.n_targets, p.itemsize
        entries = n * (_REPEATS if self.overlap else 1.0)
        return self.copied + n * (64.0 + 32.0 * t) + entries * (32.0 + 3.0 * size * t)

    # -- one step after the other --------------------------------------------------------

    def _square(self, rows: float, item: float) -> float:
        """Matrices of so many bytes an entry that are made for one cell after the other."""
        bytes_ = item * float(rows) ** 2
        return bytes_ if bytes_ > _MAPPED_BYTES else 2.0 * bytes_

    def cell(self, rows: int) -> float:
        """Fitting cells of so many rows, one at a time."""
        size, n = float(self.problem.itemsize), float(rows)
        table = size * n**2 if self.choose else 0.0
        work = self._square(rows, size)
        if self.choose and rows <= CELL_SEARCH.largest_searched:
            work = max(work, self.pilot(CELL_SEARCH.core_rows(rows, overlap=self.overlap)))
        return table + work + self._rows_of_a_batch(rows)

    def _rows_of_a_batch(self, rows: int) -> float:
        p = self.problem
        numbers = 3.0 * p.n_columns + 6.0 * p.n_targets
        return p.itemsize * numbers * max(rows, min(ROWS_A_TASK, p.n_rows))

    def pilot(self, rows: int) -> float:
        """A cell on which pairs are compared: distances, the same and a system in single
        precision, one in that of the rows, and which entries are above a diagonal."""
        return (2.0 * self.problem.itemsize + 9.0) * float(rows) ** 2

    def averaged_cell(self, rows: int) -> float:
        """Looking for a pair for the mean of all cells: a spectrum, and a sample's predictions."""
        n, t = float(rows), self.problem.n_targets
        sample = min(float(self.problem.n_rows), max(500.0, 2000.0 / t))
        return 32.0 * n**2 + 12.0 * sample * n + 8.0 * self.alphas * t * (4.0 * sample + 3.0 * n)

    def slopes(self, sample: int) -> float:
        d = self.problem.n_columns
        fit = 12.0 * sample**2 + 16.0 * min(_SLOPE_POINTS, sample) * sample
        pair = 33.0 * min(sample, CELL_SEARCH.slope_pair_rows) ** 2
        return max(fit, pair) + 6 * 8.0 * sample * d

    def refining(self, sizes: np.ndarray, room: float = math.inf) -> float:
        """Refining with cells of so many rows of their own: their factors and some vectors, and
        of what then is left as much as helps (`cells.refine`)."""
        n, t = float(self.problem.n_rows), self.problem.n_targets
        squares = np.asarray(sizes, dtype=np.float64) ** 2
        least = 8.0 * float(squares.sum() + 2.0 * squares.max())
        least += 8.0 * n * (2.0 * self.problem.n_columns + 12.0 * (t + 1.0)) + _LEAST_REFINING
        more = 8.0 * n**2 + 24.0 * n * (100.0 + 4.0 * math.sqrt(n)) + _MAPPED_BYTES
        return max(least, min(room, least + more))

    def coarse_model(self) -> float:
        t = self.problem.n_targets
        return _COARSE_MODEL_BYTES + 8.0 * t * (
            CELL_SEARCH.backdrop_pair_rows + self.problem.n_rows
        )

    # -- what a budget holds -------------------------------------------------------------

    def room(self, memory_bytes: float) -> float:
        """What is left of a budget for the work on cells."""
        return memory_bytes - self.held - WORK_BYTES

    def search(self, memory_bytes: float) -> CellSearch:
        """The usual search, with as many rows as the budget holds; or a refusal."""
        room, usual = self.room(memory_bytes), CELL_SEARCH
        most = largest(lambda rows: self.cell(rows) <= room, self.problem.n_rows)
        if most < min(self.problem.n_rows, _FEWEST_CELL_ROWS):
            needed = self.held + WORK_BYTES + self.cell(_FEWEST_CELL_ROWS)
            raise BudgetError(
                f"{self.problem.n_rows:,} rows in the smallest cells need {in_bytes(needed)}, and "
                f"memory_budget is {in_bytes(memory_bytes)}: raise memory_budget, or fit from "
                "files (a path or a memory-mapped array, with blended or routed cells)"
            )

        def pilot_rows(cells: int, at_most: int) -> int:
            return max(1, largest(lambda rows: cells * self.pilot(rows) <= room, at_most))

        return replace(
            usual,
            most_cell_rows=math.inf if most == self.problem.n_rows else most,
            pilot_rows=pilot_rows(usual.pilots, usual.pilot_rows),
            near_rows=pilot_rows(usual.near_pilots, usual.near_rows),
            more_rows=pilot_rows(usual.near_pilots, usual.more_rows),
            slope_rows=max(
                _FEWEST_SLOPE_ROWS,
                largest(lambda rows: self.slopes(rows) <= room, usual.slope_rows),
            ),
        )

    def workers(self, memory_bytes: float, limits: CellSearch, most: int) -> int:
        """How many may work at once: what one has let go is not there for the others."""
        cell = self.cell(int(min(limits.most_cell_rows, _ROWS_OF_A_TYPICAL_CELL)))
        one = WORK_BYTES + max(limits.pilots * self.pilot(limits.pilot_rows), cell)
        return max(1, min(most, int((memory_bytes - self.held) // one)))

    def most_averaged_rows(self, memory_bytes: float) -> float:
        """Rows of the largest cells among which a pair for their mean can be looked for."""
        room = self.room(memory_bytes)
        both = lambda rows: max(self.averaged_cell(rows), self.cell(rows)) <= room  # noqa: E731
        most = max(1, largest(both, self.problem.n_rows))
        return math.inf if most == self.problem.n_rows else most

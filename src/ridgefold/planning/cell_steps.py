"""What the steps of a partitioned fit on this machine are predicted to cost.

Plans of `records.Plan`, so that they are explained as those of other fits are. Nothing is chosen
here: what a step does follows from the settings, and how long some take from the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ridgefold.planning.calibration import known_rates
from ridgefold.planning.cell_memory import CellMemory
from ridgefold.planning.learning import LEARNING
from ridgefold.planning.rates import seconds
from ridgefold.records import CELL_SEARCH, CellSearch, Cost, Plan, Problem, Resources

CELL_WORK: Mapping[str, str] = {
    "moments": "exact up to rounding",
    "pass": "block by block",
    LEARNING: "of the exact held-out error, on a sample of the rows",
    "slopes": "of an exact fit of a sample of the rows",
    "sizes": "tried by exact leave-one-out, on regions of the rows",
    "pilots": "exact leave-one-out on a few cells",
    "search": "exact leave-one-out in every cell",
    "coarse": "a fit of all rows in the span of a few, and its exact leave-one-out error",
    "linear": "a linear fit of all rows, and the held-out error with and without it in regions",
    "inverses": "exact up to rounding in every cell",
    "factors": "exact up to rounding in every cell",
    "tree": "across directions in which targets change",
    "principal": "across principal directions",
    "hyperplanes": "between parallel planes",
    "kmeans": "around centres",
    "random": "drawn at random",
    "stratified": "drawn at random from strata",
}
"""What each kind of step is, in words."""
_PILOT_KERNELS = 7
"""Widths that a first look goes to."""
_PILOT_RIDGES = 5
_COARSE_KERNELS = 4
"""Kernels of the model behind the cells."""
_QUICK = 0.6
"""What a factor and its inverse for comparisons take, in parts of exact ones: 0.4 in single
precision, 0.7 in double."""
_TRIED_SIZES = tuple(CELL_SEARCH.smallest_tried * 2.0**k for k in range(2))
"""Rows of the cells that are likely to be tried: most often the second size gains little."""
LIKELY_REPEATS = 1.7
"""Cells that hold a row, on average, where they overlap."""
_BLOCK_BYTES = float(1 << 26)
"""Rows that are looked at together, and a copy of them."""
_SECONDS_A_CUT = 3e-4
"""What Python takes for one cell that is cut, as measured."""
_MOVED_A_LEVEL = 30.0
"""What a level of the tree moves, in rows for every row: as measured, to cut and to place them."""


class CellPlans:
    """Plans of one fit."""

    def __init__(
        self,
        problem: Problem,
        resources: Resources,
        workers: int,
        *,
        overlap: bool,
        kernels: int = 1,
        memory: CellMemory | None = None,
        limits: CellSearch = CELL_SEARCH,
    ) -> None:
        """`kernels`: how many a first look goes through, each with widths of its own; `limits`: as
        many rows as searches look at."""
        self.problem, self.resources, self.workers = problem, resources, max(1, workers)
        self.kernels, self.limits = kernels, limits
        self.memory = CellMemory(problem, overlap) if memory is None else memory
        self.overlap, self._repeats = overlap, LIKELY_REPEATS if overlap else 1.0

    def looking(self) -> Plan:
        """A pass over all rows, a block at a time."""
        row = self.problem.itemsize * self.problem.n_columns
        read = {"memory": float(self.problem.n_rows * row)}
        return self._plan("pass", self._seconds(read), _BLOCK_BYTES)

    def slopes(self) -> Plan:
        """A pair chosen on some rows of a sample, a fit of all of it, and gradients."""
        sample = float(self.limits.rows_for_slopes(self.problem.n_rows, self.problem.n_columns))
        some = min(sample, CELL_SEARCH.slope_pair_rows)
        gradients = {"kernel": sample**2, "product": 2.0 * sample**2 * self.problem.n_columns}
        fit = self._matrices(sample, factors=_QUICK) + self._seconds(gradients, sample)
        peak = self.memory.slopes(int(sample))
        return self._plan("slopes", self._wide_search(some) + fit, peak)

    def count(self, *, choose: bool, pair: bool = True) -> Plan:
        """Trying sizes of cells on all rows, or on two regions; where cells will choose pairs of
        their own, models that are tried are for comparison only. Without a choice of a `pair`
        none is looked for on the way."""
        n, whole = self.problem.n_rows, CELL_SEARCH.regions * CELL_SEARCH.region_rows
        tried, regions = min(n, whole), 1 if n <= whole else CELL_SEARCH.regions
        largest = CELL_SEARCH.largest_of_many if n > CELL_SEARCH.many_rows else math.inf
        likely = [size for size in _TRIED_SIZES if size < 2 * tried and size <= largest]
        sizes = [min(size, tried) for size in likely] or [float(tried)]
        total = regions * self._pilots(self._core(self._repeats * sizes[0])) if pair else 0.0
        for size in sizes[1:] if pair else []:
            rows = min(self._core(self._repeats * size), self.limits.near_rows)
            total += regions * CELL_SEARCH.near_pilots * self._scores(rows, CELL_SEARCH.pairs)
        total += sum(
            tried / size * self._trial(self._repeats * size, choose=choose) for size in sizes
        )
        most = min(self._repeats * sizes[-1], self.limits.most_cell_rows, float(n))
        peak = max(self.memory.cell(math.floor(most)), self._pilot_bytes(most))
        return self._plan("sizes", total, peak)

    def _core(self, rows: float) -> float:
        """Rows of a cell on which pairs are compared."""
        return float(CELL_SEARCH.core_rows(math.ceil(rows), overlap=self.overlap))

    def cut(self, partition: str, n_cells: int, rows: int | None = None) -> Plan:
        """Cutting some rows, or all: every level of the tree passes over them."""
        n = self.problem.n_rows if rows is None else rows
        row = self.problem.itemsize * self.problem.n_columns
        levels = max(1, n_cells.bit_length())
        moved = {"memory": _MOVED_A_LEVEL * n * row * levels, "calls": 2.0 * levels}
        return self._plan(partition, n_cells * _SECONDS_A_CUT + self._seconds(moved), 4.0 * n * row)

    def placing(self, partition: str, n_cells: int, block_bytes: float) -> Plan:
        """Finding the cells of every row: on every level rows are compared with a cut."""
        row = self.problem.itemsize * self.problem.n_columns
        levels = max(1.0, math.log2(n_cells))
        moved = {"memory": 4.0 * self._repeats * self.problem.n_rows * levels * row}
        return self._plan(partition, self._seconds(moved), 4.0 * block_bytes)

    def pair(self, cell_rows: float) -> Plan:
        """One kernel and ridge for all cells: a wide search on some rows of a few, and in large
        ones a near one from there on."""
        compared = self._core(cell_rows)
        rows = min(compared, self.limits.pilot_rows)
        total = self._pilots(rows)
        if compared > 1.25 * rows:
            more = min(compared, self.limits.more_rows)
            total += CELL_SEARCH.near_pilots * self._scores(more, CELL_SEARCH.pairs)
        return self._plan("pilots", total, self._pilot_bytes(cell_rows))

    def _pilot_bytes(self, cell_rows: float) -> float:
        """Cells of so many rows that are asked for their scores, all at once."""
        compared, memory, limits = self._core(cell_rows), self.memory, self.limits
        first = limits.pilots * memory.pilot(math.floor(min(compared, limits.pilot_rows)))
        if compared <= 1.25 * limits.pilot_rows:
            return first
        more = limits.near_pilots * memory.pilot(math.floor(min(compared, limits.more_rows)))
        return max(first, more)

    def _pilots(self, rows: float) -> float:
        return self.kernels * CELL_SEARCH.pilots * self._wide_search(rows)

    def _wide_search(self, rows: float) -> float:
        """A few ridge values with a few kernels, on some rows."""
        return self._scores(rows, _PILOT_KERNELS * _PILOT_RIDGES)

    def cells(
        self,
        sizes: np.ndarray,
        *,
        choose: bool,
        held_out: bool,
    ) -> Plan:
        """All cells; workers share them."""
        typical = float(np.mean(np.asarray(sizes, dtype=np.float64) ** 3)) ** (1.0 / 3.0)
        each = self._cell(typical, choose=choose, held_out=held_out)
        total = len(sizes) * each
        method = "search" if choose else "inverses" if held_out else "factors"
        workers = min(self.workers, len(sizes))
        memory = replace(self.memory, choose=choose, held_out=held_out)
        peak = workers * memory.cell(int(np.max(sizes)))
        model = self.problem.itemsize * self.problem.n_targets * 2.0 * float(np.sum(sizes))
        if self.memory.in_files:
            model = 0.0
        return self._plan(method, total / workers, peak + model)

    def coarse_model(self) -> Plan:
        """A fit of all rows in the span of a few, with kernels compared on some of them."""
        n, r = float(self.problem.n_rows), float(CELL_SEARCH.backdrop_rows)
        looked = _COARSE_KERNELS * min(n, CELL_SEARCH.backdrop_pair_rows) + 2 * n
        flops = {"kernel": 2 * looked * r, "product": 6.0 * looked * r**2, "calls": 100.0}
        return self._plan("coarse", self._seconds(flops), self.memory.coarse_model())

    def linear(self) -> Plan:
        """A linear fit of all rows, with every ridge value, and a look at a few regions."""
        n, d = float(self.problem.n_rows), float(self.problem.n_columns)
        rows = min(n, self.limits.linear_region_rows, self.limits.pilot_rows)
        sums = {"product": 4.0 * n * d**2, "memory": 80.0 * n * d, "calls": 100.0}
        compared = 4 * self.limits.linear_regions * self._wide_search(rows)
        peak = self.memory.pilot(int(rows)) + 8.0 * (4.0 * d**2)
        return self._plan("linear", self._seconds(sums) + compared, peak)

    def average(self, partition: str, sizes: np.ndarray) -> Plan:
        """Pairs for the mean of all cells, on a sample of the rows."""
        rows = float(np.max(sizes))
        flops = {"kernel": rows**2, "eigendecomposition": 9.0 * rows**3, "calls": 20.0}
        total = self.kernels * _PILOT_KERNELS * len(sizes) * self._seconds(flops, rows)
        return self._plan(partition, total, self.memory.averaged_cell(int(rows)))

    def refining(self, sizes: np.ndarray, steps: int) -> Plan:
        """Conjugate gradients on the whole system, with cells of so many rows of their own."""
        n = float(self.problem.n_rows)
        flops = {"kernel": n**2, "memory": 8.0 * n**2 * steps, "calls": 10.0 * steps}
        peak = self.memory.refining(sizes, self.memory.room(self.resources.memory_bytes))
        return self._plan("conjugate_gradient", self._seconds(flops, n), peak)

    def _cell(self, rows: float, *, choose: bool, held_out: bool) -> float:
        fit = self._matrices(rows, inverses=float(held_out), factors=float(not held_out))
        if not choose or rows > CELL_SEARCH.largest_searched:
            return fit
        return fit + self._scores(self._core(rows), CELL_SEARCH.pairs)

    def _trial(self, rows: float, *, choose: bool) -> float:
        """A cell of a size that is tried."""
        return self._scores(rows, 1) if choose else self._matrices(rows, inverses=1.0)

    def _scores(self, rows: float, pairs: int) -> float:
        """Leave-one-out errors of some pairs on the same rows, for comparison."""
        flops = {
            "kernel": pairs * rows**2,
            "cholesky": _QUICK * pairs * rows**3 / 3,
            "inverse": _QUICK * pairs * rows**3 / 3,
            "calls": 4.0 * pairs,
        }
        return self._seconds(flops, rows)

    def _matrices(self, rows: float, *, inverses: float = 0.0, factors: float = 0.0) -> float:
        """Matrices of one size, each made, factorised and perhaps its factor inverted."""
        made = inverses + factors
        flops = {
            "kernel": made * rows**2,
            "cholesky": made * rows**3 / 3,
            "inverse": inverses * rows**3 / 3,
            "calls": 4.0 * made,
        }
        return self._seconds(flops, rows)

    def _seconds(self, flops: Mapping[str, float], size: float = 1000.0) -> float:
        return seconds(Cost(flops, 0.0, size=size), self.problem, known_rates())

    def _plan(self, method: str, predicted: float, peak_bytes: float) -> Plan:
        return Plan(self.problem, self.resources, method, Cost({}, peak_bytes), predicted, ())

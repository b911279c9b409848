"""The request for a fit in cells, and what is known of it between its steps: no data.

Steps are planned from this alone, whether a fit is explained or done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ridgefold.cells.cell_grid import families_asked
from ridgefold.cells.checked_arguments import CellArguments
from ridgefold.options import MetricLearning, metric_of
from ridgefold.planning import CellMemory, CellPlans, InMemory, SharedFiles
from ridgefold.planning.cell_steps import LIKELY_REPEATS
from ridgefold.records import CELL_SEARCH, CellSearch, Problem, Resources


@dataclass(frozen=True)
class CellProblem:
    """What is known between the steps of a fit in cells."""

    problem: Problem
    """Shapes of the data; the columns are those that are not left out by now."""
    pair_open: bool
    """Whether kernel and ridge are still to be chosen, once for all cells."""
    n_cells: int | None = None
    """None until it is chosen."""
    sizes: np.ndarray | None = None
    """Rows of every cell, with those that it shares; None until rows are cut."""
    ordered: bool = True
    """Whether the kernel has a width that cells may move."""
    linear_open: bool = False
    """Whether a linear part waits for the scales of what it leaves."""
    fitted: bool = False
    """Whether there are models of all cells."""


@dataclass(frozen=True)
class CellRequest:
    """The arguments of a model and the shapes of its data."""

    model: Any
    options: CellArguments
    problem: Problem
    resources: Resources
    """The memory, time and threads that one worker may use."""
    in_files: bool = False
    """Whether rows and models lie in files."""
    copied: float = 0.0
    """Bytes of rows that had to be copied, to be of one type."""
    workers: int | None = None
    """Workers of a cluster, which read rows from shared files; None where there is none. Plans are
    of work on one of them, and `files` spreads it."""
    _known_limits: dict[float, CellSearch] = field(default_factory=dict, compare=False, repr=False)
    """Limits that were computed before, by their memory: every step asks for them."""

    @property
    def n_rows(self) -> int:
        return self.problem.n_rows

    @property
    def partition(self) -> str:
        """The way in which rows are cut, by its name."""
        partition = self.model.partition
        return partition if isinstance(partition, str) else type(partition).__name__

    @cached_property
    def shared(self) -> bool:
        """Whether all cells share one pair of kernel and ridge."""
        asked = self.options.shared
        return self.n_rows > CELL_SEARCH.many_rows if asked is None else asked

    @cached_property
    def _families(self) -> tuple[int, bool]:
        return families_asked(self.model, self.problem.n_columns + self.problem.columns_left_out)

    @property
    def is_choice(self) -> bool:
        """Whether there is any choice of a pair."""
        return self._families[1]

    @property
    def choose(self) -> bool:
        """Whether every cell chooses a pair of its own."""
        return self.is_choice and not self.shared

    @property
    def held_out(self) -> bool:
        """Whether cells give leave-one-out residuals."""
        return self.choose or bool(self.model._needs_held_out())

    @property
    def learning(self) -> MetricLearning | None:
        """What is learned about the columns, if anything."""
        asked = metric_of(self.model)
        return asked if asked is not None and asked.scales else None

    # -- memory --------------------------------------------------------------------------

    @property
    def kept_to_budget(self) -> bool:
        """Stacks of cells on a device are as large as its memory holds; of rows in files, blocks
        are what a budget is for."""
        return self.options.device is None and not self.in_files

    @cached_property
    def memory(self) -> CellMemory:
        return CellMemory(
            self.problem,
            self.options.overlap > 0,
            choose=not self.shared,
            held_out=not self.shared or self.model._needs_held_out(),
            in_files=self.in_files,
            copied=self.copied,
        )

    def limits(self, resources: Resources) -> CellSearch:
        """The numbers of rows that searches may look at, and cells may hold, within the budget; a
        `BudgetError` if no cell fits into it."""
        if not self.kept_to_budget:
            return CELL_SEARCH
        budget = resources.memory_bytes
        if budget not in self._known_limits:
            self._known_limits[budget] = self._limits(budget)
        return self._known_limits[budget]

    def _limits(self, budget: float) -> CellSearch:
        limits = self.memory.search(budget)
        if self.options.combiner.scales_alpha:
            limits = replace(limits, most_cell_rows=self.memory.most_averaged_rows(budget))
        return limits

    # -- plans ---------------------------------------------------------------------------

    def shape(self) -> CellProblem:
        """What is known before the first step."""
        return CellProblem(self.problem, self.is_choice, n_cells=self.options.n_cells)

    def plans(self, known: CellProblem, resources: Resources) -> CellPlans:
        """Plans of single steps, for these shapes and resources."""
        return CellPlans(
            known.problem,
            replace(resources, threads=1),
            self.options.executor.n_workers if self.workers is None else 1,
            overlap=self.options.overlap > 0,
            kernels=max(1, self._families[0]),
            memory=self.memory,
            limits=self.limits(resources),
        )

    @cached_property
    def files(self) -> InMemory:
        """What reading, sending and writing rows costs beside the work on them."""
        if not self.in_files:
            return InMemory()
        return SharedFiles(self.problem, self.workers, self.repeats)

    @property
    def repeats(self) -> float:
        """Cells that hold a row, on average."""
        return LIKELY_REPEATS if self.options.overlap > 0 else 1.0

    def likely_cells(self) -> int:
        """How many cells there are likely to be, as if the first size that is tried were taken;
        of many rows the largest."""
        many = self.n_rows > CELL_SEARCH.many_rows
        size = CELL_SEARCH.largest_of_many if many else CELL_SEARCH.smallest_tried
        repeats = 2 if self.options.overlap > 0 else 1
        least = math.ceil(repeats * self.n_rows / self.limits(self.resources).most_cell_rows)
        return min(self.n_rows, max(1, round(self.n_rows / size), least))

    def likely_sizes(self, n_cells: int) -> np.ndarray:
        """Rows of so many cells, with those that they share."""
        repeats = self.repeats if n_cells > 1 else 1.0
        return np.full(n_cells, max(1.0, repeats * self.n_rows / n_cells))

"""The steps of a fit in cells: scales, slopes, number of cells, cells, a pair, every cell.

`explain` asks each for its plan; a fit performs them, by the methods of `CellFitting`, which has
the data.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ridgefold.cells.average_choice import first_number
from ridgefold.cells.cell_request import CellProblem, CellRequest
from ridgefold.cells.checked_arguments import asks_for_columns
from ridgefold.cells.cut import Guided, learning_sample
from ridgefold.cells.linear_part import looks_for_linear_part
from ridgefold.crossval import Progress
from ridgefold.metric.metric import families_of
from ridgefold.planning import SharedFiles
from ridgefold.planning.cell_memory import WORK_BYTES, learning_rows_within
from ridgefold.planning.learning import learning_plan
from ridgefold.records import CELL_SEARCH, Plan, Resources, StepRecord
from ridgefold.runtime import MeasuredStep, Step, Work
from ridgefold.selection.learned_grid import AUTO, is_automatic

if TYPE_CHECKING:
    from ridgefold.cells.fitting import CellFitting

_LIKELY_STEPS = 20
"""Refining to a certificate seldom takes more steps: the preconditioner is exact in cells."""


@dataclass(frozen=True)
class CellStep(MeasuredStep[CellProblem, "CellFitting"]):
    """A step that is planned from the request and the shapes, and performed by `CellFitting`."""

    request: CellRequest

    def _attempt(
        self, known: CellProblem, plan: Plan, work: CellFitting
    ) -> tuple[CellProblem, StepRecord] | None:
        """With the memory of the plan; a second attempt draws the same random numbers."""
        state = work.rng.bit_generator.state
        work.allowed = plan.resources
        done = super()._attempt(known, plan, work)
        if done is None:
            work.rng.bit_generator.state = state
        return done


class LookAtRows(CellStep):
    """Of rows in files: the time in which they were read and found finite, and whether targets can
    be compared."""

    name = "looking at all rows"

    def needed(self, known: CellProblem) -> bool:
        return self.request.in_files

    def cost(self, known: CellProblem, resources: Resources) -> Plan:
        files = self.request.files
        assert isinstance(files, SharedFiles)
        return files.looking(self.request.plans(known, resources).looking())

    def run(
        self, known: CellProblem, plan: Plan, work: CellFitting, progress: Progress
    ) -> CellProblem:
        work.look_at_rows()
        return known

    def perform(
        self, known: CellProblem, work: CellFitting, plan: Plan | None = None
    ) -> tuple[CellProblem, StepRecord]:
        """As other steps, with the seconds in which rows were read before there was a plan."""
        after, record = super().perform(known, work, plan)
        return after, replace(record, seconds=record.seconds + work.seconds_read)


class FitLinear(CellStep):
    """A linear model of all rows under the cells, where held-out errors in regions are for it."""

    name = "fitting a linear part"

    def needed(self, known: CellProblem) -> bool:
        request = self.request
        return looks_for_linear_part(
            request.model, request.options, request.n_rows, request.problem.n_columns
        )

    def cost(self, known: CellProblem, resources: Resources) -> Plan:
        plan = self.request.plans(known, resources).linear()
        return self.request.files.reading(plan, known.problem.n_rows)

    def run(
        self, known: CellProblem, plan: Plan, work: CellFitting, progress: Progress
    ) -> CellProblem:
        return replace(known, linear_open=work.fit_linear())


class LearnScales(CellStep):
    """Learn one scale a column: cells are cut, and distances measured, in that metric."""

    name = "learning scales"

    def needed(self, known: CellProblem) -> bool:
        return self.request.learning is not None

    def cost(self, known: CellProblem, resources: Resources) -> Plan:
        kernel = self.request.model.kernel
        families = len(families_of(AUTO)) if is_automatic(kernel) else 1
        rows = self._rows(known, resources)
        plan = learning_plan(known.problem, resources, rows, families=families)
        return self.request.files.reading(plan, rows)

    def _rows(self, known: CellProblem, resources: Resources) -> int:
        request = self.request
        assert request.learning is not None
        most = int(request.learning.rows)
        if not request.kept_to_budget:
            return most
        room = request.memory.room(resources.memory_bytes) + WORK_BYTES
        return learning_rows_within(room, most, known.problem.n_rows, known.problem.n_columns)

    def run(
        self, known: CellProblem, plan: Plan, work: CellFitting, progress: Progress
    ) -> CellProblem:
        kept = self._learn(work, self._rows(known, plan.resources))
        before = known.problem
        left_out = before.n_columns + before.columns_left_out - kept
        problem = replace(before, n_columns=kept, columns_left_out=left_out)
        return replace(known, problem=problem, linear_open=known.linear_open and self._is_first)

    _is_first: ClassVar[bool] = True

    def _learn(self, work: CellFitting, rows: int) -> int:
        """Learn scales; returns how many columns keep one."""
        return work.learn_scales(rows)


class LearnScalesOfRest(LearnScales):
    """The same for what a linear part leaves, and which of the two cells take."""

    name = "learning scales of what a linear part leaves"
    _is_first = False

    def needed(self, known: CellProblem) -> bool:
        return known.linear_open

    def _learn(self, work: CellFitting, rows: int) -> int:
        return work.weigh_linear(rows)


class FindSlopes(CellStep):
    """Find the directions in which targets change, for the tree that cuts across them."""

    name = "finding slopes"

    def needed(self, known: CellProblem) -> bool:
        partitioner = self.request.options.partitioner
        guided = isinstance(partitioner, Guided) and partitioner.slopes is None
        usual = round(self.request.n_rows / CELL_SEARCH.smallest_tried)
        most = usual if known.n_cells is None else known.n_cells
        return guided and min(most, self.request.n_rows) > 1

    def cost(self, known: CellProblem, resources: Resources) -> Plan:
        plan, problem = self.request.plans(known, resources).slopes(), known.problem
        rows = CELL_SEARCH.rows_for_slopes(problem.n_rows, problem.n_columns)
        return self.request.files.reading(plan, rows)

    def run(
        self, known: CellProblem, plan: Plan, work: CellFitting, progress: Progress
    ) -> CellProblem:
        work.find_slopes()
        return known


class ChooseCount(CellStep):
    """Choose the number of cells by trying several, on all rows or on two regions of them.

    If all rows were tried, the chosen cells are already cut, and if all cells share a pair, their
    models are already fitted: later steps then have nothing left to do.
    """

    name = "choosing how many cells"

    def needed(self, known: CellProblem) -> bool:
        return known.n_cells is None

    def cost(self, known: CellProblem, resources: Resources) -> Plan:
        request = self.request
        plan = request.plans(known, resources).count(choose=request.choose, pair=request.is_choice)
        return request.files.trying(plan)

    def foresee(self, known: CellProblem) -> CellProblem:
        request = self.request
        m = request.likely_cells()
        if request.n_rows > CELL_SEARCH.regions * CELL_SEARCH.region_rows:
            return replace(known, n_cells=m)
        after = replace(known, n_cells=m, sizes=request.likely_sizes(m), pair_open=False)
        return replace(after, fitted=not request.choose)

    def run(
        self, known: CellProblem, plan: Plan, work: CellFitting, progress: Progress
    ) -> CellProblem:
        return work.choose_count(known)


class CutCells(CellStep):
    """Cut the rows into cells."""

    name = "cutting cells"

    def title(self, known: CellProblem) -> str:
        return f"cutting {known.n_cells:,} cells"

    def needed(self, known: CellProblem) -> bool:
        return known.sizes is None and not self.request.in_files

    def cost(self, known: CellProblem, resources: Resources) -> Plan:
        assert known.n_cells is not None
        return self.request.plans(known, resources).cut(self.request.partition, known.n_cells)

    def foresee(self, known: CellProblem) -> CellProblem:
        assert known.n_cells is not None
        return replace(known, sizes=self.request.likely_sizes(known.n_cells))

    def run(
        self, known: CellProblem, plan: Plan, work: CellFitting, progress: Progress
    ) -> CellProblem:
        return work.cut_cells(known)


class LearnCells(CellStep):
    """Where rows lie in files, learn the region of every cell from a sample of the rows."""

    name = "learning cells"

    def title(self, known: CellProblem) -> str:
        rows = learning_sample(known.problem.n_rows, known.problem.n_columns, known.n_cells or 1)
        return f"learning {known.n_cells:,} cells from {rows:,} rows"

    def needed(self, known: CellProblem) -> bool:
        return known.sizes is None and self.request.in_files

    def cost(self, known: CellProblem, resources: Resources) -> Plan:
        assert known.n_cells is not None
        problem, m = known.problem, known.n_cells
        rows = learning_sample(problem.n_rows, problem.n_columns, m)
        plans = self.request.plans(known, resources)
        plan = plans.cut(self.request.partition, m, rows=rows)
        return self.request.files.reading(plan, rows, f"{m:,} cuts written to shared files")

    def run(self, known: CellProblem, plan: Plan, work: Any, progress: Progress) -> CellProblem:
        return replace(known, n_cells=work.learn_cells(known))


class PlaceRows(CutCells):
    """Where rows lie in files, put every row into its cells, block by block."""

    name = "placing rows"

    def title(self, known: CellProblem) -> str:
        return self.name

    def needed(self, known: CellProblem) -> bool:
        return known.sizes is None and self.request.in_files

    def cost(self, known: CellProblem, resources: Resources) -> Plan:
        assert known.n_cells is not None
        request, m = self.request, known.n_cells
        files = request.files
        assert isinstance(files, SharedFiles)
        block = files.block_bytes(resources.memory_bytes, m)
        plan = request.plans(known, resources).placing(request.partition, m, block)
        return files.placing(plan, m)


class ChoosePair(CellStep):
    """Choose one kernel and ridge for all cells, which keep them or begin their search there."""

    name = "choosing a pair for all cells"

    def needed(self, known: CellProblem) -> bool:
        return known.pair_open

    def cost(self, known: CellProblem, resources: Resources) -> Plan:
        assert known.sizes is not None
        plan = self.request.plans(known, resources).pair(float(np.median(known.sizes)))
        return self.request.files.asking(plan)

    def foresee(self, known: CellProblem) -> CellProblem:
        return replace(known, pair_open=False)

    def run(
        self, known: CellProblem, plan: Plan, work: CellFitting, progress: Progress
    ) -> CellProblem:
        work.choose_pair()
        return replace(known, pair_open=False)


class ChooseAverage(CellStep):
    """Draw cells at random, and choose a pair of kernel and ridge for the mean of their models."""

    name = "cutting cells and choosing a pair for their mean"

    def title(self, known: CellProblem) -> str:
        return self.name if self.request.is_choice else CutCells.name

    def cost(self, known: CellProblem, resources: Resources) -> Plan:
        plans = self.request.plans(known, resources)
        m = first_number(self.request.options, self.request.n_rows, plans.limits.most_cell_rows)
        rows = self.request.n_rows // m
        if not self.request.is_choice:
            return plans.cut(self.request.partition, m)
        return plans.average(self.request.partition, np.full(m, rows))

    def foresee(self, known: CellProblem) -> CellProblem:
        m = first_number(self.request.options, self.request.n_rows)
        sizes = np.full(m, self.request.n_rows / m)
        return replace(known, n_cells=m, sizes=sizes, pair_open=False)

    def run(
        self, known: CellProblem, plan: Plan, work: CellFitting, progress: Progress
    ) -> CellProblem:
        return work.choose_average(known)


class FitCells(CellStep):
    """Fit every cell by itself."""

    name = "fitting cells"

    def title(self, known: CellProblem) -> str:
        return f"fitting {known.n_cells:,} cells"

    def needed(self, known: CellProblem) -> bool:
        return not known.fitted

    def cost(self, known: CellProblem, resources: Resources) -> Plan:
        assert known.sizes is not None
        request = self.request
        plans = request.plans(known, resources)
        plan = plans.cells(known.sizes, choose=request.choose, held_out=request.held_out)
        return request.files.fitting(plan, known.sizes)

    def foresee(self, known: CellProblem) -> CellProblem:
        return replace(known, fitted=True)

    def run(
        self, known: CellProblem, plan: Plan, work: CellFitting, progress: Progress
    ) -> CellProblem:
        work.fit_cells()
        return replace(known, fitted=True)


class FitCoarse(CellStep):
    """Fit a coarse model of all rows, and mix it in where it lowers the error of the cells."""

    name = "fitting a coarse model of all rows"

    def needed(self, known: CellProblem) -> bool:
        request = self.request
        options = request.options
        return (
            options.coarse_model
            and options.combiner.overlaps
            and options.bias
            and not asks_for_columns(request.model)
            and request.choose
            and known.ordered
            and request.model.alpha is None
            and (known.n_cells or 1) > 1
        )

    def cost(self, known: CellProblem, resources: Resources) -> Plan:
        return self.request.plans(known, resources).coarse_model()

    def run(
        self, known: CellProblem, plan: Plan, work: CellFitting, progress: Progress
    ) -> CellProblem:
        work.fit_coarse()
        return known


class RefiningWork(Work):
    """Cells that are fitted, to be replaced by one model of all rows."""

    @abstractmethod
    def refine(self, room: float) -> None:
        """Improve the cells' coefficients on the whole system, in so many bytes."""


@dataclass(frozen=True)
class Refine(MeasuredStep[CellProblem, RefiningWork]):
    """Turn the models of the cells into one of all rows, by conjugate gradients from there."""

    request: CellRequest
    name = "refining"

    def needed(self, known: CellProblem) -> bool:
        return self.request.options.refine is not None

    def cost(self, known: CellProblem, resources: Resources) -> Plan:
        asked, m = self.request.options.refine, known.n_cells or 1
        steps = asked if isinstance(asked, int) else _LIKELY_STEPS
        own = np.full(m, self.request.n_rows / m)
        return self.request.plans(known, resources).refining(own, max(1, steps))

    def run(
        self, known: CellProblem, plan: Plan, work: RefiningWork, progress: Progress
    ) -> CellProblem:
        work.refine(self.request.memory.room(plan.resources.memory_bytes))
        return known


def cell_steps(request: CellRequest) -> list[Step[CellProblem, Any]]:
    """The steps of a fit in cells, in order, up to models of all cells; `Refine` comes after."""
    if request.options.combiner.scales_alpha:
        return [LearnScales(request), ChooseAverage(request), FitCells(request)]
    return [
        LookAtRows(request),
        FitLinear(request),
        LearnScales(request),
        LearnScalesOfRest(request),
        FindSlopes(request),
        ChooseCount(request),
        CutCells(request),
        LearnCells(request),
        PlaceRows(request),
        ChoosePair(request),
        FitCells(request),
        FitCoarse(request),
    ]

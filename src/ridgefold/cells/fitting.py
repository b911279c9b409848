"""The steps of a partitioned fit: scales, slopes, number of cells, cells, a pair, every cell.

Steps are kept in the run directory, if there is one, with the state of the random numbers
after them: a fit that was interrupted goes on as if it had not been.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils import check_random_state

from ridgefold.cells.average_choice import choose_average, first_number
from ridgefold.cells.backdrop import fit_backdrop, with_share
from ridgefold.cells.cell_grid import SAMPLE_ROWS, coarse_kernels, families_asked, grid_asked
from ridgefold.cells.cell_metric import learned_scales, sample_slopes
from ridgefold.cells.cell_rows import CellRows, Training, number_of, rows_of, spaced
from ridgefold.cells.combine import cell_alpha
from ridgefold.cells.cut import Guided
from ridgefold.cells.held_out_errors import held_out_errors
from ridgefold.cells.linear_part import (
    LeftToCells,
    Task,
    explains_enough,
    fit_linear_part,
    looks_for_linear_part,
    lowers_errors,
    spreads_of,
    with_limits,
)
from ridgefold.cells.local_fit import FitSettings
from ridgefold.cells.members import Members
from ridgefold.cells.options import Options
from ridgefold.cells.partition_count import (
    Count,
    Fitted,
    as_they_are,
    choose_count,
)
from ridgefold.cells.run_cells import in_memory, run_cells
from ridgefold.cells.scaled_rows import ScaledRows
from ridgefold.cells.shared_pair import choose_pair
from ridgefold.errors import BudgetError, NumericalError
from ridgefold.executors import Executor, Serial
from ridgefold.kernels import Kernel
from ridgefold.linalg.blocks import row_blocks
from ridgefold.metric import FAMILIES
from ridgefold.options import cells_of, compute_of, metric_of
from ridgefold.options.cell_options import ALWAYS
from ridgefold.planning import CellMemory, CellPlans, available_resources
from ridgefold.planning.cell_memory import WORK_BYTES, learning_rows_within
from ridgefold.planning.words import in_bytes
from ridgefold.records import (
    CELL_SEARCH,
    Backdrop,
    Cells,
    CellSearch,
    CellTrial,
    Grid,
    LinearPart,
    LocalModels,
    Plan,
    Problem,
    Resources,
    Slopes,
    StepRecord,
)
from ridgefold.runtime import metered
from ridgefold.runtime.progress import progress_bar
from ridgefold.runtime.run_request import SEEDS
from ridgefold.runtime.training_data import TrainingData, as_ridgefold_errors, require_comparable
from ridgefold.selection.learned_grid import is_automatic
from ridgefold.storage.run_directory import Run

Result = TypeVar("Result")

_OF_LINEAR_PART = 1
"""Random numbers that decide on it are its own: cells without it are those of before."""
_MOST_CUTS = 6
"""How often rows are cut anew, into more cells, where some are larger than memory holds."""
_NEAREST_NUMBERS = 1 << 22


@dataclass(frozen=True)
class FittedCells:
    """What a fit comes to."""

    cells: Cells
    models: LocalModels
    residuals: np.ndarray | None
    """Leave-one-out residuals, aligned with ``cells.rows``."""
    rows: CellRows
    """The rows by cell."""
    grid: Grid
    trials: tuple[CellTrial, ...]
    dimension: float | None
    length_scales: np.ndarray | None
    widening: np.ndarray | None
    """What errors of intervals are multiplied by for every target, as scales were learned from the
    same rows; None for nothing."""
    training: Training
    """All rows, in the metric of the cells."""
    backdrop: Backdrop | None
    """A coarse model of all rows that is mixed in."""
    linear: LinearPart | None
    """A linear model of all rows under the cells, which are fitted to what it leaves."""
    steps: tuple[StepRecord, ...]
    """What was done, with predicted and measured cost."""
    plans: CellPlans
    """What further steps would cost."""


@dataclass(frozen=True)
class _Search:
    """What is known before the cells are fitted."""

    cells: Cells
    rows: CellRows
    grid: Grid
    trials: tuple[CellTrial, ...]
    dimension: float | None = None
    fitted: Fitted | None = None
    """The models, if they were made on the way."""


class CellFitting:
    """One fit, step by step."""

    def __init__(
        self,
        model: Any,
        data: TrainingData,
        targets: np.ndarray,
        options: Options,
        run: Run,
        *,
        members: Members | None = None,
    ) -> None:
        """`members`: the given rows behind the data, if scores are to leave out each of them."""
        self.model, self.options, self.run = model, options, run
        require_comparable(targets, data.weights)
        with as_ridgefold_errors("random_state must be None, a whole number or a RandomState"):
            state = check_random_state(model.random_state)
        seed = run.step("seed", lambda: int(state.randint(SEEDS)))
        self.rng = np.random.default_rng(seed)
        # Rows in memory are not sent to workers that see nothing but files.
        self._executor: Executor = Serial() if options.executor.remote else options.executor
        self.scales: np.ndarray | None = None
        self.widening: np.ndarray | None = None
        self.partitioner = options.partitioner
        self.data, self.targets = data, targets
        self.n_rows = int(data.X.shape[0])
        self.shared = (
            self.n_rows > CELL_SEARCH.many_rows if options.shared is None else options.shared
        )
        self.steps: list[StepRecord] = []
        self._require_room_for_cells(options.n_cells)
        self._executor = self._few_enough(self._executor)
        self.linear: LinearPart | None = None
        self._settle(
            Training(data.X, targets, data.weights, model._weighs_scores(), members),
            np.random.default_rng([seed, _OF_LINEAR_PART]),
        )
        if self.scales is not None:
            # Cells are cut, and distances measured, in the learned metric.
            self.data = replace(data, X=ScaledRows(data.X, self.scales))
        self.training = Training(
            self.data.X, self.targets, data.weights, model._weighs_scores(), members
        )

    def fit(self) -> FittedCells:
        options = self.options
        search = self._search_average() if options.combiner.scales_alpha else self._in_space()
        residuals: np.ndarray | None
        if search.fitted is not None:
            models, residuals = search.fitted.models, search.fitted.residuals
        else:
            models, residuals = self._run(search)
        backdrop = None
        if residuals is not None and self._wants_backdrop(search):
            backdrop = self._backdrop(search, models, residuals)
        linear = self.linear
        if linear is not None and cells_of(self.model).clip:
            linear = with_limits(linear, self._given, residuals)
        if not self.model._keeps_held_out(self._choosing(search.grid)):
            residuals = None
        return FittedCells(
            search.cells,
            models,
            residuals,
            search.rows,
            search.grid,
            search.trials,
            search.dimension,
            self.scales,
            self.widening,
            self.training,
            backdrop,
            linear,
            tuple(self.steps),
            self._plans(),
        )

    # -- what cells learn, and in which metric -------------------------------------------

    def _settle(self, given: Training, rng: np.random.Generator) -> None:
        """Whether a linear part lies under the cells, and the scales of their metric."""
        self._given = given.targets
        part = self._linear_part(given, rng)
        if part is None or self.options.linear_part != ALWAYS:
            self.scales, self.widening = self._learned("scales", given.targets)
        if part is None:
            return
        left = self._left_by(part, given.targets)
        scales, widening = self._learned("scales-left", left)
        if self.options.linear_part != ALWAYS and self.scales is not None and scales is not None:
            tasks = Task(given.targets, self.scales), Task(left, scales)
            if not self.run.step("linear-pays", lambda: self._lowers_errors(given, *tasks, rng)):
                return
        self.linear, self.targets = part, left
        self.scales, self.widening = scales, widening

    def _linear_part(self, given: Training, rng: np.random.Generator) -> LinearPart | None:
        """The linear model of all rows; None if there shall be none, or it hardly helps cells."""
        n, d = self.data.X.shape
        if not looks_for_linear_part(self.model, self.options, int(n), int(d)):
            return None

        def make() -> LinearPart | None:
            part = fit_linear_part(given)
            if part is None or self.options.linear_part == ALWAYS:
                return part
            spreads = spreads_of(given.X)
            left = Task(self._left_by(part, given.targets), spreads)
            if not explains_enough(given.targets, left.targets):
                return None
            gains = self._lowers_errors(given, Task(given.targets, spreads), left, rng)
            return part if gains else None

        found: LinearPart | None = self._noted(
            "fitting a linear part", self._plans().linear(), lambda: self.run.step("linear", make)
        )
        return found

    def _left_by(self, part: LinearPart, targets: Any) -> Any:
        """What the linear part leaves of the targets; of those in files, when it is read."""
        left = LeftToCells(targets, self.data.X, part)
        return left if self.in_files else left[:]

    def _lowers_errors(
        self, training: Training, given: Task, left: Task, rng: np.random.Generator
    ) -> bool:
        return lowers_errors(
            training, given, left, bias=self.options.bias, rng=rng, limits=self.limits
        )

    def _learned(self, name: str, targets: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Scales of the columns, if they are to be learned, and by what intervals widen then."""
        metric = metric_of(self.model)
        if metric is None or not metric.scales:
            return None, None
        rows = self._learning_rows(int(metric.rows))
        learned = self._noted(
            "learning scales",
            self._plans().scales(rows),
            lambda: self.run.step(
                name,
                lambda: learned_scales(self.model, self.data, targets, self.rng, rows),
                self.rng,
            ),
        )
        return learned[0], learned[1] if len(learned) > 1 else None

    # -- memory --------------------------------------------------------------------------

    in_files = False
    """Whether rows and models lie in files."""

    @property
    def _kept_to_budget(self) -> bool:
        """Stacks of cells on a device are as large as its memory holds; of rows in files, blocks
        are what a budget is for."""
        return self.options.device is None and not self.in_files

    @cached_property
    def _memory(self) -> CellMemory:
        model, options = self.model, self.options
        return CellMemory(
            self._problem(),
            options.overlap > 0,
            choose=not self.shared,
            held_out=not self.shared or model._needs_held_out(),
            in_files=self.in_files,
            copied=self.data.copied_bytes,
        )

    @cached_property
    def limits(self) -> CellSearch:
        """As many rows as the budget lets searches look at, and cells hold."""
        if not self._kept_to_budget:
            return CELL_SEARCH
        budget, found = self._resources.memory_bytes, self._memory
        limits = found.search(budget)
        if self.options.combiner.scales_alpha:
            limits = replace(limits, most_cell_rows=found.most_averaged_rows(budget))
        return limits

    def _require_room_for_cells(self, n_cells: int | None) -> None:
        """Before anything is done: cells of a given number are not too large, however cut."""
        limits = self.limits
        if n_cells is not None and self.n_rows > min(n_cells, self.n_rows) * limits.most_cell_rows:
            raise self._too_large(-(-self.n_rows // n_cells))

    def _too_large(self, rows: int) -> BudgetError:
        memory, most = self._memory, max(1, int(min(self.limits.most_cell_rows, self.n_rows)))
        repeats = 2 if self.options.overlap > 0 else 1
        averaged = self.options.combiner.scales_alpha
        needed = memory.averaged_cell(rows) if averaged else memory.cell(rows)
        needed += self._resources.memory_bytes - memory.room(self._resources.memory_bytes)
        return BudgetError(
            f"n_partitions={self.model.n_partitions!r} makes cells of {rows:,} rows, which need "
            f"{in_bytes(needed)}, and memory_budget is {in_bytes(self._resources.memory_bytes)}: "
            f"raise memory_budget, use n_partitions={-(-repeats * self.n_rows // most)} or more "
            'or n_partitions="auto"'
        )

    def _learning_rows(self, most: int) -> int:
        n, d = self.data.X.shape
        if not self._kept_to_budget:
            return most
        room = self._memory.room(self._resources.memory_bytes) + WORK_BYTES
        return learning_rows_within(room, most, int(n), int(d))

    def _require_room(self, name: str, needed: float) -> None:
        """A step of which it was not known before that it fits."""
        room = self._memory.room(self._resources.memory_bytes)
        if self._kept_to_budget and needed > room:
            held = self._resources.memory_bytes - room
            raise BudgetError(
                f"{name} needs {in_bytes(needed + held)}, and memory_budget is "
                f"{in_bytes(self._resources.memory_bytes)}: raise memory_budget, use more cells "
                "(n_partitions), or leave that step out"
            )

    def _few_enough(self, executor: Executor) -> Executor:
        """Not more workers than the budget has room for, whatever they do."""
        if not self._kept_to_budget:
            return executor
        budget = self._resources.memory_bytes
        return executor.at_most(self._memory.workers(budget, self.limits, executor.n_workers))

    def _workers_within(self, cell_rows: int, settings: FitSettings) -> Executor:
        """As many workers as the budget holds at once."""
        memory = replace(self._memory, choose=settings.choose, held_out=settings.held_out)
        room = memory.room(self._resources.memory_bytes)
        if not self._kept_to_budget:
            return self._executor
        return self._executor.at_most(max(1, int(room // memory.cell(cell_rows))))

    # -- plans ---------------------------------------------------------------------------

    def _plans(self) -> CellPlans:
        """What steps would cost, on the columns that are known to count by now."""
        return CellPlans(
            self._problem(),
            self._resources,
            self.options.executor.n_workers,
            overlap=self.options.overlap > 0,
            kernels=max(1, sum(isinstance(each, str) for each in self._kernels())),
            memory=self._memory,
            limits=self.limits,
        )

    def _kernels(self) -> list[Any]:
        kernel = self.model.kernel
        if is_automatic(kernel):
            return list(FAMILIES)
        return list(kernel) if isinstance(kernel, (list, tuple)) else [kernel]

    def _problem(self) -> Problem:
        X, kernels = self.data.X, self._kernels()
        kernel = kernels[0] if len(kernels) == 1 and isinstance(kernels[0], Kernel) else None
        manhattan = any(isinstance(each, str) and each == "laplacian" for each in kernels)
        return Problem(
            n_rows=int(X.shape[0]),
            n_columns=int(X.shape[1]),
            n_targets=int(self.targets.shape[1]),
            itemsize=int(X.itemsize),
            bias=self.options.bias,
            weighted=self.data.weights is not None,
            kernel=("manhattan" if manhattan else "euclidean")
            if kernel is None
            else kernel.evaluation,
            columns_left_out=0 if self.scales is None else int(np.isinf(self.scales).sum()),
        )

    @cached_property
    def _resources(self) -> Resources:
        """What one worker may use, asked for once: the system takes its time to say."""
        return replace(available_resources(self.model.memory_budget), threads=1)

    def _noted(self, name: str, plan: Plan, work: Callable[[], Result]) -> Result:
        """Do a step, and note what it took."""
        result, reading = metered(work)
        self.steps.append(StepRecord(name, plan, plan.method, reading.seconds, reading.peak_bytes))
        return result

    def _wants_slopes(self) -> bool:
        return isinstance(self.partitioner, Guided) and self.partitioner.slopes is None

    def _partition_name(self) -> str:
        """The way in which cells are cut; without slopes the tree is that of rows alone."""
        partition = "principal" if self._wants_slopes() else self.model.partition
        return partition if isinstance(partition, str) else type(partition).__name__

    def _run(self, search: _Search) -> tuple[LocalModels, np.ndarray | None]:
        sizes = np.diff(search.cells.offsets)
        factors = np.array(
            [cell_alpha(self.options.combiner, 1.0, int(s), self.n_rows) for s in sizes]
        )
        settings = self._fit_settings(search.grid)
        plan = self._plans().cells(
            sizes,
            choose=settings.choose,
            held_out=settings.held_out,
        )
        with progress_bar(compute_of(self.model).verbose, "fitting cells") as progress:
            return self._noted(
                "fitting cells",
                plan,
                lambda: run_cells(
                    search.rows,
                    search.cells,
                    settings,
                    factors,
                    self._workers_within(int(sizes.max()), settings),
                    progress=progress,
                    run=self.run,
                    new_array=self._new_array,
                ),
            )

    def _new_array(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Where the arrays of the model lie."""
        return in_memory(name, shape, dtype)

    def _handed_out(self, name: str, part: Training) -> CellRows:
        """Some rows as tasks get them."""
        return as_they_are(name, part)

    def _choosing(self, grid: Grid) -> bool:
        """Whether every cell chooses a pair of its own."""
        return grid.is_choice and not self.shared

    def _fit_settings(self, grid: Grid) -> FitSettings:
        choose = self._choosing(grid)
        held_out = choose or self.model._needs_held_out()
        return FitSettings(
            grid=grid,
            choose=choose,
            bias=self.options.bias,
            held_out=held_out,
            clip=bool(cells_of(self.model).clip) and not self.options.combiner.scales_alpha,
            fallback=self._fallback(),
            device=self.options.device,
            memory_bytes=self.options.memory_bytes,
            limits=self.limits,
        )

    def _fallback(self) -> np.ndarray:
        """What a cell without rows predicts: the weighted mean with a bias, else zero."""
        targets = self.training.targets
        if not self.options.bias:
            return np.zeros(targets.shape[1], dtype=targets.dtype)
        return _mean(targets, self.training.weights)

    def _grid(self, rows: np.ndarray, n_rows: int) -> Grid:
        return grid_asked(self.model, self.data, rows, n_rows)

    # -- cells in space ------------------------------------------------------------------

    def _in_space(self) -> _Search:
        trials: tuple[CellTrial, ...] = ()
        m, grid = self.options.n_cells, None
        self._guide(round(self.n_rows / CELL_SEARCH.smallest_tried) if m is None else m)
        if m is None:
            _, pair = families_asked(self.model, int(self.data.X.shape[1]))
            found = self._noted(
                "choosing how many cells",
                self._plans().count(choose=pair and not self.shared, pair=pair),
                lambda: self.run.step("count", self._count, self.rng),
            )
            count = _unpacked_count(found)
            m, trials, grid = count.n_cells, count.trials, count.grid
            if count.cells is not None:
                return _Search(count.cells, self.training, grid, trials, fitted=count.fitted)
        cells, by_cell = self._cut_within(min(m, self.n_rows))
        if grid is None:
            rows = rows_of(cells, number_of(cells) // 2)
            grid = self._grid(rows, len(rows))
        return _Search(cells, by_cell, self._with_pair(cells, by_cell, grid), trials)

    def _cut_within(self, m: int) -> tuple[Cells, CellRows]:
        """Cells that the budget holds: more of them than were chosen, if some are too large."""
        most = self.limits.most_cell_rows
        for attempt in range(_MOST_CUTS):
            cells, by_cell = self._noted(
                "cutting cells",
                self._plans().cut(self._partition_name(), m),
                partial(self._cut, m, attempt),
            )
            largest = int(np.diff(cells.offsets).max())
            if largest <= most:
                self._require_room_to_refine(cells)
                return cells, by_cell
            if self.options.n_cells is not None or self.in_files:
                break
            m = min(self.n_rows, max(m + 1, math.ceil(1.1 * m * largest / most)))
        raise self._too_large(largest)

    def _require_room_to_refine(self, cells: Cells) -> None:
        if self.options.refine is not None:
            own = np.diff(cells.offsets) * (self.n_rows / len(cells.rows))
            self._require_room("refining", self._memory.refining(own, 0.0))

    def _guide(self, most: int) -> None:
        """Tell the partitioner about slopes, if it wants to know and there is anything to cut."""
        if not self._wants_slopes() or min(most, self.n_rows) <= 1:
            return
        slopes = self._noted(
            "finding slopes",
            self._plans().slopes(),
            lambda: self.run.step("slopes", self._slopes, self.rng),
        )
        if slopes:
            self.partitioner = cast(Guided, self.partitioner).guided_by(Slopes(*slopes))

    def _slopes(self) -> list[Any]:
        """As values that a file can hold; empty if they are unknown."""
        found = sample_slopes(self.model, self.data, self.targets, self.rng, self.limits)
        return [] if found is None else [found.directions, found.squares, found.trust]

    def _count(self) -> dict[str, Any]:
        """How many cells, tried on a few regions."""
        near = _nearest(self.data.X, int(self.rng.integers(self.n_rows)), SAMPLE_ROWS)
        grid = self._grid(near, len(near))
        count = choose_count(
            self.training,
            self.partitioner,
            self.options.overlap,
            grid,
            self._executor,
            loss=self.options.tolerance,
            rng=self.rng,
            settings=self._fit_settings(grid),
            hand_out=self._handed_out,
            key_of=self.run.key,
        )
        return _packed_count(count)

    def _cut(self, m: int, attempt: int) -> tuple[Cells, CellRows]:
        """Cut the rows into m cells."""
        cells = self.run.step(
            "cells" if attempt == 0 else f"cells-{attempt}",
            lambda: self.partitioner.fit(self.data.X, m, self.options.overlap, self.rng),
            self.rng,
        )
        return cells, self.training

    def _with_pair(self, cells: Cells, rows: CellRows, grid: Grid) -> Grid:
        """The grid, to be searched from one pair that is good for all cells."""

        def choose() -> Grid:
            options = self.options
            return choose_pair(
                rows,
                cells,
                grid,
                self._executor,
                bias=options.bias,
                device=options.device,
                key_of=self.run.key,
                limits=self.limits,
            )

        if not grid.is_choice:
            return grid
        plan = self._plans().pair(float(np.median(np.diff(cells.offsets))))
        found: Grid = self._noted(
            "choosing a pair for all cells", plan, lambda: self.run.step("start", choose)
        )
        return found

    # -- behind the cells ----------------------------------------------------------------

    def _wants_backdrop(self, search: _Search) -> bool:
        """Where overlapping cells choose width and ridge, and there is more than one."""
        grid, options = search.grid, self.options
        return (
            options.coarse_model
            and options.combiner.overlaps
            and options.bias
            and self._choosing(grid)
            and grid.ordered
            and self.model.alpha is None
            and number_of(search.cells) > 1
        )

    def _backdrop(
        self, search: _Search, models: LocalModels, residuals: np.ndarray
    ) -> Backdrop | None:
        """A coarse model of all rows, if it lowers the leave-one-out error of the cells."""

        def make() -> Backdrop | None:
            some = spaced(self.n_rows, SAMPLE_ROWS)
            part = replace(self.data, X=np.ascontiguousarray(self.data.X[some]), weights=None)
            family = search.grid.kernels[search.grid.start]
            try:
                coarse = fit_backdrop(self.training, coarse_kernels(family, part), self.rng)
            except NumericalError:  # the cells can do without
                return None
            clip = bool(cells_of(self.model).clip)
            off, counts = held_out_errors(self.training, search.cells, models, residuals, clip=clip)
            return with_share(coarse, self.training, off, counts)

        found: Backdrop | None = self._noted(
            "fitting a coarse model of all rows",
            self._plans().backdrop(),
            lambda: self.run.step("backdrop", make, self.rng),
        )
        return found

    # -- averages ------------------------------------------------------------------------

    def _search_average(self) -> _Search:
        n = self.n_rows
        most = self.limits.most_cell_rows
        m = first_number(self.options, n, most)

        def choose() -> dict[str, Any]:
            return choose_average(
                self.training,
                self.options,
                lambda rows: self._grid(rows, n),
                self.rng,
                most_rows=most,
                executor=self._executor.at_most(self._averaging_workers(n // m)),
            )

        plan = self._plans().average(self._partition_name(), np.full(m, n // m))
        found = self._noted(
            "cutting cells and choosing a pair for their mean",
            plan,
            lambda: self.run.step("average", choose, self.rng),
        )
        return _Search(
            found["cells"], self.training, found["grid"], found["trials"], found["dimension"]
        )

    def _averaging_workers(self, cell_rows: int) -> int:
        room = self._memory.room(self._resources.memory_bytes)
        return max(1, int(room // self._memory.averaged_cell(cell_rows)))


def _mean(targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The weighted mean, block by block: the same for rows in memory and on disk."""
    total, count = np.zeros(targets.shape[1]), 0.0
    for some in row_blocks(targets.shape[0], 8.0 * targets.shape[1], float(1 << 24)):
        part = np.asarray(targets[some], dtype=np.float64)
        if weights is None:
            total, count = total + part.sum(axis=0), count + len(part)
        else:
            total, count = total + weights[some] @ part, count + float(weights[some].sum())
    return np.asarray(total / count, dtype=targets.dtype)


def _packed_count(count: Count) -> dict[str, Any]:
    """A count as values that a file can hold."""
    fitted = count.fitted
    return {
        "n_cells": count.n_cells,
        "trials": count.trials,
        "grid": count.grid,
        "cells": count.cells,
        "fitted": None if fitted is None else (fitted.cells, fitted.models, fitted.residuals),
    }


def _unpacked_count(found: dict[str, Any]) -> Count:
    fitted = None if found["fitted"] is None else Fitted(*found["fitted"])
    return Count(found["n_cells"], found["trials"], found["grid"], found["cells"], fitted)


def _nearest(X: np.ndarray, row: int, count: int) -> np.ndarray:
    """The rows nearest to one of them, from a sample if there are many."""
    n = X.shape[0]
    most = min(200_000, max(2000, _NEAREST_NUMBERS // X.shape[1]))
    some = np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))
    count = max(min(n, 8), min(len(some), count * len(some) // n))
    squares = np.sum((np.asarray(X[some], dtype=np.float64) - X[row]) ** 2, axis=1)
    return np.asarray(np.sort(some[np.argsort(squares, kind="stable")[:count]]))

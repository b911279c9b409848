"""A fit in cells while it is under way: the data, and what the steps have made of them.

Steps are kept in the run directory, if there is one, with the state of the random numbers
after them: a fit that was interrupted goes on as if it had not been.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from sklearn.utils import check_random_state

from ridgefold.cells.average_choice import choose_average, first_number
from ridgefold.cells.cell_fit_steps import cell_steps
from ridgefold.cells.cell_grid import SAMPLE_ROWS, coarse_kernels, grid_asked
from ridgefold.cells.cell_metric import learned_scales, sample_slopes
from ridgefold.cells.cell_request import CellProblem, CellRequest
from ridgefold.cells.cell_rows import RowsByCell, RowsToFit, number_of, rows_of, spaced
from ridgefold.cells.checked_arguments import CellArguments
from ridgefold.cells.coarse_model import fit_coarse_model, with_share
from ridgefold.cells.combine import cell_alpha
from ridgefold.cells.computed_rows import scaled_rows
from ridgefold.cells.cut import Guided
from ridgefold.cells.held_out_errors import held_out_errors
from ridgefold.cells.linear_part import (
    Task,
    explains_enough,
    fit_linear_part,
    left_to_cells,
    lowers_errors,
    spreads_of,
    with_limits,
)
from ridgefold.cells.local_fit import FitSettings
from ridgefold.cells.merged_rows import MergedRows
from ridgefold.cells.partition_count import (
    CountChoice,
    TriedCells,
    as_they_are,
    choose_count,
)
from ridgefold.cells.run_cells import in_memory, run_cells
from ridgefold.cells.shared_pair import choose_pair
from ridgefold.errors import BudgetError, NumericalError
from ridgefold.executors import Executor, Serial
from ridgefold.kernels import Kernel
from ridgefold.linalg.blocks import row_blocks
from ridgefold.options import cells_of, compute_of
from ridgefold.options.cell_options import ALWAYS
from ridgefold.planning import available_resources
from ridgefold.planning.amounts import in_bytes
from ridgefold.records import (
    Backdrop,
    Cells,
    CellSearch,
    CellTrial,
    Grid,
    LinearPart,
    LocalModels,
    Problem,
    Resources,
    Slopes,
    StepRecord,
)
from ridgefold.runtime import Work, perform_all
from ridgefold.runtime.progress import progress_bar
from ridgefold.runtime.run_request import SEEDS
from ridgefold.runtime.training_data import TrainingData, as_ridgefold_errors, require_comparable
from ridgefold.selection.learned_grid import is_automatic
from ridgefold.storage.run_directory import Run

_FIRST_LOOK, _SECOND_LOOK = 1, 2
"""Random numbers of two looks at a linear part, beside those of the fit."""
_MOST_CUTS = 6
"""How often rows are cut anew, into more cells, where some are larger than memory holds."""


@dataclass(frozen=True)
class FittedCells:
    """The cells and their models as a fit leaves them, and how it came to them."""

    cells: Cells
    models: LocalModels
    residuals: np.ndarray | None
    """Leave-one-out residuals, aligned with ``cells.rows``."""
    rows: RowsByCell
    """The rows by cell."""
    grid: Grid
    trials: tuple[CellTrial, ...]
    dimension: float | None
    length_scales: np.ndarray | None
    widening: np.ndarray | None
    """A factor for the errors of intervals, one a target, because scales were learned from the same
    rows; None if no scales were learned."""
    training: RowsToFit
    """All rows, in the metric of the cells."""
    coarse_model: Backdrop | None
    """A coarse model of all rows that is mixed in."""
    linear: LinearPart | None
    """A linear model of all rows under the cells, which are fitted to what it leaves."""
    steps: tuple[StepRecord, ...]
    """What was done, with predicted and measured cost."""
    request: CellRequest
    known: CellProblem
    """Shapes after the last step, from which refining is planned."""


@dataclass(frozen=True)
class _Search:
    """What is known before the cells are fitted."""

    cells: Cells
    rows: RowsByCell
    grid: Grid
    trials: tuple[CellTrial, ...]
    dimension: float | None = None


class CellFitting(Work):
    """One fit: the data, and what its steps have made of them so far."""

    in_files = False
    """Whether rows and models lie in files."""
    seconds_read = 0.0
    """Seconds in which rows were read from files, and looked at, before the first step."""

    def __init__(
        self,
        model: Any,
        data: TrainingData,
        targets: np.ndarray,
        options: CellArguments,
        run: Run,
        *,
        members: MergedRows | None = None,
    ) -> None:
        """`members` are the given rows behind merged ones, if scores leave out each by itself."""
        self.model, self.options, self.run = model, options, run
        self._fixed = options.fixed
        if not self.in_files:
            require_comparable(targets, data.weights)
        with as_ridgefold_errors("random_state must be None, a whole number or a RandomState"):
            state = check_random_state(model.random_state)
        seed = run.step("seed", lambda: int(state.randint(SEEDS)))
        self.rng = np.random.default_rng(seed)
        self._seed = seed
        # Rows in memory are not sent to workers that see nothing but files.
        self._executor: Executor = Serial() if options.executor.remote else options.executor
        self.scales: np.ndarray | None = None
        self.widening: np.ndarray | None = None
        self.partitioner = options.partitioner
        self.data, self.targets, self._members = data, targets, members
        self.linear: LinearPart | None = None
        self._candidate: LinearPart | None = None
        self._given = data.X, targets
        self.n_rows = int(data.X.shape[0])
        # Asked for once: the system takes its time to say.
        self.allowed = replace(available_resources(model.memory_budget), threads=1)
        self.request = CellRequest(
            model,
            options,
            self._problem(),
            self.allowed,
            in_files=self.in_files,
            copied=data.copied_bytes,
            workers=options.executor.workers_now()
            if options.executor.remote and self.in_files
            else None,
        )
        self._require_room_for_cells(options.n_cells)
        self._executor = self._few_enough(self._executor)
        self._take_training(data.X)
        self._search: _Search | None = None
        self._grid_tried: Grid | None = None
        self._trials: tuple[CellTrial, ...] = ()
        self._fitted: tuple[LocalModels, np.ndarray | None] | None = None
        self._coarse: Backdrop | None = None

    def fit(self) -> FittedCells:
        known, records = perform_all(cell_steps(self.request), self.request.shape(), self)
        search = self._search
        assert search is not None
        assert self._fitted is not None
        models, residuals = self._fitted
        linear = self.linear
        if linear is not None and cells_of(self.model).clip:
            linear = with_limits(linear, self._given[1], residuals)
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
            self._coarse,
            linear,
            records,
            self.request,
            known,
        )

    def resources(self) -> Resources:
        return self.request.resources

    def look_at_rows(self) -> None:
        """Refuse targets and weights that cannot be compared."""
        require_comparable(self.targets, self.data.weights)

    def _take_training(self, X: Any) -> None:
        self.data = replace(self.data, X=X)
        self.training = RowsToFit(
            X,
            self.targets,
            self.data.weights,
            weighted_scores=self.model._weighs_scores(),
            members=self._members,
        )

    # -- what cells learn, and in which metric -------------------------------------------

    def fit_linear(self) -> bool:
        """A linear part under the cells, if it helps; whether that waits for learned scales."""
        always = self.options.linear_part == ALWAYS

        def make() -> LinearPart | None:
            part = fit_linear_part(self.training)
            return part if always or part is None or self._lowers_in_spreads(part) else None

        part: LinearPart | None = self.run.step("linear", make)
        if part is not None and (always or self.request.learning is None):
            self._take_linear(part)
            return False
        self._candidate = part
        return part is not None

    def _lowers_in_spreads(self, part: LinearPart) -> bool:
        X, targets = self._given
        left = self._left_by(part)
        if not explains_enough(targets, left):
            return False
        spreads = spreads_of(X)
        return self._lowers_errors(Task(targets, spreads), Task(left, spreads), _FIRST_LOOK)

    def _lowers_errors(self, given: Task, left: Task, look: int) -> bool:
        # Random numbers of its own: cells without a linear part are as if there were none.
        rng = np.random.default_rng([self._seed, look])
        training = replace(self.training, X=self._given[0], targets=given.targets)
        return lowers_errors(
            training, given, left, bias=self.options.bias, rng=rng, limits=self.limits
        )

    def _left_by(self, part: LinearPart) -> Any:
        """What the linear part leaves of the targets; of those in files, when it is read."""
        X, targets = self._given
        left = left_to_cells(targets, X, part)
        return left if self.in_files else left[:]

    def _take_linear(self, part: LinearPart) -> None:
        self.linear, self.targets = part, self._left_by(part)
        self._take_training(self.data.X)

    def learn_scales(self, max_rows: int) -> int:
        """Learn one scale a column, and go on in that metric; of how many columns it is."""
        scales, widening = self._learned("scales", self.targets, max_rows)
        return self._take_scales(scales, widening)

    def weigh_linear(self, max_rows: int) -> int:
        """Learn scales of what a linear part leaves, and take both if cells gain by them."""
        part, given, X = self._candidate, self.scales, self._given[0]
        assert part is not None
        assert given is not None
        left = self._left_by(part)
        scales, widening = self._learned("scales-left", left, max_rows)
        tasks = Task(self.targets, given), Task(left, scales)
        if self.run.step("linear-pays", lambda: self._lowers_errors(*tasks, _SECOND_LOOK)):
            self.data = replace(self.data, X=X)
            self._take_linear(part)
            self._take_scales(scales, widening)
        return int(self.data.X.shape[1])

    def _learned(
        self, name: str, targets: Any, max_rows: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Scales of the columns, and by what intervals widen with them."""
        data = replace(self.data, X=self._given[0])
        learned = self.run.step(
            name,
            lambda: learned_scales(
                self.model, data, targets, self.rng, max_rows, fixed=self._fixed
            ),
            self.rng,
        )
        return learned[0], learned[1] if len(learned) > 1 else None

    def _take_scales(self, scales: np.ndarray, widening: np.ndarray | None) -> int:
        self.scales, self.widening = scales, widening
        kept = np.flatnonzero(np.isfinite(scales))
        places = tuple(np.searchsorted(kept, self._fixed).tolist()) if self._fixed else ()
        self.options = replace(self.options, fixed=places)
        # Cells are cut, and distances measured, in the learned metric.
        self._take_training(scaled_rows(self.data.X, scales))
        return int(self.data.X.shape[1])

    # -- memory --------------------------------------------------------------------------

    @property
    def limits(self) -> CellSearch:
        """The numbers of rows that searches may look at, and cells may hold, within the budget."""
        return self.request.limits(self.allowed)

    def _require_room_for_cells(self, n_cells: int | None) -> None:
        """Refuse a given number of cells at the start, if some cell would be too large however rows
        are cut."""
        limits = self.limits
        if n_cells is not None and self.n_rows > min(n_cells, self.n_rows) * limits.most_cell_rows:
            raise self._too_large(-(-self.n_rows // n_cells))

    def _too_large(self, rows: int) -> BudgetError:
        memory, budget = self.request.memory, self.allowed.memory_bytes
        most = max(1, int(min(self.limits.most_cell_rows, self.n_rows)))
        repeats = 2 if self.options.overlap > 0 else 1
        averaged = self.options.combiner.scales_alpha
        needed = memory.averaged_cell(rows) if averaged else memory.cell(rows)
        needed += budget - memory.room(budget)
        return BudgetError(
            f"n_partitions={self.model.n_partitions!r} makes cells of {rows:,} rows, which need "
            f"{in_bytes(needed)}, and memory_budget is {in_bytes(budget)}: "
            f"raise memory_budget, use n_partitions={-(-repeats * self.n_rows // most)} or more "
            'or n_partitions="auto"'
        )

    def _require_room(self, name: str, needed: float) -> None:
        """Refuse a step that needs more than the budget, where that was not known at the start."""
        budget = self.allowed.memory_bytes
        room = self.request.memory.room(budget)
        if self.request.kept_to_budget and needed > room:
            raise BudgetError(
                f"{name} needs {in_bytes(needed + budget - room)}, and memory_budget is "
                f"{in_bytes(budget)}: raise memory_budget, use more cells "
                "(n_partitions), or leave that step out"
            )

    def _few_enough(self, executor: Executor) -> Executor:
        """Not more workers than the budget has room for, whatever they do."""
        if not self.request.kept_to_budget:
            return executor
        budget = self.allowed.memory_bytes
        most = self.request.memory.workers(budget, self.limits, executor.n_workers)
        return executor.at_most(most)

    def _workers_within(self, cell_rows: int, settings: FitSettings) -> Executor:
        """The executor with as many workers as the budget holds at once."""
        if not self.request.kept_to_budget:
            return self._executor
        memory = replace(self.request.memory, choose=settings.choose, held_out=settings.held_out)
        room = memory.room(self.allowed.memory_bytes)
        return self._executor.at_most(max(1, int(room // memory.cell(cell_rows))))

    def _problem(self) -> Problem:
        """The shapes of the data."""
        X, kernels = self.data.X, self.model.kernel
        kernels = list(kernels) if isinstance(kernels, (list, tuple)) else [kernels]
        kernel = kernels[0] if len(kernels) == 1 and isinstance(kernels[0], Kernel) else None
        manhattan = any(
            isinstance(each, str) and (each == "laplacian" or is_automatic(each))
            for each in kernels
        )
        return Problem(
            n_rows=int(X.shape[0]),
            n_columns=int(X.shape[1]),
            n_targets=int(self.targets.shape[1]),
            itemsize=int(X.itemsize),
            bias=self.options.bias,
            fixed=len(self.options.fixed),
            weighted=self.data.weights is not None,
            kernel=("manhattan" if manhattan else "euclidean")
            if kernel is None
            else kernel.evaluation,
        )

    # -- cells in space ------------------------------------------------------------------

    def find_slopes(self) -> None:
        """Tell the partitioner in which directions targets change, if that can be known."""
        slopes = self.run.step("slopes", self._slopes, self.rng)
        if slopes:
            self.partitioner = cast(Guided, self.partitioner).guided_by(Slopes(*slopes))

    def _slopes(self) -> list[Any]:
        """The slopes as values that a file can hold; an empty list if they are unknown."""
        slopes = sample_slopes(self.model, self.data, self.targets, self.rng, self.limits)
        return [] if slopes is None else [slopes.directions, slopes.squares]

    def choose_count(self, known: CellProblem) -> CellProblem:
        """How many cells; where all rows were tried, the cells themselves."""
        count = _unpacked_count(self.run.step("count", self._count, self.rng))
        self._trials, self._grid_tried = count.trials, count.grid
        known = replace(known, n_cells=min(count.n_cells, self.n_rows))
        if count.cells is None:
            return known
        self._search = _Search(count.cells, self.training, count.grid, count.trials)
        if count.fitted is not None:
            self._fitted = count.fitted.models, count.fitted.residuals
        return replace(
            self._cut_known(known),
            pair_open=False,
            ordered=count.grid.ordered,
            fitted=count.fitted is not None,
        )

    def _cut_known(self, known: CellProblem) -> CellProblem:
        """The same with the cells that there now are."""
        assert self._search is not None
        sizes = np.diff(self._search.cells.offsets)
        return replace(known, n_cells=len(sizes), sizes=sizes)

    def cut_cells(self, known: CellProblem) -> CellProblem:
        """Cells that the budget holds: more of them than were chosen, if some are too large."""
        assert known.n_cells is not None
        m, most = min(known.n_cells, self.n_rows), self.limits.most_cell_rows
        for attempt in range(_MOST_CUTS):
            cells, by_cell = self._cut(m, attempt)
            largest = int(np.diff(cells.offsets).max())
            if largest <= most:
                break
            if self.options.n_cells is not None or self.in_files or attempt == _MOST_CUTS - 1:
                raise self._too_large(largest)
            m = min(self.n_rows, max(m + 1, math.ceil(1.1 * m * largest / most)))
        self._require_room_to_refine(cells)
        grid = self._grid_tried
        if grid is None:
            rows = rows_of(cells, number_of(cells) // 2)
            grid = self._grid(rows, len(rows))
        self._search = _Search(cells, by_cell, grid, self._trials)
        return replace(self._cut_known(known), pair_open=grid.is_choice, ordered=grid.ordered)

    def _require_room_to_refine(self, cells: Cells) -> None:
        if self.options.refine is not None:
            own = np.diff(cells.offsets) * (self.n_rows / len(cells.rows))
            self._require_room("refining", self.request.memory.refining(own, 0.0))

    def _count(self) -> dict[str, Any]:
        """How many cells, tried on a few regions."""
        some = spaced(self.n_rows, SAMPLE_ROWS)
        grid = self._grid(some, len(some))
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

    def _cut(self, m: int, attempt: int) -> tuple[Cells, RowsByCell]:
        """Cut the rows into m cells."""
        cells = self.run.step(
            "cells" if attempt == 0 else f"cells-{attempt}",
            lambda: self.partitioner.fit(self.data.X, m, self.options.overlap, self.rng),
            self.rng,
        )
        return cells, self.training

    def choose_pair(self) -> None:
        """Begin the search of every cell from one pair that is good for all."""
        search = self._search
        assert search is not None

        def choose() -> Grid:
            return choose_pair(
                search.rows,
                search.cells,
                search.grid,
                self._executor,
                bias=self.options.bias,
                fixed=self.options.fixed,
                device=self.options.device,
                key_of=self.run.key,
                limits=self.limits,
            )

        self._search = replace(search, grid=self.run.step("start", choose))

    # -- every cell ----------------------------------------------------------------------

    def fit_cells(self) -> None:
        """A model of every cell."""
        search = self._search
        assert search is not None
        sizes = np.diff(search.cells.offsets)
        factors = np.array(
            [cell_alpha(self.options.combiner, 1.0, int(s), self.n_rows) for s in sizes]
        )
        settings = self._fit_settings(search.grid)
        with progress_bar(compute_of(self.model).verbose, "fitting cells") as progress:
            self._fitted = run_cells(
                search.rows,
                search.cells,
                settings,
                factors,
                self._workers_within(int(sizes.max()), settings),
                progress=progress,
                run=self.run,
                new_array=self._new_array,
            )

    def _new_array(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Where the arrays of the model lie."""
        return in_memory(name, shape, dtype)

    def _handed_out(self, name: str, part: RowsToFit) -> RowsByCell:
        """Some rows as tasks get them."""
        return as_they_are(name, part)

    def _choosing(self, grid: Grid) -> bool:
        """Whether every cell chooses a pair of its own."""
        return grid.is_choice and not self.request.shared

    def _fit_settings(self, grid: Grid) -> FitSettings:
        choose = self._choosing(grid)
        held_out = choose or self.model._needs_held_out()
        return FitSettings(
            grid=grid,
            choose=choose,
            bias=self.options.bias,
            fixed=self.options.fixed,
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

    def fit_coarse(self) -> None:
        """A coarse model of all rows, if it lowers the leave-one-out error of the cells."""
        search = self._search
        assert search is not None
        assert self._fitted is not None
        models, residuals = self._fitted
        assert residuals is not None

        def make() -> Backdrop | None:
            spread = spaced(self.n_rows, SAMPLE_ROWS)
            sample = replace(self.data, X=np.ascontiguousarray(self.data.X[spread]), weights=None)
            family = search.grid.kernels[search.grid.start]
            try:
                coarse = fit_coarse_model(self.training, coarse_kernels(family, sample), self.rng)
            except NumericalError:  # the cells can do without
                return None
            clip = bool(cells_of(self.model).clip)
            off, counts = held_out_errors(self.training, search.cells, models, residuals, clip=clip)
            return with_share(coarse, self.training, off, counts)

        self._coarse = self.run.step("backdrop", make, self.rng)

    # -- averages ------------------------------------------------------------------------

    def choose_average(self, known: CellProblem) -> CellProblem:
        """Cells at random, and a pair for the mean of their models."""
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

        chosen = self.run.step("average", choose, self.rng)
        self._search = _Search(
            chosen["cells"], self.training, chosen["grid"], chosen["trials"], chosen["dimension"]
        )
        return replace(self._cut_known(known), pair_open=False)

    def _averaging_workers(self, cell_rows: int) -> int:
        memory = self.request.memory
        room = memory.room(self.allowed.memory_bytes)
        return max(1, int(room // memory.averaged_cell(cell_rows)))


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


def _packed_count(count: CountChoice) -> dict[str, Any]:
    """A count as values that a file can hold."""
    fitted = count.fitted
    return {
        "n_cells": count.n_cells,
        "trials": count.trials,
        "grid": count.grid,
        "cells": count.cells,
        "fitted": None if fitted is None else (fitted.cells, fitted.models, fitted.residuals),
    }


def _unpacked_count(packed: dict[str, Any]) -> CountChoice:
    fitted = None if packed["fitted"] is None else TriedCells(*packed["fitted"])
    return CountChoice(packed["n_cells"], packed["trials"], packed["grid"], packed["cells"], fitted)

"""Fit one model a cell, and predict with all of them; cells run wherever the executor says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ridgefold.combiners import Assignment
from ridgefold.crossval import Progress, no_progress
from ridgefold.engine.local_fit import CellData, CellFit, CellSystem
from ridgefold.engine.local_search import (
    LARGEST_SEARCHED,
    Choice,
    Grid,
    search_cell,
    search_shared,
    starting_at,
)
from ridgefold.errors import NumericalError
from ridgefold.executors import Executor
from ridgefold.kernels import KernelGram
from ridgefold.linalg.blocks import CACHE_BYTES, row_blocks
from ridgefold.records import Cells, LocalModels

_ROWS_A_BATCH = 4096
"""Cells are handed out in batches of about so many rows: the same for any number of workers."""
_BLOCK_BYTES = 16 * CACHE_BYTES


@dataclass(frozen=True)
class Training:
    """All rows; X may be memory-mapped and is only read cell by cell."""

    X: np.ndarray
    targets: np.ndarray
    """Shape (n, t)."""
    weights: np.ndarray | None
    weighted_scores: bool = False
    """True if rows count in scores by their weights."""

    def cell(self, rows: np.ndarray, shares: np.ndarray | None) -> CellData:
        weights = None if self.weights is None else self.weights[rows]
        if self.weighted_scores and weights is not None and np.any(weights > 0):
            shares = weights if shares is None else shares * weights
        return CellData(np.ascontiguousarray(self.X[rows]), self.targets[rows], weights, shares)


@dataclass(frozen=True)
class FitSettings:
    """How every cell is fitted."""

    grid: Grid
    choose: bool
    """True if every cell chooses its own pair; else all take the grid's start."""
    bias: bool
    held_out: bool
    """True if leave-one-out residuals are wanted."""
    clip: bool
    """True if a cell shall predict nothing beyond the range of its own targets."""
    fallback: np.ndarray
    """The constant that a cell without any row of positive weight predicts, shape (t,)."""


@dataclass(frozen=True)
class _Batch:
    training: Training
    settings: FitSettings
    cells: tuple[tuple[np.ndarray, np.ndarray | None, float], ...]
    """Rows, shares and the factor on the ridge, for every cell."""


def rows_of(cells: Cells, cell: int) -> np.ndarray:
    return cells.rows[cells.offsets[cell] : cells.offsets[cell + 1]]


def shares_of(cells: Cells, cell: int) -> np.ndarray | None:
    if cells.weights is None:
        return None
    return cells.weights[cells.offsets[cell] : cells.offsets[cell + 1]]


def number_of(cells: Cells) -> int:
    return len(cells.offsets) - 1


def _fit_batch(batch: _Batch) -> list[CellFit]:
    return [_fit_cell(batch, *cell) for cell in batch.cells]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _fit_cell(batch: _Batch, rows: np.ndarray, shares: np.ndarray | None, factor: float) -> CellFit:
    settings, grid = batch.settings, batch.settings.grid
    data = batch.training.cell(rows, shares)
    kernels = grid.kernels if settings.choose else (grid.kernels[grid.start],)
    system = CellSystem(data, kernels, bias=settings.bias)
    if system.n_rows == 0:
        residuals = data.targets - settings.fallback[None, :] if settings.held_out else None
        dual = np.zeros(data.targets.shape, dtype=data.targets.dtype)
        alpha = float(grid.alphas[grid.start_alpha]) * factor
        return CellFit(dual, settings.fallback, grid.start, alpha, residuals)
    if not settings.choose:
        fit = system.fit(
            0, float(grid.alphas[grid.start_alpha]) * factor, held_out=settings.held_out
        )
        return CellFit(fit.dual_coef, fit.intercept, grid.start, fit.alpha, fit.residuals)
    choice = search_cell(system, grid)
    return system.fit(choice.kernel, float(grid.alphas[choice.alpha]), held_out=settings.held_out)


def _batches(sizes: Sequence[int]) -> Iterator[slice]:
    """Runs of cells of about `_ROWS_A_BATCH` rows together."""
    start, held = 0, 0
    for cell, size in enumerate(sizes):
        held += size
        if held >= _ROWS_A_BATCH:
            yield slice(start, cell + 1)
            start, held = cell + 1, 0
    if start < len(sizes):
        yield slice(start, len(sizes))


def run_cells(
    training: Training,
    cells: Cells,
    settings: FitSettings,
    alpha_factors: np.ndarray,
    executor: Executor,
    *,
    progress: Progress = no_progress,
) -> tuple[LocalModels, np.ndarray | None]:
    """Fit all cells; returns the models, and leave-one-out residuals if they were wanted.

    Residuals are aligned with ``cells.rows``.
    """
    m, t = number_of(cells), training.targets.shape[1]
    sizes = np.diff(cells.offsets)
    batches = list(_batches(sizes.tolist()))
    items = [
        _Batch(
            training,
            settings,
            tuple(
                (rows_of(cells, c), shares_of(cells, c), float(alpha_factors[c]))
                for c in range(some.start, some.stop)
            ),
        )
        for some in batches
    ]
    dtype = training.targets.dtype
    dual = np.empty((len(cells.rows), t), dtype=dtype)
    intercept = np.empty((m, t), dtype=dtype)
    alpha, kernel_of_cell = np.empty(m), np.empty(m, dtype=np.intp)
    residuals = np.empty((len(cells.rows), t), dtype=dtype) if settings.held_out else None
    lowest = np.empty((m, t), dtype=dtype) if settings.clip else None
    highest = np.empty((m, t), dtype=dtype) if settings.clip else None
    cell = 0
    for done, fits in enumerate(executor.map(_fit_batch, items)):
        for fit in fits:
            some = slice(cells.offsets[cell], cells.offsets[cell + 1])
            dual[some], intercept[cell] = fit.dual_coef, fit.intercept
            alpha[cell], kernel_of_cell[cell] = fit.alpha, fit.kernel
            if residuals is not None:
                residuals[some] = fit.residuals
            if lowest is not None and highest is not None:
                lowest[cell], highest[cell] = _range(training, cells.rows[some], settings)
            cell += 1
        progress((done + 1) / len(items))
    used, kernel_of_cell = np.unique(kernel_of_cell, return_inverse=True)
    kernels = tuple(settings.grid.kernels[k] for k in used)
    models = LocalModels(dual, intercept, alpha, kernels, kernel_of_cell, lowest, highest)
    return models, residuals


def _range(
    training: Training, rows: np.ndarray, settings: FitSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest targets of a cell's rows of positive weight."""
    targets = training.targets[rows]
    if training.weights is not None:
        targets = targets[training.weights[rows] > 0]
    if len(targets) == 0:
        return settings.fallback, settings.fallback
    return targets.min(axis=0), targets.max(axis=0)


@dataclass(frozen=True)
class _Pilot:
    training: Training
    grid: Grid
    bias: bool
    near: bool
    cells: tuple[tuple[np.ndarray, np.ndarray | None], ...]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _search_pilot(pilot: _Pilot) -> Choice:
    systems = [
        CellSystem(pilot.training.cell(rows, shares), pilot.grid.kernels, bias=pilot.bias)
        for rows, shares in pilot.cells
    ]
    return search_shared(systems, pilot.grid, near=pilot.near)


PILOTS = 4
"""Cells on which a shared pair is chosen."""
_PILOT_ROWS = 640
"""Rows of each of them, evenly spaced, that are searched by eigendecompositions."""
_NEAR_PILOTS = 2


def choose_pair(
    training: Training, cells: Cells, grid: Grid, executor: Executor, *, bias: bool
) -> Choice:
    """One pair for all cells, by the leave-one-out error pooled over some of them.

    First on some rows of each of a few cells, by eigendecompositions; then, where cells are
    larger than that, from there on whole cells, by inverses.
    """
    if not grid.is_choice:
        return Choice(grid.start, grid.start_alpha, float("nan"))
    m = number_of(cells)
    pilots = np.unique(np.linspace(0, m - 1, min(m, PILOTS)).astype(np.intp)).tolist()
    parts = []
    for cell in pilots:
        rows, shares = rows_of(cells, cell), shares_of(cells, cell)
        few = min(len(rows), _PILOT_ROWS)
        some = np.linspace(0, len(rows) - 1, few).astype(np.intp)
        parts.append((rows[some], None if shares is None else shares[some]))
    pilot = _Pilot(training, grid, bias, False, tuple(parts))
    choice = next(iter(executor.map(_search_pilot, [pilot])))
    sizes = np.diff(cells.offsets)
    whole = [c for c in pilots if 1.25 * _PILOT_ROWS < sizes[c] <= LARGEST_SEARCHED]
    if whole and grid.ordered:
        ends = whole if len(whole) <= _NEAR_PILOTS else [whole[0], whole[-1]]
        pairs = tuple((rows_of(cells, c), shares_of(cells, c)) for c in ends)
        pilot = _Pilot(training, starting_at(grid, choice), bias, True, pairs)
        choice = next(iter(executor.map(_search_pilot, [pilot])))
    return choice


def combined_residuals(cells: Cells, residuals: np.ndarray, n_rows: int) -> np.ndarray:
    """Leave-one-out residuals of the combined model: Σ_c share_ic · r_ic, since shares sum to 1."""
    shares = np.ones(len(cells.rows)) if cells.weights is None else cells.weights
    out = np.empty((n_rows, residuals.shape[1]), dtype=residuals.dtype)
    for j in range(residuals.shape[1]):
        out[:, j] = np.bincount(cells.rows, weights=shares * residuals[:, j], minlength=n_rows)
    return out


@dataclass(frozen=True)
class _Predictions:
    X: np.ndarray
    """The training rows of all cells."""
    new: np.ndarray
    models: LocalModels
    cells: Cells
    numbers: tuple[int, ...]
    """Which cells."""
    rows: tuple[np.ndarray | slice, ...]
    """The new rows that each of them predicts."""
    weights: tuple[np.ndarray | float, ...]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _predict_batch(task: _Predictions) -> list[np.ndarray]:
    """Weighted predictions of some cells."""
    out = []
    for cell, rows, weights in zip(task.numbers, task.rows, task.weights, strict=True):
        some = slice(task.cells.offsets[cell], task.cells.offsets[cell + 1])
        kernel = task.models.kernels[task.models.kernel_of_cell[cell]]
        gram = KernelGram(kernel, np.ascontiguousarray(task.X[task.cells.rows[some]]))
        new = np.asarray(task.new[rows])
        dual = task.models.dual_coef[some]
        values = np.empty((len(new), dual.shape[1]), dtype=dual.dtype)
        per_row = gram.itemsize * (gram.shape[1] + 3 * new.shape[1])
        for part in row_blocks(len(new), per_row, _BLOCK_BYTES):
            values[part] = gram.against(new[part]).block() @ dual
        values += task.models.intercept[cell][None, :]
        if task.models.lowest is not None and task.models.highest is not None:
            np.clip(values, task.models.lowest[cell], task.models.highest[cell], out=values)
        out.append(values * (weights[:, None] if isinstance(weights, np.ndarray) else weights))
    return out


def predict_cells(
    X: np.ndarray,
    cells: Cells,
    models: LocalModels,
    assignment: Assignment,
    *,
    new: np.ndarray,
    executor: Executor,
) -> np.ndarray:
    """The combined prediction of every new row, shape (rows, t)."""
    out = np.zeros((new.shape[0], models.intercept.shape[1]), dtype=models.dual_coef.dtype)
    sizes = np.diff(cells.offsets)
    pairs = [assignment.of_cell(c) for c in range(assignment.n_cells)]
    busy = [c for c, (rows, _) in enumerate(pairs) if isinstance(rows, slice) or len(rows)]
    tasks = []
    for some in _batches([int(sizes[c]) for c in busy]):
        numbers = tuple(busy[some])
        tasks.append(
            _Predictions(
                X,
                new,
                models,
                cells,
                numbers,
                tuple(pairs[c][0] for c in numbers),
                tuple(pairs[c][1] for c in numbers),
            )
        )
    for task, results in zip(tasks, executor.map(_predict_batch, tasks), strict=True):
        for rows, values in zip(task.rows, results, strict=True):
            out[rows] += values
    if not np.all(np.isfinite(out)):
        raise NumericalError(
            "some predictions are NaN or infinite: the kernel's values overflow, or are not "
            "defined, at rows of X far from those of the fit; scale the columns of X"
        )
    return out

"""Fit one model a cell; cells run wherever the executor says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgefold.cells.cell_rows import Batch, RowsByCell, RowsToFit, batches_of, number_of
from ridgefold.cells.local_fit import CellFit, CellSystem, FitSettings
from ridgefold.cells.local_search import search_cell
from ridgefold.cells.stacked_fit import cell_on, fit_together, here
from ridgefold.crossval import Progress, no_progress
from ridgefold.executors import Executor
from ridgefold.executors.base import KeyOf
from ridgefold.records import Cells, FittedBatch, LocalModels
from ridgefold.runtime import resumable_map
from ridgefold.selection.limits import limits_of
from ridgefold.storage.mapped import mapping_of, release
from ridgefold.storage.run_directory import NoRunDirectory, Run

_RELEASED_BYTES = 1 << 25
"""Pages of files are let go whenever about so many bytes were written."""


@dataclass(frozen=True)
class _Task:
    """Some cells to fit."""

    batch: Batch
    settings: FitSettings
    factors: tuple[float, ...]
    """On the ridge, for every cell."""


def _fit_batch(task: _Task) -> FittedBatch:
    settings, fits, ranges = task.settings, [], []
    for data, fit in _one_by_one(task) if settings.device is None else _together(task):
        fits.append(fit)
        ranges.append(_range(data, settings))
    residuals = [fit.residuals for fit in fits if fit.residuals is not None]
    return FittedBatch(
        dual_coef=np.concatenate([fit.dual_coef for fit in fits]),
        intercept=np.stack([fit.intercept for fit in fits]),
        alpha=np.array([fit.alpha for fit in fits]),
        kernel=np.array([fit.kernel for fit in fits], dtype=np.int64),
        residuals=np.concatenate(residuals) if residuals else None,
        fixed_coef=None
        if not settings.fixed
        else np.stack([np.asarray(fit.fixed_coef) for fit in fits]),
        lowest=np.stack([lowest for lowest, _ in ranges]),
        highest=np.stack([highest for _, highest in ranges]),
    )


def _one_by_one(task: _Task) -> Iterator[tuple[RowsToFit, CellFit]]:
    for position, factor in enumerate(task.factors):
        data = task.batch.data(position)
        yield data, _fit_cell(task.settings, data, factor)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _together(task: _Task) -> Iterator[tuple[RowsToFit, CellFit]]:
    """On a device: stacked where that can be done, else one after the other there."""
    settings = task.settings
    cells = [task.batch.data(position) for position in range(len(task.factors))]
    fits = fit_together(cells, settings, np.asarray(task.factors))
    for data, factor, fit in zip(cells, task.factors, fits, strict=True):
        yield data, _alone(settings, data, factor) if fit is None else fit


def _alone(settings: FitSettings, data: RowsToFit, factor: float) -> CellFit:
    """One cell on the settings' device."""
    counted = len(data.X) if data.weights is None else int(np.sum(data.weights > 0))
    if counted == 0 or settings.device is None:
        return _fit_cell(settings, data, factor)
    return here(_fit_cell(settings, cell_on(data, settings.device), factor))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _fit_cell(settings: FitSettings, data: RowsToFit, factor: float) -> CellFit:
    grid = settings.grid
    kernels = grid.kernels if settings.choose else (grid.kernels[grid.start],)
    system = CellSystem(data, kernels, bias=settings.bias, fixed=settings.fixed)
    if system.n_rows == 0:
        residuals = data.targets - settings.fallback[None, :] if settings.held_out else None
        dual = np.zeros(data.targets.shape, dtype=data.targets.dtype)
        alpha = float(grid.alphas[grid.start_alpha]) * factor
        fixed = np.zeros((len(settings.fixed), dual.shape[1]), dtype=dual.dtype)
        return CellFit(dual, settings.fallback, grid.start, alpha, residuals, fixed)
    if not settings.choose:
        alpha = float(grid.alphas[grid.start_alpha]) * factor
        fit = system.fit(0, alpha, held_out=settings.held_out, quickly=settings.trial)
        return replace(fit, kernel=grid.start)
    choice = search_cell(system, grid)
    return system.fit(choice.kernel, float(grid.alphas[choice.alpha]), held_out=settings.held_out)


def _range(data: RowsToFit, settings: FitSettings) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest targets of a cell's rows of positive weight."""
    targets = data.targets if data.weights is None else data.targets[data.weights > 0]
    if len(targets) == 0:
        return settings.fallback, settings.fallback
    return targets.min(axis=0), targets.max(axis=0)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def errors_of_cells(residuals: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Root mean squares of the residuals of cells, one after the other; not finite of none."""
    sums = np.zeros((len(sizes), residuals.shape[1]))
    np.add.at(sums, np.repeat(np.arange(len(sizes)), sizes), np.square(residuals, dtype=np.float64))
    return np.asarray(np.sqrt(sums / sizes[:, None]))


NewArray = Callable[[str, tuple[int, ...], Any], np.ndarray]
"""Makes the arrays of a model, by name, shape and type: in memory, or in files."""


def in_memory(name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.empty(shape, dtype=dtype)


def run_cells(
    training: RowsByCell,
    cells: Cells,
    settings: FitSettings,
    alpha_factors: np.ndarray,
    executor: Executor,
    *,
    progress: Progress = no_progress,
    run: Run | None = None,
    key_of: KeyOf | None = None,
    new_array: NewArray = in_memory,
) -> tuple[LocalModels, np.ndarray | None]:
    """Fit all cells; returns the models, and leave-one-out residuals if they were wanted.

    They are aligned with ``cells.rows``. With a `run`, what it holds already is not fitted again;
    `key_of` is for tasks that are part of another one.
    """
    m, t, entries = number_of(cells), training.n_targets, int(cells.offsets[-1])
    sizes = np.diff(cells.offsets)
    batches = batches_of(sizes.tolist(), stacked=settings.device is not None)
    tasks = [
        _Task(
            training.batch(cells, range(batch.start, batch.stop)),
            settings,
            tuple(alpha_factors[batch].tolist()),
        )
        for batch in batches
    ]
    dual = new_array("dual_coef", (entries, t), training.dtype)
    residuals = new_array("residuals", (entries, t), training.dtype) if settings.held_out else None
    intercept, lowest, highest = (np.empty((m, t), dtype=training.dtype) for _ in range(3))
    alpha, kernel_of_cell = np.empty(m), np.empty(m, dtype=np.intp)
    fixed = None
    if settings.fixed:
        fixed = np.empty((m, len(settings.fixed), t), dtype=training.dtype)
    errors = np.full((m, t), np.inf)
    written = 0
    names = [f"cells/{number:07d}" for number in range(len(tasks))]
    run = NoRunDirectory() if run is None else run
    results = resumable_map(executor, _fit_batch, tasks, names, run, key_of=key_of)
    for done, fitted in enumerate(results):
        batch = batches[done]
        rows = slice(int(cells.offsets[batch.start]), int(cells.offsets[batch.stop]))
        dual[rows], intercept[batch] = fitted.dual_coef, fitted.intercept
        alpha[batch], kernel_of_cell[batch] = fitted.alpha, fitted.kernel
        lowest[batch], highest[batch] = fitted.lowest, fitted.highest
        if fixed is not None:
            assert fitted.fixed_coef is not None
            fixed[batch] = fitted.fixed_coef
        if residuals is not None:
            assert fitted.residuals is not None
            residuals[rows] = fitted.residuals
            if settings.choose:  # else there are residuals only if intervals ask for them
                errors[batch] = errors_of_cells(fitted.residuals, sizes[batch])
        written += fitted.dual_coef.nbytes
        if written > _RELEASED_BYTES:
            for array in (dual, residuals):
                release(array)
            written = 0
        progress((done + 1) / len(tasks))
    used, kernel_of_cell = np.unique(kernel_of_cell, return_inverse=True)
    kernels = tuple(settings.grid.kernels[k] for k in used)
    limits = limits_of(lowest, highest, errors) if settings.clip else (None, None)
    models = LocalModels(
        dual,
        intercept,
        alpha,
        kernels,
        kernel_of_cell,
        lowest=limits[0],
        highest=limits[1],
        fixed=settings.fixed,
        fixed_coef=fixed,
    )
    return models, residuals


_RESIDUALS_AT_ONCE = 8192
"""Residuals that are added up together where they lie in files."""


def combined_residuals(
    cells: Cells, residuals: np.ndarray, n_rows: int, new_array: NewArray = in_memory
) -> np.ndarray:
    """Leave-one-out residuals of the combined model: Σ_c share_ic · r_ic, since shares sum to 1."""
    out = new_array("held_out", (n_rows, residuals.shape[1]), residuals.dtype)
    mapped = mapping_of(out) is not None
    step = _RESIDUALS_AT_ONCE if mapped else max(1, len(cells.rows))
    out[:] = 0.0
    for start in range(0, len(cells.rows), step):
        entries = slice(start, start + step)
        values = residuals[entries]
        if cells.weights is not None:
            values = cells.weights[entries, None] * values
        np.add.at(out, cells.rows[entries], values)
        for array in (out, residuals, cells.rows, cells.weights):
            release(array)
    return out

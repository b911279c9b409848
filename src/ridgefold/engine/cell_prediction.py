"""Predict with the models of all cells; cells run wherever the executor says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ridgefold.combiners import Assignment
from ridgefold.engine.cell_rows import batches_of, rows_of
from ridgefold.errors import NumericalError
from ridgefold.executors import Executor
from ridgefold.kernels import KernelGram
from ridgefold.linalg.blocks import CACHE_BYTES, row_blocks
from ridgefold.records import Cells, LocalModels
from ridgefold.storage.mapped import release

_BLOCK_BYTES = 16 * CACHE_BYTES


class CellsOfRows(Protocol):
    """Training rows, by cell."""

    def rows_of_cells(self, numbers: tuple[int, ...]) -> Iterator[np.ndarray]:
        """X of some cells, in ascending order, one after the other."""


@dataclass(frozen=True)
class IndexedRows:
    """Training rows in one array, taken by their numbers."""

    X: np.ndarray
    cells: Cells

    def rows_of_cells(self, numbers: tuple[int, ...]) -> Iterator[np.ndarray]:
        for cell in numbers:
            yield np.ascontiguousarray(self.X[rows_of(self.cells, cell)])


@dataclass(frozen=True)
class _Predictions:
    training: CellsOfRows
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
    training = task.training.rows_of_cells(task.numbers)
    for cell, X, rows, weights in zip(task.numbers, training, task.rows, task.weights, strict=True):
        some = slice(task.cells.offsets[cell], task.cells.offsets[cell + 1])
        kernel = task.models.kernels[task.models.kernel_of_cell[cell]]
        gram = KernelGram(kernel, X)
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
    training: CellsOfRows,
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
    for some in batches_of([int(sizes[c]) for c in busy]):
        numbers = tuple(busy[some])
        tasks.append(
            _Predictions(
                training,
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
        release(models.dual_coef)
    if not np.all(np.isfinite(out)):
        raise NumericalError(
            "some predictions are NaN or infinite: the kernel's values overflow, or are not "
            "defined, at rows of X far from those of the fit; scale the columns of X"
        )
    return out

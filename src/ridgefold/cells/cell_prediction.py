"""Predict with the models of all cells; cells run wherever the executor says."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.cells.cell_rows import RowsByCell, batches_of
from ridgefold.cells.combine import Assignment
from ridgefold.cells.stacked_prediction import StackedCell, predict_together
from ridgefold.errors import NumericalError
from ridgefold.executors import Executor
from ridgefold.kernels import Kernel, KernelGram
from ridgefold.linalg.blocks import CACHE_BYTES, row_blocks
from ridgefold.records import Cells, LocalModels
from ridgefold.storage.mapped import release

_BLOCK_BYTES = 16 * CACHE_BYTES
_MOST_BATCHES = 128
"""Cells take a third of a millisecond each; it takes as long to hand out a batch as to predict with
twenty of them."""


@dataclass(frozen=True)
class CellModel:
    """What one cell predicts with, beside its rows and their coefficients."""

    kernel: Kernel
    intercept: np.ndarray
    lowest: np.ndarray | None
    highest: np.ndarray | None
    fixed: tuple[int, ...] = ()
    """Numbers of the columns that are not penalised."""
    fixed_coef: np.ndarray | None = None
    """Their coefficients, shape (n_fixed, n_targets)."""

    @classmethod
    def of(cls, models: LocalModels, cell: int) -> CellModel:
        return cls(
            models.kernels[models.kernel_of_cell[cell]],
            models.intercept[cell],
            None if models.lowest is None else models.lowest[cell],
            None if models.highest is None else models.highest[cell],
            models.fixed,
            None if models.fixed_coef is None else models.fixed_coef[cell],
        )

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def predict(
        self,
        X: np.ndarray,
        dual: np.ndarray,
        new: np.ndarray,
        weights: np.ndarray | float,
        block_bytes: float = _BLOCK_BYTES,
    ) -> np.ndarray:
        """Weighted predictions of the new rows that this cell predicts."""
        gram, new = KernelGram(self.kernel, X), np.ascontiguousarray(new)
        values = np.empty((len(new), dual.shape[1]), dtype=dual.dtype)
        per_row = gram.itemsize * (gram.shape[1] + 3 * new.shape[1])
        for part in row_blocks(len(new), per_row, block_bytes):
            values[part] = gram.against(new[part]).block() @ dual
        values += self.intercept[None, :]
        if self.fixed_coef is not None:
            values += new[:, list(self.fixed)] @ self.fixed_coef
        if self.lowest is not None and self.highest is not None:
            np.clip(values, self.lowest, self.highest, out=values)
        return np.asarray(
            values * (weights[:, None] if isinstance(weights, np.ndarray) else weights)
        )


@dataclass(frozen=True)
class _Predictions:
    """Some cells, and the new rows that they predict."""

    training: Iterable[np.ndarray]
    """X of every cell."""
    models: tuple[CellModel, ...]
    dual_coef: tuple[np.ndarray, ...]
    new: np.ndarray
    rows: tuple[np.ndarray | slice, ...]
    """The new rows that each of them predicts."""
    weights: tuple[np.ndarray | float, ...]
    device: str | None = None
    """Where it is computed, many cells at once; None for the processor."""
    memory_bytes: float = math.inf
    """What may be taken there by one task."""

    def __reduce__(self) -> tuple[Any, ...]:
        """What is sent to another process: of the new rows, those of these cells."""
        new, rows = self.new, self.rows
        taken = [each for each in rows if not isinstance(each, slice)]
        if len(taken) == len(rows):
            ends = np.cumsum([0, *(len(each) for each in taken)]).tolist()
            new = new[np.concatenate(taken)]
            rows = tuple(slice(start, stop) for start, stop in itertools.pairwise(ends))
        return _Predictions, (
            self.training,
            self.models,
            self.dual_coef,
            new,
            rows,
            self.weights,
            self.device,
            self.memory_bytes,
        )


def _predict_batch(task: _Predictions) -> list[np.ndarray]:
    """Weighted predictions of some cells."""
    if task.device is not None and not any(model.fixed for model in task.models):
        return _predict_together(task, task.device)
    block = min(_BLOCK_BYTES, task.memory_bytes / 2)
    return [
        model.predict(X, dual, task.new[rows], weights, block)
        for X, model, dual, rows, weights in zip(
            task.training, task.models, task.dual_coef, task.rows, task.weights, strict=True
        )
    ]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _predict_together(task: _Predictions, device: str) -> list[np.ndarray]:
    """The same on a device, many cells at once."""
    cells = [
        StackedCell(
            X=X,
            dual_coef=dual,
            intercept=model.intercept,
            kernel=model.kernel,
            lowest=model.lowest,
            highest=model.highest,
            new=np.asarray(task.new[rows]),
        )
        for X, model, dual, rows in zip(
            task.training, task.models, task.dual_coef, task.rows, strict=True
        )
    ]
    values = predict_together(cells, device, task.memory_bytes)
    return [
        each * (weights[:, None] if isinstance(weights, np.ndarray) else weights)
        for each, weights in zip(values, task.weights, strict=True)
    ]


def predict_cells(
    training: RowsByCell,
    cells: Cells,
    models: LocalModels,
    assignment: Assignment,
    *,
    new: np.ndarray,
    executor: Executor,
    device: str | None = None,
    memory_bytes: float = math.inf,
) -> np.ndarray:
    """The combined prediction of every new row, shape (rows, t)."""
    out = np.zeros((new.shape[0], models.intercept.shape[1]), dtype=models.dual_coef.dtype)
    tasks, at = [], cells.offsets
    for numbers in busy_batches(cells, assignment, stacked=device is not None):
        rows, weights = zip(*(assignment.of_cell(c) for c in numbers), strict=True)
        tasks.append(
            _Predictions(
                training.batch(cells, numbers),
                tuple(CellModel.of(models, c) for c in numbers),
                tuple(models.dual_coef[at[c] : at[c + 1]] for c in numbers),
                new,
                rows,
                weights,
                device,
                memory_bytes,
            )
        )
    for task, results in zip(tasks, executor.map(_predict_batch, tasks), strict=True):
        for some, values in zip(task.rows, results, strict=True):
            out[some] += values
        release(models.dual_coef)
    require_finite(out)
    return out


def busy_batches(
    cells: Cells, assignment: Assignment, *, stacked: bool = False
) -> list[tuple[int, ...]]:
    """The cells that have rows to predict, in batches of about as many training rows.

    Where every cell predicts every row, each is work enough, and batches stay small: a batch
    holds what all of its cells predict.
    """
    busy, most = np.arange(assignment.n_cells), None
    if assignment.membership is not None:
        busy, most = np.flatnonzero(np.diff(assignment.offsets)), _MOST_BATCHES
    sizes = np.diff(cells.offsets)[busy].tolist()
    runs = batches_of(sizes, stacked=stacked, most_batches=most)
    return [tuple(busy[some].tolist()) for some in runs]


def require_finite(out: np.ndarray) -> None:
    """Raise a typed error if a prediction is not a finite number."""
    if not np.all(np.isfinite(out)):
        raise NumericalError(
            "some predictions are NaN or infinite: the kernel's values overflow, or are not "
            "defined, at rows of X far from those of the fit; scale the columns of X"
        )

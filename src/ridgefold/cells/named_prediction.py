"""Predict elsewhere: a task names its cells, their rows and the new rows by the files they are in.

A task is some cells. It reads their training rows and coefficients and the new rows that they
predict, and writes what they predict to a file of its own; nothing of it is sent. Every cell
computes what it would compute here, and sums are taken here in the order of the cells, so that
predictions are the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ridgefold.cells.cell_prediction import (
    CellModel,
    busy_batches,
    require_finite,
)
from ridgefold.cells.cell_rows import RowsByCell
from ridgefold.cells.cell_store import StoredRows
from ridgefold.cells.combine import Assignment
from ridgefold.executors import Executor
from ridgefold.records import Cells, LocalModels
from ridgefold.storage.named_arrays import NamedArray, named
from ridgefold.storage.run_directory import Piece, RunDirectory

WORTH_SENDING = 1e8
"""Kernel values (about a second of work) below which workers would gain nothing."""


def kernel_values(cells: Cells, assignment: Assignment) -> float:
    """How many kernel values a prediction takes."""
    sizes = np.diff(cells.offsets).astype(np.float64)
    if assignment.membership is None:
        return float(sizes.sum()) * assignment.n_rows
    return float(sizes @ np.diff(assignment.offsets))


@dataclass(frozen=True)
class _Named:
    """Rows of cells in a file, each taken by its number, which another file has."""

    X: NamedArray
    numbers: NamedArray
    spans: np.ndarray
    """Where the numbers of each cell stand, shape (cells, 2)."""

    def __iter__(self) -> Iterator[np.ndarray]:
        X = self.X.rows()
        for start, stop in self.spans.tolist():
            yield X[self.numbers.part(start, stop)]


@dataclass(frozen=True)
class _Assigned:
    """The new rows that every cell predicts, and with what weights, one cell after the other."""

    rows: NamedArray
    weights: NamedArray


@dataclass(frozen=True)
class _Task:
    training: Iterable[np.ndarray]
    """X of every cell."""
    dual: NamedArray
    new: NamedArray
    assigned: _Assigned | float
    """The share of every cell, where all of them predict all rows."""
    numbers: tuple[int, ...]
    """Which cells."""
    models: tuple[CellModel, ...]
    spans: np.ndarray
    """Where the entries of each cell stand among those of all cells, shape (cells, 2)."""
    places: np.ndarray
    """Where the new rows of each cell stand among the assigned ones, shape (cells, 2)."""
    piece: Piece


def _predict(task: _Task) -> str:
    """Write the predictions of some cells; returns the SHA-256 of the file."""
    return task.piece.made(lambda: np.concatenate(list(_predictions(task))))


def _predictions(task: _Task) -> Iterator[np.ndarray]:
    new = task.new.rows()
    for model, X, span, place in zip(
        task.models, task.training, task.spans.tolist(), task.places.tolist(), strict=True
    ):
        dual = task.dual.part(*span)
        if isinstance(task.assigned, _Assigned):
            rows, weights = task.assigned.rows.part(*place), task.assigned.weights.part(*place)
            yield model.predict(X, dual, new[rows], weights)
        else:
            yield model.predict(X, dual, new[:], task.assigned)


def predict_elsewhere(
    training: RowsByCell,
    X: np.ndarray,
    cells: Cells,
    models: LocalModels,
    assignment: Assignment,
    *,
    new: np.ndarray,
    executor: Executor,
    run: RunDirectory,
) -> np.ndarray:
    """The combined prediction of every new row, shape (rows, t).

    `training` gives the training rows by cell where they are stored so; else they are taken
    from X.
    """
    folder = run.path / "data"
    folder.mkdir(exist_ok=True)
    stored = isinstance(training, StoredRows)
    if not stored:
        rows = named(np.ascontiguousarray(X), folder, "X")
        row_numbers = named(np.asarray(cells.rows), folder, "rows")
    dual = named(np.ascontiguousarray(models.dual_coef), folder, "dual_coef")
    inputs = named(np.ascontiguousarray(new), folder, "new")
    assigned: _Assigned | float = 1.0 / assignment.n_cells
    if assignment.membership is not None:
        assigned = _Assigned(
            named(assignment.membership.rows, folder, "assigned"),
            named(assignment.membership.weights, folder, "shares"),
        )
    tasks = []
    for number, cell_numbers in enumerate(busy_batches(cells, assignment)):
        some = np.asarray(cell_numbers)
        spans = np.stack([cells.offsets[some], cells.offsets[some + 1]], axis=1)
        places = np.zeros_like(spans)
        if assignment.membership is not None:
            places = np.stack([assignment.offsets[some], assignment.offsets[some + 1]], axis=1)
        tasks.append(
            _Task(
                training.batch(cells, cell_numbers) if stored else _Named(rows, row_numbers, spans),
                dual,
                inputs,
                assigned,
                cell_numbers,
                tuple(CellModel.of(models, cell) for cell in cell_numbers),
                spans,
                places,
                run.piece(f"predictions/{number:07d}"),
            )
        )
    out = np.zeros((new.shape[0], models.intercept.shape[1]), dtype=models.dual_coef.dtype)
    keys = [run.key(task.piece.name) for task in tasks]
    for task, _ in zip(tasks, executor.map(_predict, tasks, keys), strict=True):
        values, start = task.piece.read(), 0
        for cell in task.numbers:
            taken, _ = assignment.of_cell(cell)
            count = new.shape[0] if isinstance(taken, slice) else len(taken)
            out[taken] += values[start : start + count]
            start += count
        task.piece.path.unlink()
    require_finite(out)
    return out

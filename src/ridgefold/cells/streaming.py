"""Partitioned fits and predictions from rows that do not fit in memory."""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ridgefold.cells.cell_request import CellProblem
from ridgefold.cells.cell_rows import RowsByCell, RowsToFit, batches_of, spaced
from ridgefold.cells.cell_run_directory import asked_of
from ridgefold.cells.cell_store import Placing, StoredRows, place_rows
from ridgefold.cells.checked_arguments import CellArguments
from ridgefold.cells.computed_rows import scaled_rows
from ridgefold.cells.cut import learning_rows
from ridgefold.cells.fitting import CellFitting, FittedCells
from ridgefold.cells.linear_part import left_to_cells
from ridgefold.errors import InvalidInputError, RepeatedRowsWarning
from ridgefold.linalg import namespace_of
from ridgefold.linalg.blocks import row_blocks
from ridgefold.notices import warn
from ridgefold.options import compute_of
from ridgefold.planning import available_resources
from ridgefold.planning.cell_memory import WORK_BYTES
from ridgefold.records import Cells
from ridgefold.runtime.progress import progress_bar
from ridgefold.runtime.run_request import folder_of
from ridgefold.runtime.training_data import TrainingData, require_usable_weights
from ridgefold.storage.mapped import MappedRows, new_array, release
from ridgefold.storage.named_arrays import named
from ridgefold.storage.row_source import RowSource
from ridgefold.storage.run_directory import RunDirectory, asked_before
from ridgefold.tables.sources import (
    ArraySource,
    ParquetSource,
    SomeRows,
    open_source,
    to_file,
)

_SHARE_IN_MEMORY = 0.25
"""Rows that take a smaller share of the memory budget are fitted in memory."""
_SHARE_OF_A_BLOCK = 0.125
"""A block of rows to be placed takes this share of the memory budget; its order and its pieces
take as much again."""
_PREDICTED_SHARE = 1 / 6
"""Rows that are predicted together take this share of the memory budget."""
_CELLS_LOOKED_AT = 4
"""Cells in which repeated rows are counted: copies lie in the same cells, so a few tell."""
_NUMBERS_BYTES = float(1 << 24)
"""So many bytes of row numbers are translated at once."""
_MANY_REPEATS = 0.01
"""The share of rows that repeat others from which on it is worth a warning."""


@dataclass(frozen=True)
class Stream:
    """Rows, targets and weights, as they were given."""

    X: RowSource
    y: Any
    weights: Any
    given: Any
    """X itself."""

    def loaded(self) -> tuple[Any, Any, Any]:
        """All of it in memory; a mapped array stays mapped."""
        in_place = isinstance(self.X, MappedRows) and isinstance(self.given, np.ndarray)
        X = self.given if in_place else self.X.read()
        return X, _read(self.y), _read(self.weights)


def _read(values: Any) -> Any:
    return values.read() if isinstance(values, RowSource) else values


def open_stream(X: Any, y: Any, sample_weight: Any) -> Stream | None:
    """Input that is read in blocks; None if it is in memory as it is."""
    source = open_source(X)
    if source is None:
        return None
    y, weights = _part(source, y, "y"), _part(source, sample_weight, "sample_weight")
    if isinstance(source, ParquetSource):
        taken = [v.names or [] for v in (y, weights) if isinstance(v, ParquetSource)]
        source = source.without(*(name for names in taken for name in names))
    if len(source.shape) != 2 or 0 in source.shape:
        raise InvalidInputError(
            f"X must have two dimensions (rows, columns), none of them empty, got shape "
            f"{source.shape}"
        )
    if isinstance(weights, (int, float, np.number)) and not isinstance(weights, bool):
        weights = np.full(source.shape[0], float(weights))
    return Stream(source, y, weights, X)


def _part(source: RowSource, values: Any, argument: str) -> Any:
    """Targets or weights: a column of the same table by its name, an array, or a source."""
    if isinstance(values, str) and isinstance(source, ParquetSource):
        return source.column(values)
    found = open_source(values, argument)
    return values if found is None else found


def as_source(values: Any, argument: str, dtype: Any) -> RowSource:
    """Numbers in memory as a source; sources are ones already."""
    if isinstance(values, RowSource):
        return values
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" or array.ndim not in (1, 2):
        raise InvalidInputError(
            f"{argument} must hold one real number (or one row of them) for each row of X, got "
            f"{array.dtype} and shape {array.shape}"
        )
    return ArraySource(array.astype(dtype, copy=False))


class Workspace:
    """The folder of a fit from disk; a temporary one goes when nobody uses it any more."""

    def __init__(self, folder: Path | None) -> None:
        self.temporary = folder is None
        self.path = Path(tempfile.mkdtemp(prefix="ridgefold-")) if folder is None else folder
        if self.temporary:
            self._remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def new_array(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        (self.path / "model").mkdir(parents=True, exist_ok=True)
        return new_array(self.path / "model" / f"{name}.npy", shape, dtype)


def begun_on_disk(model: Any) -> bool | None:
    """Whether the run directory holds a fit from disk; None if there is none."""
    folder = folder_of(model)
    kept = None if folder is None else asked_before(folder)
    return None if kept is None else kept.get("on_disk") is True


def on_disk(model: Any, stream: Stream, options: CellArguments) -> bool:
    """Whether to work from disk; what a run directory has begun, it goes on with."""
    begun = begun_on_disk(model)
    if begun is not None:
        return begun
    if options.executor.remote:
        return True
    budget = available_resources(model.memory_budget).memory_bytes
    # A budget that holds no fit in memory is kept best from disk, however few rows there are.
    return budget < 2 * WORK_BYTES or stream.X.n_bytes > _SHARE_IN_MEMORY * budget


def fit_stream(
    model: Any,
    stream: Stream,
    targets: RowSource,
    weights: RowSource | None,
    options: CellArguments,
) -> tuple[Workspace, TrainingData, FittedCells]:
    """Fit from disk; `targets` has the rows of X and one or two dimensions."""
    _require_lengths(stream.X, targets, weights)
    space = Workspace(folder_of(model))
    asked: dict[str, Any] = {"temporary": space.path.name}
    if not space.temporary:
        asked = asked_of(model, stream.X, targets, weights, on_disk=True)
    with RunDirectory(space.path, asked).opened() as run, options.executor.held():
        started = time.perf_counter()
        data = mapped_data(stream.X, targets, weights, space.path / "data")
        used = _rows_with_weight(data)
        counted = data if used is None else _taken(data, used, space.path / "data")
        fitting = _StreamFitting(model, counted, options, run, space)
        fitting.seconds_read = time.perf_counter() - started
        fitted = fitting.fit()
    if used is not None:
        fitted = _among_all(fitted, data, used, space)
    return space, data, fitted


def _rows_with_weight(data: TrainingData) -> np.ndarray | None:
    """The numbers of the rows that count; None if all do."""
    if data.weights is None:
        return None
    weights: Any = data.weights
    positive = np.asarray(weights) > 0
    release(weights.array)
    return None if positive.all() else np.flatnonzero(positive)


def _taken(data: TrainingData, rows: np.ndarray, folder: Path) -> TrainingData:
    """Some rows in files of their own: cells are cut and tuned as if there were no others."""
    parts: dict[str, Any] = {"X": data.X, "y": data.y, "weights": data.weights}
    taken: dict[str, Any] = {
        name: to_file(
            SomeRows(part, rows),
            folder / f"{name}-counted.npy",
            part.dtype,
            finite=name,
        )
        for name, part in parts.items()
    }
    return replace(data, **taken)


def _among_all(
    fitted: FittedCells, data: TrainingData, used: np.ndarray, space: Workspace
) -> FittedCells:
    """The cells with the numbers that their rows have among all."""
    cells = fitted.cells
    rows = space.new_array("rows-among-all", cells.rows.shape, np.int64)
    for some in row_blocks(len(rows), rows.itemsize, _NUMBERS_BYTES):
        rows[some] = used[cells.rows[some]]
        release(rows)
        release(cells.rows)
    X = scaled_rows(data.X, fitted.length_scales)
    targets: Any = data.y
    if fitted.linear is not None:
        targets = left_to_cells(targets, data.X, fitted.linear)
    training = replace(fitted.training, X=X, targets=targets, weights=data.weights)
    return replace(fitted, cells=replace(cells, rows=rows), training=training)


def mapped_data(
    X: RowSource, targets: RowSource, weights: RowSource | None, folder: Path
) -> TrainingData:
    """Checked rows, targets and weights in files, in one type; those in files stay there."""
    folder.mkdir(parents=True, exist_ok=True)
    dtype = X.dtype
    rows = to_file(X, folder / "X.npy", dtype, finite="X")
    y = to_file(targets, folder / "y.npy", dtype, finite="y").as_columns()
    w = None
    if weights is not None:
        w = to_file(weights, folder / "w.npy", dtype, finite="sample_weight")
        require_usable_weights(np.asarray(w))
        release(w.array)
    return TrainingData(namespace_of(), rows, y, w)


def _require_lengths(X: RowSource, targets: RowSource, weights: RowSource | None) -> None:
    if targets.n_rows != X.n_rows:
        raise InvalidInputError(
            f"y must have one entry a row: X has {X.n_rows} rows, y {targets.n_rows}"
        )
    if weights is not None and weights.shape != (X.n_rows,):
        raise InvalidInputError(
            f"sample_weight must hold one number for each of the {X.n_rows} rows, got shape "
            f"{weights.shape}"
        )


class _StreamFitting(CellFitting):
    """The same steps with rows, cells and models in files."""

    in_files = True

    def __init__(
        self,
        model: Any,
        data: TrainingData,
        options: CellArguments,
        run: RunDirectory,
        space: Workspace,
    ) -> None:
        super().__init__(model, data, data.y, options, run)
        self.directory, self._space = run, space
        self._executor = self._few_enough(options.executor)

    def _new_array(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return self._space.new_array(name, shape, dtype)

    def _handed_out(self, name: str, part: RowsToFit) -> RowsByCell:
        """Named by files of their own, which workers read at once; the rows lie scattered in
        those of all."""
        if not self._executor.remote:
            return part
        folder = self._space.path / "data"

        def rows(what: str, values: np.ndarray) -> Any:
            return named(np.ascontiguousarray(values), folder, f"{name}-{what}").rows()

        weights = None if part.weights is None else rows("w", part.weights)
        return replace(part, X=rows("X", part.X), targets=rows("y", part.targets), weights=weights)

    def _cut(self, m: int, attempt: int) -> tuple[Cells, RowsByCell]:
        options, X = self.options, self.data.X
        placing = Placing(
            X,
            self.targets,
            self.data.weights,
            options.partitioner,
            self.directory.piece("steps/router"),
            options.overlap > 0,
        )
        budget = available_resources(self.model.memory_budget).memory_bytes
        block_bytes = self.run.step("block_bytes", lambda: _SHARE_OF_A_BLOCK * budget)
        with progress_bar(compute_of(self.model).verbose, "placing rows") as progress:
            store = place_rows(
                placing,
                m,
                options.executor,
                self.directory,
                block_bytes=block_bytes,
                progress=progress,
            )
        store = replace(store, weighted_scores=self.model._weighs_scores())
        if self.model.alpha is None or self.model._needs_held_out():
            _warn_of_repeats(store)
        return self._cells(store, self._router), store

    def learn_cells(self, known: CellProblem) -> int:
        """Find out which region is whose; of how many cells."""
        assert known.n_cells is not None
        asked = min(known.n_cells, self.n_rows)
        self._router, m = self.run.step("router", lambda: self._learn(asked), self.rng)
        return int(m)

    def _learn(self, m: int) -> tuple[Any, int]:
        options, X = self.options, self.data.X
        rows = learning_rows(X.shape[0], X.shape[1], m, self.rng)
        some = np.ascontiguousarray(X[:] if rows is None else X[rows])
        return self.partitioner.learn(some, m, options.overlap, self.rng)

    def _cells(self, store: StoredRows, router: Any) -> Cells:
        """Which rows each cell has, in files."""
        offsets = store.offsets()
        rows = self._new_array("rows", (int(offsets[-1]),), np.int64)
        shares = None
        if self.options.overlap > 0 and store.n_cells > 1:
            shares = self._new_array("weights", rows.shape, np.float64)
        for some in batches_of(np.diff(offsets).tolist()):
            at = slice(int(offsets[some.start]), int(offsets[some.stop]))
            parts = store.read(some.start, some.stop, ("rows", "shares"))
            rows[at] = np.concatenate([part["rows"] for part in parts])
            if shares is not None:
                shares[at] = np.concatenate([part["shares"] for part in parts])
            release(rows)
            release(shares)
        return Cells(rows, offsets, shares, router)


def _warn_of_repeats(store: StoredRows) -> None:
    """Say so if many rows repeat others. Equal rows lie in the same cells: a few of these tell."""
    rows = distinct = 0
    for cell in np.unique(spaced(store.n_cells, _CELLS_LOOKED_AT)).tolist():
        X = store.read(cell, cell + 1, ("X",))[0]["X"]
        rows, distinct = rows + len(X), distinct + len(np.unique(X, axis=0))
    if rows - distinct > _MANY_REPEATS * rows:
        warn(
            f"of {rows:,} rows that were looked at, {rows - distinct:,} repeat others. Rows read "
            "from disk are left out one by one, and a copy that stays in gives the answer away: "
            "ridge values come out too small, and intervals too narrow. Put copies together, with "
            "their number as sample_weight, or give a memory_budget that holds the rows "
            "(they are put together then)",
            RepeatedRowsWarning,
        )


# -- prediction --------------------------------------------------------------------------


def predicted_bytes(memory_budget: Any) -> float:
    """So many bytes of rows are predicted at once: all cells are read again for every block."""
    return _PREDICTED_SHARE * available_resources(memory_budget).memory_bytes


def new_source(model: Any, X: Any) -> RowSource | None:
    """Rows to predict that are read in blocks; None if they are in memory, or few and mapped.

    Columns of a table are those of the fit, by their names, if it had any.
    """
    source = open_source(X)
    if source is None:
        return None
    if isinstance(X, (np.ndarray, MappedRows)) and source.n_bytes <= predicted_bytes(
        model.memory_budget
    ):
        return None
    if isinstance(source, ParquetSource):
        names = getattr(model, "feature_names_in_", None)
        source = ParquetSource(source.path, source.names if names is None else list(names))
    if len(source.shape) != 2 or 0 in source.shape:
        raise InvalidInputError(
            f"X must have two dimensions (rows, columns), none of them empty, got shape "
            f"{source.shape}"
        )
    return source


def larger_blocks(source: RowSource, memory_budget: Any) -> Iterator[np.ndarray]:
    """Blocks of a source put together, as large as suits the budget: every one of them is
    predicted by all cells, whose rows have to be read again."""
    most = predicted_bytes(memory_budget)
    held: list[np.ndarray] = []
    size = 0
    for block in source.blocks():
        if held and size + block.nbytes > most:
            whole = held[0] if len(held) == 1 else np.concatenate(held)
            held, size = [], 0  # let the parts go before the whole is worked on
            yield whole
            del whole
        held.append(block)
        size += block.nbytes
    yield held[0] if len(held) == 1 else np.concatenate(held)

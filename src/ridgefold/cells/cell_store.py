"""Rows on disk in the order of their cells: made in one pass over blocks, read cell by cell.

Every block of rows becomes one file: its rows sorted by cell (a row that two cells share stands
there twice), with where each cell begins. A cell's rows are then one stretch of every file, in
ascending order, and neighbouring cells are neighbouring stretches. Blocks are placed wherever
the executor says; no two tasks write to one file, and a task that is lost is run again.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ridgefold.cells.cell_rows import Batch, RowsToFit
from ridgefold.cells.cut import Partitioner
from ridgefold.crossval import Progress, no_progress
from ridgefold.errors import ModelFileError
from ridgefold.executors import Executor
from ridgefold.linalg.blocks import row_blocks
from ridgefold.records import Cells, Membership
from ridgefold.runtime import finished_pieces
from ridgefold.storage.container import Opened, open_container
from ridgefold.storage.mapped import read_array
from ridgefold.storage.run_directory import PIECE_KIND, Piece, RunDirectory

_ROWS_A_CELL_AND_BLOCK = 16
"""A block should hold so many rows of every cell: shorter stretches take longer to read."""


_READ_BYTES = 1 << 24
"""Rows that are read from a file at once: long enough for a disk, small beside any budget."""


@dataclass(frozen=True)
class Placing:
    """Rows to be placed, and the geometry that places them; all of it by path and range."""

    X: Any
    targets: Any
    weights: Any
    partitioner: Partitioner
    router: Piece
    """The file that holds the router and the number of cells."""
    overlap: bool


@dataclass(frozen=True)
class _Block:
    placing: Placing
    rows: slice


@functools.lru_cache(maxsize=2)
def _router(piece: Piece) -> tuple[Mapping[str, np.ndarray], int]:
    router, n_cells = piece.read()["value"]
    return router, n_cells


def _place(task: _Block) -> dict[str, np.ndarray]:
    """The rows of one block in the order of their cells."""
    placing, start = task.placing, task.rows.start
    router, m = _router(placing.router)
    X = placing.X[task.rows]
    n = len(X)
    if placing.overlap and m > 1:
        placed = placing.partitioner.membership(router, X)
        held = placed.weights > 0
        placed = Membership(placed.rows[held], placed.cells[held], placed.weights[held])
    else:
        placed = Membership(np.arange(n), placing.partitioner.route(router, X), np.ones(n))
    order = np.lexsort((placed.rows, placed.cells))
    rows = placed.rows[order]
    offsets = np.zeros(m + 1, dtype=np.int64)
    np.cumsum(np.bincount(placed.cells, minlength=m), out=offsets[1:])
    block = {
        "offsets": offsets,
        "rows": rows.astype(np.int64) + start,
        "targets": placing.targets[task.rows][rows],
        "X": X[rows],
    }
    if placing.overlap and m > 1:
        block["shares"] = placed.weights[order]
    if placing.weights is not None:
        block["weights"] = placing.weights[task.rows][rows]
    return block


def place_rows(
    placing: Placing,
    n_cells: int,
    executor: Executor,
    run: RunDirectory,
    *,
    block_bytes: float,
    progress: Progress = no_progress,
) -> StoredRows:
    """Put all rows into cells on disk; blocks that are there already stay."""
    n, width = placing.X.shape[0], placing.X.shape[1] * placing.X.itemsize
    wanted = _ROWS_A_CELL_AND_BLOCK * n_cells * width
    slices = list(row_blocks(n, width, min(block_bytes, max(float(1 << 25), wanted))))
    names = [f"rows/{number:07d}" for number in range(len(slices))]
    blocks = [_Block(placing, rows) for rows in slices]
    for done, _ in enumerate(finished_pieces(executor, _place, blocks, names, run)):
        progress((done + 1) / len(blocks))
    return StoredRows(run.path / "rows", len(slices), n_cells)


def _opened(path: Path) -> Opened:
    """What a file holds, and where; read once, unless there is another file of that name now."""
    status = path.stat()
    return _opened_once(path, (status.st_ino, status.st_mtime_ns, status.st_size))


@functools.lru_cache(maxsize=4096)
def _opened_once(path: Path, version: tuple[int, int, int]) -> Opened:
    return open_container(path, kind=PIECE_KIND)


def _stretch(descriptor: int, opened: Opened, name: str, start: int, stop: int) -> np.ndarray:
    """Some entries of an array in a file."""
    entry = opened.entries[f"value/{name}"]
    width = entry.dtype.itemsize * int(np.prod(entry.shape[1:]))
    place = opened.data_start + entry.start + start * width
    out = read_array(descriptor, place, (stop - start, *entry.shape[1:]), entry.dtype)
    if out is None:
        raise ModelFileError(f"{str(opened.path)!r} ends too early: it was cut off")
    return out


@dataclass(frozen=True)
class StoredRows:
    """Rows in the order of their cells, in the files of `folder`."""

    folder: Path
    n_blocks: int
    n_cells: int
    weighted_scores: bool = False

    def _path(self, block: int) -> Path:
        return self.folder / f"{block:07d}.piece"

    def _has(self, name: str) -> bool:
        return f"value/{name}" in _opened(self._path(0)).entries

    @property
    def n_targets(self) -> int:
        return _opened(self._path(0)).entries["value/targets"].shape[1]

    @property
    def dtype(self) -> np.dtype:
        return _opened(self._path(0)).entries["value/targets"].dtype

    @property
    def cells_at_once(self) -> int:
        """How many cells may be read together."""
        entry = _opened(self._path(0)).entries["value/X"]
        size = self.n_blocks * (entry.stop - entry.start) / self.n_cells
        return max(1, int(_READ_BYTES // max(size, 1.0)))

    def offsets(self) -> np.ndarray:
        """Where every cell begins, over all blocks; shape (n_cells + 1,)."""
        total = np.zeros(self.n_cells + 1, dtype=np.int64)
        for block in range(self.n_blocks):
            path = self._path(block)
            with path.open("rb") as file:
                total += _stretch(file.fileno(), _opened(path), "offsets", 0, self.n_cells + 1)
        return total

    def read(self, first: int, last: int, names: tuple[str, ...]) -> list[dict[str, np.ndarray]]:
        """Arrays of the cells from `first` up to (not including) `last`."""
        names = tuple(name for name in names if self._has(name))
        by_cell: list[dict[str, list[np.ndarray]]] = [
            {name: [] for name in names} for _ in range(first, last)
        ]
        for block in range(self.n_blocks):
            path = self._path(block)
            opened = _opened(path)
            with path.open("rb") as file:
                at = _stretch(file.fileno(), opened, "offsets", first, last + 1)
                for name in names:
                    stretch = _stretch(file.fileno(), opened, name, int(at[0]), int(at[-1]))
                    for arrays, piece in zip(
                        by_cell, np.split(stretch, at[1:-1] - at[0]), strict=True
                    ):
                        arrays[name].append(piece)
        return [{name: np.concatenate(arrays[name]) for name in names} for arrays in by_cell]

    def batch(self, cells: Cells, numbers: Sequence[int]) -> Batch:
        return _StoredBatch(self, tuple(numbers))


class _StoredBatch:
    """Cells by their numbers; their rows are read where they are worked on."""

    def __init__(self, store: StoredRows, numbers: tuple[int, ...]) -> None:
        self.store, self.numbers = store, numbers
        self._read: dict[int, dict[str, np.ndarray]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _StoredBatch, (self.store, self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[np.ndarray]:
        for position in range(len(self.numbers)):
            yield self._part(position, ("X",))["X"]

    def _part(self, position: int, names: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Arrays of one cell; each is read once, with its neighbours if that is not too much."""
        if position not in self._read:
            number, count = self.numbers[position], self.store.cells_at_once
            run = [k for k in range(number, number + count) if k in self.numbers[position:]]
            run = run[: next((i for i, k in enumerate(run) if k != number + i), len(run))]
            cells = self.store.read(number, number + len(run), names)
            self._read = dict(enumerate(cells, position))
        return self._read.pop(position)

    def data(self, position: int) -> RowsToFit:
        arrays = self._part(position, ("X", "targets", "weights", "shares"))
        return RowsToFit(
            arrays["X"],
            arrays["targets"],
            arrays.get("weights"),
            arrays.get("shares"),
            self.store.weighted_scores,
        )

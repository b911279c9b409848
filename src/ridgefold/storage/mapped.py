"""Arrays in files, mapped into memory, with the mapped pages let go once they were read.

A mapped page counts as memory of the process until the system takes it back, which it does
only when memory is short. Work that promises to stay within a budget lets them go itself; the
file's bytes stay in the system's cache, from which the next read has them again.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ridgefold.errors import TableError
from ridgefold.linalg.blocks import row_blocks
from ridgefold.storage.row_source import BLOCK_BYTES, RowSource

_WINDOW_BYTES = 1 << 22
"""Rows that lie within this many bytes of a file may be read together."""
_WORTH_ONE_READ = 1 << 14
"""Rows are read together if that reads at most this many bytes for each of them: reading so many
takes as long as another call."""


def mapping_of(array: Any) -> mmap.mmap | None:
    """The map that an array (or the array it is a view of) lies in; None if it is in memory."""
    while array is not None:
        if isinstance(array, mmap.mmap):
            return array
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return None


def release(array: Any) -> None:
    """Let the pages of a mapped file go; nothing is lost, and arrays in memory are untouched."""
    mapping = mapping_of(array)
    # Private pages that were written to exist nowhere else.
    if mapping is not None and hasattr(mapping, "madvise") and _is_shared(array):
        mapping.madvise(mmap.MADV_DONTNEED)


def flush(array: Any) -> None:
    """Write what was changed in a mapped file to it, so that other machines see it."""
    while array is not None and not isinstance(array, np.memmap):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    if array is not None and array.mode in ("r+", "w+"):
        array.flush()


def _is_shared(array: Any) -> bool:
    while array is not None and not isinstance(array, np.memmap):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return array is not None and array.mode in ("r", "r+", "w+")


class MappedRows(RowSource):
    """Rows of a matrix (or entries of a vector) in a file, read when they are indexed.

    Memory stays bounded however large the file is. Sent elsewhere, it is its path and range.
    """

    def __init__(self, path: Path, offset: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.path, self.offset = path, offset
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.itemsize, self.ndim = self.dtype.itemsize, len(shape)
        self._row_bytes = self.itemsize * int(np.prod(shape[1:]))
        self._map = np.memmap(path, self.dtype, "r", offset, shape)

    @classmethod
    def of(cls, array: np.ndarray) -> MappedRows | None:
        """The rows of a mapped array; None if they do not lie one after the other in a file."""
        memmap, memory = array, mapping_of(array)
        while memmap is not None and not isinstance(memmap, np.memmap):
            memmap = getattr(memmap, "base", None)  # type: ignore[assignment]
        usable = (
            memory is not None
            and memmap is not None
            and memmap.filename is not None
            and memmap.mode != "c"
            and array.flags.c_contiguous
            and array.dtype.kind == "f"
        )
        if not usable or memory is None or memmap is None:
            return None
        begin = np.frombuffer(memory, dtype=np.uint8).ctypes.data
        skipped = memmap.offset - memmap.offset % mmap.ALLOCATIONGRANULARITY
        place = int(array.ctypes.data) - begin + skipped
        return cls(Path(str(memmap.filename)).resolve(), place, array.shape, array.dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return MappedRows, (self.path, self.offset, self.shape, self.dtype)

    def __len__(self) -> int:
        return int(self.shape[0])

    @property
    def array(self) -> np.ndarray:
        """The mapped array itself, whose pages stay until they are released."""
        return self._map

    def as_columns(self) -> MappedRows:
        """A vector as a matrix of one column."""
        if self.ndim == 2:
            return self
        return MappedRows(self.path, self.offset, (self.shape[0], 1), self.dtype)

    def __getitem__(self, rows: Any) -> np.ndarray:
        """Read, not mapped: a row that is touched in a map brings in far more than itself."""
        if isinstance(rows, (int, np.integer)):
            return np.asarray(self._read(int(rows), 1)[0])
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(len(self))
            return self._read(start, max(0, stop - start))
        numbers = np.arange(len(self))[rows] if isinstance(rows, slice) else np.asarray(rows)
        if numbers.dtype == bool:
            numbers = np.flatnonzero(numbers)
        return self._take(numbers)

    def blocks(self) -> Iterator[np.ndarray]:
        for some in row_blocks(len(self), self._row_bytes, BLOCK_BYTES):
            yield self[some]

    def take(self, rows: np.ndarray) -> np.ndarray:
        return self[rows]

    def _take(self, numbers: np.ndarray) -> np.ndarray:
        """Rows by their numbers: those that lie close together by one read, the others one by
        one."""
        out = np.empty((len(numbers), *self.shape[1:]), dtype=self.dtype)
        ascending = bool(np.all(numbers[1:] >= numbers[:-1]))
        order = None if ascending else np.argsort(numbers, kind="stable")
        ordered = numbers if order is None else numbers[order]
        reach = max(1, _WINDOW_BYTES // max(1, self._row_bytes))
        begin = 0
        with self.path.open("rb", buffering=0) as file:
            while begin < len(ordered):
                first = int(ordered[begin])
                end = int(np.searchsorted(ordered, first + reach))
                nearby, span = ordered[begin:end], int(ordered[end - 1]) - first + 1
                places = slice(begin, end) if order is None else order[begin:end]
                if span * self._row_bytes <= _WORTH_ONE_READ * len(nearby):
                    out[places] = self._block(file.fileno(), first, span)[nearby - first]
                else:
                    for place, row in zip(range(begin, end), nearby.tolist(), strict=True):
                        at = place if order is None else int(order[place])
                        out[at] = self._block(file.fileno(), row, 1)[0]
                begin = end
        return out

    def _read(self, start: int, count: int) -> np.ndarray:
        with self.path.open("rb", buffering=0) as file:
            return self._block(file.fileno(), start, count)

    def _block(self, descriptor: int, start: int, count: int) -> np.ndarray:
        place = self.offset + start * self._row_bytes
        out = read_array(descriptor, place, (count, *self.shape[1:]), self.dtype)
        if out is None:
            raise TableError(f"{str(self.path)!r} ends too early: it was cut off")
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self._map, dtype=dtype)


def read_array(
    descriptor: int, place: int, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray | None:
    """An array that begins at some byte of an open file; None if the file ends before it does."""
    out = np.empty(shape, dtype=dtype)
    view, done = out.reshape(-1).view(np.uint8).data, 0
    while done < len(view):
        count = os.preadv(descriptor, [view[done:]], place + done)
        if count == 0:
            return None
        done += count
    return out


def new_array(path: Path, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """A mapped array in a new .npy file, zeros at first."""
    return np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)


def open_array(path: Path) -> np.ndarray:
    """An array in an .npy file, mapped for reading."""
    array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    return array

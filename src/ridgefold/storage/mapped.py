"""Arrays in files, mapped into memory, with the mapped pages let go once they were read.

A mapped page counts as memory of the process until the system takes it back, which it does
only when memory is short. Work that promises to stay within a budget lets them go itself; the
file's bytes stay in the system's cache, from which the next read has them again.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np

from ridgefold.errors import TableError


def mapping_of(array: Any) -> mmap.mmap | None:
    """The map that an array (or the array it is a view of) lies in; None if it is in memory."""
    while array is not None:
        if isinstance(array, mmap.mmap):
            return array
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return None


def release(array: Any) -> None:
    """Let the pages of a mapped file go; nothing is lost, and arrays in memory are untouched."""
    found = mapping_of(array)
    # Private pages that were written to exist nowhere else.
    if found is not None and hasattr(found, "madvise") and _is_shared(array):
        found.madvise(mmap.MADV_DONTNEED)


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


class MappedRows:
    """Rows of a matrix (or entries of a vector) in a file, read when they are indexed.

    Memory stays bounded however large the file is. Sent elsewhere, it is its path and range.
    """

    def __init__(self, path: Path, offset: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.path, self.offset = path, offset
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.itemsize, self.ndim = self.dtype.itemsize, len(shape)
        self._map = np.memmap(path, self.dtype, "r", offset, shape)

    @classmethod
    def of(cls, array: np.ndarray) -> MappedRows | None:
        """The rows of a mapped array; None if they do not lie one after the other in a file."""
        found, memory = array, mapping_of(array)
        while found is not None and not isinstance(found, np.memmap):
            found = getattr(found, "base", None)  # type: ignore[assignment]
        usable = (
            memory is not None
            and found is not None
            and found.filename is not None
            and found.mode != "c"
            and array.flags.c_contiguous
            and array.dtype.kind == "f"
        )
        if not usable or memory is None or found is None:
            return None
        begin = np.frombuffer(memory, dtype=np.uint8).ctypes.data
        skipped = found.offset - found.offset % mmap.ALLOCATIONGRANULARITY
        place = int(array.ctypes.data) - begin + skipped
        return cls(Path(str(found.filename)).resolve(), place, array.shape, array.dtype)

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
        out = np.empty((len(numbers), *self.shape[1:]), dtype=self.dtype)
        bytes_of_rows = out.reshape(len(numbers), -1).view(np.uint8)
        with self.path.open("rb", buffering=0) as file:
            for place, row in enumerate(numbers.tolist()):
                self._fill(file.fileno(), bytes_of_rows[place], row)
        return out

    def _read(self, start: int, count: int) -> np.ndarray:
        out = np.empty((count, *self.shape[1:]), dtype=self.dtype)
        with self.path.open("rb", buffering=0) as file:
            self._fill(file.fileno(), out.reshape(-1).view(np.uint8), start)
        return out

    def _fill(self, descriptor: int, out: np.ndarray, row: int) -> None:
        view, done = out.data, 0
        place = self.offset + row * self.itemsize * int(np.prod(self.shape[1:]))
        while done < len(view):
            count = os.preadv(descriptor, [view[done:]], place + done)
            if count == 0:
                raise TableError(f"{str(self.path)!r} ends too early: it was cut off")
            done += count

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self._map, dtype=dtype)


def new_array(path: Path, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """A mapped array in a new .npy file, zeros at first."""
    return np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)


def open_array(path: Path) -> np.ndarray:
    """An array in an .npy file, mapped for reading."""
    found: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    return found

"""Arrays named by the files that hold them: sent to a worker, they are a path and a range.

An array that is mapped from a file is named by its place in that file; any other is written to a
file first, whole or not at all. Read back, it has the values, type and memory order that it had,
so that results computed from it are the same bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse

from ridgefold.errors import TableError
from ridgefold.storage.atomic import written_whole
from ridgefold.storage.mapped import MappedRows, flush


@dataclass(frozen=True)
class NamedArray:
    """Numbers in a file, one after the other from `offset` on."""

    path: Path
    offset: int
    shape: tuple[int, ...]
    dtype: str
    by_columns: bool
    """True if the first index runs fastest (Fortran order)."""

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize

    def read(self) -> np.ndarray:
        numbers = self._numbers(0, int(np.prod(self.shape)))
        return numbers.reshape(self.shape, order="F" if self.by_columns else "C")

    def part(self, start: int, stop: int) -> np.ndarray:
        """The rows from `start` up to `stop`."""
        if self.by_columns:
            return self.read()[start:stop]
        width = int(np.prod(self.shape[1:]))
        numbers = self._numbers(start * width, (stop - start) * width)
        return numbers.reshape(stop - start, *self.shape[1:])

    def _numbers(self, start: int, count: int) -> np.ndarray:
        dtype = np.dtype(self.dtype)
        numbers = np.fromfile(self.path, dtype, count, offset=self.offset + start * dtype.itemsize)
        if len(numbers) < count:
            raise TableError(f"{str(self.path)!r} ends too early: it was cut off")
        return numbers

    def rows(self) -> MappedRows:
        """The rows of the file, read when they are indexed."""
        assert not self.by_columns
        return MappedRows(self.path, self.offset, self.shape, np.dtype(self.dtype))


@dataclass(frozen=True)
class NamedSparse:
    """A matrix in compressed rows, in three files."""

    data: NamedArray
    indices: NamedArray
    indptr: NamedArray
    shape: tuple[int, int]
    as_array: bool
    """True for scipy's csr_array, False for csr_matrix."""

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + self.indices.nbytes + self.indptr.nbytes

    def read(self) -> scipy.sparse.csr_array | scipy.sparse.csr_matrix:
        kind = scipy.sparse.csr_array if self.as_array else scipy.sparse.csr_matrix
        arrays = (self.data.read(), self.indices.read(), self.indptr.read())
        return kind(arrays, shape=self.shape)


def named(array: np.ndarray, folder: Path, name: str) -> NamedArray:
    """The file that an array is mapped from; else `name`.npy in `folder`, written now."""
    mapped = MappedRows.of(array) if array.dtype.kind == "f" and array.size else None
    if mapped is not None:
        flush(array)
        return NamedArray(mapped.path, mapped.offset, array.shape, array.dtype.str, False)
    by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
    path = folder / f"{name}.npy"
    with written_whole(path) as file:
        np.lib.format.write_array(file, array, allow_pickle=False)
        offset = file.tell() - array.nbytes
    return NamedArray(path, offset, array.shape, array.dtype.str, by_columns)


def named_matrix(X: np.ndarray, folder: Path, name: str) -> NamedArray | NamedSparse:
    """`named` for rows that may be sparse, which go to three files."""
    if not scipy.sparse.issparse(X):
        return named(X, folder, name)

    def named_field(field: str) -> NamedArray:
        return named(getattr(X, field), folder, f"{name}-{field}")

    shape = (int(X.shape[0]), int(X.shape[1]))
    as_array = isinstance(X, scipy.sparse.csr_array)
    data, indices, indptr = (named_field(field) for field in ("data", "indices", "indptr"))
    return NamedSparse(data, indices, indptr, shape, as_array)

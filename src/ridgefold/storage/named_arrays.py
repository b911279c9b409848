"""Arrays by the files that hold them: sent elsewhere, they are a path and a range, and no data.

An array that is mapped from a file is that part of the file; another is written to one, whole or
not at all. Read back, it has the values, type and memory order that it had, so that what is
computed from it is the same bit for bit.
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
        found = self._numbers(0, int(np.prod(self.shape)))
        return found.reshape(self.shape, order="F" if self.by_columns else "C")

    def part(self, start: int, stop: int) -> np.ndarray:
        """Some rows of it."""
        if self.by_columns:
            return self.read()[start:stop]
        width = int(np.prod(self.shape[1:]))
        found = self._numbers(start * width, (stop - start) * width)
        return found.reshape(stop - start, *self.shape[1:])

    def _numbers(self, start: int, count: int) -> np.ndarray:
        dtype = np.dtype(self.dtype)
        found = np.fromfile(self.path, dtype, count, offset=self.offset + start * dtype.itemsize)
        if len(found) < count:
            raise TableError(f"{str(self.path)!r} ends too early: it was cut off")
        return found

    def rows(self) -> MappedRows:
        """The same, read row by row when it is indexed."""
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
        parts = (self.data.read(), self.indices.read(), self.indptr.read())
        return kind(parts, shape=self.shape)


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
    """The same for rows that may be sparse."""
    if not scipy.sparse.issparse(X):
        return named(X, folder, name)

    def part(field: str) -> NamedArray:
        return named(getattr(X, field), folder, f"{name}-{field}")

    shape = (int(X.shape[0]), int(X.shape[1]))
    as_array = isinstance(X, scipy.sparse.csr_array)
    return NamedSparse(part("data"), part("indices"), part("indptr"), shape, as_array)

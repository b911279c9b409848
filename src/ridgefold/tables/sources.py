"""Rows that may be larger than memory: every kind of input gives its shape and blocks of rows.

A kind is a class with `accepts` and a line in `SOURCES`. Arrays of zarr and Dask are known by
what they have (`shape`, `chunks`, slices), so neither is imported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError, TableError
from ridgefold.linalg.blocks import row_blocks
from ridgefold.storage.atomic import written_whole
from ridgefold.storage.mapped import MappedRows, open_array
from ridgefold.storage.row_source import BLOCK_BYTES, RowSource

_BATCH_ROWS = 65_536


class ChunkedSource(RowSource):
    """An array of zarr, Dask or alike: with a shape, chunks, and slices that become NumPy's."""

    def __init__(self, array: Any, argument: str = "X") -> None:
        if array.dtype.kind not in "fiub" or array.ndim > 2:
            raise InvalidInputError(
                f"{argument}, a chunked array, must hold real numbers in one or two dimensions, "
                f"got {array.dtype} and shape {array.shape}"
            )
        if not all(isinstance(size, (int, np.integer)) for size in array.shape):
            raise InvalidInputError(
                f"the shape of a chunked array must be known, got {array.shape}: call "
                "compute_chunk_sizes() first"
            )
        self._array = array
        self.shape = tuple(int(size) for size in array.shape)
        self.dtype = np.dtype(np.float32 if array.dtype == np.float32 else np.float64)

    def blocks(self) -> Iterator[np.ndarray]:
        rows = self._array.chunks[0]
        lengths = [rows] * (-(-self.n_rows // rows)) if isinstance(rows, int) else list(rows)
        start, width = 0, self.n_columns * self.dtype.itemsize
        while lengths:
            # Small chunks together, a large one by itself: none is computed twice.
            count = lengths.pop(0)
            while lengths and (count + lengths[0]) * width <= BLOCK_BYTES:
                count += lengths.pop(0)
            stop = min(start + count, self.n_rows)
            yield np.asarray(np.asarray(self._array[start:stop]), dtype=self.dtype)
            start = stop


class ParquetSource(RowSource):
    """Columns of numbers of a Parquet file, or of a folder of them in the order of their names."""

    def __init__(self, path: Path, columns: Sequence[str] | None = None) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pa_parquet

        self.path = path
        self._files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
        if not self._files or not path.exists():
            raise TableError(f"there is no Parquet file {str(path)!r}")
        try:
            schema = pa_parquet.read_schema(self._files[0])
            n_rows = sum(pa_parquet.read_metadata(file).num_rows for file in self._files)
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{str(path)!r} cannot be read as Parquet: {error}") from None
        # Of a table without a choice of columns, some may be no numbers and not be wanted.
        self.names = list(schema.names) if columns is None else list(columns)
        for name in columns or ():
            if name not in schema.names:
                raise TableError(f"{str(path)!r} has no column {name!r}")
            kind = schema.field(name).type
            numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind)
            if not numbers and not pa.types.is_boolean(kind):
                raise TableError(
                    f"column {name!r} of {str(path)!r} holds {kind}, not numbers: leave it out, or "
                    "use `ridgefold fit`, which makes categories of text"
                )
        single = all(schema.field(name).type == pa.float32() for name in self.names)
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self.shape = (n_rows, len(self.names))

    def without(self, *names: str) -> ParquetSource:
        """All columns but some."""
        assert self.names is not None
        return ParquetSource(self.path, [name for name in self.names if name not in names])

    def column(self, name: str) -> ParquetSource:
        """One column, as a vector."""
        found = ParquetSource(self.path, [name])
        found.shape = found.shape[:1]
        return found

    def blocks(self) -> Iterator[np.ndarray]:
        import pyarrow as pa
        import pyarrow.parquet as pa_parquet

        assert self.names is not None
        rows = max(1, min(_BATCH_ROWS, BLOCK_BYTES // (8 * len(self.names))))
        for path in self._files:
            with pa_parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=rows, columns=self.names):
                    table = batch.select(self.names)
                    out = np.empty((table.num_rows, len(self.names)), dtype=self.dtype)
                    for j, column in enumerate(table.columns):
                        values = (
                            column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column
                        )
                        out[:, j] = values.to_numpy(zero_copy_only=False)
                    yield out[:, 0] if len(self.shape) == 1 else out


def open_source(data: Any, argument: str = "X") -> RowSource | None:
    """Rows to be read in blocks; None if `data` is something that is in memory.

    `argument` is its name in errors.
    """
    if isinstance(data, RowSource):
        return data
    for accepts, opened in SOURCES:
        if accepts(data):
            return opened(data, argument)
    return None


def _is_path(data: Any) -> bool:
    return isinstance(data, (str, PathLike))


def _of_path(data: Any, argument: str) -> RowSource:
    path = Path(data)
    if path.suffix.lower() == ".npy" and path.is_file():
        rows = MappedRows.of(open_array(path))
        if rows is None or rows.dtype not in (np.float32, np.float64):
            raise TableError(
                f"{str(path)!r} must hold float32 or float64 numbers, row after row (C order)"
            )
        return rows
    if path.suffix.lower() == ".parquet" or path.is_dir():
        return ParquetSource(path)
    raise TableError(
        f"{argument} must be an array, or the path of an .npy file, a .parquet file or a folder "
        f"of them, got {str(path)!r}; `ridgefold fit` also reads CSV"
    )


def _is_mapped(data: Any) -> bool:
    if not isinstance(data, np.ndarray) or data.dtype not in (np.float32, np.float64):
        return False
    return data.ndim in (1, 2) and data.size > 0 and MappedRows.of(data) is not None


def _of_mapped(data: Any, argument: str) -> RowSource:
    rows = MappedRows.of(data)
    assert rows is not None
    return rows


def _is_chunked(data: Any) -> bool:
    wanted = ("shape", "dtype", "ndim", "chunks", "__getitem__")
    return not isinstance(data, np.ndarray) and all(hasattr(data, name) for name in wanted)


SOURCES = ((_is_path, _of_path), (_is_mapped, _of_mapped), (_is_chunked, ChunkedSource))
"""Every kind of input that is read in blocks: how it is known, and how it is opened."""


class ArraySource(RowSource):
    """An array in memory, as a source."""

    def __init__(self, array: np.ndarray) -> None:
        self._array, self.shape, self.dtype = array, array.shape, array.dtype

    def blocks(self) -> Iterator[np.ndarray]:
        for some in row_blocks(self.n_rows, self.n_columns * self.dtype.itemsize, BLOCK_BYTES):
            yield self._array[some]


class SomeRows(RowSource):
    """Some rows of another source, by ascending numbers."""

    def __init__(self, source: RowSource, rows: np.ndarray) -> None:
        self._source, self._rows = source, rows
        self.shape, self.dtype = (len(rows), *source.shape[1:]), source.dtype

    def blocks(self) -> Iterator[np.ndarray]:
        start = 0
        for block in self._source.blocks():
            first, last = np.searchsorted(self._rows, [start, start + len(block)])
            if first < last:
                yield block[self._rows[first:last] - start]
            start += len(block)


def to_file(source: RowSource, path: Path, dtype: np.dtype, *, finite: str) -> MappedRows:
    """Rows in an .npy file, written whole or not at all; those in one already stay there.

    All of them are looked at once: `finite` names the argument if one is no finite number.
    """
    if isinstance(source, MappedRows) and source.dtype == dtype:
        for _ in _finite_blocks(source, finite):
            pass
        return source
    rows = _kept(path, source.shape, dtype)
    if rows is None:
        with written_whole(path) as file:
            header = {"descr": dtype.str, "fortran_order": False, "shape": source.shape}
            np.lib.format.write_array_header_1_0(file, header)
            for block in _finite_blocks(source, finite):
                file.write(np.ascontiguousarray(block, dtype=dtype).data)
        rows = MappedRows.of(open_array(path))
    assert rows is not None
    return rows


def _kept(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> MappedRows | None:
    """What was written before, if that is rows of this shape and type."""
    if not path.is_file():
        return None
    try:
        array = open_array(path)
    except (EOFError, OSError, ValueError):
        return None
    return MappedRows.of(array) if array.shape == shape and array.dtype == dtype else None


def _finite_blocks(source: RowSource, argument: str) -> Iterator[np.ndarray]:
    start = 0
    for block in source.blocks():
        good = np.isfinite(block) if block.ndim == 1 else np.isfinite(block).all(axis=1)
        if not good.all():
            raise InvalidInputError(
                f"{argument} holds NaN or infinity in row {start + int(np.argmin(good))}: fill or "
                "drop such rows"
            )
        yield block
        start += len(block)

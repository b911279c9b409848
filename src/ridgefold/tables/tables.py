"""Tables in files: CSV and Parquet by pyarrow, .npy and .npz by NumPy; streamed where they can be.

Every kind gives the same: the names of its columns, the whole table, or batches of rows.
"""

from __future__ import annotations

import contextlib
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

from ridgefold.errors import TableError
from ridgefold.tables.csv_file import COMPRESSED, CsvFile
from ridgefold.tables.table_file import Share, TableFile, first_line

_BATCH_ROWS = 65_536


class ParquetFile(TableFile):
    """A Parquet file, row group by row group."""

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        try:
            with pa_parquet.ParquetFile(self.path) as file:
                yield file
        except (pa.ArrowException, OSError) as error:
            raise self.error(first_line(error)) from None

    def names(self) -> list[str]:
        with self._open() as file:
            return self.once(list(file.schema_arrow.names))

    def read(self, columns: Sequence[str], texts: Collection[str] = ()) -> pa.Table:
        with self._open() as file:
            return file.read(columns=list(columns)).select(list(columns))

    def batches(
        self, columns: Sequence[str], types: Mapping[str, pa.DataType], share: Share
    ) -> Iterator[pa.Table]:
        with self._open() as file:
            done, total = 0, max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=list(columns)):
                yield pa.Table.from_batches([batch]).select(list(columns))
                done += batch.num_rows
                share(done / total)


class NumpyFile(TableFile):
    """A matrix in an .npy file, whose columns are x0, x1, …; or X, and y, in an .npz file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._target: np.ndarray | None = None
        if path.suffix.lower() == ".npz" and not zipfile.is_zipfile(path):
            raise self.error("it is no archive of arrays, or was cut off")
        try:
            loaded = np.load(path, mmap_mode="r", allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                self._matrix, self._names = loaded, None
            else:
                with loaded as arrays:
                    if "X" not in arrays.files:
                        raise self.error(
                            f"it holds {', '.join(arrays.files)}, but the rows must be called X "
                            "(and targets y)"
                        )
                    self._matrix = arrays["X"]
                    self._target = arrays["y"] if "y" in arrays.files else None
                    self._names = (
                        [str(name) for name in np.atleast_1d(arrays["feature_names"])]
                        if "feature_names" in arrays.files
                        else None
                    )
        except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            if isinstance(error, TableError):
                raise
            raise self.error(first_line(error)) from None
        if self._matrix.ndim != 2 or self._matrix.dtype.kind not in "fiub":
            raise self.error(
                f"it holds an array of {self._matrix.dtype} and shape {self._matrix.shape}; it "
                "must be a matrix of numbers"
            )
        if self._target is not None and self._target.shape != self._matrix.shape[:1]:
            raise self.error(f"y has shape {self._target.shape} for {len(self._matrix)} rows of X")

    def names(self) -> list[str]:
        width = self._matrix.shape[1]
        names = self._names if self._names and len(self._names) == width else None
        names = names or [f"x{j}" for j in range(width)]
        return self.once(names if self._target is None else [*names, "y"])

    def _rows(self, columns: Sequence[str], rows: slice) -> pa.Table:
        places = {name: j for j, name in enumerate(self.names())}
        arrays = {}
        for name in columns:
            j = places[name]
            is_target = self._target is not None and j == len(places) - 1
            values = self._target[rows] if is_target else self._matrix[rows, j]  # type: ignore[index]
            arrays[name] = pa.array(np.ascontiguousarray(values))
        return pa.table(arrays)

    def read(self, columns: Sequence[str], texts: Collection[str] = ()) -> pa.Table:
        return self._rows(columns, slice(None))

    def batches(
        self, columns: Sequence[str], types: Mapping[str, pa.DataType], share: Share
    ) -> Iterator[pa.Table]:
        n = len(self._matrix)
        for start in range(0, n, _BATCH_ROWS):
            yield self._rows(columns, slice(start, start + _BATCH_ROWS))
            share(min(1.0, (start + _BATCH_ROWS) / n))


_KINDS: Mapping[str, Callable[[Path], TableFile]] = {
    ".csv": CsvFile,
    ".tsv": lambda path: CsvFile(path, "\t"),
    ".tab": lambda path: CsvFile(path, "\t"),
    ".txt": lambda path: CsvFile(path, "\t"),
    ".parquet": ParquetFile,
    ".npy": NumpyFile,
    ".npz": NumpyFile,
}


def open_table(path: Path) -> TableFile:
    """A table by the ending of its name."""
    if not path.is_file():
        raise TableError(f"there is no file {str(path)!r}")
    endings = [suffix.lower() for suffix in path.suffixes]
    kind = next((e for e in reversed(endings) if e in _KINDS), None)
    compressed = kind in (".csv", ".tsv", ".tab", ".txt") and endings[-1] in COMPRESSED
    if endings and endings[-1] in (".xlsx", ".xls", ".ods"):
        raise TableError(f"{str(path)!r} is a workbook of a spreadsheet: save its table as CSV")
    if kind is None or (endings[-1] != kind and not compressed):
        raise TableError(
            f"{str(path)!r} must end in {', '.join(_KINDS)} (CSV also in .csv.gz): the ending says "
            "what is in it"
        )
    return _KINDS[kind](path)

"""Any table, as one frame: of pandas, polars or pyarrow, a dict of columns, NumPy, or a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.tables.csv_file import CsvFile
from ridgefold.tables.frames import as_frame
from ridgefold.tables.numbers_in_text import Places, rows_by_number
from ridgefold.tables.table_file import TableFile
from ridgefold.tables.tables import open_table


@dataclass(frozen=True)
class TableInput:
    """A table in memory, and what is known of where it is from."""

    frame: nw.DataFrame[Any]
    name: str
    places: Places = rows_by_number
    index_names: frozenset[str] = frozenset()
    """Columns that were the index of a pandas frame."""
    separator: str = ","
    """Of a text file; it says which decimal mark is more likely."""
    encoding: str | None = None
    lines_before: int = 0
    """Lines of a text file above the names, which are skipped."""
    is_text: bool = False
    """Whether all cells are text because nobody declared what they are, as in CSV."""
    columns_are_named: bool = True
    """False for a matrix, whose columns somebody has chosen: none is an index by its values."""


def read_input(table: Any) -> TableInput:
    """A table as a frame; files are read once, CSV with every cell as it is written."""
    if isinstance(table, TableInput):
        return table
    if isinstance(table, (str, PathLike)):
        return _read_file(Path(table))
    if isinstance(table, Mapping):
        return TableInput(_of_columns(table), "the table")
    if isinstance(table, np.ndarray):
        is_named = table.dtype.names is not None
        return TableInput(_of_array(table), "the table", columns_are_named=is_named)
    try:
        frame = as_frame(table)
        arrow = frame if frame.implementation.is_pyarrow() else _as_arrow_table(frame)
    except (ValueError, nw.exceptions.NarwhalsError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"the table cannot be used: {error}") from None
    return TableInput(arrow, "the table", index_names=_index_names(frame))


def _as_arrow_table(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """The same rows in pyarrow's memory, so that columns of every library are read alike."""
    import pyarrow as pa

    is_pandas = frame.implementation.is_pandas()
    columns = {
        name: _as_arrow(frame[name].to_native()) if is_pandas else frame[name].to_arrow()
        for name in frame.columns
    }
    return as_frame(pa.table(columns))


def _read_file(path: Path) -> TableInput:
    file = open_table(path)
    names = file.names()
    table = file.read(names, () if file.types_are_declared else names)
    return input_of_file(file, table, file.places)


def input_of_file(file: TableFile, table: Any, places: Places) -> TableInput:
    """What was read of a file: text cell by cell, others in their types."""
    frame = as_frame(table)
    if isinstance(file, CsvFile):
        return TableInput(
            frame,
            file.path.name,
            places,
            separator=file.layout.separator,
            encoding=file.layout.encoding,
            lines_before=file.layout.lines_before,
            is_text=True,
        )
    return TableInput(frame, file.path.name, places, _index_names(frame))


def _of_columns(columns: Mapping[Any, Any]) -> nw.DataFrame[Any]:
    import pyarrow as pa

    arrays = {str(name): _as_arrow(values) for name, values in columns.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name!r} has {n}" for name, n in list(lengths.items())[:8])
        raise InvalidInputError(f"all columns must have the same number of rows: {said}")
    return as_frame(pa.table(arrays))


def _of_array(array: np.ndarray) -> nw.DataFrame[Any]:
    names = array.dtype.names
    if names is not None:
        return _of_columns({name: array[name] for name in names})
    if array.ndim != 2:
        raise InvalidInputError(f"the table must have two dimensions, got shape {array.shape}")
    return _of_columns({f"x{j}": array[:, j] for j in range(array.shape[1])})


def _as_arrow(values: Any) -> Any:
    """A column of any kind; objects that are not all of one kind become text."""
    import pyarrow as pa

    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if hasattr(values, "to_arrow"):
        return values.to_arrow()
    if not hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = list(values)
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        cells = [
            None if cell is None or cell != cell else str(cell)  # noqa: PLR0124 - NaN
            for cell in values
        ]
        return pa.array(cells, pa.large_string())


def _index_names(frame: nw.DataFrame[Any]) -> frozenset[str]:
    """Columns that the notes of pandas in an Arrow table call the index."""
    metadata = getattr(getattr(frame.to_native(), "schema", None), "metadata", None)
    if not isinstance(metadata, Mapping) or b"pandas" not in metadata:
        return frozenset()
    try:
        noted = json.loads(metadata[b"pandas"]).get("index_columns", [])
    except (ValueError, AttributeError):
        return frozenset()
    return frozenset(name for name in noted if isinstance(name, str))

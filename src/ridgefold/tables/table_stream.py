"""A table that is larger than memory as arrays on disk: one pass to understand it, one to write.

Columns are understood from rows that are drawn from all of the file at random: from all of them if
they are few. What the others hold beside is treated as new rows are: levels that none of the drawn
rows has are those of no row, and gaps are filled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ridgefold.errors import InvalidInputError, TableError
from ridgefold.records import NumberColumn, TableColumns
from ridgefold.storage.atomic import written_whole
from ridgefold.storage.mapped import open_array
from ridgefold.tables.diagnose import diagnose
from ridgefold.tables.diagnosis import TableDiagnosis
from ridgefold.tables.encode import encode, numbers_for
from ridgefold.tables.frames import as_frame
from ridgefold.tables.numbers_in_text import ColumnOfText, report_unreadable
from ridgefold.tables.table_file import TableFile
from ridgefold.tables.table_input import TableInput, input_of_file
from ridgefold.tables.tables import open_table
from ridgefold.tables.target_column import targets_again

_MOST_ROWS = 100_000
"""Rows by which columns are understood: means, spreads and frequent levels change by less than a
hundredth of a spread with more."""
_MOST_CELLS = 5_000_000
"""Of these rows, some hundred megabytes as text."""
_FEWEST_ROWS = 1000


@dataclass(frozen=True)
class WrittenTable:
    """A table whose numbers lie in a file."""

    diagnosis: TableDiagnosis
    """Of the rows by which it was understood."""
    X: np.ndarray
    """All rows that have a target, mapped into memory."""
    y: np.ndarray
    """Their targets, mapped as well; labels are in memory."""
    without_target: int


def written_table(
    path: Path, target: str, folder: Path, *, columns: Mapping[str, Any], standardise: bool = True
) -> WrittenTable:
    """Understand a table by `diagnose`, and write what models take to files in a folder."""
    file = open_table(path)
    diagnosis = diagnose(_drawn_rows(file), target, columns=columns, standardise=standardise)
    used, names = diagnosis.encoder.columns, [*diagnosis.encoder.names, target]
    assert diagnosis.target is not None
    assert diagnosis.y is not None
    classes = np.unique(diagnosis.y) if diagnosis.task == "classification" else None
    rule = None if diagnosis.target.column is None else diagnosis.target.column.text
    boolean = diagnosis.target.column is not None and diagnosis.target.column.boolean
    seen: dict[str, ColumnOfText] = {}
    width = max(1, len(used.feature_names))
    targets: list[np.ndarray] = []
    n_rows = n_read = 0
    with written_whole(folder / "X.npy") as out:
        _write_header(out, (0, width))
        types = types_to_read(used) | {target: pa.string()}
        for table in file.batches(names, types, _nobody):
            frame = as_frame(table)
            rows, y = targets_again(frame[target], classes, rule, boolean, first_row=n_read)
            read = numbers_for(frame.select(names[:-1]), used, seen, n_read)
            matrix = np.zeros((len(frame), width))
            matrix[:, : len(used.feature_names)] = encode(read, used)
            out.write(np.ascontiguousarray(matrix[rows], dtype="<f8").data)
            targets.append(y)
            n_rows, n_read = n_rows + len(rows), n_read + len(frame)
        out.seek(0)
        _write_header(out, (n_rows, width))
    report_unreadable(list(seen.values()), file.places)
    y = np.concatenate(targets)
    if classes is None:
        with written_whole(folder / "y.npy") as out:
            np.save(out, y)
        y = open_array(folder / "y.npy")
    return WrittenTable(diagnosis, open_array(folder / "X.npy"), y, n_read - n_rows)


def types_to_read(columns: TableColumns) -> dict[str, Any]:
    """Types of a model's columns in files, so that they need not be guessed."""
    types = {}
    for column in columns.columns:
        if not isinstance(column, NumberColumn) or column.text is not None:
            types[column.name] = pa.string()
        else:
            types[column.name] = pa.bool_() if column.boolean else pa.float64()
    return types


def _drawn_rows(file: TableFile) -> TableInput:
    """At most so many rows of a file, in their order."""
    names, random = file.names(), np.random.default_rng(0)
    most = min(_MOST_ROWS, max(_FEWEST_ROWS, _MOST_CELLS // max(1, len(names))))
    kept: list[Any] = []
    keys, numbers, n_rows = np.empty(0), np.empty(0, dtype=np.int64), 0
    types = {} if file.types_are_declared else dict.fromkeys(names, pa.string())
    for table in file.batches(names, types, _nobody):
        kept.append(table)
        keys = np.append(keys, random.random(table.num_rows))
        numbers = np.append(numbers, np.arange(n_rows, n_rows + table.num_rows))
        n_rows += table.num_rows
        if len(keys) > 2 * most:
            kept, keys, numbers = _least(kept, keys, numbers, most)
    if not kept:
        raise InvalidInputError(f"{str(file.path)!r} has no rows")
    kept, keys, numbers = _least(kept, keys, numbers, most)

    def places(rows: Sequence[int]) -> list[str]:
        return file.places([int(numbers[row]) for row in rows])

    return input_of_file(file, kept[0], places)


def _least(
    tables: list[Any], keys: np.ndarray, numbers: np.ndarray, most: int
) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """The rows of the least keys, as one table."""
    rows = np.sort(np.argsort(keys, kind="stable")[:most])
    return [pa.concat_tables(tables).take(rows)], keys[rows], numbers[rows]


def _write_header(file: Any, shape: tuple[int, int]) -> None:
    """The head of an .npy file, of one length for any number of rows."""
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def _nobody(share: float) -> None:
    """Nobody asks how far it is."""


def bytes_as_numbers(path: Path) -> float:
    """About the memory that a table would take as numbers."""
    if path.suffix.lower() == ".parquet":
        import pyarrow.parquet as pa_parquet

        try:
            found = pa_parquet.read_metadata(path)
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"cannot read {str(path)!r}: {str(error).splitlines()[0]}") from None
        return float(8 * found.num_rows * found.num_columns)
    return float(path.stat().st_size) * (
        4.0 if path.suffix.lower() in (".gz", ".bz2", ".zst") else 1
    )

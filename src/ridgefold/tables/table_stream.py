"""A table that is larger than memory as arrays on disk: one pass to learn, one to write."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from ridgefold.errors import InvalidInputError, TableError
from ridgefold.records import CategoryColumn, NumberColumn, TableColumns
from ridgefold.storage.atomic import written_whole
from ridgefold.tables.column_scale import ColumnValues
from ridgefold.tables.encode import encode
from ridgefold.tables.frames import (
    category_of,
    complete_rows,
    is_categorical,
    is_text,
    levels_of,
    missing_in,
    new_series,
    number_column,
    numbers_of,
    refuse_missing,
    texts_as_arrow,
)
from ridgefold.tables.numbers_in_text import ColumnOfText, report_mixed, report_unreadable
from ridgefold.tables.table_file import TableFile

_MOST_KNOWN = 1000
"""Different values of a column or target that are remembered."""


@dataclass
class _Seen:
    """What the batches so far have shown of one column."""

    text: bool
    boolean: bool = False
    known: ColumnValues = field(default_factory=ColumnValues)
    lost: int = 0
    values: set[Any] = field(default_factory=set)

    def column(self, name: str, missing: str, standardise: bool) -> NumberColumn | CategoryColumn:
        if self.text:
            return category_of(name, sorted(self.values), missing)
        return number_column(
            name,
            self.known,
            self.lost,
            standardise=standardise,
            missing=missing,
            boolean=self.boolean,
        )


@dataclass(frozen=True)
class Scanned:
    """What one pass over a table has shown."""

    columns: TableColumns
    n_rows: int
    """Rows that can be learned from."""
    without_target: int
    target_is_text: bool
    target_is_boolean: bool
    target_values: frozenset[Any]
    """The different targets, if they are few; else some of them."""


class _UndecidedTextError(Exception):
    """A column holds text, and it is not known whether it is meant as numbers."""


class TableStream:
    """Some columns and the target of a table, batch by batch."""

    def __init__(
        self,
        file: TableFile,
        used: Sequence[str],
        target: str,
        *,
        categorical: Collection[str],
        missing: str,
        classify: bool = False,
    ) -> None:
        self._file, self._used, self._target = file, list(used), target
        self._categorical, self._missing = set(categorical), missing
        self._texts = self._categorical | ({target} if classify else set())
        """Columns whose text is text."""
        self._numbers: set[str] = set()
        """Columns whose text is numbers, but for errors."""
        first = next(file.batches([*self._used, target], {}, _nobody), None)
        if first is None or first.num_rows == 0:
            raise InvalidInputError("the table has no rows")
        # What begins with whole numbers may go on with others.
        self._types = {
            entry.name: self._type(entry) for entry in first.schema if self._type(entry) is not None
        }

    def _type(self, entry: Any) -> Any:
        kind = entry.type
        if entry.name in self._texts:
            return pa.string()
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return pa.float64()
        if pa.types.is_boolean(kind) or pa.types.is_string(kind):
            return kind
        is_input = entry.name != self._target
        return pa.float64() if is_input and pa.types.is_null(kind) else None

    def _frames(self) -> Iterator[nw.DataFrame[Any]]:
        for table in self._file.batches([*self._used, self._target], self._types, _nobody):
            yield nw.from_native(table, eager_only=True)

    def _batches(self) -> Iterator[tuple[nw.DataFrame[Any], np.ndarray]]:
        """Frames, and which of their rows have a target."""
        for frame in self._frames():
            read = []
            for name in frame.columns:
                if name not in self._texts and _is_open_text(frame[name]):
                    if name not in self._numbers:
                        raise _UndecidedTextError
                    numbers = ColumnOfText(name).add(texts_as_arrow(frame[name]))
                    read.append(new_series(name, numbers, frame))
            whole = frame.with_columns(read) if read else frame
            yield whole, ~missing_in(whole[self._target])

    def _decide(self) -> None:
        """Which columns of text are meant as numbers, from all of their cells."""
        cells = {name: ColumnOfText(name) for name in (*self._used, self._target)}
        began_as_text: set[str] = set()
        first_row = 0
        for frame in self._frames():
            for name in frame.columns:
                series = frame[name]
                if name in self._texts:
                    continue
                if _is_open_text(series):
                    if first_row == 0:
                        began_as_text.add(name)
                    cells[name].add(texts_as_arrow(series), first_row=first_row)
                elif series.dtype.is_numeric():
                    numbers = numbers_of(series)
                    cells[name].add_numbers(numbers[~np.isnan(numbers)])
            first_row += len(frame)
        wrong = []
        for name in began_as_text | {name for name in cells if cells[name].unreadable}:
            declared = self._file.types_are_declared and cells[name].unreadable == 0
            if cells[name].holds_numbers and not declared:
                self._numbers.add(name)
                self._types[name] = pa.float64()
                wrong.append(cells[name])
            else:
                self._texts.add(name)
                self._types[name] = pa.string()
                if cells[name].is_mixed:
                    report_mixed(cells[name])
        wrong.sort(key=lambda column: column.name)
        report_unreadable(wrong, self._missing, self._file.places)

    def scan(self, *, standardise: bool) -> Scanned:
        """Learn how every column becomes numbers."""
        try:
            return self._scan(standardise)
        except _UndecidedTextError:
            self._decide()
            return self._scan(standardise)

    def _scan(self, standardise: bool) -> Scanned:
        seen: dict[str, _Seen] = {}
        values: set[Any] = set()
        kind, n_rows, without = None, 0, 0
        for frame, known in self._batches():
            without += int((~known).sum())
            whole = frame[np.flatnonzero(known)]
            rows = whole.select(self._used)
            if self._missing == "drop":
                complete = np.flatnonzero(complete_rows(rows))
                rows, whole = rows[complete], whole[complete]
            n_rows += len(rows)
            kind = whole[self._target].dtype
            if len(values) < _MOST_KNOWN:
                values.update(whole[self._target].unique().to_list())
            for name in self._used:
                series = rows[name]
                found = seen.setdefault(
                    name,
                    _Seen(
                        name in self._categorical or is_text(series),
                        isinstance(series.dtype, nw.Boolean),
                    ),
                )
                found.lost += int(missing_in(series).sum())
                if found.text:
                    if len(found.values) <= _MOST_KNOWN:
                        found.values.update(levels_of(series))
                else:
                    numbers = numbers_of(series)
                    found.known.add(numbers[~np.isnan(numbers)])
        if self._missing == "error":
            refuse_missing({name: found.lost for name, found in seen.items()})
            if without:
                raise InvalidInputError(
                    f"the target {self._target!r} is missing in {without} rows: fill them, or pass "
                    "--missing drop (or fill) to leave those rows out"
                )
        if n_rows < 2:
            raise InvalidInputError(
                f"the table has {n_rows} rows to learn from: at least 2 are needed"
            )
        columns = tuple(seen[name].column(name, self._missing, standardise) for name in self._used)
        return Scanned(
            TableColumns(columns, self._missing),
            n_rows,
            without,
            isinstance(kind, (nw.String, nw.Categorical)),
            isinstance(kind, nw.Boolean),
            frozenset(values),
        )

    def write(self, scanned: Scanned, folder: Path, *, labels: bool) -> tuple[Path, Any]:
        """The matrix that a model takes as an .npy file, and targets: another, or labels."""
        shape = (scanned.n_rows, len(scanned.columns.feature_names))
        kept: list[np.ndarray] = []
        paths = folder / "X.npy", folder / "y.npy"
        with written_whole(paths[0]) as rows, written_whole(paths[1]) as targets:
            for file, size in ((rows, shape), (targets, shape[:1])):
                header = {"descr": "<f8", "fortran_order": False, "shape": size}
                np.lib.format.write_array_header_1_0(file, header)
            for frame, known in self._batches():
                some = frame[np.flatnonzero(known)]
                matrix, used = encode(some, scanned.columns)
                rows.write(np.ascontiguousarray(matrix, dtype="<f8").data)
                y = some[self._target]
                if labels:
                    kept.append(_labels(y)[used])
                else:
                    numbers = numbers_of(y)[used]
                    targets.write(np.ascontiguousarray(numbers, dtype="<f8").data)
            if labels:
                targets.write(np.zeros(shape[0], dtype="<f8").data)
        return paths[0], np.concatenate(kept) if labels else paths[1]


def _is_open_text(series: nw.Series[Any]) -> bool:
    """Whether it is text, and not of a type of categories."""
    return is_text(series) and not is_categorical(series)


def _labels(y: nw.Series[Any]) -> np.ndarray:
    if y.dtype.is_numeric() or isinstance(y.dtype, nw.Boolean):
        values = np.asarray(y.to_numpy())
        whole = values.astype(np.int64) if values.dtype.kind == "f" else values
        return whole if np.array_equal(whole, values) else values
    return np.asarray(y.cast(nw.String).to_list(), dtype=np.str_)


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

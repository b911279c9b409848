"""Thousands of columns in a model file as a few arrays.

A record for each column is some twenty values of metadata, of which a file may hold about a
hundred thousand. So wide tables have one array for each field of all their columns of plain
numbers; names, and columns of other kinds, stay records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeGuard

import numpy as np

from ridgefold.errors import ModelFileError
from ridgefold.records import CodedColumn, ColumnRecord, NumberColumn, NumberText, TableColumns
from ridgefold.storage.annotations import check_fields, check_record

_MOST_RECORDS = 1000
"""Tables of so many columns are records, which `ridgefold inspect` and other tools show."""
_NUMBERS = ("mean", "scale", "fill")
_TRUTHS = ("boolean", "indicated", "from_text")


def packed_columns(columns: TableColumns) -> TableColumns | dict[str, Any]:
    """What a model file holds of the columns of a table."""
    if len(columns.columns) <= _MOST_RECORDS:
        return columns
    numbers = [column for column in columns.columns if _is_plain(column)]
    others = [column for column in columns.columns if not _is_plain(column)]
    return {
        "names": list(columns.names),
        "is_plain": np.array([_is_plain(column) for column in columns.columns]),
        "boolean": np.array([column.boolean for column in numbers], dtype=bool),
        "from_text": np.array([column.text is not None for column in numbers], dtype=bool),
        "indicated": np.array([column.missing_indicator for column in numbers], dtype=bool),
        **{
            name: np.array([getattr(column, name) for column in numbers], dtype=np.float64)
            for name in _NUMBERS
        },
        "others": others,
    }


def _is_plain(column: ColumnRecord) -> TypeGuard[NumberColumn]:
    """Whether the numbers of `_NUMBERS` and a few truth values are all that there is to it."""
    return isinstance(column, NumberColumn) and column.text in (None, NumberText())


def unpacked_columns(where: str, stored: Any) -> TableColumns:
    """The columns that `packed_columns` stored, each checked as a record is."""
    if isinstance(stored, TableColumns):
        _require_whole_codes(where, stored.columns)
        return stored
    arrays = ("is_plain", *_TRUTHS, *_NUMBERS)
    check_fields(
        where,
        stored,
        {
            "names": list[str],
            **dict.fromkeys(arrays, np.ndarray),
            "others": list[ColumnRecord],
        },
        {},
    )
    _require_lengths(where, stored)
    numbers = zip(
        *(stored[name].tolist() for name in (*_TRUTHS, *_NUMBERS)),
        strict=True,
    )
    others = iter(stored["others"])
    columns: list[ColumnRecord] = []
    for name, is_plain in zip(stored["names"], stored["is_plain"].tolist(), strict=True):
        if not is_plain:
            other = next(others)
            if other.name != name:
                raise ModelFileError(f"{where}.others must have the names of their columns")
            columns.append(other)
            continue
        boolean, indicated, from_text, mean, scale, fill = next(numbers)
        text = NumberText() if from_text else None
        columns.append(
            NumberColumn(name, mean, scale, fill, boolean, text, missing_indicator=indicated)
        )
    _require_whole_codes(where, columns)
    _check_as_records(where, columns)
    return TableColumns(tuple(columns))


def _require_whole_codes(where: str, columns: Sequence[ColumnRecord]) -> None:
    for column in columns:
        if isinstance(column, CodedColumn) and not (
            len(column.codes) == len(column.missing) >= 1
            and all(len(codes) == len(column.levels) for codes in column.codes)
        ):
            raise ModelFileError(f"{where} must have a code for each level of {column.name!r}")


def _check_as_records(where: str, columns: list[Any]) -> None:
    # Of numbers, the extremes stand for all others: they differ in nothing that is checked.
    numbers = [column for column in columns if isinstance(column, NumberColumn)]
    for name in _NUMBERS:
        values = np.array([getattr(column, name) for column in numbers])
        if values.size:
            for place in {int(np.argmin(values)), int(np.argmax(values))}:
                column = numbers[place]
                record = {field.name: getattr(column, field.name) for field in fields(column)}
                check_record(f"{where}.{column.name}", NumberColumn, record)
    check_record(where, TableColumns, {"columns": tuple(columns)})


def _require_lengths(where: str, stored: Mapping[str, Any]) -> None:
    n = len(stored["names"])
    kinds = {
        **dict.fromkeys(("is_plain", *_TRUTHS), "b"),
        **dict.fromkeys(_NUMBERS, "f"),
    }
    for name, kind in kinds.items():
        array = stored[name]
        if array.ndim != 1 or array.dtype.kind != kind:
            raise ModelFileError(f"{where}.{name} must be a vector of its kind, got {array.dtype}")
        if kind == "f" and not np.all(np.isfinite(array)):
            raise ModelFileError(f"{where}.{name} must be finite")
    n_numbers = int(stored["is_plain"].sum())
    lengths = [len(stored["is_plain"]), *(len(stored[k]) for k in kinds if k != "is_plain")]
    if lengths != [n, *[n_numbers] * (len(kinds) - 1)] or len(stored["others"]) != n - n_numbers:
        raise ModelFileError(f"{where} must have one entry for each of its {n} columns")

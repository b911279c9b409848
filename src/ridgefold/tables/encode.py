"""A table as the numbers that a model sees, by the columns that were learned.

The same code encodes the table to fit and new rows. Text is read by the rule that its column was
learned with; what is missing is filled, and where the column says so a feature tells.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from ridgefold.errors import (
    FarValueWarning,
    InvalidInputError,
    UnknownLevelWarning,
    UnsupportedInputError,
)
from ridgefold.notices import warn
from ridgefold.records import (
    CategoryColumn,
    CodedColumn,
    ColumnRecord,
    DateColumn,
    NumberColumn,
    OrderedColumn,
    TableColumns,
)
from ridgefold.tables.dates_in_text import ColumnOfDates
from ridgefold.tables.frames import (
    is_text,
    listed,
    missing_in,
    new_dates,
    new_series,
    numbers_of,
    texts_as_arrow,
)
from ridgefold.tables.numbers_in_text import ColumnOfText, report_unreadable, rows_by_number
from ridgefold.tables.written_dates import part_of_dates, read_dates
from ridgefold.tables.written_numbers import is_missing_mark, trimmed

MOST_DEVIATIONS = 1e6
"""No number lies farther from the mean, in standard deviations: the square of any distance stays
finite, and rows that are so far from all others are alone in any kernel that has a width."""


def encode(frame: nw.DataFrame[Any], columns: TableColumns) -> np.ndarray:
    """The matrix that a model takes, a row for each row of the frame.

    Levels that were not there when the columns were
    learned are of those that stand together as "other", or else none of those known: zeros. A
    warning tells.
    """
    there = set(frame.columns)
    absent = [name for name in columns.names if name not in there]
    if absent:
        raise InvalidInputError(
            f"the table lacks {listed(absent)}: the model takes {listed(columns.names)}"
        )
    seen: dict[str, ColumnOfText] = {}
    frame = numbers_for(frame.select(list(columns.names)), columns, seen)
    report_unreadable(list(seen.values()), rows_by_number)
    out = np.empty((len(frame), len(columns.feature_names)))
    position = 0
    for column in columns.columns:
        width = len(column.feature_names)
        out[:, position : position + width] = _features(frame[column.name], column)
        position += width
    return out


def numbers_for(
    frame: nw.DataFrame[Any],
    columns: TableColumns,
    seen: dict[str, ColumnOfText],
    first_row: int = 0,
) -> nw.DataFrame[Any]:
    """The frame, with text turned into numbers or dates where a model has learned these.

    What stood in those columns is added to `seen`, for the caller to report.
    """
    read = []
    for column in columns.columns:
        if isinstance(column, NumberColumn):
            series, cells = (
                frame[column.name],
                seen.setdefault(column.name, ColumnOfText(column.name)),
            )
            if is_text(series):
                texts = texts_as_arrow(series)
                values = cells.add(
                    texts, boolean=column.boolean, rule=column.text, first_row=first_row
                )
                read.append(new_series(column.name, values, frame))
            else:
                cells.numbers += len(series) - series.null_count()
        elif isinstance(column, DateColumn) and not _is_dated(frame[column.name]):
            texts = _texts_of_dates(frame[column.name])
            dates = seen.setdefault(column.name, ColumnOfDates(column.name, order=column.order))
            assert isinstance(dates, ColumnOfDates)
            values = dates.add_dates(texts, first_row=first_row)
            read.append(new_dates(column.name, values, frame))
    return frame.with_columns(read) if read else frame


def _features(series: nw.Series[Any], column: ColumnRecord) -> np.ndarray:
    if isinstance(column, NumberColumn):
        return _number(numbers_of(series), column)
    if isinstance(column, CategoryColumn):
        return _one_hot(level_texts(series), column)
    if isinstance(column, CodedColumn):
        return _codes(level_texts(series), column)
    if isinstance(column, OrderedColumn):
        return _places(level_texts(series), column)
    return _date_parts(series, column)


def _number(values: np.ndarray, column: NumberColumn) -> np.ndarray:
    lost = np.isnan(values)
    values = np.where(lost, column.fill, values)
    return _with_indicator([_standardised(values, column)], lost, column.missing_indicator)


def _with_indicator(features: list[np.ndarray], lost: np.ndarray, indicator: bool) -> np.ndarray:
    columns = [*features, lost.astype(float)] if indicator else features
    return np.asarray(np.column_stack(columns))


def _standardised(values: np.ndarray, column: NumberColumn) -> np.ndarray:
    with np.errstate(over="ignore"):
        deviations: np.ndarray = (values - column.mean) / column.scale
    if column.mean == 0.0 and column.scale == 1.0:
        return deviations  # as it is, where it was asked for
    far = np.abs(deviations) > MOST_DEVIATIONS
    if far.any():
        warn(
            f"column {column.name!r} holds {values[far][0]:g} and {int(far.sum()) - 1:,} more "
            f"values that lie over {MOST_DEVIATIONS:g} standard deviations from its mean: they are "
            "taken to lie there",
            FarValueWarning,
        )
    return np.asarray(np.clip(deviations, -MOST_DEVIATIONS, MOST_DEVIATIONS))


def level_texts(series: nw.Series[Any]) -> Any:
    """The levels of a column as a pyarrow array of texts, with nulls for missing ones.

    Whole numbers are written without a point, however their column holds them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    lost = missing_in(series)
    if isinstance(series.dtype, (nw.Float32, nw.Float64)):
        values = np.where(lost, 0.0, series.fill_null(0.0).to_numpy().astype(np.float64))
        if np.array_equal(values, np.floor(values)) and np.all(np.abs(values) < 2.0**53):
            texts = pa.array(values.astype(np.int64)).cast(pa.large_string())
            return pc.if_else(pa.array(lost), pa.scalar(None, pa.large_string()), texts)
    texts = texts_as_arrow(series)
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    texts = texts.cast(pa.large_string())
    return pc.if_else(pa.array(lost), pa.scalar(None, pa.large_string()), texts)


def level_codes(texts: Any, levels: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The place of every text among the levels (−1 if it has none), and which are missing.

    A text that is no level as it stands is looked for without blanks at its ends, and then among
    the levels in small letters.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = texts.dictionary_encode()
    known = pa.array(levels, pa.large_string())
    plain = trimmed(coded.dictionary)
    lowered = pc.index_in(pc.utf8_lower(plain), pc.utf8_lower(known))
    codes = pc.coalesce(pc.index_in(coded.dictionary, known), pc.index_in(plain, known), lowered)
    codes = codes.fill_null(-1).to_numpy(zero_copy_only=False)
    missing = is_missing_mark(plain, among_numbers=False) & (codes < 0)
    codes, missing = np.append(codes, -1), np.append(missing, True)
    places = coded.indices.fill_null(len(plain)).to_numpy(zero_copy_only=False)
    return codes[places], missing[places]


def _one_hot(texts: Any, column: CategoryColumn) -> np.ndarray:
    codes, lost = level_codes(texts, column.levels)
    out = np.zeros((len(codes), len(column.feature_names)))
    known = np.flatnonzero(codes >= 0)
    out[known, codes[known]] = 1.0
    if column.missing_level:
        out[lost, -1] = 1.0
    unknown = (codes < 0) & ~lost  # what is missing but never was is none of the levels, either
    if column.other_level:
        out[unknown, len(column.levels)] = 1.0
    elif unknown.any():
        _warn_of_unknown(column.name, texts, unknown, "they are treated as none of the known ones")
    return out


def _codes(texts: Any, column: CodedColumn) -> np.ndarray:
    """Levels that are not known are as those of no rows: 0, without a word, as new ones are usual
    among thousands."""
    places, lost = level_codes(texts, column.levels)
    known = np.column_stack([np.append(codes, 0.0) for codes in column.codes])
    found = known[places]  # −1 is the last
    found[lost] = column.missing
    return np.asarray(found)


def _places(texts: Any, column: OrderedColumn) -> np.ndarray:
    codes, lost = level_codes(texts, column.levels)
    unknown = (codes < 0) & ~lost
    if unknown.any():
        _warn_of_unknown(column.name, texts, unknown, "they count as missing")
    gone = codes < 0
    values = (np.where(gone, column.fill, codes) - column.mean) / column.scale
    return _with_indicator([values], gone, column.missing_indicator)


def _warn_of_unknown(name: str, texts: Any, unknown: np.ndarray, treatment: str) -> None:
    first = int(np.argmax(unknown))
    warn(
        f"column {name!r} has values that the model has not seen in {int(unknown.sum())} rows "
        f"(row {first + 1}: {str(texts[first].as_py())[:40]!r}): {treatment}",
        UnknownLevelWarning,
    )


def dates_of(series: nw.Series[Any], order: str) -> tuple[np.ndarray, np.ndarray]:
    """The dates of a column to the second, NaT where there is none, and which cells are none
    though not missing."""
    import pyarrow as pa

    if _is_dated(series):
        column = series.to_arrow()
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        stamps = column.cast(pa.timestamp("us")) if pa.types.is_date(column.type) else column
        microseconds = stamps.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        lost = np.asarray(stamps.is_null().to_numpy(zero_copy_only=False))
        whole = microseconds.fill_null(0).to_numpy(zero_copy_only=False)
        dates = whole.astype("datetime64[us]").astype("datetime64[s]")
        dates[lost] = np.datetime64("NaT")
        return dates, np.zeros(len(dates), dtype=bool)
    return read_dates(_texts_of_dates(series), order)


def _is_dated(series: nw.Series[Any]) -> bool:
    return isinstance(series.dtype, (nw.Date, nw.Datetime))


def _texts_of_dates(series: nw.Series[Any]) -> Any:
    if not is_text(series) and not series.dtype.is_integer() and not series.is_null().all():
        raise UnsupportedInputError(
            f"column {series.name!r} holds {series.dtype}, and dates were learned from it"
        )
    return texts_as_arrow(series)


def _date_parts(series: nw.Series[Any], column: DateColumn) -> np.ndarray:
    dates, _ = dates_of(series, column.order)
    lost = np.isnat(dates)
    features = []
    for part in column.parts:
        values = np.where(lost, part.fill, part_of_dates(dates, part.part))
        features.append((values - part.mean) / part.scale)
    return _with_indicator(features, lost, column.missing_indicator)

"""Columns of a data frame as numbers: standardised, one column a category, missing ones seen to.

Frames of pandas, polars and pyarrow are read through narwhals; none of them is imported here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np

from ridgefold.errors import (
    FarValueWarning,
    InvalidInputError,
    UnsupportedInputError,
)
from ridgefold.notices import warn
from ridgefold.records import CategoryColumn, NumberColumn, TableColumns
from ridgefold.tables.column_scale import ColumnValues
from ridgefold.tables.numbers_in_text import (
    ColumnOfText,
    Places,
    report_mixed,
    report_unreadable,
    rows_by_number,
)

MOST_LEVELS = 100
"""A text column with more different values is more likely a name than a category."""
MISSING_CHOICES = ("error", "drop", "fill")


def as_frame(X: Any) -> nw.DataFrame[Any]:
    """A frame of any library, or a matrix whose columns are called x0, x1, …"""
    if isinstance(X, nw.DataFrame):
        return X
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise InvalidInputError(f"X must have two dimensions, got shape {X.shape}")
        import pyarrow as pa

        X = pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])})
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        raise UnsupportedInputError(
            f"X must be a pandas, polars or pyarrow table or a NumPy matrix, got {type(X).__name__}"
        ) from None


def learn_columns(
    frame: nw.DataFrame[Any],
    *,
    standardise: bool = True,
    categorical: Collection[str] = (),
    missing: str = "error",
) -> TableColumns:
    """Decide how each column becomes numbers, from the rows to fit.

    Numbers and booleans are standardised as scikit-learn's StandardScaler does (a constant
    column is only centred); text, and what `categorical` names, becomes one column a level.
    With ``missing="fill"`` missing numbers become the mean and missing categories a level of
    their own; with "drop", rows with missing values do not count.
    """
    if missing not in MISSING_CHOICES:
        raise InvalidInputError(f"missing must be error, drop or fill, got {missing!r}")
    _require_columns(frame, categorical)
    categorical = set(categorical)
    if not frame.columns or len(frame) == 0:
        raise InvalidInputError("the table must have at least one column and one row")
    _require_allowed_missing(frame, missing)
    if missing == "drop":
        frame = frame[np.flatnonzero(complete_rows(frame))]
        if len(frame) == 0:
            raise InvalidInputError(
                'no row is left: every row has a missing value; use missing="fill", or leave out '
                "the columns that are empty"
            )
    return TableColumns(
        tuple(
            _learn_category(frame[name], missing)
            if name in categorical or is_text(frame[name])
            else _learn_number(frame[name], standardise, missing)
            for name in frame.columns
        ),
        missing,
    )


def _require_columns(frame: nw.DataFrame[Any], categorical: Collection[str]) -> None:
    unknown = sorted(set(categorical) - set(frame.columns))
    if unknown:
        raise InvalidInputError(
            f"categorical names {', '.join(map(repr, unknown))}, but the columns are "
            f"{listed(frame.columns)}"
        )


def with_numbers_read(
    frame: nw.DataFrame[Any],
    *,
    categorical: Collection[str] = (),
    missing: str = "error",
    declared: bool = True,
    places: Places = rows_by_number,
) -> nw.DataFrame[Any]:
    """The frame, with columns of text that are meant as numbers turned into numbers.

    `declared` says that text is of the type text, as in data frames, and was not guessed to be.
    """
    _require_columns(frame, categorical)
    categorical = set(categorical)
    read, wrong = [], []
    for name in frame.columns:
        series = frame[name]
        if name in categorical or not is_text(series) or is_categorical(series):
            continue
        column = ColumnOfText(name)
        values = column.add(texts_as_arrow(series))
        if column.is_mixed:
            report_mixed(column)
        stays_text = column.unreadable == 0 and declared and _holds_only(series, str)
        if column.holds_numbers and not stays_text:
            read.append(new_series(name, values, frame))
            wrong.append(column)
    report_unreadable(wrong, missing, places)
    return frame.with_columns(read) if read else frame


def new_series(name: str, values: np.ndarray, frame: nw.DataFrame[Any]) -> nw.Series[Any]:
    series = nw.new_series(name, values, nw.Float64(), backend=frame.implementation)
    if frame.implementation.is_pandas_like():
        native = series.to_native()
        native.index = frame.to_native().index  # pandas puts columns together by it
    return series


def texts_as_arrow(series: nw.Series[Any]) -> Any:
    """The texts of a column as a pyarrow array, with nulls for missing ones."""
    import pyarrow as pa

    if not isinstance(series.dtype, nw.Object):
        return series.cast(nw.String).to_arrow()
    lost = missing_in(series)
    cells = zip(series.to_list(), lost.tolist(), strict=True)
    return pa.array([None if gone else str(cell) for cell, gone in cells], pa.large_string())


def complete_rows(frame: nw.DataFrame[Any]) -> np.ndarray:
    """Which rows have no missing value."""
    complete = np.ones(len(frame), dtype=bool)
    for name in frame.columns:
        complete &= ~missing_in(frame[name])
    return complete


def listed(names: Collection[str], most: int = 8) -> str:
    """Names in quotes; of many the first."""
    shown = ", ".join(repr(name) for name in list(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def is_text(series: nw.Series[Any]) -> bool:
    if isinstance(series.dtype, (nw.String, nw.Categorical, nw.Enum)):
        return True
    return (
        isinstance(series.dtype, nw.Object)
        and _holds_only(series, (str, Real))
        and not _holds_only(series, Real)
    )


def is_categorical(series: nw.Series[Any]) -> bool:
    return isinstance(series.dtype, (nw.Categorical, nw.Enum))


def _holds_only(series: nw.Series[Any], kinds: Any) -> bool:
    if not isinstance(series.dtype, nw.Object):
        return kinds is str
    lost = missing_in(series)
    cells = zip(series.to_list(), lost.tolist(), strict=True)
    return all(gone or isinstance(cell, kinds) for cell, gone in cells)


def missing_in(series: nw.Series[Any]) -> np.ndarray:
    missing = series.is_null().to_numpy().astype(bool)
    if isinstance(series.dtype, (nw.Float32, nw.Float64)):
        missing = missing | series.is_nan().fill_null(True).to_numpy().astype(bool)
    return np.asarray(missing)


def numbers_of(series: nw.Series[Any]) -> np.ndarray:
    """float64 with NaN for missing values."""
    dtype = series.dtype
    if not (dtype.is_numeric() or isinstance(dtype, (nw.Boolean, nw.Unknown)) or _is_empty(series)):
        raise UnsupportedInputError(
            f"column {series.name!r} holds {dtype}, which is neither numbers nor text: turn it "
            "into one of them, or leave it out (--ignore on the command line)"
        )
    if _is_empty(series):
        return np.full(len(series), np.nan)
    values = np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    infinite = np.isinf(values)
    if infinite.any():
        raise InvalidInputError(
            f"column {series.name!r} holds an infinite number in row {int(np.argmax(infinite)) + 1}"
        )
    return values


def _is_empty(series: nw.Series[Any]) -> bool:
    return len(series) > 0 and bool(series.is_null().all())


def _require_allowed_missing(frame: nw.DataFrame[Any], missing: str) -> None:
    if missing == "error":
        refuse_missing({name: int(missing_in(frame[name]).sum()) for name in frame.columns})


def refuse_missing(lost: Mapping[str, int]) -> None:
    """An error if values are missing in any column; `lost` says how many."""
    worst = [name for name, count in lost.items() if count]
    if worst:
        counts = ", ".join(f"{name!r} ({lost[name]})" for name in worst[:8])
        more = f" and {len(worst) - 8} more" if len(worst) > 8 else ""
        raise InvalidInputError(
            f"values are missing in {len(worst)} columns: {counts}{more}. Choose what to do with "
            'missing= (--missing on the command line): "drop" leaves such rows out, "fill" takes '
            "the mean for numbers and makes missing a category of its own for text"
        )


def _learn_number(series: nw.Series[Any], standardise: bool, missing: str) -> NumberColumn:
    values = numbers_of(series)
    known = ColumnValues()
    known.add(values[~np.isnan(values)])
    boolean = isinstance(series.dtype, nw.Boolean)
    return number_column(
        series.name,
        known,
        len(values) - known.count,
        standardise=standardise,
        missing=missing,
        boolean=boolean,
    )


def number_column(
    name: str,
    known: ColumnValues,
    missing_rows: int,
    *,
    standardise: bool,
    missing: str,
    boolean: bool,
) -> NumberColumn:
    """How a column of numbers is standardised and filled, from its known values."""
    if known.count == 0:
        raise InvalidInputError(f"column {name!r} is empty: leave it out")
    # Missing numbers become the mean: they count as rows and deviate by nothing.
    found = known.scale(missing_rows if missing == "fill" else 0)
    fill = found.mean if missing == "fill" else None
    if not standardise:
        return NumberColumn(name, fill=fill, boolean=boolean)
    if found.far:
        warn(
            f"column {name!r}: {', '.join(f'{value:g}' for value in found.far)} lie more than "
            "100 standard deviations from all other values, and do not count in its mean and "
            "spread: correct them if they are errors",
            FarValueWarning,
        )
    # A constant column is only centred.
    return NumberColumn(name, found.mean, found.spread or 1.0, fill, boolean)


def texts_of(series: nw.Series[Any]) -> nw.Series[Any]:
    return series if isinstance(series.dtype, nw.String) else series.cast(nw.String)


def levels_of(series: nw.Series[Any]) -> list[str]:
    """The different texts of a column, without those of missing values (NaN has one)."""
    known = [int(row) for row in np.flatnonzero(~missing_in(series))]
    return [str(level) for level in texts_of(series)[known].drop_nulls().unique().to_list()]


def _learn_category(series: nw.Series[Any], missing: str) -> CategoryColumn:
    return category_of(series.name, sorted(levels_of(series)), missing)


def category_of(name: str, levels: list[str], missing: str) -> CategoryColumn:
    """A column of categories, from its sorted levels."""
    if len(levels) > MOST_LEVELS:
        raise InvalidInputError(
            f"column {name!r} is text with {len(levels)} different values (such as "
            f"{levels[0][:40]!r}): at most {MOST_LEVELS} can be categories. Leave it out "
            "(--ignore on the command line), or group its values"
        )
    if not levels:
        raise InvalidInputError(f"column {name!r} is empty: leave it out")
    return CategoryColumn(name, tuple(levels), missing == "fill")

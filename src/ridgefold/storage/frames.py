"""Columns of a data frame as numbers: standardised, one column a category, missing ones seen to.

Frames of pandas, polars and pyarrow are read through narwhals; none of them is imported here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import narwhals as nw
import numpy as np

from ridgefold.errors import InvalidInputError, UnknownLevelWarning, UnsupportedInputError
from ridgefold.notices import warn
from ridgefold.records import CategoryColumn, NumberColumn, TableColumns

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
    unknown = sorted(set(categorical) - set(frame.columns))
    if unknown:
        raise InvalidInputError(
            f"categorical names {', '.join(map(repr, unknown))}, but the columns are "
            f"{_listed(frame.columns)}"
        )
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


def complete_rows(frame: nw.DataFrame[Any]) -> np.ndarray:
    """Which rows have no missing value."""
    complete = np.ones(len(frame), dtype=bool)
    for name in frame.columns:
        complete &= ~missing_in(frame[name])
    return complete


def encode(frame: nw.DataFrame[Any], columns: TableColumns) -> tuple[np.ndarray, np.ndarray]:
    """The matrix that a model takes, and which rows of the frame it holds.

    All rows but with ``missing="drop"``. Levels that were not there when the columns were
    learned are none of those known: zeros, with a warning.
    """
    absent = [name for name in columns.names if name not in frame.columns]
    if absent:
        raise InvalidInputError(
            f"the table lacks {_listed(absent)}: the model takes {_listed(columns.names)}"
        )
    frame = frame.select(list(columns.names))
    rows = np.arange(len(frame))
    if columns.missing == "drop":
        rows = np.flatnonzero(complete_rows(frame))
    out = np.empty((len(rows), len(columns.feature_names)))
    position = 0
    for column in columns.columns:
        series = frame[column.name]
        if isinstance(column, NumberColumn):
            values = numbers_of(series)[rows]
            lost = np.isnan(values)
            if lost.any():
                if column.fill is None:
                    raise InvalidInputError(_says_missing(column.name, lost))
                values = np.where(lost, column.fill, values)
            out[:, position] = (values - column.mean) / column.scale
            position += 1
        else:
            lost = missing_in(series)[rows]
            if lost.any() and not column.missing_level:
                raise InvalidInputError(_says_missing(column.name, lost))
            width = len(column.levels) + column.missing_level
            out[:, position : position + width] = _one_hot(series, column)[rows]
            position += width
    return out, rows


def _listed(names: Collection[str], most: int = 8) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def is_text(series: nw.Series[Any]) -> bool:
    if isinstance(series.dtype, (nw.String, nw.Categorical, nw.Enum)):
        return True
    return isinstance(series.dtype, nw.Object) and _holds_text(series)


def _holds_text(series: nw.Series[Any]) -> bool:
    known = [value for value in series.to_list() if value is not None]
    return bool(known) and all(isinstance(value, str) for value in known)


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


def _says_missing(name: str, lost: np.ndarray) -> str:
    return (
        f"column {name!r} has no value in {int(lost.sum())} rows, the first of them row "
        f"{int(np.argmax(lost)) + 1}, and the model was fitted without missing values: fill them, "
        'or fit with missing="fill" or "drop"'
    )


def _learn_number(series: nw.Series[Any], standardise: bool, missing: str) -> NumberColumn:
    values = numbers_of(series)
    known = values[~np.isnan(values)]
    if len(known) == 0:
        raise InvalidInputError(f"column {series.name!r} is empty: leave it out")
    fill = float(known.mean()) if missing == "fill" else None
    boolean = isinstance(series.dtype, nw.Boolean)
    if not standardise:
        return NumberColumn(series.name, fill=fill, boolean=boolean)
    filled = np.where(np.isnan(values), known.mean(), values)
    mean, scale = float(filled.mean()), float(filled.std())
    return NumberColumn(series.name, mean, usable_scale(mean, scale), fill, boolean)


def usable_scale(mean: float, scale: float) -> float:
    """As scikit-learn does: a spread that is rounding error is none, and divides by 1."""
    return scale if scale > 10 * np.finfo(np.float64).eps * abs(mean) else 1.0


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


def _one_hot(series: nw.Series[Any], column: CategoryColumn) -> np.ndarray:
    lost = missing_in(series)
    out = np.zeros((len(series), len(column.levels) + column.missing_level))
    if len(series) == 0:
        return out
    texts = texts_of(series)
    for j, level in enumerate(column.levels):
        out[:, j] = (texts == level).fill_null(False).to_numpy()
    out[lost] = 0.0
    if column.missing_level:
        out[lost, -1] = 1.0
    unknown = (out.sum(axis=1) == 0) & ~lost
    if unknown.any():
        first = int(np.argmax(unknown))
        warn(
            f"column {column.name!r} has values that the model has not seen in "
            f"{int(unknown.sum())} rows (row {first + 1}: {str(texts[first])[:40]!r}): they are "
            "treated as none of the known ones",
            UnknownLevelWarning,
        )
    return out

"""What the columns of a table hold: it lies in pyarrow's memory, wherever it is from."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import narwhals as nw
import numpy as np

from ridgefold.errors import InvalidInputError, UnsupportedInputError


def as_frame(X: Any) -> nw.DataFrame[Any]:
    """A frame of any library."""
    if isinstance(X, nw.DataFrame):
        return X
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        raise UnsupportedInputError(
            f"X must be a pandas, polars or pyarrow table or a NumPy matrix, got {type(X).__name__}"
        ) from None


def new_series(name: str, values: np.ndarray, frame: nw.DataFrame[Any]) -> nw.Series[Any]:
    return nw.new_series(name, values, nw.Float64(), backend=frame.implementation)


def new_dates(name: str, dates: np.ndarray, frame: nw.DataFrame[Any]) -> nw.Series[Any]:
    values = dates.astype("datetime64[us]")
    return nw.new_series(name, values, nw.Datetime("us"), backend=frame.implementation)


def texts_as_arrow(series: nw.Series[Any]) -> Any:
    """The texts of a column as a pyarrow array, with nulls for missing ones."""
    return series.cast(nw.String).to_arrow()


def listed(names: Collection[str], most: int = 8) -> str:
    """Names in quotes; of many the first."""
    shown = ", ".join(repr(name) for name in list(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def is_text(series: nw.Series[Any]) -> bool:
    return isinstance(series.dtype, (nw.String, nw.Categorical, nw.Enum))


def is_categorical(series: nw.Series[Any]) -> bool:
    return isinstance(series.dtype, (nw.Categorical, nw.Enum))


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
            "into one of them, or leave it out (--drop on the command line)"
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

"""The target of a table: numbers, also where text disguises them, or classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.records import NumberColumn, NumberText
from ridgefold.tables.column_kinds import (
    ColumnKind,
    TableStyle,
    counts_of,
    has_identifier_name,
    kind_of,
    number_share,
)
from ridgefold.tables.diagnosis import TargetDiagnosis
from ridgefold.tables.encode import level_codes, level_texts
from ridgefold.tables.frames import is_text, listed
from ridgefold.tables.learned_columns import column_numbers
from ridgefold.tables.numbers_in_text import MOST_UNREADABLE, Places
from ridgefold.tables.written_numbers import rule_of

_MOST_CLASSES = 100
"""More different texts are names of the rows, or sentences, and no classes to tell apart."""
_MOST_CLASS_SHARE = 0.5
"""Of the rows: more classes than this leave most of them with a single row."""


@dataclass(frozen=True)
class ReadTarget:
    """The target of the rows that have one."""

    diagnosis: TargetDiagnosis
    y: np.ndarray
    """float64 numbers, or labels."""
    codes: np.ndarray
    """The same as numbers; whole numbers of the type int if they are classes."""
    rows: np.ndarray
    unreadable: np.ndarray
    """Rows whose cell is no number though it is not missing."""
    kind: ColumnKind


def read_target(
    series: nw.Series[Any], style: TableStyle, places: Places, *, choice: Any, head_rows: int
) -> ReadTarget:
    """Decide what the target is, and read it."""
    name = series.name
    kind = kind_of(series[:head_rows], style, choice=choice, is_named=False)
    if kind.kind in ("date", "unsupported"):
        raise InvalidInputError(
            f"the target {name!r} holds {kind.reason}, and only numbers and classes can be "
            "predicted: turn it into numbers, such as days since a date"
        )
    if kind.kind == "number":
        values, unreadable = column_numbers(series, kind)
        known = int((~np.isnan(values)).sum())
        if choice is None and unreadable.sum() > MOST_UNREADABLE * (known + unreadable.sum()):
            raise _half_a_number(series, unreadable, known, places)
        if choice is None and len(np.unique(values[~np.isnan(values)])) == 2:
            return _classes(series, kind, "it has two values", style)
        return _numbers(name, values, unreadable, kind)
    if kind.half_numbers is not None and choice is None:
        assert kind.numbers is not None
        values, unreadable = column_numbers(series, ColumnKind("number", "", kind.numbers.rule))
        raise _half_a_number(series, unreadable, int((~np.isnan(values)).sum()), places)
    reason = {
        "boolean": f"it holds {kind.reason}",
        "category": "it holds text" if is_text(series) else "it holds categories",
        "ordered": "it holds categories, whose order is not used",
    }.get(kind.kind, "it holds text")
    return _classes(series, kind, "as asked for" if choice == "category" else reason, style)


def _half_a_number(
    series: nw.Series[Any], unreadable: np.ndarray, known: int, places: Places
) -> InvalidInputError:
    """What to say of a target that is a number in most rows, and not in many others."""
    name, wrong = series.name, int(unreadable.sum())
    rows = [int(row) for row in np.flatnonzero(unreadable)[:3]]
    where = ", ".join(
        f"{str(series[row])[:40]!r} in {place}"
        for row, place in zip(rows, places(rows), strict=True)
    )
    return InvalidInputError(
        f"the target {name!r} is a number in most rows, but {wrong:,} of {wrong + known:,} cells "
        f"are none: {where}. Correct them; or say what it holds with "
        f"columns={{{name!r}: 'number'}} (--columns {name}=number), which leaves these rows out, "
        f"or columns={{{name!r}: 'category'}}, which predicts classes"
    )


def _numbers(name: str, values: np.ndarray, unreadable: np.ndarray, kind: ColumnKind) -> ReadTarget:
    rows = np.flatnonzero(~np.isnan(values))
    _require_two(name, rows)
    y = values[rows]
    if np.all(y == y[0]):
        raise InvalidInputError(f"the target {name!r} is {y[0]:g} in every row: nothing to learn")
    column = NumberColumn(name, boolean=kind.boolean, text=kind.rule)
    reason = "it holds numbers" if kind.rule is None else f"it holds {kind.reason}"
    missing = len(values) - len(rows)
    diagnosis = TargetDiagnosis(name, "regression", reason, missing, column)
    return ReadTarget(diagnosis, y, y, rows, unreadable, kind)


def _classes(
    series: nw.Series[Any], kind: ColumnKind, reason: str, style: TableStyle
) -> ReadTarget:
    texts = level_texts(series)
    labels = tuple(sorted(text for text in texts.unique().to_pylist() if text is not None))
    known = len(texts) - texts.null_count
    name = series.name
    if len(labels) > max(2, min(_MOST_CLASSES, _MOST_CLASS_SHARE * known)):
        hint = " It looks like an identifier." if has_identifier_name(name) else ""
        if _are_numbers(series, style):
            raise InvalidInputError(
                f"the target {name!r} holds {len(labels):,} different numbers (such as "
                f"{labels[0][:40]!r}), and these are no classes.{hint} Predict numbers with "
                "RidgefoldRegressor (--task regression), or group them into classes"
            )
        raise InvalidInputError(
            f"the target {name!r} holds {len(labels):,} different texts in {known:,} rows (such as "
            f"{listed([label[:40] for label in labels[:2]])}): these are no classes, and no "
            f"numbers either.{hint} Choose another target, or group its values"
        )
    codes, _ = level_codes(texts, labels)
    rows = np.flatnonzero((codes >= 0) & ~_marks(texts))
    _require_two(name, rows)
    y = _labels(series)[rows]
    shown = tuple(str(label) for label in np.unique(y))
    if len(shown) < 2:
        raise InvalidInputError(
            f"the target {name!r} is {shown[0]!r} in every row: nothing to learn"
        )
    missing = len(series) - len(rows)
    diagnosis = TargetDiagnosis(name, "classification", reason, missing, None, shown)
    whole = np.unique(y, return_inverse=True)[1].astype(np.int64)
    return ReadTarget(diagnosis, y, whole, rows, np.zeros(len(series), dtype=bool), kind)


def _are_numbers(series: nw.Series[Any], style: TableStyle) -> bool:
    if not is_text(series):
        return bool(series.dtype.is_numeric())
    counts = counts_of(series)
    return number_share(counts, rule_of(counts, style.decimal, style.separator).rule).is_number


def _marks(texts: Any) -> np.ndarray:
    from ridgefold.tables.written_numbers import is_missing_mark, trimmed

    coded = texts.dictionary_encode()
    marks = np.append(is_missing_mark(trimmed(coded.dictionary), among_numbers=False), True)
    places = coded.indices.fill_null(len(marks) - 1).to_numpy(zero_copy_only=False)
    return np.asarray(marks[places])


def _labels(series: nw.Series[Any]) -> np.ndarray:
    """The labels in their own type: whole numbers, true and false, or trimmed texts."""
    if series.dtype.is_numeric():
        values = np.nan_to_num(np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64))
        whole = values.astype(np.int64)
        return whole if np.array_equal(whole, values) else values
    if isinstance(series.dtype, nw.Boolean):
        filled = series.fill_null(False)
        return np.asarray(filled.to_numpy(), dtype=bool)
    texts = level_texts(series).to_pylist()
    stripped = ["" if text is None else text.strip() for text in texts]
    labels = np.asarray(stripped, dtype=np.str_)
    numbers = {text for text in set(stripped) if text}
    if all(text.isascii() and text.isdigit() and str(int(text)) == text for text in numbers):
        return np.asarray([int(text or 0) for text in stripped], dtype=np.int64)
    return labels


def targets_again(
    series: nw.Series[Any],
    classes: np.ndarray | None,
    rule: NumberText | None,
    boolean: bool = False,
    *,
    first_row: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of more cells that have a target, and the targets: read as those of the fit were.

    `classes` are those that a model knows; without them the targets are numbers.
    """
    if classes is None:
        kind = ColumnKind("number", "as in the fit", rule or NumberText(), boolean)
        values, _ = column_numbers(series, kind)
        rows = np.flatnonzero(~np.isnan(values))
        return rows, values[rows]
    texts = level_texts(series)
    codes, missing = level_codes(texts, tuple(str(label) for label in classes))
    wrong = np.flatnonzero((codes < 0) & ~missing)
    if len(wrong):
        first = int(wrong[0])
        raise InvalidInputError(
            f"the target {series.name!r} is {texts[first].as_py()!r} in row "
            f"{first_row + first + 1}, and the classes are {', '.join(map(str, classes))}"
        )
    rows = np.flatnonzero(codes >= 0)
    return rows, classes[codes[rows]]


def _require_two(name: str, rows: np.ndarray) -> None:
    if len(rows) < 2:
        raise InvalidInputError(
            f"the target {name!r} has a value in {len(rows)} rows: at least 2 are needed"
        )


def target_column(target: Any, n_rows: int) -> nw.Series[Any]:
    """Targets that are given apart from their table, as a column."""
    from ridgefold.tables.table_input import read_input

    values = np.asarray(target) if isinstance(target, (list, tuple)) else target
    if hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        name = getattr(values, "name", None)
    else:
        name = None
    if np.ndim(values) != 1 or len(values) != n_rows:
        raise InvalidInputError(
            f"target must be the name of a column, or have one entry a row: the table has "
            f"{n_rows} rows, target {np.shape(values)}"
        )
    name = name if isinstance(name, str) and name else "target"
    return read_input({name: values}).frame[name]

"""The effects of a table's columns, in the units of the table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import numpy as np

from ridgefold.estimators.effects import Difference, Effect, Slope
from ridgefold.records import (
    CategoryColumn,
    CodedColumn,
    ColumnRecord,
    DateColumn,
    NumberColumn,
    OrderedColumn,
    TableColumns,
)


def table_effects(columns: TableColumns, training: np.ndarray) -> list[Effect]:
    """A slope for every number, differences for two values and for categories.

    `training` are the rows of the fit as the model sees them, by which two values are known.
    """
    effects: list[Effect] = []
    start = 0
    for column in columns.columns:
        width = len(column.feature_names)
        features = tuple(range(start, start + width))
        if isinstance(column, CategoryColumn):
            effects += _of_categories(column, features)
        elif isinstance(column, DateColumn):
            effects += _of_dates(column, features, training)
        else:
            effects += _of_numbers(column, features, training)
        start += width
    return effects


def _of_categories(column: CategoryColumn, features: tuple[int, ...]) -> list[Effect]:
    """Every category against the first; a category is a one among zeros."""
    names = [*column.levels]
    names += ["other"] if column.other_level else []
    names += ["missing"] if column.missing_level else []
    one_hot = np.eye(len(names))
    base = tuple(one_hot[0].tolist())
    return [
        Difference(f"{column.name}: {names[0]} → {name}", features, tuple(place.tolist()), base)
        for name, place in zip(names[1:], one_hot[1:], strict=True)
    ]


def _of_dates(column: DateColumn, features: tuple[int, ...], training: np.ndarray) -> list[Effect]:
    """The third quartile of the dates against the first: all that is made of a date changes."""
    parts = features[: len(column.parts)]
    known = np.ones(len(training), dtype=bool)
    if column.missing_indicator:
        known = training[:, features[-1]] == 0
    rows = np.unique(training[known][:, parts], axis=0)
    order = np.lexsort(rows.T[::-1])
    names = [part.part for part in column.parts]
    if "elapsed_days" in names:
        order = np.argsort(rows[:, names.index("elapsed_days")], kind="stable")
    if len(rows) < 2:
        return []
    low, high = (rows[order[round(q * (len(rows) - 1))]] for q in (0.25, 0.75))
    shown = [_shown_date(column, each) for each in (low, high)]
    pair = tuple(tuple(each.tolist()) for each in (high, low))
    if pair[0] == pair[1]:
        return []
    return [Difference(f"{column.name}: {shown[0]} → {shown[1]}", parts, *pair)]


def _shown_date(column: DateColumn, values: np.ndarray) -> str:
    """A date in words, as far as its parts tell."""
    said = {
        part.part: part.mean + part.scale * float(value)
        for part, value in zip(column.parts, values, strict=True)
    }
    if "elapsed_days" in said:
        return str(date(1970, 1, 1) + timedelta(days=round(said["elapsed_days"])))
    return ", ".join(f"{name} {value:.6g}" for name, value in said.items())


def places_of_numbers(columns: TableColumns) -> Iterator[tuple[str, int | None, float]]:
    """Every column of a table, the feature that is the column itself, and its scale.

    None for columns that have no slope, as their values are no numbers.
    """
    start = 0
    for column in columns.columns:
        plain = isinstance(column, NumberColumn) and not column.boolean
        yield column.name, start if plain else None, column.scale if plain else 1.0  # type: ignore[union-attr]
        start += len(column.feature_names)


def _of_numbers(
    column: ColumnRecord, features: tuple[int, ...], training: np.ndarray
) -> list[Effect]:
    effects: list[Effect] = []
    places = _places(column)
    for feature, name, (mean, scale) in zip(features, column.feature_names, places, strict=True):
        values = np.unique(training[:, feature])
        if len(values) == 2:
            low, high = (_shown(column, mean + scale * value) for value in values.tolist())
            pair = ((float(values[1]),), (float(values[0]),))
            effects.append(Difference(f"{name}: {low} → {high}", (feature,), *pair))
        else:
            effects.append(Slope(name, feature, 1.0 / scale))
    return effects


def _places(column: ColumnRecord) -> list[tuple[float, float]]:
    """Mean and scale of every feature of a column of numbers; indicators of gaps are plain."""
    places = []
    if not isinstance(column, CodedColumn):  # codes are plain, too
        assert isinstance(column, (NumberColumn, OrderedColumn))
        places = [(column.mean, column.scale)]
    return places + [(0.0, 1.0)] * (len(column.feature_names) - len(places))


def _shown(column: ColumnRecord, value: float) -> str:
    if isinstance(column, NumberColumn) and column.boolean:
        return "true" if value > 0.5 else "false"
    return f"{value:.6g}"

"""The effects of a table's columns, in the units of the table."""

from __future__ import annotations

import numpy as np

from ridgefold.estimators.effects import Difference, Effect, Slope
from ridgefold.records import (
    CategoryColumn,
    CodedColumn,
    ColumnRecord,
    DateColumn,
    NumberColumn,
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
    if isinstance(column, DateColumn):
        places = [(part.mean, part.scale) for part in column.parts]
    elif isinstance(column, CodedColumn):
        places = []  # codes are plain, too
    else:
        assert not isinstance(column, CategoryColumn)
        places = [(column.mean, column.scale)]
    return places + [(0.0, 1.0)] * (len(column.feature_names) - len(places))


def _shown(column: ColumnRecord, value: float) -> str:
    if isinstance(column, NumberColumn) and column.boolean:
        return "true" if value > 0.5 else "false"
    return f"{value:.6g}"

"""Curves of how predictions move with a column: partial dependence, with an error.

With θ_k the curve of the model without fold k of l, the jackknife's standard error of θ is the root
of (l − 1)/l Σ_k (θ_k − θ̄)² (Quenouille 1956, Tukey 1958). It says how far other rows would have
led to another curve; it does not know what the smoothing of the model leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ridgefold.records import (
    CategoryColumn,
    CodedColumn,
    DateColumn,
    EffectCurve,
    OrderedColumn,
    TableColumns,
)

_POINTS = 17
"""Values of a column of numbers: enough for a curve with a few bends."""
_FEW = 10
"""The curve of a column of at most so many different numbers has a point at each of them."""
_TAIL = 0.01
"""No curve is drawn over this share of the rows at either end, where next to nothing is known."""
_MOST_LEVELS = 20


@dataclass(frozen=True)
class ColumnGrid:
    """Values of a column as the model takes them."""

    name: str
    features: np.ndarray
    """The columns of numbers that it is."""
    values: np.ndarray
    """What to put there, shape (k, len(features))."""
    positions: np.ndarray
    levels: tuple[str, ...] | None = None


def grids_of_numbers(X: np.ndarray, names: Sequence[str]) -> list[ColumnGrid]:
    """A grid for each column of numbers that varies."""
    grids = []
    for j, name in enumerate(names):
        points = _points(X[:, j])
        if len(points) > 1:
            grids.append(ColumnGrid(name, np.array([j]), points[:, None], points))
    return grids


def grids_of_table(X: np.ndarray, columns: TableColumns) -> list[ColumnGrid]:
    """A grid for each column of a table, from its rows as numbers."""
    grids, start = [], 0
    for column in columns.columns:
        width = len(column.feature_names)
        features = np.arange(start, start + width)
        start += width
        if width == 0:
            continue
        own, levels = X[:, features], None
        if isinstance(column, CategoryColumn):
            count = min(width, _MOST_LEVELS)
            order = np.sort(np.argsort(-own.sum(axis=0), kind="stable")[:count])
            values = np.eye(width)[order]
            positions = np.arange(count, dtype=np.float64)
            names = [*column.levels, *(["other"] if column.other_level else [])]
            names += ["missing"] if column.missing_level else []
            levels = tuple(names[k] for k in order)
        elif isinstance(column, CodedColumn):
            codes = np.asarray(column.codes).T
            by_code = np.argsort(codes[:, 0], kind="stable")
            count = min(len(by_code), _MOST_LEVELS)
            order = by_code[np.linspace(0, len(by_code) - 1, count).astype(int)]
            values, positions = codes[order], np.arange(count, dtype=np.float64)
            levels = tuple(column.levels[k] for k in order)
        elif isinstance(column, DateColumn):
            parts = [part.part for part in column.parts]
            lead = parts.index("elapsed_days") if "elapsed_days" in parts else 0
            order = np.argsort(own[:, lead], kind="stable")
            rows = order[np.linspace(0, len(order) - 1, min(len(order), _POINTS)).astype(int)]
            values = own[rows]
            part = column.parts[lead]
            positions = part.mean + part.scale * values[:, lead]
        else:
            points = _points(own[:, 0])
            values = np.zeros((len(points), width))  # where the column says what is missing: not
            values[:, 0] = points
            positions = column.mean + column.scale * points
            if isinstance(column, OrderedColumn):
                places = np.clip(np.round(positions), 0, len(column.levels) - 1).astype(int)
                levels = tuple(column.levels[place] for place in places)
                positions = np.arange(len(places), dtype=np.float64)
        if len(values) > 1:
            grids.append(ColumnGrid(column.name, features, values, positions, levels))
    return grids


def _points(values: np.ndarray) -> np.ndarray:
    values = values.astype(np.float64)
    distinct = np.unique(values)
    if len(distinct) <= _FEW:
        return np.asarray(distinct)
    low, high = np.quantile(values, [_TAIL, 1.0 - _TAIL])
    return np.asarray(np.linspace(low, high, _POINTS) if high > low else distinct[[0, -1]])


Predict = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]]
"""Rows -> predictions (m,) of the model, and (m, l) of those without a fold each, if there are."""


def effect_curve(
    grid: ColumnGrid, X: np.ndarray, weights: np.ndarray, predict: Predict, quantity: str
) -> EffectCurve:
    """The curve of one column over some rows."""
    shares = weights / weights.sum()
    means, without = [], []
    for value in grid.values:
        changed = X.copy()
        changed[:, grid.features] = value
        whole, apart = predict(changed)
        means.append(float(shares @ whole))
        if apart is not None:
            without.append(shares @ apart)
    errors = None
    if without:
        curves = np.stack(without)
        count = curves.shape[1]
        apart = curves - curves.mean(axis=1)[:, None]
        errors = np.sqrt((count - 1) / count * np.sum(apart**2, axis=1))
    return EffectCurve(grid.name, grid.positions, grid.levels, np.array(means), errors, quantity)

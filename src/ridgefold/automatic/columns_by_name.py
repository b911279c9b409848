"""Names of a table's columns in the arguments of a model, and its coefficients in their units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from ridgefold.errors import InvalidInputError
from ridgefold.estimators.facts import to_numpy
from ridgefold.estimators.fixed_columns import numbers_of_fixed
from ridgefold.estimators.scale_names import groups_of
from ridgefold.records import DateColumn, NumberColumn, OrderedColumn, TableColumns

FIXED = ("fixed_coef_", "fixed_coef_std_", "fixed_names_")


def with_numbers_for_names(model: Any, columns: TableColumns) -> Any:
    """A copy of a model, with the numbers of columns where `fixed` and `metric.groups` name them.

    In `fixed`, a column of categories is one column a level; beside a bias all but the first, which
    the others are compared with.
    """
    model = clone(model)
    fixed, groups = getattr(model, "fixed", None), groups_of(model)
    if isinstance(fixed, (list, tuple, np.ndarray)):
        first = {group[0] for group in columns.category_features} if model.fit_intercept else set()
        found: list[Any] = []
        for each in fixed:
            own = _features("fixed", each, columns)
            found += [j for j in own if j not in first or len(own) == 1]
        model.set_params(fixed=found)
    if len(groups):
        named = [[group] if isinstance(group, str) else list(group) for group in groups]
        model.set_params(
            metric__groups=[
                [j for each in group for j in _features("metric.groups", each, columns)]
                for group in named
            ]
        )
    return model


def with_names_for_numbers(model: Any, columns: TableColumns) -> Any:
    """The model as it was before `with_numbers_for_names`, for tables with other features."""
    named, fixed, groups = clone(model), getattr(model, "fixed", None), groups_of(model)
    if isinstance(fixed, (list, tuple, np.ndarray)):
        named.set_params(fixed=list(_origins(fixed, columns)))
        if list(with_numbers_for_names(named, columns).fixed) != list(fixed):
            named.set_params(fixed=[columns.feature_names[j] for j in fixed])  # some of the levels
    if len(groups):
        own = [_origins(group, columns) for group in groups]
        named.set_params(metric__groups=[each[0] if len(each) == 1 else each for each in own])
    return named


def _origins(numbers: Any, columns: TableColumns) -> list[str]:
    """The columns of the table that some features come from, each once."""
    return list(dict.fromkeys(columns.origins[j] for j in numbers))


def _features(argument: str, name: Any, columns: TableColumns) -> list[int]:
    """The numbers that a column of the table was made into; columns without names are x0, x1, …"""
    if not isinstance(name, str):
        number, name = name, f"x{name}"
        if isinstance(number, (bool, np.bool_)) or name not in columns.names:
            raise InvalidInputError(
                f"{argument} holds {number!r}, and the columns of a table are known by name: give "
                f"names, such as {columns.names[0]!r}"
            )
    if name in columns.names:
        return [j for j, origin in enumerate(columns.origins) if origin == name]
    if name in columns.feature_names:
        return [columns.feature_names.index(name)]
    raise InvalidInputError(
        f"{argument} names the column {name!r}, which the model does not get: its columns are "
        f"{', '.join(columns.names[:20])}{', …' if len(columns.names) > 20 else ''}"
    )


def set_fixed_attributes(estimator: Any) -> None:
    """Coefficients, standard errors and names of the fitted model, in the units of its table."""
    inner, columns = estimator.model_, estimator.columns_
    places = numbers_of_fixed(inner)
    if not places:
        return
    names, scales = columns.feature_names, np.array(list(_scales(columns)))[list(places)]
    estimator.fixed_names_ = np.asarray([names[j] for j in places], dtype=object)
    for name in FIXED[:2]:
        values = getattr(inner, name, None)
        if values is not None:  # of cells there are no standard errors
            numbers = to_numpy(values)
            shape = [1] * numbers.ndim
            shape[1 if hasattr(inner, "n_partitions_") else 0] = len(places)
            setattr(estimator, name, numbers / scales.reshape(shape))


def _scales(columns: TableColumns) -> Iterator[float]:
    """What every column of numbers was divided by."""
    for column in columns.columns:
        own = [1.0] * len(column.feature_names)
        if isinstance(column, (NumberColumn, OrderedColumn)):
            own[0] = float(column.scale)
        elif isinstance(column, DateColumn):
            own[: len(column.parts)] = [float(part.scale) for part in column.parts]
        yield from own

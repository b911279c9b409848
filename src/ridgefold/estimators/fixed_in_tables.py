"""Unpenalised columns of tables: by the names of the table, and in its units."""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.estimators.fixed_columns import numbers_of_fixed
from ridgefold.linalg import namespace_of
from ridgefold.records import DateColumn, NumberColumn, OrderedColumn, TableColumns


def numbered(fixed: Any, columns: TableColumns, *, bias: bool) -> Any:
    """`fixed` as the model of numbers takes it: columns of a table by their numbers there.

    A column of categories is one column a level; beside a bias all but the first, which the others
    are compared with.
    """
    if isinstance(fixed, str) or not isinstance(fixed, (list, tuple, np.ndarray)):
        return fixed
    first = {group[0] for group in columns.category_features} if bias else set()
    features, found = columns.feature_names, []
    for each in fixed:
        if not isinstance(each, str):
            found.append(each)
        elif each in columns.names:
            own = [j for j, name in enumerate(columns.origins) if name == each]
            found += [j for j in own if j not in first or len(own) == 1]
        elif each in features:
            found.append(features.index(each))
        else:
            raise InvalidInputError(
                f"fixed names the column {each!r}, which the table does not have: its columns are "
                f"{', '.join(columns.names[:20])}{', …' if len(columns.names) > 20 else ''}"
            )
    return found


def set_fixed_attributes(table_model: Any) -> None:
    """Coefficients, standard errors and names of a fitted model, in the units of its table."""
    for name in ("fixed_coef_", "fixed_coef_std_", "fixed_names_"):
        table_model.__dict__.pop(name, None)
    inner, columns = table_model.model_, table_model.columns_
    places = numbers_of_fixed(inner)
    if not places:
        return
    scales = np.array([_scales(columns)[j] for j in places])
    names = columns.feature_names
    table_model.fixed_names_ = np.asarray([names[j] for j in places], dtype=object)
    for name in ("fixed_coef_", "fixed_coef_std_"):
        values = getattr(inner, name, None)
        if values is None:  # of cells there are no standard errors
            continue
        numbers = namespace_of(values).to_numpy(values)
        axis = 1 if hasattr(inner, "n_partitions_") else 0
        shape = [1] * numbers.ndim
        shape[axis] = len(places)
        setattr(table_model, name, numbers / scales.reshape(shape))


def _scales(columns: TableColumns) -> list[float]:
    """What every column of numbers was divided by."""
    found: list[float] = []
    for column in columns.columns:
        own = [1.0] * len(column.feature_names)
        if isinstance(column, (NumberColumn, OrderedColumn)):
            own[0] = float(column.scale)
        elif isinstance(column, DateColumn):
            own[: len(column.parts)] = [float(part.scale) for part in column.parts]
        found += own
    return found

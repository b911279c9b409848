"""Learned scales by name: one entry for columns that share a scale, and how much it counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.cells.cell_rows import spaced
from ridgefold.linalg import namespace_of
from ridgefold.options import metric_of

_SAMPLE_ROWS = 5000
"""Rows whose spreads turn scales into shares."""


@dataclass(frozen=True)
class NamedScales:
    """The scales of a metric, in the order of their first columns."""

    names: tuple[str, ...]
    shares: np.ndarray
    """Their shares in the mean distance between two rows."""
    first_columns: np.ndarray


def named_scales(estimator: Any, names: Sequence[str], shares: np.ndarray) -> NamedScales:
    """Names and shares of columns, with groups put together.

    A group that a table's column of categories makes has the name of that column, another one
    those of its first and last columns.
    """
    inner = getattr(estimator, "model_", estimator)
    groups = [list(group) for group in groups_of(inner) if len(group)]
    called = [names[group[0]] if len(group) == 1 else _both_ends(names, group) for group in groups]
    table = getattr(estimator, "columns_", None)
    if table is not None:
        of_categories = {group: table.origins[group[0]] for group in table.category_features}
        called = [
            of_categories.get(tuple(sorted(group)), name)
            for group, name in zip(groups, called, strict=True)
        ]
    taken = {column for group in groups for column in group}
    entries = [(min(group), name, group) for group, name in zip(groups, called, strict=True)]
    entries += [(j, names[j], [j]) for j in range(len(names)) if j not in taken]
    entries.sort(key=lambda entry: entry[0])
    return NamedScales(
        tuple(name for _, name, _ in entries),
        np.array([float(np.sum(shares[group])) for _, _, group in entries]),
        np.array([first for first, _, _ in entries], dtype=np.intp),
    )


def groups_of(model: Any) -> Sequence[Sequence[int]]:
    """Columns that share a scale in the metric that a model learns."""
    asked = metric_of(model) if hasattr(model, "metric") else None
    return () if asked is None or asked.groups is None else asked.groups


def _both_ends(names: Sequence[str], group: Sequence[int]) -> str:
    return f"{names[min(group)]} … {names[max(group)]}"


def column_shares(inner: Any) -> np.ndarray | None:
    """Shares of the columns in mean squared distance; None if no scales were learned.

    Partitioned models keep the scales alone: the mean of (x_j − x'_j)²/ℓ_j² over pairs of rows is
    twice the variance of the column over ℓ_j².
    """
    found = getattr(inner, "column_shares_", None)
    if found is not None:
        return np.asarray(found, dtype=np.float64)
    scales = getattr(inner, "length_scales_", None)
    if scales is None:
        return None
    rows = inner.X_fit_[spaced(inner.X_fit_.shape[0], _SAMPLE_ROWS)]
    rows = namespace_of(rows).to_numpy(rows).astype(np.float64)
    largest = float(np.max(np.abs(rows)))
    with np.errstate(over="ignore"):
        # In parts of the largest, so that no square leaves the range of numbers.
        spread = np.std(rows / largest if largest > 0 else rows, axis=0)
        reach = np.asarray(spread / np.asarray(scales))
    longest = float(np.max(reach))
    if not 0 < longest < np.inf:
        return np.zeros_like(reach)
    shares = (reach / longest) ** 2
    return np.asarray(shares / shares.sum())

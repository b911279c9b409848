"""Numbers for the levels of columns that have too many of them for a feature each.

The code of a level is what it adds to the target beside all other columns: a linear model of these
is fitted first, then the levels of every coded column to what is left, one column after another, as
effects drawn from one distribution. With n_l rows of level l, mean r̄_l of what is left, variance s²
within levels and τ² between them (both by moments),

    code_l = n_l/(n_l + s²/τ²) · r̄_l,

so that rare levels are near 0, where levels without a row are.

**A row's code never holds its own target.** The rows to fit are dealt into two halves at random,
and each half has the codes that the other one gives; new rows have those of all. To leave out just
the row itself would give its target away: within a level the code is then (S − y_i)/(n_l − 1), the
higher the lower y_i is. With halves, all rows of a level in a half have one code. Of k folds each
code would rest on more rows, but differences between the codes of a level tell more about the
targets in its folds: y against code has a slope of 1 − k in place of −1. What cells or
cross-validation call held out is not held out of the other half's codes: s²/n_l of a code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from scipy.linalg import solve

from ridgefold.errors import InvalidInputError
from ridgefold.records import CategoryColumn, CodedColumn, TableColumns
from ridgefold.tables.encode import encode, level_codes, level_texts
from ridgefold.tables.encoder import TableEncoder
from ridgefold.tables.learned_columns import MOST_FEATURES
from ridgefold.tables.table_input import read_input

_SWEEPS = 3
"""Over the coded columns: what one explains is not left to the next."""
_RIDGE = 1e-3
"""Of the linear model, in parts of the rows: features of a category add up to one."""


class CodedTable(NamedTuple):
    """A table to fit a model to, with codes that hold no target of their own row."""

    encoder: TableEncoder
    """For new rows, with codes from all rows."""
    X: np.ndarray
    feature_names: tuple[str, ...]
    origins: tuple[str, ...]


@dataclass(frozen=True)
class _Levels:
    """A column to be coded."""

    name: str
    levels: tuple[str, ...]
    places: np.ndarray
    """Of every row, the place of its level; the last place is that of missing values."""


def with_codes(
    encoder: TableEncoder,
    table: Any,
    targets: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    random_state: int = 0,
) -> CodedTable | None:
    """The rows of a table to fit, with columns of more than 40 levels as codes; None without any.

    Parameters
    ----------
    targets : array of shape (n,) or (n, t)
        Numbers; for classes columns of ±1, as classifiers fit them.
    weights : array of shape (n,), optional
        How much each row counts; one of weight zero gets codes and gives none.
    """
    frame = read_input(table).frame
    targets = np.asarray(targets, dtype=np.float64).reshape(len(frame), -1)
    if not np.all(np.isfinite(targets)):
        raise InvalidInputError("targets must be finite numbers for levels to be coded by them")
    coded = _with_many_levels(frame, encoder.columns)
    if not coded:
        return None
    Z = _others(frame, encoder.columns, {each.name for each in coded})
    counted = np.ones(len(frame)) if weights is None else np.asarray(weights, dtype=np.float64)
    half = np.zeros(len(frame), dtype=bool)
    half[np.random.default_rng(random_state).permutation(len(frame))[::2]] = True
    for_all = _effects(coded, Z, targets, counted)
    spreads = [
        np.std(codes[each.places], axis=0) for each, codes in zip(coded, for_all, strict=True)
    ]
    scales = [np.where(spread > 0, spread, 1.0) for spread in spreads]
    columns = {
        each.name: _column(each, codes / scale)
        for each, codes, scale in zip(coded, for_all, scales, strict=True)
    }
    X, names = _encoded(frame, encoder.columns, columns)
    for rows in (half, ~half):
        crossed = _effects(coded, Z, targets, np.where(rows, 0.0, counted))
        for each, codes, scale in zip(coded, crossed, scales, strict=True):
            for j, at in enumerate(np.flatnonzero(np.asarray(names.origins) == each.name)):
                X[rows, at] = (codes[:, j] / scale[j])[each.places[rows]]
    return CodedTable(TableEncoder(names), X, names.feature_names, names.origins)


def _with_many_levels(frame: nw.DataFrame[Any], columns: TableColumns) -> list[_Levels]:
    import pyarrow.compute as pc

    found = []
    for column in columns.columns:
        # Only columns with pooled levels may have more of them than features.
        if not (isinstance(column, CategoryColumn) and column.other_level):
            continue
        texts = level_texts(frame[column.name])
        levels = tuple(sorted(pc.unique(pc.utf8_trim_whitespace(texts)).drop_null().to_pylist()))
        if len(levels) <= MOST_FEATURES:
            continue
        places, lost = level_codes(texts, levels)
        found.append(_Levels(column.name, levels, np.where(lost, len(levels), places)))
    return found


def _others(frame: nw.DataFrame[Any], columns: TableColumns, coded: set[str]) -> np.ndarray:
    """The features of all columns but those that are coded, each with mean zero."""
    kept = tuple(column for column in columns.columns if column.name not in coded)
    if not kept:
        return np.empty((len(frame), 0))
    found = encode(frame, TableColumns(kept))
    return np.asarray(found - found.mean(axis=0))


def _effects(
    coded: Sequence[_Levels], Z: np.ndarray, targets: np.ndarray, weights: np.ndarray
) -> list[np.ndarray]:
    """For every coded column the effects of its levels, shape (levels + 1, t).

    From the rows of positive weight.
    """
    rows = np.flatnonzero(weights > 0)
    if len(rows) == 0:
        return [np.zeros((len(each.levels) + 1, targets.shape[1])) for each in coded]
    w = weights[rows]
    left = targets[rows] - w @ targets[rows] / w.sum()
    if Z.shape[1]:
        some = Z[rows] - w @ Z[rows] / w.sum()
        weighted = some * w[:, None]
        gram = weighted.T @ some
        gram[np.diag_indices_from(gram)] += _RIDGE * w.sum()
        left = left - some @ solve(gram, weighted.T @ left, assume_a="pos")
    places = [each.places[rows] for each in coded]
    effects = [np.zeros((len(each.levels) + 1, left.shape[1])) for each in coded]
    for _ in range(_SWEEPS):
        for at, effect in zip(places, effects, strict=True):
            left += effect[at]
            for j in range(left.shape[1]):
                effect[:, j] = _shrunk_means(at, left[:, j], w, len(effect))
            left -= effect[at]
    return effects


def _shrunk_means(
    places: np.ndarray, values: np.ndarray, weights: np.ndarray, n_places: int
) -> np.ndarray:
    """n_l/(n_l + s²/τ²)·(mean of the rows of a place, less that of all), n_l sums of weights."""
    counts = np.bincount(places, weights=weights, minlength=n_places)
    values = values - np.average(values, weights=weights)
    sums = np.bincount(places, weights=weights * values, minlength=n_places)
    there = counts > 0
    means = np.divide(sums, counts, out=np.zeros(n_places), where=there)
    n, m = float(counts.sum()), int(there.sum())
    if n <= m or m < 2:
        return np.zeros(n_places)
    within = float(weights @ (values - means[places]) ** 2) / (n - m)
    typical = (n - float(np.sum(counts**2)) / n) / (m - 1)
    between = (float(np.sum(counts * means**2)) / (m - 1) - within) / typical
    if between <= 0:
        return np.zeros(n_places)
    return np.asarray(means * counts / (counts + within / between))


def _column(each: _Levels, codes: np.ndarray) -> CodedColumn:
    return CodedColumn(
        each.name,
        each.levels,
        tuple(tuple(column) for column in codes[:-1].T.tolist()),
        tuple(codes[-1].tolist()),
    )


def _encoded(
    frame: nw.DataFrame[Any], columns: TableColumns, coded: dict[str, CodedColumn]
) -> tuple[np.ndarray, TableColumns]:
    replaced = TableColumns(tuple(coded.get(each.name, each) for each in columns.columns))
    return encode(frame, replaced), replaced

"""Intervals for rows that the model did not see, and whether they hold the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals
import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.estimators.facts import ModelFacts, to_numpy
from ridgefold.records import Cells
from ridgefold.report.unseen_rows import UnseenNumbers, unseen_rows

_MOST_TEST_ROWS = 2000
"""Test rows that intervals are predicted for: in cells, each costs about as much as a fit."""
_MOST_FOLDS = 50
"""With more folds, leaving the residuals of a row's own fold out changes no digit that is shown."""


@dataclass(frozen=True)
class UnseenIntervals:
    """Which true values lie in their intervals, for several coverages."""

    how: str
    """Where the intervals come from, in words."""
    coverages: tuple[float, ...]
    predictions: np.ndarray
    """Shape (n, n_targets)."""
    inside: tuple[np.ndarray, ...]
    """For each coverage, shape (n, n_targets)."""
    widths: tuple[np.ndarray, ...]
    """The mean width for each coverage, shape (n_targets,)."""


def unseen_intervals(
    facts: ModelFacts,
    X: Any = None,
    y: Any = None,
    coverages: Sequence[float] = (0.5, 0.8, 0.9, 0.95),
) -> UnseenIntervals | None:
    """Intervals of test rows as they are predicted, or of held-out rows; None if none are kept.

    The interval of a held-out row is its held-out prediction give or take a quantile of the
    residuals of the other folds (in a partitioned model, of its cell).
    """
    for coverage in coverages:
        if not 0 < coverage < 1:
            raise InvalidInputError(f"coverage must lie between 0 and 1, got {coverage!r}")
    if facts.intervals is None:
        return None
    unseen = unseen_rows(facts, X, y)
    if not isinstance(unseen, UnseenNumbers):
        return None
    if X is not None:
        return _predicted(facts, X, y, coverages)
    residuals = np.abs(unseen.residuals)
    by_cell, groups = facts.intervals.by_cell, facts.intervals.groups
    if by_cell and facts.cells is not None:
        groups = owners(facts.cells.cells, facts.n_rows)
    elif groups is not None and len(np.unique(groups)) > _MOST_FOLDS:
        groups = None
    if groups is not None:
        groups = groups[unseen.rows]
    inside, widths = [], []
    for coverage in coverages:
        radius = _radii(residuals, groups, coverage, own=by_cell)
        inside.append(residuals <= radius)
        widths.append(2 * radius.mean(axis=0))
    whose = (
        "the residuals of the rows of its cell" if by_cell else "the residuals of the other rows"
    )
    return UnseenIntervals(
        f"around the held-out prediction of every row, as wide as {whose} ask for",
        tuple(coverages),
        unseen.predictions,
        tuple(inside),
        tuple(widths),
    )


def owners(cells: Cells, n_rows: int) -> np.ndarray:
    """For each row the cell that has the largest share in it."""
    m = len(cells.offsets) - 1
    cell = np.repeat(np.arange(m), np.diff(cells.offsets))
    owner = np.zeros(n_rows, dtype=np.intp)
    if cells.weights is None:
        owner[cells.rows] = cell
        return owner
    order = np.argsort(cells.weights, kind="stable")  # the largest is written last
    owner[cells.rows[order]] = cell[order]
    return owner


def _radii(
    residuals: np.ndarray, groups: np.ndarray | None, coverage: float, *, own: bool
) -> np.ndarray:
    """Half the width of every row's interval, shape (n, n_targets)."""
    if groups is None or (not own and len(np.unique(groups)) == 1):  # no other rows to go by
        return np.broadcast_to(_quantile(residuals, coverage), residuals.shape)
    radii = np.empty_like(residuals)
    for group in np.unique(groups):
        inside = groups == group
        radii[inside] = _quantile(residuals[inside if own else ~inside], coverage)
    return radii


def _quantile(residuals: np.ndarray, coverage: float) -> np.ndarray:
    """The ⌈(m + 1)·coverage⌉-th smallest of m residuals, the largest if there are too few."""
    m = len(residuals)
    place = min(m, math.ceil((m + 1) * coverage)) - 1
    return np.asarray(np.partition(residuals, place, axis=0)[place])


def _predicted(
    facts: ModelFacts, X: Any, y: Any, coverages: Sequence[float]
) -> UnseenIntervals | None:
    if facts.predict_interval is None:
        return None
    truth = np.asarray(y, dtype=np.float64)
    n = len(truth)
    rows = np.unique(np.linspace(0, n - 1, min(n, _MOST_TEST_ROWS)).astype(np.intp))
    X = _take(X, rows)
    truth = truth[rows].reshape(len(rows), -1)
    predictions = to_numpy(facts.predict(X)).astype(np.float64).reshape(len(rows), -1)
    known = np.all(np.isfinite(predictions) & np.isfinite(truth), axis=1)
    inside, widths = [], []
    for coverage in coverages:
        lower, upper = (
            to_numpy(end).astype(np.float64).reshape(len(rows), -1)[known]
            for end in facts.predict_interval(X, coverage)
        )
        inside.append((lower <= truth[known]) & (truth[known] <= upper))
        widths.append(np.mean(upper - lower, axis=0))
    sample = "" if len(rows) == n else f" (a sample of {len(rows):,})"
    return UnseenIntervals(
        f"as predict_interval gives them for the test rows{sample}",
        tuple(coverages),
        predictions[known],
        tuple(inside),
        tuple(widths),
    )


def _take(X: Any, rows: np.ndarray) -> Any:
    """Some rows of a matrix or a table."""
    if isinstance(X, (list, tuple)):
        return np.asarray(X)[rows]
    frame = narwhals.from_native(X, eager_only=True, pass_through=True)
    return frame[rows].to_native() if isinstance(frame, narwhals.DataFrame) else X[rows]

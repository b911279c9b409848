"""Intervals for rows that the model did not see, and whether they hold the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.report.evidence import HeldOutNumbers, held_out_of, inner_of, to_numpy

_MOST_TEST_ROWS = 2000


@dataclass(frozen=True)
class HeldOutIntervals:
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


def intervals_of(
    model: Any, X: Any = None, y: Any = None, coverages: Sequence[float] = (0.5, 0.8, 0.9, 0.95)
) -> HeldOutIntervals | None:
    """Intervals of test rows as they are predicted, or of held-out rows; None if none are kept.

    The interval of a held-out row is its held-out prediction give or take a quantile of the
    residuals of the other folds (in a partitioned model, of its cell).
    """
    for coverage in coverages:
        if not 0 < coverage < 1:
            raise InvalidInputError(f"coverage must lie between 0 and 1, got {coverage!r}")
    inner = inner_of(model)
    if not _keeps_intervals(inner):
        return None
    found = held_out_of(model, X, y)
    if not isinstance(found, HeldOutNumbers):
        return None
    if X is not None:
        return _predicted(model, X, y, coverages)
    residuals = np.abs(found.residuals)
    groups, own = _groups(inner, found)
    inside, widths = [], []
    for coverage in coverages:
        radius = _radii(residuals, groups, coverage, own=own)
        inside.append(residuals <= radius)
        widths.append(2 * radius.mean(axis=0))
    how = "the residuals of the rows of its cell" if own else "the residuals of the other rows"
    return HeldOutIntervals(
        f"around the held-out prediction of every row, as wide as {how} ask for",
        tuple(coverages),
        found.predictions,
        tuple(inside),
        tuple(widths),
    )


def _keeps_intervals(inner: Any) -> bool:
    if hasattr(inner, "classes_"):
        return False
    if hasattr(inner, "held_out_residuals_"):
        return inner._kept_for_intervals() is not None
    return getattr(inner, "intervals_", None) is not None


def _groups(inner: Any, found: HeldOutNumbers) -> tuple[np.ndarray | None, bool]:
    """Rows that were held out together, or that share a cell (then True)."""
    if hasattr(inner, "held_out_residuals_"):
        from ridgefold.report.displays.cells import owners

        return owners(inner._cells, int(inner.X_fit_.shape[0]))[found.rows], True
    groups = np.asarray(inner.intervals_.groups)
    if len(groups) != len(inner.y_fit_) or len(np.unique(groups)) > 50:
        return None, False  # rows of weight zero are in none, or every row is its own
    return groups[found.rows], False


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


def _predicted(model: Any, X: Any, y: Any, coverages: Sequence[float]) -> HeldOutIntervals:
    truth = np.asarray(y, dtype=np.float64)
    n = len(truth)
    rows = np.unique(np.linspace(0, n - 1, min(n, _MOST_TEST_ROWS)).astype(np.intp))
    part = _take(X, rows)
    truth = truth[rows].reshape(len(rows), -1)
    predictions = to_numpy(model.predict(part)).astype(np.float64).reshape(len(rows), -1)
    known = np.all(np.isfinite(predictions) & np.isfinite(truth), axis=1)
    inside, widths = [], []
    for coverage in coverages:
        lower, upper = (
            to_numpy(end).astype(np.float64).reshape(len(rows), -1)[known]
            for end in model.predict_interval(part, coverage)
        )
        inside.append((lower <= truth[known]) & (truth[known] <= upper))
        widths.append(np.mean(upper - lower, axis=0))
    some = "" if len(rows) == n else f" (a sample of {len(rows):,})"
    return HeldOutIntervals(
        f"as predict_interval gives them for the test rows{some}",
        tuple(coverages),
        predictions[known],
        tuple(inside),
        tuple(widths),
    )


def _take(X: Any, rows: np.ndarray) -> Any:
    """Some rows of a matrix or a table."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "take") and hasattr(X, "column_names"):
        return X.take(rows)
    if isinstance(X, (list, tuple)):
        return np.asarray(X)[rows]
    return X[rows]

"""Columns that give the target away: copies of it, and what predicts it almost perfectly alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

_ROWS = 5000
"""Rows that are looked at, evenly from the whole table: a copy shows in a few hundred."""
_FEWEST_ROWS = 20
"""In fewer rows, two columns can have the same order by chance."""
_COPY = 0.99999
"""A rank correlation that only rounding and repeated values keep from 1."""
_NEAR = 0.99
"""A column that alone explains so much of the target is rarely known before it."""
_LARGEST_SHARE = 0.95
"""Of the most frequent class; above, any column predicts almost all rows."""
_NEIGHBOURS = 2


@dataclass(frozen=True)
class GivenAway:
    """A column that gives the target away."""

    is_copy: bool
    """Whether it is the target in other words, and not only close to it."""
    why: str


def gives_away(values: np.ndarray, y: np.ndarray, *, ordered: bool) -> GivenAway | None:
    """Whether one column gives the target away.

    `values` are numbers, or the codes of levels that have no order; `y` are numbers, or the codes
    of classes if they are whole numbers of the type int.
    """
    known = np.flatnonzero(~np.isnan(values))
    if len(known) < max(_FEWEST_ROWS, len(values) / 2):
        return None
    known = known[np.unique(np.linspace(0, len(known) - 1, _ROWS).astype(int))]
    x, targets = values[known], y[known]
    if len(np.unique(x)) < 2 or len(np.unique(targets)) < 2:
        return None
    if y.dtype.kind == "i":
        return _of_classes(x, targets, ordered)
    return _of_numbers(x, targets, ordered)


def _of_numbers(x: np.ndarray, y: np.ndarray, ordered: bool) -> GivenAway | None:
    if ordered:
        correlation = abs(float(np.corrcoef(rankdata(x), rankdata(y))[0, 1]))
        if correlation >= _COPY:
            said = "equals the target" if np.array_equal(x, y) else "has the order of the target"
            return GivenAway(True, f"{said} (rank correlation {correlation:.5f})")
        if correlation >= _NEAR:
            return GivenAway(False, f"its rank correlation with the target is {correlation:.4f}")
    explained = 1.0 - np.mean((y - _left_out_means(x, y, ordered)) ** 2) / np.var(y)
    if explained >= _NEAR:
        return GivenAway(False, f"alone it explains {100 * explained:.1f}% of the target")
    return None


def _of_classes(x: np.ndarray, classes: np.ndarray, ordered: bool) -> GivenAway | None:
    labels, codes = np.unique(classes, return_inverse=True)
    pairs = np.unique(np.column_stack([np.unique(x, return_inverse=True)[1], codes]), axis=0)
    if len(pairs) == len(labels) == len(np.unique(x)):
        return GivenAway(True, "each of its values is one class of the target, and each class one")
    shares = np.bincount(codes) / len(codes)
    if shares.max() > _LARGEST_SHARE:
        return None
    votes = np.column_stack(
        [
            _left_out_means(x, (codes == label).astype(float), ordered)
            for label in range(len(labels))
        ]
    )
    right = float(np.mean(np.argmax(votes, axis=1) == codes))
    if right >= _NEAR:
        return GivenAway(False, f"alone it tells the class of {100 * right:.1f}% of the rows")
    return None


def _left_out_means(x: np.ndarray, y: np.ndarray, ordered: bool) -> np.ndarray:
    """For each row the mean of y over other rows: of the same value, or its neighbours in x."""
    if ordered and len(np.unique(x)) > len(x) / 10:
        order = np.argsort(x, kind="stable")
        padded = np.pad(y[order], _NEIGHBOURS, mode="reflect")
        shifts = [s for s in range(2 * _NEIGHBOURS + 1) if s != _NEIGHBOURS]
        means = np.empty(len(y))
        means[order] = np.mean([padded[s : s + len(y)] for s in shifts], axis=0)
        return means
    _, codes = np.unique(x, return_inverse=True)
    counts, sums = np.bincount(codes), np.bincount(codes, weights=y)
    others = counts[codes] - 1
    means = np.full(len(y), float(np.mean(y)))
    several = others > 0
    means[several] = (sums[codes] - y)[several] / others[several]
    return means

"""Rows that are the same as one row: so that a weight of 2 is the row twice.

Rows with the same x are, for every fit with squared errors, one row of their weights' sum W and
their targets' weighted mean ȳ; rows of weight zero are none. Cells are cut, counted and
tuned by the rows that are left, in an order that is theirs alone. Then every row gets its own
residual (`cells.members`) and coefficient back: with a that of the merged row, α the ridge of
the cell and f = ȳ − αa/W its prediction,

    a_i = w_i(y_i − f)/α.

What is left out when pairs and sizes are scored is a merged row where its members are copies of
each other, and one member where they are draws: rows with the same x whose targets differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ridgefold.cells.members import Members
from ridgefold.linalg.blocks import CACHE_BYTES, row_blocks
from ridgefold.records import Cells, LocalModels
from ridgefold.selection.limits import limits_of

_ORDERING_COLUMNS = 8
"""Columns by which rows are put in order before they are compared: seldom are more needed to tell
them apart."""
_DRAWS = 0.1
"""The share of repeated rows with different targets from which on members are taken for draws. Of
20 tables with repeated rows it is 0 to 0.02 in five, where features tell the class or rows were
copied, and 0.46 to 1 in all others."""


@dataclass(frozen=True)
class DistinctRows:
    """The rows to choose by, and where the given ones are among them."""

    X: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    group_of: np.ndarray
    """For each of the given rows the number of its distinct row; −1 for rows of weight zero."""
    given_targets: np.ndarray
    given: np.ndarray
    """The given rows of positive weight in the order of their distinct rows,"""
    members: Members
    """and what they are to these."""

    @property
    def are_draws(self) -> bool:
        """Whether rows with the same x are observations of their own, not copies of one."""
        repeated = self.members.sizes > 1
        differ = np.zeros(len(repeated), dtype=bool)
        moved = np.any(self.members.deviations != 0.0, axis=1)
        differ[self.group_of[self.given[moved]]] = True
        return bool(np.sum(differ) > _DRAWS * np.sum(repeated))

    def expanded(
        self,
        cells: Cells,
        models: LocalModels,
        residuals: np.ndarray | None,
    ) -> tuple[Cells, LocalModels, np.ndarray | None]:
        """Cells, models and leave-one-out residuals of the given rows."""
        counts = self.members.sizes[cells.rows]
        offsets = np.concatenate([[0], np.cumsum(counts)])[cells.offsets]
        cell = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        rows = self.given[self.members.places(cells.rows)]
        order = np.lexsort((rows, cell))  # in every cell in the order in which they were given
        rows, entries = rows[order], self.members.taken(cells.rows)
        alpha = models.alpha[np.repeat(np.arange(len(models.alpha)), np.diff(cells.offsets))]
        dual = _dual_coef(entries, models.dual_coef, alpha)[order]
        expanded = replace(models, dual_coef=dual.astype(models.dual_coef.dtype))
        if models.lowest is not None and models.highest is not None:
            # Given targets reach further than their means; where there is no noise, models may.
            y, first = self.given_targets[rows], offsets[:-1]
            lowest, highest = limits_of(
                np.minimum.reduceat(y, first, axis=0), np.maximum.reduceat(y, first, axis=0)
            )
            if not self.are_draws:
                lowest = np.minimum(lowest, models.lowest)
                highest = np.maximum(highest, models.highest)
            expanded = replace(expanded, lowest=lowest, highest=highest)
        if residuals is not None:
            errors = models.dual_coef * (alpha / self.weights[cells.rows])[:, None]
            residuals = entries.residuals(errors, residuals)[order].astype(residuals.dtype)
        shares = None if cells.weights is None else entries.spread(cells.weights)[order]
        return Cells(rows, offsets, shares, cells.router), expanded, residuals


def _dual_coef(members: Members, merged: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """a_i of the members of merged rows with these coefficients, and a ridge each."""
    more = members.deviations
    ridge = members.spread(alpha)[:, None]
    extra = np.divide(
        members.weights[:, None] * more, ridge, out=np.zeros_like(more), where=more != 0.0
    )
    return np.asarray(members.spread(merged) * members.shares[:, None] + extra)


def distinct_rows(
    X: np.ndarray, targets: np.ndarray, weights: np.ndarray | None
) -> DistinctRows | None:
    """The distinct rows of positive weight; None if these are the rows as they are.

    Where rows repeat, or weights count (they are whole numbers, and not all 1), distinct rows are
    put in the order of their values: it is the same for the rows and for their repetitions.
    """
    codes = _codes(X)
    counted = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)
    used = np.flatnonzero(counted > 0)
    counts = counted[used]  # a mask of 0 and 1 says only which rows there are
    whole = bool(np.all(counts == np.round(counts))) and not bool(np.all(counts == 1.0))
    ordered = np.sort(codes[used])
    if whole or bool(np.any(ordered[1:] == ordered[:-1])):
        columns = range(min(X.shape[1], _ORDERING_COLUMNS))
        order = used[np.lexsort((codes[used], *(np.asarray(X[used, j]) for j in columns[::-1])))]
    elif len(used) < len(codes):
        order = used
    else:
        return None
    new = np.concatenate([[True], codes[order][1:] != codes[order][:-1]])
    group_of = np.full(len(codes), -1)
    group_of[order] = np.cumsum(new) - 1
    first, groups = order[new], group_of[order]
    total = np.bincount(groups, weights=counted[order])
    means = np.array(targets[first], dtype=targets.dtype)
    # Deviations from the first: equal targets have themselves as their mean, to the last bit.
    deviations = targets[order] - means[groups]
    for j in np.flatnonzero(np.any(deviations != 0.0, axis=0)):
        moved = np.bincount(groups, weights=counted[order] * deviations[:, j]) / total
        means[:, j] += moved.astype(means.dtype)
    offsets = np.concatenate([np.flatnonzero(new), [len(order)]])
    members = Members(
        offsets, targets[order] - means[groups], counted[order], counted[order] / total[groups]
    )
    return DistinctRows(
        np.ascontiguousarray(X[first]),
        means,
        total.astype(X.dtype),
        group_of,
        targets,
        order,
        members,
    )


def _codes(X: np.ndarray) -> np.ndarray:
    """A number for every row: a sum of its bits modulo 2⁶⁴ with fixed odd factors."""
    factors = np.random.default_rng(0).integers(1, 2**62, X.shape[1], dtype=np.uint64)
    factors = factors * np.uint64(2) + np.uint64(1)
    codes = np.empty(X.shape[0], dtype=np.uint64)
    for some in row_blocks(X.shape[0], 16.0 * X.shape[1], CACHE_BYTES):
        bits = np.add(X[some], 0.0, dtype=np.float64).view(np.uint64)
        bits ^= bits >> np.uint64(29)
        np.einsum("ij,j->i", bits, factors, out=codes[some])  # in half the time of a product
    return codes

"""Rows that are the same as one row: so that a weight of 2 is the row twice.

Rows with the same x are, for every fit with squared errors, one row of their weights' sum W and
their targets' weighted mean ȳ; rows of weight zero are none. Cells are cut, counted and
tuned by the rows that are left, in an order that is theirs alone. Then every row gets its own
coefficient and residual back: with a and r those of the merged row, α the ridge of the cell and
f = ȳ − αa/W its prediction,

    a_i = w_i(y_i − f)/α,    r_i = (y_i − f)/(1 − h·w_i/W),    1 − h = αa/(W·r),

h the leverage of the merged row, of which each row has the share of its weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ridgefold.engine.partitioned import limits_of
from ridgefold.linalg.blocks import CACHE_BYTES, row_blocks
from ridgefold.records import Cells, LocalModels

_ORDERING_COLUMNS = 8


@dataclass(frozen=True)
class DistinctRows:
    """The rows to choose by, and where the given ones are among them."""

    X: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    group_of: np.ndarray
    """For each of the given rows the number of its distinct row; −1 for rows of weight zero."""
    given_targets: np.ndarray
    given_weights: np.ndarray

    def expanded(
        self,
        cells: Cells,
        models: LocalModels,
        residuals: np.ndarray | None,
        one_fit: np.ndarray | None = None,
    ) -> tuple[Cells, LocalModels, np.ndarray | None]:
        """Cells, models and leave-one-out residuals of the given rows.

        `one_fit`: the coefficients that the residuals belong to, if they are not the models'.
        """
        members = np.argsort(self.group_of, kind="stable")[np.sum(self.group_of < 0) :]
        sizes = np.bincount(self.group_of[members], minlength=len(self.X))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        counts = sizes[cells.rows]
        ends = np.concatenate([[0], np.cumsum(counts)])
        entry = np.repeat(np.arange(len(cells.rows)), counts)
        group = cells.rows[entry]
        rows = members[starts[group] + np.arange(ends[-1]) - ends[entry]]
        offsets = ends[cells.offsets]
        cell = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        order = np.lexsort((rows, cell))
        entry, group, rows = entry[order], group[order], rows[order]
        parts = _Parts(self, models.alpha[cell], models.dual_coef[entry], rows, group)
        expanded = replace(models, dual_coef=parts.dual_coef.astype(models.dual_coef.dtype))
        if models.lowest is not None and models.highest is not None:
            # Given targets reach further than their means; where there is no noise, models may.
            y, first = self.given_targets[rows], offsets[:-1]
            lowest, highest = limits_of(
                np.minimum.reduceat(y, first, axis=0), np.maximum.reduceat(y, first, axis=0)
            )
            expanded = replace(
                expanded,
                lowest=np.minimum(lowest, models.lowest),
                highest=np.maximum(highest, models.highest),
            )
        if residuals is not None:
            if one_fit is not None:
                parts = replace(parts, merged_dual=one_fit[entry])
            alone = (sizes[group] == 1)[:, None]
            exact = residuals[entry]
            residuals = np.where(alone, exact, parts.residuals(exact)).astype(residuals.dtype)
        shares = None if cells.weights is None else cells.weights[entry]
        return Cells(rows, offsets, shares, cells.router), expanded, residuals


@dataclass(frozen=True)
class _Parts:
    """Entries of cells, one for each given row in each of its cells."""

    distinct: DistinctRows
    alpha: np.ndarray
    merged_dual: np.ndarray
    rows: np.ndarray
    group: np.ndarray

    @property
    def share(self) -> np.ndarray:
        """w_i/W."""
        weights = self.distinct.given_weights[self.rows] / self.distinct.weights[self.group]
        return np.asarray(weights[:, None])

    @property
    def deviations(self) -> np.ndarray:
        """y_i − ȳ."""
        distinct = self.distinct
        return np.asarray(distinct.given_targets[self.rows] - distinct.targets[self.group])

    @property
    def merged_errors(self) -> np.ndarray:
        """ȳ − f."""
        return np.asarray(
            self.merged_dual * (self.alpha / self.distinct.weights[self.group])[:, None]
        )

    @property
    def dual_coef(self) -> np.ndarray:
        more = self.deviations
        moved = more != 0.0
        weights = self.distinct.given_weights[self.rows][:, None]
        extra = np.divide(weights * more, self.alpha[:, None], out=np.zeros_like(more), where=moved)
        return np.asarray(self.merged_dual * self.share + extra)

    def residuals(self, merged: np.ndarray) -> np.ndarray:
        errors = self.merged_errors
        largest = np.argmax(np.abs(merged), axis=1)[:, None]
        top = np.take_along_axis(errors, largest, axis=1)
        bottom = np.take_along_axis(merged, largest, axis=1)
        kept = np.divide(top, bottom, out=np.ones_like(top), where=bottom != 0.0)
        # A merged row alone in a cell with a bias is predicted by itself.
        leverage = np.where(np.isnan(bottom), 1.0, np.clip(1.0 - kept, 0.0, 1.0))
        left = 1.0 - leverage * self.share
        unknown = np.full_like(errors, np.nan)
        found = np.divide(errors + self.deviations, left, out=unknown, where=left != 0.0)
        return np.asarray(found)


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
    whole = bool(np.all(counted == np.round(counted))) and not bool(np.all(counted == 1.0))
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
    return DistinctRows(
        np.ascontiguousarray(X[first]),
        means,
        total.astype(X.dtype),
        group_of,
        targets,
        counted,
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

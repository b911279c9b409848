"""Cells between parallel hyperplanes (Liu, Song and Liang, PP-KRR).

w is the first principal direction of the centred rows (the paper prints the uncentred XᵀX,
whose direction is mostly the mean). The projections w·x are sorted and cut at round(p·n/m),
b_p the mean of the two on either side; cell p is b_{p−1} < w·x ≤ b_p, the first one w·x ≤ b₁
and the last one w·x > b_{m−1} (printed as b_m). Ties stay together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.cells.cut.base import (
    Router,
    cells_of,
    cut,
    finite_floats,
    first_direction,
    learning_rows,
    membership_in_blocks,
    ramp,
    route_in_blocks,
    sample_of,
)
from ridgefold.records import Cells, Membership


@dataclass(frozen=True)
class Hyperplanes:
    """Runs of equal length along the first principal direction."""

    in_space = True

    def fit(self, X: np.ndarray, n_cells: int, overlap: float, rng: np.random.Generator) -> Cells:
        if overlap > 0:
            return cut(self, X, n_cells, overlap, rng)
        rows = learning_rows(X.shape[0], X.shape[1], n_cells, rng)
        router, m, places = self._learn(X if rows is None else X[rows], n_cells, overlap, rng)
        if rows is not None:
            places = route_in_blocks(X, lambda block: _project(block, router["direction"]))
        return cells_of(np.searchsorted(router["cuts"], places, side="left"), m, router)

    def learn(
        self, X: np.ndarray, n_cells: int, overlap: float, rng: np.random.Generator
    ) -> tuple[Router, int]:
        return self._learn(X, n_cells, overlap, rng)[:2]

    def _learn(
        self, X: np.ndarray, n_cells: int, overlap: float, rng: np.random.Generator
    ) -> tuple[Router, int, np.ndarray]:
        """The geometry, how many cells, and the place of every row along the direction."""
        n = X.shape[0]
        direction = first_direction(sample_of(X, None, rng)).astype(X.dtype)
        places = route_in_blocks(X, lambda rows: _project(rows, direction))
        position = np.sort(places)
        ends = np.unique(np.round(np.arange(1, min(n_cells, n)) * (n / min(n_cells, n))))
        ends = ends[(ends > 0) & (ends < n)].astype(np.intp)
        below, above = position[ends - 1], position[ends]
        cuts = below + (above - below) / 2
        # With ties, or cuts that rounding puts on a row, some runs are empty: they are left out.
        inside = np.searchsorted(position, cuts, side="right")
        kept = np.diff(inside, prepend=0) > 0
        kept &= inside < n
        cuts = cuts[kept].astype(np.float64)
        lowest, highest = float(position[0]), float(position[-1])
        edges = np.concatenate([[lowest], cuts, [highest]])
        # A band reaches `overlap`/2 of the narrower neighbour to each side: bands never meet.
        half = 0.5 * overlap * np.minimum(np.diff(edges)[:-1], np.diff(edges)[1:])
        router: Router = {"direction": direction, "cuts": cuts, "half_widths": half}
        return router, len(cuts) + 1, places

    def route(self, router: Router, X: np.ndarray) -> np.ndarray:
        direction, cuts = router["direction"], router["cuts"]
        return route_in_blocks(
            X, lambda rows: np.searchsorted(cuts, _project(rows, direction), side="left")
        )

    def membership(self, router: Router, X: np.ndarray) -> Membership:
        direction, cuts, half = router["direction"], router["cuts"], router["half_widths"]

        def place(rows: np.ndarray) -> Membership:
            position = _project(rows, direction)
            cell = np.searchsorted(cuts, position, side="left")
            indices = np.arange(len(rows))
            if len(cuts) == 0:
                return Membership(indices, cell, np.ones(len(rows)))
            # Only the nearest cut can have a band that reaches a row.
            left, right = np.maximum(cell - 1, 0), np.minimum(cell, len(cuts) - 1)
            nearer = np.abs(position - cuts[left]) <= np.abs(position - cuts[right])
            cut = np.where(nearer, left, right)
            above = ramp(position, cuts[cut] - half[cut], cuts[cut] + half[cut])
            return Membership(
                np.concatenate([indices, indices]),
                np.concatenate([cut, cut + 1]),
                np.concatenate([1.0 - above, above]),
            )

        return membership_in_blocks(X, place)

    def accepts(self, router: Router, n_cells: int, n_columns: int) -> bool:
        shapes = {
            "direction": (n_columns,),
            "cuts": (n_cells - 1,),
            "half_widths": (n_cells - 1,),
        }
        return finite_floats(router, shapes) and bool(np.all(np.diff(router["cuts"]) >= 0))


def _project(rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Row by row, so that a row's place does not depend on the block it is in (BLAS may)."""
    return np.asarray(np.einsum("ij,j->i", rows, direction))

"""A row is predicted by the model of the cell it falls in (Liu, Song and Liang, PP-KRR).

The ridge is left as it is in every cell: with λ = alpha/n_cell set per cell their error was
lower than with one λ for all (their figure 1), the opposite of the rule for averages.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ridgefold.cells.combine.base import Assignment, Placement, grouped
from ridgefold.records import Membership


class Route:
    """One cell a row."""

    needs_space = True
    overlaps = False
    scales_alpha = False

    def assign(
        self,
        placement: Placement,
        router: Mapping[str, np.ndarray],
        n_cells: int,
        X: np.ndarray,
    ) -> Assignment:
        n = X.shape[0]
        cells = placement.route(router, X)
        return grouped(Membership(np.arange(n), cells, np.ones(n)), n, n_cells)

"""Overlapping cells, blended by weights that sum to 1 and change continuously.

f(x) = Σ_c w_c(x) f_c(x) with the partition of unity of the partitioner: no seams where one
cell ends and the next begins, and rows near a boundary are predicted from both sides.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ridgefold.cells.combine.base import Assignment, Placement, grouped


class Blend:
    """Every row is predicted by all cells that reach it."""

    needs_space = True
    overlaps = True
    scales_alpha = False

    def assign(
        self,
        placement: Placement,
        router: Mapping[str, np.ndarray],
        n_cells: int,
        X: np.ndarray,
    ) -> Assignment:
        return grouped(placement.membership(router, X), X.shape[0], n_cells)

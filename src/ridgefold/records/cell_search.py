"""How far searches in cells go: the engine does so, and plans foresee it."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class CellSearch:
    """How many cells, rows and pairs of kernel and ridge are looked at."""

    pilots: int = 4
    """Cells on which a shared pair is looked for among all."""
    pilot_rows: int = 640
    """Rows of each of them, evenly spaced."""
    near_pilots: int = 3
    """Cells that are asked where the start is a good one."""
    near_rows: int = 640
    """Rows of each of these,"""
    more_rows: int = 1536
    """and of those that are asked again where cells are large."""
    pairs: int = 8
    """The most pairs that are scored near a start, for all cells or by one for itself."""
    core: float = 0.7
    """The part of a cell's rows on which pairs are compared, those at its edge left out,"""
    fewest_core_rows: int = 160
    """and how many these are at least."""
    largest_searched: int = 1536
    """Rows above which a cell takes the shared pair: pairs of its own gain little there, and every
    one that is scored takes as long as the fit."""
    smallest_tried: int = 256
    """Rows of the first cells that are tried where their number is chosen."""
    largest_tried: int = 2048
    """Rows of the largest cells whose error is measured."""
    regions: int = 2
    """Parts of the data on which sizes are compared,"""
    region_rows: int = 4096
    """and rows of each; fewer rows than all of them hold are one part."""
    slope_rows: int = 4096
    """Rows of the fits that tell in which directions targets change, at most,"""
    slope_numbers: int = 1 << 22
    """numbers in them, but for a few hundred rows,"""
    slope_pair_rows: int = 512
    """and of those on which their kernel and ridge are chosen."""
    backdrop_rows: int = 128
    """Rows in whose span all of them are fitted, behind the cells,"""
    backdrop_pair_rows: int = 2048
    """and rows on which kernels for that are compared."""
    many_rows: int = 300_000
    """Above so many rows cells share a pair, and are no larger than the next number says."""
    largest_of_many: int = 512
    most_cell_rows: float = math.inf
    """Rows of the largest cell that memory holds, with those that it shares."""

    def core_rows(self, n_rows: int, *, overlap: bool) -> int:
        """Rows of a cell on which pairs are compared: all if it overlaps with no other."""
        if not overlap:
            return n_rows
        return min(n_rows, max(self.fewest_core_rows, round(self.core * n_rows)))

    def rows_for_slopes(self, n_rows: int, n_columns: int) -> int:
        """Rows of the sample from which slopes are found."""
        most = max(self.slope_pair_rows, self.slope_numbers // max(1, n_columns))
        return min(n_rows, self.slope_rows, most)


CELL_SEARCH = CellSearch()

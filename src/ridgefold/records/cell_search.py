"""How far searches in cells go. `cells` searches by these numbers, and `planning` foresees it."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class CellSearch:
    """How many cells, rows and pairs of kernel and ridge a search visits.

    A pair is a kernel with a ridge. The defaults were settled on by test errors and times over 15
    to 30 tables (docs/design/log/cells.md).
    """

    pilots: int = 4
    """Cells that search the whole grid for the pair that all cells share."""
    pilot_rows: int = 640
    """Rows of each pilot cell, evenly spaced: enough to tell pairs apart, few enough to score a
    whole grid of them."""
    near_pilots: int = 3
    """Cells that search near a pair that is known to be good: those at the two ends alone were
    misled by a few far rows."""
    near_rows: int = 640
    """Rows of each cell of a near search."""
    more_rows: int = 1536
    """Rows of each cell of the second near search that large cells get: they prefer other pairs."""
    pairs: int = 8
    """The most pairs that are scored near a start, by all cells together or by one for itself."""
    core: float = 0.7
    """The share of a cell's rows on which pairs are compared. Rows at its edge, which other cells
    answer for, are left out: what remains is a third of the work."""
    fewest_core_rows: int = 160
    """Pairs are compared on at least so many rows of a cell, if it has them: with fewer, cells with
    a fill value in a third of their rows had twice the error."""
    largest_searched: int = 1536
    """Cells with more rows take the shared pair: pairs of their own gain little there, and scoring
    one takes as long as a fit."""
    smallest_tried: int = 256
    """Rows of the first cells that are tried where their number is chosen."""
    largest_tried: int = 2048
    """Rows of the largest cells that are tried."""
    regions: int = 2
    """Regions of the data in which sizes of cells are compared."""
    region_rows: int = 4096
    """Rows of each region. Data with no more rows than all regions hold are one region."""
    slope_rows: int = 2048
    """The most rows of the fit that measures in which directions targets change."""
    slope_numbers: int = 1 << 22
    """The most numbers in the rows of this fit, so that wide rows are fewer."""
    slope_pair_rows: int = 512
    """Rows on which the kernel and ridge of this fit are chosen."""
    backdrop_rows: int = 128
    """Rows that span the coarse model behind the cells; 400 do hardly better."""
    backdrop_pair_rows: int = 2048
    """Rows on which kernels for the coarse model are compared."""
    linear_regions: int = 4
    """Regions in which cells are compared with and without a linear part under them."""
    linear_region_rows: int = 320
    """Rows of each: of the smallest cells that are tried, with some of those that they share."""
    many_rows: int = 300_000
    """Above so many rows, cells share one pair and have at most `largest_of_many` rows."""
    largest_of_many: int = 512
    """Rows of a cell, at most, where there are more than `many_rows` rows in all."""
    most_cell_rows: float = math.inf
    """Rows of the largest cell that memory holds, rows shared with its neighbours included."""

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

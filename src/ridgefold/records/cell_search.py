"""How far searches in cells go: the engine does so, and plans foresee it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CellSearch:
    """How many cells, rows and pairs of kernel and ridge are looked at."""

    pilots: int = 4
    """Cells on which a shared pair is chosen by eigendecompositions."""
    pilot_rows: int = 640
    """Rows of each of them, evenly spaced."""
    near_pilots: int = 2
    """Cells that are asked, one inverse a pair, where the start is a good one."""
    near_rows: int = 1024
    """Rows of each of these."""
    pairs: int = 8
    """The most pairs that are scored near a start."""
    largest_searched: int = 1536
    """Rows above which a cell takes the shared pair: one inverse takes longer than its fit."""
    smallest_tried: int = 256
    """Rows of the first cells that are tried where their number is chosen."""


CELL_SEARCH = CellSearch()

"""What every way of combining promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ridgefold.records import Membership


class Placement(Protocol):
    """What a combiner asks of a partitioner: the cells of new rows."""

    def route(self, router: Mapping[str, np.ndarray], X: np.ndarray) -> np.ndarray: ...

    def membership(self, router: Mapping[str, np.ndarray], X: np.ndarray) -> Membership: ...


@dataclass(frozen=True)
class Assignment:
    """Which cells predict which rows, with what weight, grouped by cell."""

    n_rows: int
    n_cells: int
    membership: Membership | None
    """Sorted by cell; None if every cell predicts every row with weight 1/n_cells."""
    offsets: np.ndarray
    """The start of each cell in `membership`, and the end of the last one."""

    def of_cell(self, cell: int) -> tuple[np.ndarray | slice, np.ndarray | float]:
        """Rows that a cell predicts, and their weights."""
        if self.membership is None:
            return slice(None), 1.0 / self.n_cells
        entries = slice(self.offsets[cell], self.offsets[cell + 1])
        return self.membership.rows[entries], self.membership.weights[entries]


class Combiner(Protocol):
    """One way to combine. Registered in `cells/combine/__init__.py`."""

    needs_space: bool
    """True if a row must have a cell of its own."""
    overlaps: bool
    """True if it makes use of cells that share rows."""

    scales_alpha: bool
    """True if the ridge of a cell is its share of rows times the ridge that suits all of them."""

    def assign(
        self,
        placement: Placement,
        router: Mapping[str, np.ndarray],
        n_cells: int,
        X: np.ndarray,
    ) -> Assignment:
        """Which cells predict the rows of X, and with what weight."""


def grouped(membership: Membership, n_rows: int, n_cells: int) -> Assignment:
    """An assignment from pairs in any order."""
    order = np.lexsort((membership.rows, membership.cells))
    offsets = np.zeros(n_cells + 1, dtype=np.int64)
    np.cumsum(np.bincount(membership.cells, minlength=n_cells), out=offsets[1:])
    in_order = Membership(
        membership.rows[order], membership.cells[order], membership.weights[order]
    )
    return Assignment(n_rows, n_cells, in_order, offsets)


def cell_alpha(combiner: Combiner, alpha: float, n_cell: int, n_rows: int) -> float:
    """The ridge of a cell of n_cell rows, given the one that suits all n_rows."""
    return alpha * n_cell / n_rows if combiner.scales_alpha else alpha

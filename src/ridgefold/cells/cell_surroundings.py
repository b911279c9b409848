"""Rows outside their own cell: farther from its rows than any of these from the others."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from ridgefold.cells.cell_rows import rows_of
from ridgefold.cells.combine import Assignment
from ridgefold.kernels import KernelGram
from ridgefold.records import Cells, LocalModels
from ridgefold.selection.outside import Surroundings

_MOST_KEPT = 256
"""Cells whose rows are kept as their kernel prepares them."""


class SurroundingsOfCells:
    """How far a row may be from those of its own cell, in the metric of the cell's kernel."""

    def __init__(
        self, X: np.ndarray, weights: np.ndarray | None, cells: Cells, models: LocalModels
    ) -> None:
        self._X, self._weights, self._cells, self._models = X, weights, cells, models
        self._kept: OrderedDict[int, Surroundings | None] = OrderedDict()

    def beyond(self, new: np.ndarray, assignment: Assignment) -> np.ndarray:
        """Which of some checked rows, placed in their cells, are outside."""
        own = heaviest_cells(assignment)
        outside = np.zeros(len(new), dtype=bool)
        for cell in np.unique(own):
            mine = np.flatnonzero(own == cell)
            known = self._of_cell(int(cell))
            outside[mine] = True if known is None else known.beyond(new[mine])
        return outside

    def _of_cell(self, cell: int) -> Surroundings | None:
        if cell not in self._kept:
            rows = rows_of(self._cells, cell)
            counted = np.arange(len(rows))
            if self._weights is not None:
                counted = np.flatnonzero(np.asarray(self._weights[rows]) > 0)
            found = None
            if len(counted):
                kernel = self._models.kernels[self._models.kernel_of_cell[cell]]
                gram = KernelGram(kernel, np.ascontiguousarray(self._X[rows]))
                found = Surroundings(gram, counted)
            self._kept[cell] = found
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return self._kept[cell]


def heaviest_cells(assignment: Assignment) -> np.ndarray:
    """The cell that weighs most for each row."""
    membership = assignment.membership
    assert membership is not None
    order = np.lexsort((membership.weights, membership.rows))
    last = np.append(np.flatnonzero(np.diff(membership.rows[order])), len(order) - 1)
    own = np.empty(assignment.n_rows, dtype=np.intp)
    own[membership.rows[order][last]] = membership.cells[order][last]
    return own

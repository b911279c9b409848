"""Jackknife+ intervals of models on cells, each from the rows of its own cell.

Cells stay as they are when row i is left out, so only the models of the cells that hold it
change. With w_c(x) the weights of the combination, r_ic row i's leave-one-out residual in
cell c and g_ic of `exact.leave_one_out`,

    f₋ᵢ(x) = f(x) − Σ_c w_c(x) r_ic g_ic(x),    r_ic = (Dy)_i/D_ii,

over the cells that hold i and reach x; where a cell's predictions are kept to limits
(`selection.limits.limits_of`), before and after. A new row's interval is made from the rows of
the cell that weighs most for it: where the model is far off, intervals are wide.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np

from ridgefold.cells.cell_rows import rows_of
from ridgefold.cells.cell_surroundings import heaviest_cells
from ridgefold.cells.coarse_model import directions, residuals_without
from ridgefold.cells.combine import Assignment
from ridgefold.exact.interval_ranks import interval_from_models
from ridgefold.exact.leave_one_out import Smoother, smoother
from ridgefold.kernels import KernelGram
from ridgefold.records import Backdrop, Cells, LocalModels, Membership

_NEW_ROWS_AT_ONCE = 256
"""New rows of a cell for which intervals are made together, however much memory there is."""
_MOST_CELLS_KEPT = 16
"""Cells whose factors are kept for the next new rows, which most often lie near by."""
_NUMBERS_A_PAIR = 8
"""Numbers that are worked on at once for a new row, a row of its cell and a target."""
_MATRICES = 3
"""Matrices of a cell's size, that of its kernel and its inverse among them, while one is made."""


def interval_bytes(cell_rows: int) -> float:
    """Memory for the intervals of a model whose largest cell has so many rows."""
    return 2 * _MATRICES * 8.0 * float(cell_rows) ** 2


@dataclass
class CellIntervals:
    """Everything that the intervals of a partitioned model are made from."""

    X: np.ndarray
    targets: np.ndarray
    """Targets of the training rows, shape (n_rows, t)."""
    weights: np.ndarray | None
    """Weights of the training rows."""
    cells: Cells
    models: LocalModels
    residuals: np.ndarray
    """Leave-one-out residuals of the combined model, shape (n_rows, t), widened where scales were
    learned from the same rows."""
    bias: bool
    coarse_model: Backdrop | None = None
    """A coarse model that is mixed in."""
    memory_bytes: float = math.inf
    """What may be taken: half of it for cells that are kept, a quarter for new rows."""
    _kept: OrderedDict[int, tuple[KernelGram, Smoother]] = field(default_factory=OrderedDict)

    def predict(
        self, new: np.ndarray, assignment: Assignment, centre: np.ndarray, coverage: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends, shape (n_new, t); `centre` is f(x)."""
        membership = assignment.membership
        assert membership is not None
        lower, upper = np.full(centre.shape, -np.inf), np.full(centre.shape, np.inf)
        own = heaviest_cells(assignment)
        by_row = np.argsort(membership.rows, kind="stable")
        starts = np.searchsorted(membership.rows[by_row], np.arange(len(new) + 1))
        for cell in np.unique(own):
            mine = np.flatnonzero(own == cell)
            step = self._new_rows_at_once(int(cell))
            for begin in range(0, len(mine), step):
                places_of_new = mine[begin : begin + step]
                pairs = np.concatenate([by_row[starts[i] : starts[i + 1]] for i in places_of_new])
                left_out, errors = self._left_out(int(cell), new, places_of_new, membership, pairs)
                for j in range(centre.shape[1]):
                    lower[places_of_new, j], upper[places_of_new, j] = interval_from_models(
                        centre[places_of_new, j : j + 1] - left_out[:, :, j], errors[:, j], coverage
                    )
        return lower, upper

    def _new_rows_at_once(self, cell: int) -> int:
        rows, t = len(rows_of(self.cells, cell)), self.residuals.shape[1]
        held = self.memory_bytes / (4 * 8.0 * _NUMBERS_A_PAIR * max(1, rows * t))
        return int(max(1, min(_NEW_ROWS_AT_ONCE, held)))

    def _left_out(
        self,
        cell: int,
        new: np.ndarray,
        places_of_new: np.ndarray,
        membership: Membership,
        pairs: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """f(x) − f₋ᵢ(x) for new rows and the rows i of their own cell, and r_i.

        `places_of_new` are the positions of the new rows, sorted; `pairs` are the entries of the
        membership that belong to them.
        """
        rows = self._counted(rows_of(self.cells, cell))
        shift = np.zeros((len(places_of_new), len(rows), self.residuals.shape[1]))
        for other in np.unique(membership.cells[pairs]):
            here = pairs[membership.cells[pairs] == other]
            gram, smoothing = self.smoother(int(other))
            in_other = rows_of(self.cells, int(other))[smoothing.rows]
            _, mine, theirs = np.intersect1d(rows, in_other, return_indices=True)
            if len(mine) == 0:
                continue
            places = np.searchsorted(places_of_new, membership.rows[here])
            values = gram.against(new[membership.rows[here]]).block()[:, smoothing.rows]
            slopes = values @ smoothing.matrix[:, theirs] + smoothing.offset[theirs][None, :]
            columns = new[membership.rows[here]][:, list(self.models.fixed)]
            if smoothing.fixed is not None:
                slopes += columns @ smoothing.fixed[:, theirs]
            dual = self.models.dual_coef[int(self.cells.offsets[other]) + smoothing.rows]
            # Not from the model's coefficients: those of a singular system are of least norm.
            top = smoothing.regular[theirs] @ self.targets[in_other]
            diagonal = np.diagonal(smoothing.regular)[theirs][:, None]
            # Zero where a row is all that a cell with a bias has: nothing is left without it.
            residuals = np.divide(top, diagonal, where=diagonal != 0, out=np.zeros_like(top))
            change = slopes[:, :, None] * residuals[None, :, :]
            whole = values @ dual + self.models.intercept[other][None, :]
            if self.models.fixed_coef is not None:
                whole += columns @ self.models.fixed_coef[other]
            change = self.within_range(int(other), whole, change)
            shift[np.ix_(places, mine)] += membership.weights[here][:, None, None] * change
        if self.coarse_model is not None:
            coarse = self._coarse_shift(self.coarse_model, rows, new[places_of_new])
            shift += self.coarse_model.share * (coarse - shift)
        return shift, self.residuals[rows]

    def _coarse_shift(
        self, coarse_model: Backdrop, rows: np.ndarray, new: np.ndarray
    ) -> np.ndarray:
        """f(x) − f₋ᵢ(x) of the coarse model."""
        weights = np.ones(len(rows)) if self.weights is None else self.weights[rows]
        psi = directions(coarse_model, np.asarray(self.X[rows]))
        residuals = residuals_without(coarse_model, psi, self.targets[rows], weights)
        pulls = (1.0 / coarse_model.total_weight + directions(coarse_model, new) @ psi.T) * weights
        return np.asarray(pulls[:, :, None] * residuals[None, :, :])

    def within_range(self, cell: int, whole: np.ndarray, change: np.ndarray) -> np.ndarray:
        """What `change` is of predictions that are kept to the cell's limits."""
        if self.models.lowest is None or self.models.highest is None:
            return change
        low, high = self.models.lowest[cell], self.models.highest[cell]
        whole = whole[:, None, :]
        return np.asarray(np.clip(whole, low, high) - np.clip(whole - change, low, high))

    def _counted(self, rows: np.ndarray) -> np.ndarray:
        """Rows of positive weight with a residual."""
        good = np.all(np.isfinite(self.residuals[rows]), axis=1)
        if self.weights is not None:
            good &= self.weights[rows] > 0
        return rows[good]

    def _within(self) -> bool:
        """Whether the cells that are kept are not too many for the memory."""
        taken = sum(2 * 8.0 * float(gram.shape[0]) ** 2 for gram, _ in self._kept.values())
        return len(self._kept) <= _MOST_CELLS_KEPT and taken <= self.memory_bytes / 2

    def smoother(self, cell: int) -> tuple[KernelGram, Smoother]:
        """Of one cell; the last few are kept, as neighbours ask for the same ones."""
        if cell not in self._kept:
            rows = rows_of(self.cells, cell)
            kernel = self.models.kernels[self.models.kernel_of_cell[cell]]
            X = np.ascontiguousarray(self.X[rows])
            gram = KernelGram(kernel, X, fixed=self.models.fixed)
            weights = None if self.weights is None else self.weights[rows]
            if weights is not None and not np.any(weights > 0):
                none = np.empty(0, dtype=np.intp)
                found = Smoother(none, np.empty((0, 0)), np.empty(0), np.empty((0, 0)))
            else:
                found = smoother(gram, float(self.models.alpha[cell]), weights, self.bias)
            self._kept[cell] = (gram, found)
            while len(self._kept) > 1 and not self._within():
                self._kept.popitem(last=False)
        self._kept.move_to_end(cell)
        return self._kept[cell]

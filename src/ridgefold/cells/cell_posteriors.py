"""Standard deviations of predictions in cells, by the posterior of each cell.

A cell is a Gaussian process of its own: its rows, kernel, ridge and most likely variance. Where
several cells predict a row, f = Σ_c w_c f_c, and the standard deviation given is Σ_c w_c σ_c: no
correlation between cells makes that of f larger. With one cell to a row it is that of the cell.
A coarse model behind the cells estimates the same function and adds nothing. The factor of a cell
is made when it is asked for, one cell at a time, and not kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.cells.cell_rows import RowsByCell, rows_of
from ridgefold.cells.combine import Assignment
from ridgefold.exact.posterior import posterior, prior_variance
from ridgefold.kernels import KernelGram
from ridgefold.linalg.blocks import row_blocks
from ridgefold.linalg.unpenalised import unpenalised_space
from ridgefold.records import Cells, LocalModels

_BLOCK_BYTES = 32e6
"""Kernel values of new rows with a cell that are alive at once."""


@dataclass(frozen=True)
class CellPosteriors:
    """The cells of a regressor as Gaussian processes."""

    rows: RowsByCell
    targets: np.ndarray
    """The targets of all training rows, shape (n, t)."""
    weights: np.ndarray | None
    cells: Cells
    models: LocalModels
    bias: bool

    def standard_deviations(
        self, new: np.ndarray, assignment: Assignment, variance: np.ndarray | None, *, noise: bool
    ) -> np.ndarray:
        """Σ_c w_c σ_c of checked rows, of shape (m, t)."""
        new = np.asarray(new, dtype=np.float64)
        out = np.zeros((len(new), self.targets.shape[1]))
        for cell in range(assignment.n_cells):
            chosen, weights = assignment.of_cell(cell)
            part = new[chosen]
            if len(part) == 0:
                continue
            own = self._of_cell(cell, part, variance, noise=noise)
            out[chosen] += np.reshape(weights, (-1, 1)) * own
        return out

    def _of_cell(
        self, cell: int, new: np.ndarray, variance: np.ndarray | None, *, noise: bool
    ) -> np.ndarray:
        (X,) = self.rows.batch(self.cells, (cell,))
        numbers = rows_of(self.cells, cell)
        X, y = np.asarray(X, np.float64), np.asarray(self.targets[numbers], np.float64)
        weights = None if self.weights is None else np.asarray(self.weights[numbers], np.float64)
        if weights is not None and not np.all(weights > 0):
            counted = weights > 0
            X, y, weights = X[counted], y[counted], weights[counted]
        alpha = float(self.models.alpha[cell])
        kernel = self.models.kernels[self.models.kernel_of_cell[cell]]
        gram = KernelGram(kernel, X)
        space = unpenalised_space(
            gram.namespace,
            X[:, list(self.models.fixed)] if self.models.fixed else None,
            None,
            bias=self.bias,
            n_rows=len(X),
            like=X,
        )

        def basis(rows: np.ndarray) -> np.ndarray:
            if space is None:
                return np.ones((len(rows), 0))
            fixed = rows[:, list(self.models.fixed)] if self.models.fixed else None
            return np.asarray(space.at(fixed, len(rows)))

        found = posterior(gram, alpha, weights, basis(X))
        s2 = prior_variance(found, y) if variance is None else variance
        unit = np.empty(len(new))
        for some in row_blocks(len(new), 8.0 * len(X), _BLOCK_BYTES):
            cross = gram.against(new[some]).block()
            prior = kernel.diagonal(gram.namespace, new[some])
            unit[some] = found.variances(prior, cross.T, basis(new[some]).T)
        return np.asarray(np.sqrt(np.outer(unit + (alpha if noise else 0.0), s2)))

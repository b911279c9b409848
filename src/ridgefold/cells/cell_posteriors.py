"""Standard deviations of predictions in cells, by the posterior of each cell.

A cell is a Gaussian process of its own: its rows, kernel, ridge and most likely variance. Where
several cells predict a row, f = Σ_c w_c f_c, and the standard deviation given is Σ_c w_c σ_c: no
correlation between cells makes that of f larger. With one cell to a row it is that of the cell.
A coarse model behind the cells estimates the same function and adds nothing. The factor of a cell
is made when it is asked for, one cell at a time, and not kept.

*Averages.* All m cells estimate one process, of variance s² and noise s²α/w, each with the ridge
α_c = α n_c/n that suits their mean. With f_c(x) = l_cᵀy_c the error of the mean has two parts. That
of the noise is independent between cells and known, s²α Σ_c ‖l_c‖²/m² (in the weights 1/w). That of
the process, f_c without noise less f, has the variance s²b_c² in every cell,

    b_c² = κ − 2 l_cᵀk_c + l_cᵀK_c l_c,

and unknown correlations, so that its standard deviation is at most s·Σ_c b_c/m. The two are added
as variances. With one cell it is the posterior; s² is that of the largest restricted likelihood of
the cells with the ridge α.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.cells.cell_rows import RowsByCell, number_of, rows_of
from ridgefold.cells.combine import Assignment
from ridgefold.errors import NumericalError
from ridgefold.exact.posterior import Posterior, posterior, prior_variance
from ridgefold.kernels import KernelGram
from ridgefold.linalg.blocks import row_blocks
from ridgefold.linalg.unpenalised import Unpenalised, unpenalised_space
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
        own = self.process(cell)
        s2 = prior_variance(own.found, own.targets) if variance is None else variance
        unit = np.empty(len(new))
        for some in row_blocks(len(new), 8.0 * len(own.X), _BLOCK_BYTES):
            cross, prior = own.against(new[some])
            unit[some] = own.found.variances(prior, cross.T, own.basis(new[some]).T)
        return np.asarray(np.sqrt(np.outer(unit + (own.found.alpha if noise else 0.0), s2)))

    def process(self, cell: int, alpha: float | None = None) -> CellProcess:
        """The process of a cell, with its own ridge or another one."""
        (X,) = self.rows.batch(self.cells, (cell,))
        numbers = rows_of(self.cells, cell)
        X, y = np.asarray(X, np.float64), np.asarray(self.targets[numbers], np.float64)
        weights = None if self.weights is None else np.asarray(self.weights[numbers], np.float64)
        if weights is not None and not np.all(weights > 0):
            counted = weights > 0
            X, y, weights, numbers = X[counted], y[counted], weights[counted], numbers[counted]
        kernel = self.models.kernels[self.models.kernel_of_cell[cell]]
        gram, fixed = KernelGram(kernel, X), list(self.models.fixed)
        space = unpenalised_space(
            gram.namespace,
            X[:, fixed] if fixed else None,
            None,
            bias=self.bias,
            n_rows=len(X),
            like=X,
        )
        basis = np.ones((len(X), 0)) if space is None else np.asarray(space.basis)
        ridge = float(self.models.alpha[cell]) if alpha is None else alpha
        found = posterior(gram, ridge, weights, basis)
        return CellProcess(found, gram, X, y, weights, numbers, space, fixed)

    # -- averages ------------------------------------------------------------------------

    def deviations_of_average(
        self, new: np.ndarray, variance: np.ndarray | None, *, noise: bool
    ) -> np.ndarray:
        """Those of the mean of all cells at checked rows, of shape (k, t)."""
        new, m = np.asarray(new, dtype=np.float64), number_of(self.cells)
        of_noise, of_process = np.zeros(len(new)), np.zeros(len(new))
        for cell in range(m):
            own = self.process(cell)
            for some in row_blocks(len(new), 8.0 * len(own.X), _BLOCK_BYTES):
                cross, prior = own.against(new[some])
                L = own.found.weights_of_targets(cross.T, own.basis(new[some]).T)
                shares = L * L if own.weights is None else L * L / own.weights[:, None]
                of_noise[some] += shares.sum(axis=0)
                squares = prior + np.sum(L * (own.gram.matmat(L) - 2.0 * cross.T), axis=0)
                of_process[some] += np.sqrt(np.maximum(squares, 0.0))
        alpha = self.alpha_of_average
        unit = alpha * (of_noise / m**2 + float(noise)) + (of_process / m) ** 2
        s2 = self._variance_of_average() if variance is None else variance
        return np.asarray(np.sqrt(np.outer(unit, s2)))

    @property
    def alpha_of_average(self) -> float:
        """α, of which every cell has its share of the rows."""
        sizes = np.diff(self.cells.offsets)
        return float(self.models.alpha[0]) * float(sizes.sum()) / float(sizes[0])

    def _variance_of_average(self) -> np.ndarray:
        total, free = np.zeros(self.targets.shape[1]), 0
        for cell in range(number_of(self.cells)):
            own = self.process(cell, self.alpha_of_average)
            total += np.diagonal(own.found.quadratic_forms(own.targets))
            free += own.found.n_free
        if free < 1:
            raise NumericalError(
                "the cells have too few rows to tell a variance from: use fewer cells, or give the "
                "argument variance"
            )
        return total / free


@dataclass(frozen=True)
class CellProcess:
    """A cell as a Gaussian process, with its rows of positive weight."""

    found: Posterior
    gram: KernelGram
    X: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    numbers: np.ndarray
    """The numbers of these rows among all."""
    space: Unpenalised | None
    fixed: list[int]
    """Numbers of the unpenalised columns beside the bias."""

    def against(self, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The kernel of new rows with those of the cell, and with themselves."""
        prior = self.gram.kernel.diagonal(self.gram.namespace, new)
        return np.asarray(self.gram.against(new).block()), np.asarray(prior)

    def slopes_of_basis(self, columns: np.ndarray) -> np.ndarray:
        """∂F/∂x_j of some columns j, of shape (q, len(columns)): the same at every row."""
        found = np.zeros((int(self.found.basis.shape[1]), len(columns)))
        if self.space is not None and self.fixed:
            own = np.asarray(self.space.transform)[int(self.space.bias) :]
            for place, column in enumerate(columns.tolist()):
                if column in self.fixed:
                    found[:, place] = own[self.fixed.index(column)]
        return found

    def basis(self, rows: np.ndarray) -> np.ndarray:
        """The unpenalised columns of rows, in coordinates that are orthonormal in the cell."""
        if self.space is None:
            return np.ones((len(rows), 0))
        return np.asarray(self.space.at(rows[:, self.fixed] if self.fixed else None, len(rows)))

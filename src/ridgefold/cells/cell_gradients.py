"""Slopes of the combined prediction of cells, by the product rule.

With weights w_c(x) that sum to 1, f = Σ_c w_c f_c has

    ∂f/∂x_j = Σ_c [w_c ∂f_c/∂x_j + f_c ∂w_c/∂x_j],

and a coarse model behind the cells adds its own share. The weights of a blend are products of
linear ramps, whatever the cut: their slopes are central differences of the weights alone, exact
but for rounding. At the two ends of a ramp they have a kink, where the mean of both sides is
taken. Where every row has one cell, predictions jump between cells, and the slope is that of the
row's own cell. Where a cell's prediction is held at the range of its targets, its slope is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from ridgefold.cells.cell_prediction import CellModel
from ridgefold.cells.cell_rows import RowsByCell
from ridgefold.cells.combine import Assignment
from ridgefold.kernels import KernelGram
from ridgefold.kernels.slope_gram import SlopeGram
from ridgefold.records import Backdrop, Cells, LocalModels

_STEP = 1e-5
"""The step of a difference quotient as a share of a column's spread: rounding errors of weights
(1e-16) are then 1e-11 of a slope, and a ramp is thousands of steps wide."""


def combined_gradients(
    rows: RowsByCell,
    cells: Cells,
    models: LocalModels,
    assign: Callable[[np.ndarray], Assignment],
    new: np.ndarray,
) -> np.ndarray:
    """∂f/∂x_j of the new rows, of shape (m, d, t), without a coarse model.

    Parameters
    ----------
    assign : callable
        The cells and weights of rows: `Combiner.assign`.
    """
    new = np.asarray(new, dtype=np.float64)
    m, d = new.shape
    out = np.zeros((m, d, models.intercept.shape[1]))
    assignment = assign(new)
    slopes = _slopes_of_weights(cells, assignment, assign, new)
    weights = _as_matrix(assignment)
    reached = weights if weights is None else (abs(weights) + sum(map(abs, slopes))).tocsc()
    for cell in range(assignment.n_cells):
        chosen = np.arange(m)
        if reached is not None:
            chosen = reached.indices[reached.indptr[cell] : reached.indptr[cell + 1]]
        if len(chosen) == 0:
            continue
        (X,) = rows.batch(cells, (cell,))
        dual = models.dual_coef[cells.offsets[cell] : cells.offsets[cell + 1]].astype(np.float64)
        share: np.ndarray | float = 1.0 / assignment.n_cells
        if weights is not None:
            share = _column(weights, chosen, cell)[:, None, None]
        values, own = _of_one_cell(CellModel.of(models, cell), X, dual, new[chosen])
        out[chosen] += share * own
        for j, each in enumerate(slopes):
            out[chosen, j] += _column(each, chosen, cell)[:, None] * values
    return out


def _of_one_cell(
    model: CellModel, X: np.ndarray, dual: np.ndarray, new: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """f_c and its slopes at some rows, within the limits of the cell."""
    X = np.asarray(X, dtype=np.float64)
    values = KernelGram(model.kernel, new, X).matmat(dual) + model.intercept[None, :]
    slopes = SlopeGram(model.kernel, new, X).row_slopes(dual)
    if model.fixed_coef is not None:
        values = values + new[:, list(model.fixed)] @ model.fixed_coef
        slopes[:, list(model.fixed), :] += model.fixed_coef[None, :, :]
    if model.lowest is not None and model.highest is not None:
        held = (values < model.lowest) | (values > model.highest)
        np.clip(values, model.lowest, model.highest, out=values)
        slopes = np.where(held[:, None, :], 0.0, slopes)
    return values, slopes


def _slopes_of_weights(
    cells: Cells,
    assignment: Assignment,
    assign: Callable[[np.ndarray], Assignment],
    new: np.ndarray,
) -> list[scipy.sparse.csr_array]:
    """∂w_c/∂x_j, one matrix of rows and cells a column; none where weights do not change."""
    if assignment.membership is None or cells.weights is None:
        return []
    spread = new.std(axis=0)
    largest = np.maximum(1.0, np.abs(new).max(axis=0, initial=0.0))
    steps = _STEP * np.where(spread > 1e-8 * largest, spread, largest)
    slopes: list[Any] = []
    for j, step in enumerate(steps):
        ends = []
        for signed in (step, -step):
            moved = new.copy()
            moved[:, j] += signed
            ends.append((moved[:, j], _as_matrix(assign(moved))))
        (above, up), (below, down) = ends
        assert up is not None
        apart = scipy.sparse.diags_array(1.0 / (above - below))  # the step as it was rounded
        slopes.append((apart @ (up - down)).tocsr())
    return slopes


def _as_matrix(assignment: Assignment) -> scipy.sparse.csr_array | None:
    """Weights by row and cell; None where every cell has the same."""
    if assignment.membership is None:
        return None
    rows, weights = assignment.membership.rows, assignment.membership.weights
    cell = np.repeat(np.arange(assignment.n_cells), np.diff(assignment.offsets))
    shape = (assignment.n_rows, assignment.n_cells)
    return scipy.sparse.csr_array((weights, (rows, cell)), shape=shape)


def _column(matrix: scipy.sparse.csr_array, rows: np.ndarray, cell: int) -> np.ndarray:
    return np.asarray(matrix[rows, cell].toarray()).ravel()


def with_coarse_slopes(coarse_model: Backdrop, new: np.ndarray, slopes: np.ndarray) -> None:
    """Slopes of cells become those of the mixture, in place: ψ(x)ᵀc = Σ_z (Pc)_z k(z, x)."""
    dual = np.asarray(coarse_model.projection @ coarse_model.coefficients, dtype=np.float64)
    centres = np.asarray(coarse_model.centres, dtype=np.float64)
    coarse = SlopeGram(coarse_model.kernel, np.asarray(new, np.float64), centres).row_slopes(dual)
    slopes += coarse_model.share * (coarse - slopes)

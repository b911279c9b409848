"""Rows cut into cells, and the models fitted in them: arrays, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgefold.records.kinds import Count, Limit, Positive


@dataclass(frozen=True)
class Cells:
    """Which rows belong to which cell, and what is needed to place new rows.

    Cell c holds the rows ``rows[offsets[c]:offsets[c + 1]]``, in ascending order. Cells that
    overlap share rows.
    """

    rows: np.ndarray
    """Row indices of all cells, one cell after the other."""
    offsets: np.ndarray
    """The start of each cell in `rows`, and the end of the last one; shape (n_cells + 1,)."""
    weights: np.ndarray | None
    """The weight of each entry of `rows` in the blended prediction of its row; the entries of one
    row sum to 1. None if cells do not overlap: every weight is 1."""
    router: Mapping[str, np.ndarray]
    """The geometry, as named arrays that the partitioner's functions read."""


@dataclass(frozen=True, eq=False)
class Slopes:
    """How much a function changes in every direction: the mean of ∇f∇fᵀ is V·diag(squares)·Vᵀ."""

    directions: np.ndarray
    """The steepest directions V, orthonormal columns of shape (n_columns, k)."""
    squares: np.ndarray
    """Mean squared slopes along the directions, in units of the mean over all directions; shape
    (k,)."""


@dataclass(frozen=True)
class Grid:
    """Kernels and ridge values that cells choose from, and the pair to begin with."""

    kernels: tuple[Any, ...]
    alphas: np.ndarray
    """Ridge values in ascending order: searches go from one to its neighbour."""
    start: int
    """Position of the kernel to begin with."""
    start_alpha: int
    """Position of the ridge that is taken where there are too few rows to choose."""
    ordered: bool
    """True if neighbours in `kernels` are neighbours in width; otherwise every kernel is tried."""
    others: tuple[Grid, ...] = ()
    """Grids of other kernels: the first search goes through each of them, and keeps the best."""

    @property
    def is_choice(self) -> bool:
        return len(self.kernels) > 1 or len(self.alphas) > 1 or bool(self.others)

    @property
    def each(self) -> tuple[Grid, ...]:
        """One grid for every kernel: this one without the others, then the others."""
        return (replace(self, others=()), *self.others)

    def with_ridges_times(self, factor: float) -> Grid:
        others = tuple(other.with_ridges_times(factor) for other in self.others)
        return replace(self, alphas=self.alphas * factor, others=others)


@dataclass(frozen=True)
class CellTrial:
    """One size of cells that was tried."""

    cell_rows: Count
    error: Limit
    """Root mean squared held-out error of the combined model."""


@dataclass(frozen=True)
class Membership:
    """Pairs of rows and cells with a weight; the weights of one row sum to 1."""

    rows: np.ndarray
    cells: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class LocalModels:
    """One model a cell: f_c(x) = Σ_i a_i k_c(x_i, x) + b_c over the rows of cell c."""

    dual_coef: np.ndarray
    """The coefficients a, aligned with ``Cells.rows``; shape (len(rows), n_targets)."""
    intercept: np.ndarray
    """The biases b, of shape (n_cells, n_targets)."""
    alpha: np.ndarray
    """The ridge of every cell, shape (n_cells,)."""
    kernels: tuple[Any, ...]
    """The distinct kernels."""
    kernel_of_cell: np.ndarray
    """Position in `kernels` of each cell's kernel, shape (n_cells,)."""
    lowest: np.ndarray | None = None
    """The least that each cell may predict, shape (n_cells, n_targets); None for no limit."""
    highest: np.ndarray | None = None
    """The most that each cell may predict, of the same shape; None for no limit."""
    fixed: tuple[Count, ...] = ()
    """Numbers of the columns that are not penalised."""
    fixed_coef: np.ndarray | None = None
    """Their coefficients in every cell, shape (n_cells, n_fixed, n_targets), if there are any."""


@dataclass(frozen=True)
class Backdrop:
    """A coarse model of all rows, mixed into those of the cells: (1 − s)·f_cells(x) + s·f(x).

    Model files and run directories know it by the name "backdrop".

    f(x) = b + ψ(x)ᵀc with ψ(x) = Pᵀk(Z, x) − offset; see `cells.coarse_model`.
    """

    centres: np.ndarray
    """Rows Z that span the model, in the metric of the cells; shape (r, n_columns)."""
    kernel: Any
    projection: np.ndarray
    """The projection P, of shape (r, k)."""
    offset: np.ndarray
    """The offset of ψ, of shape (k,)."""
    coefficients: np.ndarray
    """The coefficients c, of shape (k, n_targets)."""
    intercept: np.ndarray
    """The intercepts b, of shape (n_targets,)."""
    total_weight: Positive
    """The sum of the weights of all rows of the fit."""
    share: np.ndarray
    """The share s of every target, from 0 to 1."""


@dataclass(frozen=True)
class LinearPart:
    """A linear model of all rows under those of the cells: f(x) = xᵀc + b, to which they add."""

    coefficients: np.ndarray
    """The coefficients c, of shape (n_columns, n_targets)."""
    intercept: np.ndarray
    """The constants b, of shape (n_targets,)."""
    lowest: np.ndarray
    """Columns of new rows count from here, shape (n_columns,),"""
    highest: np.ndarray
    """and up to here."""
    least: np.ndarray | None = None
    """The least that the whole model predicts, shape (n_targets,); None for no limit."""
    most: np.ndarray | None = None
    """The most that the whole model predicts; None for no limit."""


@dataclass(frozen=True)
class FittedBatch:
    """The models of the cells of one task, one after the other."""

    dual_coef: np.ndarray
    """Coefficients of all rows of the cells, shape (rows, n_targets)."""
    intercept: np.ndarray
    """Biases of the cells, shape (n_cells, n_targets)."""
    alpha: np.ndarray
    """The ridge of every cell, shape (n_cells,)."""
    kernel: np.ndarray
    """Position in the grid of each cell's kernel, shape (n_cells,)."""
    residuals: np.ndarray | None
    """Leave-one-out residuals of all rows, if they were asked for."""
    lowest: np.ndarray
    """Least targets of each cell's rows of positive weight, shape (n_cells, n_targets)."""
    highest: np.ndarray
    """Largest targets of each cell's rows of positive weight, shape (n_cells, n_targets)."""
    fixed_coef: np.ndarray | None = None
    """Coefficients of the unpenalised columns, shape (n_cells, n_fixed, n_targets), if any."""

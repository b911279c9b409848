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
    """Where each cell starts in `rows`, and where the last one ends; shape (n_cells + 1,)."""
    weights: np.ndarray | None
    """What each entry of `rows` contributes to the blended prediction of its row; the entries
    of one row sum to 1. None if cells do not overlap: every entry is 1."""
    router: Mapping[str, np.ndarray]
    """The geometry, as named arrays that the partitioner's functions read."""


@dataclass(frozen=True, eq=False)
class Slopes:
    """How much a function changes in every direction: the mean of ∇f∇fᵀ is V·diag(squares)·Vᵀ."""

    directions: np.ndarray
    """V, orthonormal columns of shape (n_columns, k): the steepest directions."""
    squares: np.ndarray
    """Mean squared slopes along them, where their mean over all directions is 1; shape (k,)."""
    trust: float
    """How far they are to be relied on, from 0 to 1."""


@dataclass(frozen=True)
class Grid:
    """Kernels and ridge values that cells choose from, and where to begin."""

    kernels: tuple[Any, ...]
    alphas: np.ndarray
    """In ascending order: searches go from one to its neighbour."""
    start: int
    """The kernel to begin with."""
    start_alpha: int
    """The ridge that is taken where there are too few rows to choose."""
    ordered: bool
    """True if neighbours in `kernels` are neighbours in width; else all are tried."""
    stride: int = 1
    """How many places a first look goes at once: those in between are for near searches."""
    others: tuple[Grid, ...] = ()
    """Grids of other kernels: a first look goes through each of them, and the best is kept."""

    @property
    def is_choice(self) -> bool:
        return len(self.kernels) > 1 or len(self.alphas) > 1 or bool(self.others)

    @property
    def each(self) -> tuple[Grid, ...]:
        """This one and the others, by themselves."""
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
    measured: bool
    """False if the error was extrapolated."""


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
    """a, aligned with ``Cells.rows``; shape (len(rows), n_targets)."""
    intercept: np.ndarray
    """b, of shape (n_cells, n_targets)."""
    alpha: np.ndarray
    """The ridge of every cell, shape (n_cells,)."""
    kernels: tuple[Any, ...]
    """The distinct kernels."""
    kernel_of_cell: np.ndarray
    """Which of `kernels` each cell uses, shape (n_cells,)."""
    lowest: np.ndarray | None = None
    """The least that each cell may predict, shape (n_cells, n_targets); None if anything."""
    highest: np.ndarray | None = None
    """The most that each cell may predict."""


@dataclass(frozen=True)
class Backdrop:
    """A coarse model of all rows behind those of the cells: (1 − s)·f_cells(x) + s·f(x).

    f(x) = b + ψ(x)ᵀc with ψ(x) = Pᵀk(Z, x) − offset; see `engine.backdrop`.
    """

    centres: np.ndarray
    """Z, some rows, in the metric of the cells; shape (r, n_columns)."""
    kernel: Any
    projection: np.ndarray
    """P, of shape (r, k)."""
    offset: np.ndarray
    """Shape (k,)."""
    coefficients: np.ndarray
    """c, of shape (k, n_targets)."""
    intercept: np.ndarray
    """b, of shape (n_targets,)."""
    total_weight: Positive
    """Of all rows of the fit."""
    share: np.ndarray
    """s of every target, from 0 to 1."""


@dataclass(frozen=True)
class FittedBatch:
    """The models of some cells, one after the other, as they come from a task."""

    dual_coef: np.ndarray
    """Of all their rows, shape (rows, n_targets)."""
    intercept: np.ndarray
    """Shape (n_cells, n_targets), as are `lowest` and `highest`."""
    alpha: np.ndarray
    kernel: np.ndarray
    """Which kernel of the grid each cell uses."""
    residuals: np.ndarray | None
    """Leave-one-out residuals of all rows, if they were wanted."""
    lowest: np.ndarray
    """Least targets of the cells' rows of positive weight."""
    highest: np.ndarray

"""Predictions of changed training rows by the cells without them.

The changed version x of row i is placed in cells as any new row. With g_ic and r_ic of
`cells.cell_intervals`,

    f₋ᵢ(x) = f(x) − Σ_c w_c(x) r_ic g_ic(x),

over the cells that hold i and reach x: where the change has carried it into other cells, these have
never seen it. What is needed of a cell is one row of its inverse for each of its rows here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ridgefold.cells.cell_intervals import CellIntervals
from ridgefold.cells.cell_rows import number_of, rows_of
from ridgefold.cells.coarse_model import directions, residuals_without
from ridgefold.cells.combine import Assignment
from ridgefold.kernels import KernelGram
from ridgefold.records import Cells

_FEWEST_CELLS, _MOST_CELLS = 12, 64
_CUBES = 2e10
"""Rows are drawn from at least and at most so many cells, between them as many as have this sum of
cubed sizes: their inverses, and those of the cells that overlap with them, are computed again in a
few seconds."""


@dataclass(frozen=True)
class _RowsOfCell:
    """How a cell's predictions change with the targets of some of its rows."""

    gram: KernelGram
    counted: np.ndarray
    """The cell's rows of positive weight, by their place in it."""
    place_of: np.ndarray
    """For every row of the sample, its line below; −1 for rows that are not in the cell."""
    slopes: np.ndarray
    """Rows of D, a line each."""
    offsets: np.ndarray
    residuals: np.ndarray
    """r_ic, shape (lines, t)."""
    dual: np.ndarray
    intercept: np.ndarray
    fixed: np.ndarray | None
    """How they change by the unpenalised columns, (p, lines); None without such columns."""
    fixed_coef: np.ndarray | None


@dataclass
class RowsLeftOut:
    """Some training rows, and what is needed to leave each of them out."""

    kept: CellIntervals
    rows: np.ndarray
    """Their numbers, in ascending order."""
    _of_cell: dict[int, _RowsOfCell] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cells = self.kept.cells
        owners = np.repeat(np.arange(number_of(cells)), np.diff(cells.offsets))
        for cell in np.unique(owners[np.isin(cells.rows, self.rows)]):
            self._of_cell[int(cell)] = self._prepared(int(cell))

    def change(self, new: np.ndarray, assignment: Assignment) -> np.ndarray:
        """f(x) − f₋ᵢ(x) for a changed version x of every row, shape (rows, t)."""
        out = np.zeros((len(new), self.kept.targets.shape[1]))
        for cell, own in self._of_cell.items():
            reached, weights = assignment.of_cell(cell)
            reached = np.arange(len(new))[reached]
            weights = np.broadcast_to(np.asarray(weights, dtype=np.float64), reached.shape)
            inside = own.place_of[reached] >= 0
            reached, weights = reached[inside], weights[inside]
            if len(reached) == 0:
                continue
            lines = own.place_of[reached]
            block = own.gram.against(np.ascontiguousarray(new[reached])).block()
            slopes = np.einsum("ij,ij->i", block[:, own.counted], own.slopes[lines])
            whole = block @ own.dual + own.intercept[None, :]
            if own.fixed is not None and own.fixed_coef is not None:
                columns = new[reached][:, list(self.kept.models.fixed)]
                slopes = slopes + np.einsum("ij,ji->i", columns, own.fixed[:, lines])
                whole = whole + columns @ own.fixed_coef
            change = (slopes + own.offsets[lines])[:, None] * own.residuals[lines]
            change = self.kept.within_range(cell, whole, change[:, None, :])[:, 0, :]
            out[reached] += weights[:, None] * change
        coarse_model = self.kept.coarse_model
        if coarse_model is not None:
            given = self.kept.weights
            own_weights = np.ones(len(self.rows)) if given is None else given[self.rows]
            psi = directions(coarse_model, np.asarray(self.kept.X[self.rows]))
            targets = self.kept.targets[self.rows]
            residuals = residuals_without(coarse_model, psi, targets, own_weights)
            pulls = np.einsum("ij,ij->i", directions(coarse_model, new), psi)
            pulls = (pulls + 1.0 / coarse_model.total_weight) * own_weights
            coarse = pulls[:, None] * residuals
            out += coarse_model.share * (coarse - out)
        return out

    def _prepared(self, cell: int) -> _RowsOfCell:
        kept = self.kept
        gram, found = kept.smoother(cell)
        inside = rows_of(kept.cells, cell)[found.rows]
        place_of = np.full(len(self.rows), -1)
        _, sample, lines = np.intersect1d(self.rows, inside, return_indices=True)
        place_of[sample] = np.arange(len(sample))
        top = found.regular[lines] @ kept.targets[inside]
        diagonal = np.diagonal(found.regular)[lines][:, None]
        start = int(kept.cells.offsets[cell])
        stop = int(kept.cells.offsets[cell + 1])
        return _RowsOfCell(
            gram=gram,
            counted=found.rows,
            place_of=place_of,
            slopes=np.asarray(found.matrix[lines]),
            offsets=np.asarray(found.offset[lines]),
            # Zero where a row is all that a cell with a bias has: nothing is left without it.
            residuals=np.divide(top, diagonal, where=diagonal != 0, out=np.zeros_like(top)),
            dual=np.asarray(kept.models.dual_coef[start:stop]),
            intercept=kept.models.intercept[cell],
            fixed=None if found.fixed is None else np.asarray(found.fixed[:, lines]),
            fixed_coef=None if kept.models.fixed_coef is None else kept.models.fixed_coef[cell],
        )


def rows_to_leave_out(
    cells: Cells,
    weights: np.ndarray | None,
    *,
    n_rows: int,
    max_rows: int,
    random: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows of positive weight drawn at random, and the cell that each was drawn with.

    Of many cells a few are drawn, and rows from these: every row by its shares in the cells.
    """
    counted = np.ones(n_rows, dtype=bool) if weights is None else np.asarray(weights) > 0
    m, mean_cube = number_of(cells), float(np.mean(np.diff(cells.offsets).astype(float) ** 3))
    most_cells = int(np.clip(_CUBES / mean_cube, _FEWEST_CELLS, _MOST_CELLS))
    if m <= most_cells:
        rows = np.flatnonzero(counted)
        if len(rows) > max_rows:
            rows = np.sort(random.choice(rows, size=max_rows, replace=False))
        return rows, None
    shares = np.ones(len(cells.rows)) if cells.weights is None else cells.weights
    shares = np.where(counted[cells.rows], shares, 0.0)
    sizes = np.add.reduceat(shares, cells.offsets[:-1])
    filled = np.flatnonzero(sizes > 0)
    count = min(most_cells, len(filled))
    chosen = random.choice(filled, size=count, replace=False, p=sizes[filled] / sizes[filled].sum())
    found: dict[int, int] = {}
    for cell in np.sort(chosen):
        inside = slice(int(cells.offsets[cell]), int(cells.offsets[cell + 1]))
        own, p = cells.rows[inside], shares[inside]
        size = min(int(np.sum(p > 0)), -(-max_rows // count))
        for row in random.choice(own, size=size, replace=False, p=p / p.sum()):
            found.setdefault(int(row), int(cell))
    rows = np.array(sorted(found))
    return rows, np.array([found[row] for row in rows.tolist()])

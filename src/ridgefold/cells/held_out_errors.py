"""What a model of cells is off by at rows that are left out, as sizes and shares are judged."""

from __future__ import annotations

import numpy as np

from ridgefold.cells.cell_rows import RowsToFit
from ridgefold.cells.run_cells import combined_residuals
from ridgefold.records import Cells, LocalModels


def held_out_errors(
    training: RowsToFit, cells: Cells, models: LocalModels, residuals: np.ndarray, *, clip: bool
) -> tuple[np.ndarray, np.ndarray]:
    """What the combined model is off by at rows left out, and what each of them counts.

    Those that are left out are the given rows where these are known.
    """
    rows, members = training.scored(slice(0, training.X.shape[0])), training.members
    if members is not None:
        assert training.weights is not None
        alpha = np.repeat(models.alpha, np.diff(cells.offsets))
        errors = models.dual_coef * (alpha / training.weights[cells.rows])[:, None]
        inside = members.taken(cells.rows)
        residuals = inside.residuals(errors, residuals)
        shares = None if cells.weights is None else inside.spread(cells.weights)
        cells = Cells(members.places(cells.rows), np.empty(0), shares, {})
    combined = combined_residuals(cells, residuals, len(rows.targets))
    if clip:
        combined = _clipped(rows.targets, combined, rows.counts > 0)
    return combined, rows.counts


def _clipped(targets: np.ndarray, residuals: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Residuals of predictions kept within the range of the targets that count.

    A few wild ones would decide between sizes otherwise. The models keep every cell to limits of
    its own, within these.
    """
    if not counted.any():
        return residuals
    lowest, highest = targets[counted].min(axis=0), targets[counted].max(axis=0)
    return np.asarray(targets - np.clip(targets - residuals, lowest, highest))

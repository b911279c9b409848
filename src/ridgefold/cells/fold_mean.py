"""The mean of the models of a cell's folds, as one fit.

The model without a fold is the model of all rows with the targets of the fold replaced by its own
predictions of them, and a fit is linear in its targets. So the mean of the models of l folds is one
fit of y − (y − ŷ)/l, ŷ the held-out predictions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ridgefold.cells.local_fit import CellData, CellFit, CellSystem, FitSettings
from ridgefold.cells.stacked_fit import cell_on, here
from ridgefold.crossval import METHODS, Folds
from ridgefold.kernels import Kernel, KernelGram
from ridgefold.linalg import Array, namespace_of

_METHOD = METHODS["inverse_blocks"]
_FEWEST_ROWS_A_FOLD = 2


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def mean_of_folds(fit: CellFit, data: CellData, settings: FitSettings) -> CellFit:
    """A cell's fit with the coefficients of that mean; as it is where there are too few rows.

    Rows of positive weight are dealt out to folds in turn, so that nothing depends on where a
    cell is worked on, or beside which others.
    """
    if settings.average_folds is None:
        return fit
    counted = np.arange(len(data.X)) if data.weights is None else np.flatnonzero(data.weights > 0)
    if len(counted) < _FEWEST_ROWS_A_FOLD * settings.average_folds:
        return fit
    test = tuple(counted[k :: settings.average_folds] for k in range(settings.average_folds))
    kernel = settings.grid.kernels[fit.kernel]
    if settings.device is not None:
        data = cell_on(data, settings.device)
    targets = _targets(data, Folds(len(data.X), test), kernel, fit.alpha, bias=settings.bias)
    system = CellSystem(replace(data, targets=targets), (kernel,), bias=settings.bias)
    mean = here(system.fit(0, fit.alpha, held_out=False))
    return replace(fit, dual_coef=mean.dual_coef, intercept=mean.intercept)


def _targets(data: CellData, folds: Folds, kernel: Kernel, alpha: float, *, bias: bool) -> Array:
    """y − (y − ŷ)/l, and y in rows of no fold."""
    namespace = namespace_of(data.targets)
    state = _METHOD.prepare(KernelGram(kernel, data.X), folds, data.weights, bias)
    predicted = _METHOD.held_out(state, data.targets, np.array([alpha])).predictions[0]
    y = namespace.take_rows(data.targets, folds.stacked)
    targets = namespace.copy(data.targets)
    targets[namespace.indices(folds.stacked, targets), :] = y - (y - predicted) / len(folds)
    return targets

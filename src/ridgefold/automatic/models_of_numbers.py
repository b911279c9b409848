"""The models that candidates are made of: of all rows, or in cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from ridgefold.automatic.automatic_work import AutomaticWork
from ridgefold.errors import InvalidInputError
from ridgefold.estimators.kernel_ridge_cv import LSSVMRegressorCV
from ridgefold.estimators.partitioned import PartitionedLSSVMRegressor
from ridgefold.kernels import Columns, Kernel, Rotated
from ridgefold.kernels.derived import DerivedKernel
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.kernels.warped import Warped
from ridgefold.linalg import namespace_of
from ridgefold.linalg.namespace import on_device
from ridgefold.options import Compute, Search

_CELL_KERNELS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "matern12": ("matern", {"nu": 0.5}),
    "matern32": ("matern", {"nu": 1.5}),
    "matern52": ("matern", {"nu": 2.5}),
}
"""What families of several parameters are called by cells, which choose their own widths."""


def whole_model(
    work: AutomaticWork, kernel: Any, alphas: Any, splits: Any, dtype: Any = np.float64
) -> LSSVMRegressorCV:
    """One model of all rows, or of the rows that the splits are of.

    In float32 held-out predictions are by a factorisation: what rounding allows an iteration to
    leave is relative to the largest target, and may be most of what the model does not explain.
    """
    direct = Search(method="inverse_blocks") if dtype == np.float32 else None
    return LSSVMRegressorCV(
        alphas,
        kernel=kernel,
        cv=splits,
        memory_budget=work.memory_budget,
        search=direct,
        random_state=work.seed,
    )


def splits_of(work: AutomaticWork) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows of every fold."""
    return [(work.folds.training_rows(k), test) for k, test in enumerate(work.folds.test)]


def fit_whole(
    work: AutomaticWork,
    model: LSSVMRegressorCV,
    rows: np.ndarray | None = None,
    dtype: Any = np.float64,
) -> np.ndarray:
    """Fit to all rows, or to some; returns the held-out predictions of all of them.

    A model of some rows has not seen the others: these are held out as they are.
    """
    X = work.X.astype(dtype, copy=False)
    some = slice(None) if rows is None else rows
    weights = None if work.weights is None else work.weights[some]
    model.fit(on_device(X[some], work.device), work.targets[some], weights)
    found = namespace_of(model.held_out_predictions_).to_numpy(model.held_out_predictions_)
    held_out = np.asarray(found, dtype=np.float64).reshape(-1, work.targets.shape[1])
    if rows is None:
        return held_out
    others = np.setdiff1d(np.arange(len(work.X)), rows)
    predicted = model.predict(on_device(X[others], work.device))
    every = np.empty(work.targets.shape)
    every[rows] = held_out
    every[others] = np.asarray(namespace_of(predicted).to_numpy(predicted)).reshape(len(others), -1)
    return every


def cell_model(work: AutomaticWork, family: str) -> PartitionedLSSVMRegressor:
    """Cells of rows in the coordinates of a metric; each chooses its own width and ridge."""
    kernel, parameters = _CELL_KERNELS.get(family, (family, None))
    return PartitionedLSSVMRegressor(
        n_partitions="auto" if work.n_cells is None else work.n_cells,
        kernel=kernel,
        kernel_params=parameters,
        memory_budget=work.memory_budget,
        compute=Compute(n_jobs=work.n_jobs, device=work.device),
        random_state=work.seed,
    )


def fit_cells(
    work: AutomaticWork, model: PartitionedLSSVMRegressor, X: np.ndarray, *, exchangeable: bool
) -> np.ndarray:
    """Fit cells to all rows; returns held-out predictions.

    Every row is left out by itself. Where rows belong together the cells are fitted again
    without each fold.
    """
    model.fit(X, work.targets, work.weights)
    if exchangeable and model.held_out_residuals_ is not None:
        residuals = np.asarray(model.held_out_residuals_, dtype=np.float64)
        return np.asarray(work.targets - residuals.reshape(work.targets.shape))
    held_out = np.full(work.targets.shape, np.nan)
    for k, test in enumerate(work.folds.test):
        kept = work.folds.training_rows(k)
        weights = None if work.weights is None else work.weights[kept]
        again = clone(model).fit(X[kept], work.targets[kept], weights)
        held_out[test] = np.asarray(again.predict(X[test])).reshape(len(test), -1)
    return held_out


def in_coordinates(kernel: Kernel | None, X: np.ndarray) -> np.ndarray:
    """Rows such that the kernel is one of plain distances between them: its columns, transformed,
    in units of their length scales."""
    if kernel is None:
        return X
    namespace = namespace_of(X)
    while isinstance(kernel, DerivedKernel):
        X, kernel = kernel.transform(namespace, X), kernel.kernel
    if not isinstance(kernel, DistanceKernel):
        raise InvalidInputError(f"{kernel!r} has no coordinates")
    return np.ascontiguousarray(X / np.asarray(kernel.length_scale))


def slopes_through(kernel: Kernel | None, X: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Slopes along the columns of X, (n, d, t), from those along what `in_coordinates` makes."""
    if kernel is None:
        return slopes
    if isinstance(kernel, DistanceKernel):
        return np.asarray(slopes / np.reshape(kernel.length_scale, (-1, 1)))
    assert isinstance(kernel, DerivedKernel)
    namespace = namespace_of(X)
    inner = slopes_through(kernel.kernel, kernel.transform(namespace, X), slopes)
    if isinstance(kernel, Rotated):
        return np.asarray(np.einsum("ikt,kj->ijt", inner, np.asarray(kernel.directions)))
    if isinstance(kernel, Warped):
        return np.asarray(inner * kernel.steps(namespace, X)[:, :, None])
    assert isinstance(kernel, Columns)
    whole = np.zeros((len(X), X.shape[1], slopes.shape[2]))
    whole[:, np.asarray(kernel.columns), :] = inner
    return whole

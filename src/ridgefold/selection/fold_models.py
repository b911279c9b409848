"""Models without one fold each, of a kernel and a ridge that are given.

The model without a fold is the model of all rows with the targets of the fold replaced by its own
predictions of them. So the models of all folds are further columns of one system.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgefold.crossval import Folds
from ridgefold.exact import Fit, SystemWork
from ridgefold.linalg import Array
from ridgefold.planning import available_resources, device_of
from ridgefold.records import FittedModel
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.describe import TrainingGram, describe
from ridgefold.selection.held_out_predictions import held_out_predictions
from ridgefold.solvers import RidgeSystem


def targets_without_folds(
    data: TrainingData, targets: Array, folds: Folds, held_out: np.ndarray
) -> Array:
    """The targets of every fold's model: its own rows hold what it predicts for them."""
    numbers = data.namespace.to_numpy(targets)
    columns = np.tile(numbers, (1, len(folds)))
    t = numbers.shape[1]
    for k, rows in enumerate(folds.test):
        columns[rows, k * t : (k + 1) * t] = held_out[rows]
    return data.namespace.asarray(columns, data.like)


def fold_models(
    data: TrainingData,
    targets: Array,
    gram: TrainingGram,
    alphas: np.ndarray,
    folds: Folds,
    *,
    bias: bool,
    solver: str,
    tolerance: float,
    memory_budget: Any,
) -> FittedModel:
    """One function for each fold and target, fold by fold."""
    held_out, _ = held_out_predictions(
        data, targets, gram, alphas, folds, bias=bias, memory_budget=memory_budget
    )
    columns = targets_without_folds(data, targets, folds, held_out)
    ridges = np.tile(alphas, len(folds))
    problem = describe(data, columns, gram, ridges, bias=bias)
    system = RidgeSystem(
        gram=gram,
        targets=columns,
        alphas=ridges,
        weights=data.weights,
        bias=problem.bias,
        tolerance=tolerance,
    )
    resources = available_resources(memory_budget, device=device_of(data.like))
    work = SystemWork(system, resources)
    Fit(solver).perform(problem, work)
    assert work.model is not None
    return work.model

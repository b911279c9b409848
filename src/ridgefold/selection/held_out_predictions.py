"""Held-out predictions of a model whose kernel and ridge are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgefold import notices
from ridgefold.crossval import Folds, make_folds
from ridgefold.errors import ConditionWarning, InvalidInputError
from ridgefold.linalg import Array
from ridgefold.planning import available_resources, device_of
from ridgefold.records import StepRecord
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.cross_validate import (
    CrossValidateKernel,
    PathWork,
    giving_up_is_a_budget_error,
)
from ridgefold.selection.describe import TrainingGram, describe

HOLD_OUT = CrossValidateKernel("predicting rows held out")
"""What a model whose kernel and ridge are given needs for intervals and probabilities."""


def shuffled_folds(n_rows: int, n_folds: int, classes: np.ndarray | None = None) -> Folds:
    """Folds of mixed rows, the same ones every time; with classes, each in every fold.

    Rows often come sorted, and folds of consecutive rows would then be held out from models
    that have seen nothing like them.
    """
    n_folds = min(n_folds, n_rows)
    if n_folds < 2:
        raise InvalidInputError(f"held-out predictions need at least 2 rows, got {n_rows}")
    order = np.random.default_rng(0).permutation(n_rows)
    if classes is not None:
        order = order[np.argsort(classes[order], kind="stable")]
    fold = np.empty(n_rows, dtype=int)
    fold[order] = np.arange(n_rows) % n_folds
    rows = np.arange(n_rows)
    return make_folds(((rows[fold != k], rows[fold == k]) for k in range(n_folds)), n_rows)


def held_out_predictions(
    data: TrainingData,
    targets: Array,
    gram: TrainingGram,
    alphas: np.ndarray,
    folds: Folds,
    *,
    bias: bool,
    memory_budget: Any,
) -> tuple[np.ndarray, StepRecord]:
    """Prediction of every row by the model that did not see it, shape (n_rows, n_targets).

    `alphas` holds one ridge value a target, each > 0.
    """
    distinct = np.unique(alphas)
    if distinct[0] <= 0:
        raise InvalidInputError(
            "intervals and probabilities need held-out predictions, and those need alpha > 0, "
            f"got {distinct[0]:g}"
        )
    problem = describe(data, targets, gram, distinct, bias=bias, folds=folds)
    left = None if data.deadline is None else data.deadline.left
    resources = available_resources(memory_budget, left, device_of(data.like))
    work = PathWork(
        gram, folds, targets, distinct, data.weights, bias, resources, deadline=data.deadline
    )
    with notices.collected() as given, giving_up_is_a_budget_error("auto", resources):
        _, record = HOLD_OUT.perform(problem, work)
    result = work.held_out
    assert result is not None
    if data.deadline is not None:
        data.deadline.begun = True
    # The fit that follows has the same matrix, and warns of its condition.
    notices.give(each for each in given if not issubclass(each.category, ConditionWarning))
    paths = gram.namespace.to_numpy(result.predictions)
    where = np.searchsorted(distinct, alphas)
    held_out = by_row(folds, np.stack([paths[w, :, j] for j, w in enumerate(where)], axis=1))
    return held_out, record


def by_row(folds: Folds, predictions: np.ndarray) -> np.ndarray:
    """Stacked predictions (rows of all folds, t) as one row for each row of X.

    Rows tested by several folds get the mean of their predictions, rows tested by none NaN.
    """
    out = np.zeros((folds.n_rows, predictions.shape[1]), dtype=predictions.dtype)
    np.add.at(out, folds.stacked, predictions)
    counts = np.bincount(folds.stacked, minlength=folds.n_rows).astype(out.dtype)
    with np.errstate(invalid="ignore", divide="ignore"):
        out /= counts[:, None]
    return out

"""How much too small held-out errors are as the metric was learned from the held-out rows, too.

Every scale that is free to move fits a little of the noise, of all rows together: the fold that is
held out from a fit was not held out from the learning. Errors come out too small by an order of the
number of scales over the number of rows. How much it is, is measured: the metric is learned again
without each of a few folds, and both metrics, without that fold, predict it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ridgefold import notices
from ridgefold.errors import InvalidInputError, NumericalError
from ridgefold.exact import predict_solved
from ridgefold.kernels import KernelGram
from ridgefold.linalg import Array, namespace_of
from ridgefold.records import LearnedMetric
from ridgefold.selection.held_out_predictions import shuffled_folds
from ridgefold.solvers import SOLVERS, RidgeSystem

FOLDS_LEARNED_AGAIN = 5
"""The metric is learned again without each of so many folds."""
_ROWS_A_SCALE = 20
"""With more rows for every scale, errors are too small by next to nothing: with 5 columns it is a
tenth of their size at 100 rows, and at 500 rows it cannot be seen in what intervals cover."""


Relearn: TypeAlias = Callable[..., LearnedMetric]
"""`learn_metric` with its settings, for rows, targets and weights."""


def few_rows_a_scale(X: Array, weights: Array | None, scale_groups: Any = None) -> bool:
    """Whether there are so few rows that errors are too small, and enough to tell by how much."""
    return few_rows(len(_counted(X, weights)), int(X.shape[1]), scale_groups)


def few_rows(n_rows: int, n_columns: int, scale_groups: Any = None) -> bool:
    """The same from shapes."""
    scales = n_columns - sum(len(group) - 1 for group in scale_groups or ())
    return 2 * FOLDS_LEARNED_AGAIN <= n_rows <= _ROWS_A_SCALE * scales


def _counted(X: Array, weights: Array | None) -> np.ndarray:
    """The numbers of the rows of positive weight."""
    if weights is None:
        return np.arange(int(X.shape[0]))
    return np.flatnonzero(namespace_of(X).to_numpy(weights) > 0)


def widening_by_learning(
    X: Array,
    targets: Array,
    weights: Array | None,
    metric: LearnedMetric,
    again: Relearn,
    *,
    bias: bool,
    fixed: tuple[int, ...] = (),
    scale_groups: Any = None,
) -> np.ndarray | None:
    """The factor, one a target and at least 1, that held-out errors are to be multiplied by.

    The ratio of mean absolute errors of metrics learned without each fold to those of `metric`.
    None where there are so many rows that it need not be measured, or so few that it cannot be.
    """
    namespace = namespace_of(X)
    rows = _counted(X, weights)
    if not few_rows_a_scale(X, weights, scale_groups):
        return None

    def taken(some: np.ndarray) -> tuple[Array, Array, Array | None]:
        w = None if weights is None else namespace.take_rows(weights, rows[some])
        return namespace.take_rows(X, rows[some]), namespace.take_rows(targets, rows[some]), w

    with_all, without = np.zeros(targets.shape[1]), np.zeros(targets.shape[1])
    for test in shuffled_folds(len(rows), FOLDS_LEARNED_AGAIN).test:
        X_kept, y_kept, w_kept = taken(np.setdiff1d(np.arange(len(rows)), test))
        X_test, y_test, _ = taken(test)
        errors = []
        # What models on fewer rows warn of says nothing of the one that was asked for.
        with notices.collected():
            try:
                for one in (metric, again(X_kept, y_kept, weights=w_kept)):
                    ridges = np.full(int(targets.shape[1]), one.alpha)
                    gram = KernelGram(one.kernel, X_kept, fixed=fixed)
                    model = SOLVERS["cholesky"].solve(
                        RidgeSystem(gram, y_kept, ridges, weights=w_kept, bias=bias)
                    )
                    predicted = predict_solved(gram, X_test, model)
                    errors.append(np.abs(namespace.to_numpy(y_test - predicted)).sum(axis=0))
            except (InvalidInputError, NumericalError):
                continue  # nothing can be learned from these rows: their targets are constant, say
        with_all += errors[0]
        without += errors[1]
    ratio = np.divide(without, with_all, out=np.ones_like(with_all), where=with_all > 0)
    return np.maximum(ratio, 1.0)

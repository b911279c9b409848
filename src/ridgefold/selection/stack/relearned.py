"""Held-out predictions of metrics that have not seen the rows either.

A metric that is learned from all rows fits a little of the noise of all of them, also of those that
a fold holds out later, and a stack prefers the candidates that do so most. With few rows a scale
the metrics are therefore learned again without each fold, and predict it: such predictions are
honest in the metric, the transforms, the ridge and the coefficients alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ridgefold import notices
from ridgefold.errors import InvalidInputError, NumericalError
from ridgefold.exact import predict_solved
from ridgefold.kernels import KernelGram
from ridgefold.linalg import Array, namespace_of
from ridgefold.records import MetricCandidate
from ridgefold.solvers import SOLVERS, RidgeSystem

MOST_RELEARNED = 5
"""Groups of folds that metrics are learned without: each costs a learning."""
ROWS_LEARNED_AGAIN = 700
"""Rows for metrics that are learned only to see how much the learning has flattered itself: those
of the first stages of the race, in which most steps are taken."""
Training: TypeAlias = tuple[Array, Array, Array | None]
"""Rows, targets (n, t) and weights."""
Learn: TypeAlias = Callable[..., tuple[MetricCandidate, ...]]
"""`metric.candidates` with its settings, for rows, targets and weights."""


def relearned_predictions(
    candidates: Sequence[MetricCandidate],
    again: Learn,
    training: Training,
    group_rows: Sequence[np.ndarray],
    *,
    bias: bool,
    fixed: tuple[int, ...] = (),
) -> np.ndarray:
    """Prediction of every row by a metric, ridge and model that have not seen its group.

    Shape (candidates, n, t). A candidate that the rows outside a group do not lead to is
    represented there by the one most like it.
    """
    X, targets, weights = training
    namespace, n = namespace_of(X), int(X.shape[0])
    predictions = np.empty((len(candidates), n, int(targets.shape[1])))
    counted = np.ones(n, dtype=bool) if weights is None else namespace.to_numpy(weights) > 0
    for own in group_rows:
        used = counted.copy()
        used[own] = False
        kept = np.flatnonzero(used)
        X_kept, y_kept = namespace.take_rows(X, kept), namespace.take_rows(targets, kept)
        w_kept = None if weights is None else namespace.take_rows(weights, kept)
        with notices.collected():  # what fewer rows warn of says nothing of the fit of all
            try:
                learned = again(X_kept, y_kept, weights=w_kept)
            except (InvalidInputError, NumericalError):
                learned = tuple(candidates)  # nothing can be learned from these rows alone
            alike = [_most_alike(each, learned) for each in candidates]
            X_own = namespace.take_rows(X, own)
            made = {
                k: predicted(learned[k], (X_kept, y_kept, w_kept), X_own, bias=bias, fixed=fixed)
                for k in dict.fromkeys(alike)
            }
        predictions[:, own] = np.stack([made[k] for k in alike])
    return predictions


def predicted(
    metric: MetricCandidate,
    training: Training,
    X_new: Array,
    *,
    bias: bool,
    fixed: tuple[int, ...] = (),
) -> np.ndarray:
    """Predictions for new rows by a model of some rows, with a learned kernel and its ridge."""
    X, y, weights = training
    gram = KernelGram(metric.kernel, X, fixed=fixed)
    ridges = np.full(int(y.shape[1]), metric.alpha)
    model = SOLVERS["cholesky"].solve(RidgeSystem(gram, y, ridges, weights=weights, bias=bias))
    values = predict_solved(gram, X_new, model)
    return np.asarray(gram.namespace.to_numpy(values), dtype=np.float64)


def _most_alike(candidate: MetricCandidate, others: Sequence[MetricCandidate]) -> int:
    """Of the same family if there is one, then from the same origin, then on like transforms."""

    def unlike(other: MetricCandidate) -> tuple[bool, bool, bool]:
        return (
            other.family != candidate.family,
            other.origin != candidate.origin,
            _plain(other) != _plain(candidate),
        )

    return min(range(len(others)), key=lambda k: (unlike(others[k]), k))


def _plain(candidate: MetricCandidate) -> bool:
    """Whether columns are at most standardised."""
    return candidate.transforms is None or set(candidate.transforms) <= {"standardise"}

"""Weights of a stack from held-out predictions of its candidates.

Numbers: f = Σ_m w_m f_m + b by least squares of y on held-out predictions, with w ≥ 0, for every
target by itself; b is zero for models without a bias. Classes: log-odds Σ_m w_m f_m + b by maximum
likelihood on held-out decision values, with w ≥ 0 and a small ridge on w; several classes share
the weights, have a constant each, and the likelihood is that of the softmax.

Non-negative weights are few (candidates are alike, and least squares without a sign would play
them off against each other). Who is in the stack is found by dropping those of small weight, and
finding the others again; then weights of members alone are found without dropping any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.special import logsumexp, softmax

SMALLEST_SHARE = 0.03
"""A candidate with less than this share of a target's weights is dropped: what it adds is lost in
the noise of the weights, and prediction costs as much as for any other."""
_LOGISTIC_RIDGE = 1e-3
"""A penalty of this times the squared weights, times the number of rows, on the negative
log-likelihood: classes that can be told apart without an error would have infinite weights."""
_CONSTANT_RIDGE = 1e-8
"""The same for constants, which are known up to a common number, and infinite for a class that no
row shows."""
_LOGISTIC_TOLERANCE = 1e-9


@dataclass(frozen=True)
class StackWeights:
    """How candidates are combined."""

    weights: np.ndarray
    """Shape (candidates, t), none negative."""
    offset: np.ndarray
    """Added to the weighted sum, shape (t,)."""
    log_odds: bool
    """True if the sum is a log-odds: for classes."""

    def combined(self, predictions: np.ndarray) -> np.ndarray:
        """Predictions of the stack, or its decision values, shape (n, t).

        `predictions` has shape (candidates, n, t).
        """
        used = np.flatnonzero(self.weights.any(axis=1))
        total = np.einsum("mnt,mt->nt", predictions[used], self.weights[used]) + self.offset
        return decisions_of(total) if self.log_odds else total


def decisions_of(total: np.ndarray) -> np.ndarray:
    """Log-odds of every class against all others; one column is one already.

    With the softmax p of several columns, log p_k − log(1 − p_k).
    """
    if total.shape[1] == 1:
        return total
    others = np.empty_like(total)
    for k in range(total.shape[1]):
        others[:, k] = logsumexp(np.delete(total, k, axis=1), axis=1)
    return np.asarray(total - others)


def weights_for_numbers(
    predictions: np.ndarray,
    y: np.ndarray,
    row_weights: np.ndarray,
    *,
    bias: bool,
    smallest_share: float = 0.0,
) -> StackWeights:
    """Non-negative least squares of every target on the candidates' held-out predictions.

    Parameters
    ----------
    predictions : array of shape (candidates, n, t)
    y : array of shape (n, t)
    row_weights : array of shape (n,)
        How much each row counts; not all zero.
    smallest_share : float
        Candidates with less than this share of a target's weights are dropped.
    """
    count, t = predictions.shape[0], y.shape[1]
    weights, offset = np.zeros((count, t)), np.zeros(t)
    shares = row_weights / row_weights.sum()
    roots = np.sqrt(shares)
    for j in range(t):
        design, goal = predictions[:, :, j].T, y[:, j]
        centre, middle = np.zeros(count), 0.0
        if bias:
            centre, middle = shares @ design, float(shares @ goal)
        # One unit for all: the smallest normal number must not decide what is zero.
        unit = float(np.max(np.abs(goal - middle))) or 1.0
        left = roots[:, None] * ((design - centre) / unit)
        right = roots * ((goal - middle) / unit)
        weights[:, j] = _without_small(partial(_nnls, left, right), count, smallest_share)
        offset[j] = middle - centre @ weights[:, j]
    return StackWeights(weights, offset, log_odds=False)


def weights_for_classes(
    decisions: np.ndarray,
    codes: np.ndarray,
    row_weights: np.ndarray,
    *,
    smallest_share: float = 0.0,
) -> StackWeights:
    """Logistic regression of the classes on the candidates' held-out decision values.

    Parameters
    ----------
    decisions : array of shape (candidates, n, t)
        One column for two classes (positive for the second), else one a class.
    codes : array of shape (n,)
        Class numbers.
    row_weights : array of shape (n,)
        How much each row counts; not all zero.
    smallest_share : float
        Candidates with less than this share of the weights are dropped.
    """
    count, t = decisions.shape[0], decisions.shape[2]
    shares = row_weights / row_weights.sum()
    spread = np.sqrt(np.maximum(shares @ np.mean(np.square(decisions), axis=2).T, 0.0))
    unit = float(spread.max()) or 1.0
    scaled = decisions / unit
    # Two classes as two columns, the first of them zero: one likelihood for all.
    if t == 1:
        scaled = np.concatenate([np.zeros_like(scaled), scaled], axis=2)
    offset = np.zeros(scaled.shape[2])

    def fitted(some: np.ndarray) -> np.ndarray:
        found, offset[:] = _logistic(scaled[some], codes, shares)
        return found

    weights = _without_small(fitted, count, smallest_share)
    if t == 1:
        return StackWeights((weights / unit)[:, None], offset[1:] - offset[:1], log_odds=True)
    return StackWeights(np.tile((weights / unit)[:, None], (1, t)), offset, log_odds=True)


def _without_small(
    fitted: Callable[[np.ndarray], np.ndarray], count: int, smallest_share: float
) -> np.ndarray:
    """Weights of the candidates of given numbers, found again without those that are small."""
    kept = np.arange(count)
    while True:
        weights = np.zeros(count)
        weights[kept] = fitted(kept)
        large = kept[weights[kept] >= smallest_share * weights.sum()]
        large = large[weights[large] > 0]
        if smallest_share == 0 or len(large) in (0, np.count_nonzero(weights)):
            return weights
        kept = large


def _nnls(design: np.ndarray, goal: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Non-negative least squares on some columns, by a triangle in the place of many rows."""
    triangle = np.asarray(np.linalg.qr(np.column_stack([design[:, columns], goal]), mode="r"))
    weights, _ = nnls(triangle[:, :-1], triangle[:, -1])
    return np.asarray(weights)


def _logistic(
    decisions: np.ndarray, codes: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and constants of the softmax, with weights that are not negative."""
    count, n, k = decisions.shape
    truth = np.zeros((n, k))
    truth[np.arange(n), codes] = 1.0

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        weights, constants = parameters[:count], parameters[count:]
        total = np.tensordot(weights, decisions, axes=1) + constants
        value = shares @ (logsumexp(total, axis=1) - total[np.arange(n), codes])
        slack = shares[:, None] * (softmax(total, axis=1) - truth)
        penalty = _LOGISTIC_RIDGE * (weights @ weights) + _CONSTANT_RIDGE * (constants @ constants)
        gradient = np.concatenate(
            [
                np.tensordot(decisions, slack, axes=([1, 2], [0, 1]))
                + 2.0 * _LOGISTIC_RIDGE * weights,
                slack.sum(axis=0) + 2.0 * _CONSTANT_RIDGE * constants,
            ]
        )
        return float(value + penalty), gradient

    solution: np.ndarray = minimize(
        loss,
        np.concatenate([np.full(count, 1.0 / count), np.zeros(k)]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * count + [(None, None)] * k,
        options={"maxiter": 1000, "ftol": 0.0, "gtol": _LOGISTIC_TOLERANCE},
    ).x
    return solution[:count], solution[count:]

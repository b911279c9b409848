"""Probabilities from decision values, calibrated on rows that the models did not see.

P(class | f) = 1/(1 + exp(−(a f + b))), fitted to held-out decision values by maximum likelihood
with Platt's targets (N₊ + 1)/(N₊ + 2) and 1/(N₋ + 2) in place of 1 and 0 (Platt 1999; the Newton
iteration follows Lin, Lin and Weng 2007). Several classes get one such curve each, against all
others, and their values are divided by their sum.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

_STEPS = 100
"""Newton steps at most, so that the search always ends."""


def fit_curve(decisions: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(a, b) of the curve for one class.

    Parameters
    ----------
    decisions : array of shape (n,)
        Held-out decision values.
    positive : bool array of shape (n,)
        Which rows are of the class.
    weights : array of shape (n,)
        How often each row counts.
    """
    n_in, n_out = float(weights[positive].sum()), float(weights[~positive].sum())
    goal = np.where(positive, (n_in + 1.0) / (n_in + 2.0), 1.0 / (n_out + 2.0))
    scale = float(np.max(np.abs(decisions))) or 1.0  # so that both parameters are of one size
    design = np.stack([decisions / scale, np.ones_like(decisions)], axis=1)
    curve = np.array([0.0, np.log((n_in + 1.0) / (n_out + 1.0))])

    def loss(parameters: np.ndarray) -> float:
        z = design @ parameters
        return float(weights @ (np.logaddexp(0.0, z) - goal * z))

    current = loss(curve)
    for _ in range(_STEPS):
        p = expit(design @ curve)
        gradient = design.T @ (weights * (p - goal))
        if np.max(np.abs(gradient)) <= 1e-9 * max(n_in + n_out, 1.0):
            break
        hessian = (design * (weights * p * (1.0 - p))[:, None]).T @ design
        hessian += 1e-12 * (1.0 + np.trace(hessian)) * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while size > 1e-10 and loss(curve - size * step) > current - 1e-4 * size * (
            gradient @ step
        ):
            size /= 2.0
        if size <= 1e-10:
            break  # no digits are left to gain
        curve = curve - size * step
        current = loss(curve)
    return np.array([curve[0] / scale, curve[1]])


def fit_curves(
    decisions: np.ndarray, classes: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """One curve a column of held-out decision values, shape (columns, 2).

    `classes` holds class numbers. One column (two classes) decides for class 1. Rows that no
    model held out have NaN, and are left out.
    """
    held_out = ~np.isnan(decisions[:, 0])
    decisions, classes = decisions[held_out].astype(np.float64), classes[held_out]
    weights = np.ones(len(classes)) if weights is None else weights[held_out].astype(np.float64)
    if decisions.shape[1] == 1:
        return fit_curve(decisions[:, 0], classes == 1, weights)[None, :]
    return np.stack(
        [fit_curve(decisions[:, k], classes == k, weights) for k in range(decisions.shape[1])]
    )


def probabilities(decisions: np.ndarray, curves: np.ndarray) -> np.ndarray:
    """Probability of every class, shape (n, n_classes); rows sum to one."""
    values: np.ndarray = expit(
        decisions.astype(np.float64) * curves[None, :, 0] + curves[None, :, 1]
    )
    if values.shape[1] == 1:
        return np.concatenate([1.0 - values, values], axis=1)
    total = values.sum(axis=1, keepdims=True)
    even = np.full_like(values, 1.0 / values.shape[1])
    return np.where(total > 0, values / np.where(total > 0, total, 1.0), even)

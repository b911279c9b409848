"""How probabilities of classes change with decision values, to second order.

With q_t = 1/(1 + exp(−(a_t f_t + b_t))) and S = Σ q_t the probability of class c is p_c = q_c/S
(`selection.probabilities`; of two classes, q of the second alone). Then

    ∂p_c/∂f_t = q'_t(δ_ct − p_c)/S,
    ∂²p_c/∂f_t∂f_s = [δ_ts q''_t(δ_ct − p_c) − q'_t ∂p_c/∂f_s − ∂p_c/∂f_t q'_s]/S,

q' = a q(1 − q), q'' = a² q(1 − q)(1 − 2q).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit


@dataclass(frozen=True)
class ProbabilitySlopes:
    """Probabilities of some rows and their derivatives in the decision values."""

    values: np.ndarray
    """p, of shape (n, n_outputs): of two classes that of the second alone."""
    first: np.ndarray
    """∂p_c/∂f_t, of shape (n, n_outputs, n_columns)."""
    second: np.ndarray
    """∂²p_c/∂f_t∂f_s, of shape (n, n_outputs, n_columns, n_columns)."""


def probability_slopes(decisions: np.ndarray, curves: np.ndarray) -> ProbabilitySlopes:
    """Derivatives of the calibrated probabilities at decision values of shape (n, n_columns)."""
    a, b = curves[:, 0], curves[:, 1]
    q = expit(decisions.astype(np.float64) * a + b)
    q1 = a * q * (1.0 - q)
    q2 = a * q1 * (1.0 - 2.0 * q)
    if q.shape[1] == 1:
        return ProbabilitySlopes(q, q1[:, :, None], q2[:, :, None, None])
    total = q.sum(axis=1, keepdims=True)
    # Where no class has any probability left, all have the same, and none a slope.
    known = total > 0
    total = np.where(known, total, 1.0)
    p = np.where(known, q / total, 1.0 / q.shape[1])
    left = np.eye(q.shape[1])[None] - p[:, :, None]  # δ_ct − p_c
    first = q1[:, None, :] * left / total[:, :, None]
    second = np.einsum("nt,nct,ts->ncts", q2, left, np.eye(q.shape[1]))
    second -= q1[:, None, :, None] * first[:, :, None, :]
    second -= first[:, :, :, None] * q1[:, None, None, :]
    return ProbabilitySlopes(p, first, second / total[:, :, None, None])

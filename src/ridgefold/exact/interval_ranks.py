"""Prediction intervals from models without some of the rows: jackknife+ and CV+.

With ŷ₋ₖ(x) the prediction without the group of row i and r_i that model's error at row i,

    lower: the ⌊(1 − c)(n + 1)⌋-th smallest of ŷ₋ₖ₍ᵢ₎(x) − |r_i|
    upper: the ⌈c(n + 1)⌉-th smallest of ŷ₋ₖ₍ᵢ₎(x) + |r_i|

cover a new y with probability at least 2c − 1 for exchangeable rows (CV+: less a term of order
1/√n), in practice close to c (Barber, Candès, Ramdas and Tibshirani 2021, Theorems 1 and 4).
"""

from __future__ import annotations

import math

import numpy as np


def interval_from_models(
    left_out: np.ndarray, residuals: np.ndarray, coverage: float
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper end for every row of `left_out`.

    Parameters
    ----------
    left_out : array of shape (n_new, n)
        ŷ₋ₖ₍ᵢ₎(x): for each new row, the predictions by the models without training row i.
    residuals : array of shape (n,)
        r_i.
    coverage : float
        c, between 0 and 1.

    Notes
    -----
    With so few rows that an order statistic does not exist, the end is infinite.
    """
    n = len(residuals)
    errors = np.abs(residuals)[None, :]
    # Rounding must not move an order statistic: 0.9·(9 + 1) is nine.
    low = math.floor((1.0 - coverage) * (n + 1) + 1e-9)
    high = math.ceil(coverage * (n + 1) - 1e-9)
    lower = np.full(len(left_out), -np.inf)
    upper = np.full(len(left_out), np.inf)
    if low >= 1:
        lower = np.partition(left_out - errors, low - 1, axis=1)[:, low - 1]
    if high <= n:
        upper = np.partition(left_out + errors, high - 1, axis=1)[:, high - 1]
    return lower, upper


def is_widening(values: np.ndarray, n_targets: int) -> bool:
    """Whether these can be what the errors of every target are multiplied by."""
    return bool(
        values.dtype.kind == "f"
        and values.shape == (n_targets,)
        and np.all(np.isfinite(values))
        and np.all(values >= 1)
    )

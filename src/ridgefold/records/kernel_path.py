"""One kernel, cross-validated over its ridge values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.records.plan import StepRecord


@dataclass(frozen=True, eq=False)
class KernelPath:
    """Held-out predictions for every ridge value, what is known of their scores, what it took."""

    predictions: np.ndarray
    """Shape (n_alphas, rows of all folds, n_targets)."""
    finished: np.ndarray
    """Which ridge values were computed to the end, shape (n_alphas,); the others cannot win, or
    are `open`."""
    open: np.ndarray
    """Which may still win, though their predictions are only known to a bound."""
    upper: np.ndarray | None
    """Bounds on the score of every ridge value and fold, shape (n_alphas, n_folds); None of a
    search that scores every pair."""
    lower: np.ndarray | None
    dropped: np.ndarray
    """What a ridge value could reach at most when that was too little, shape (n_alphas,); NaN for
    those that were not dropped."""
    record: StepRecord
    warned: tuple[tuple[str, str], ...]
    """Class and text of every warning of ours."""

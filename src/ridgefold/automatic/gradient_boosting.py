"""scikit-learn's gradient boosting on the same numbers and folds, to set errors beside."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class BoostingBeside:
    """What gradient boosting makes of the same rows."""

    error: float
    """On held-out rows: root mean square error, or log-loss for classes."""
    seconds: float


def fitted_boosting(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None, *, classify: bool = False
) -> Any:
    """HistGradientBoosting with its default settings."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
    return kind(random_state=0).fit(X, y, sample_weight=weights)


def boosting_beside(
    X: np.ndarray,
    y: np.ndarray,
    fold_of: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    classify: bool = False,
) -> BoostingBeside:
    """Its held-out error; `fold_of` has the fold that holds out each row, or −1 for none."""
    from sklearn.metrics import log_loss

    labels = np.unique(y)
    held_out = np.zeros((len(y), len(labels)) if classify else len(y))
    begun = time.perf_counter()
    for k in range(int(fold_of.max()) + 1):
        test, rest = np.flatnonzero(fold_of == k), np.flatnonzero(fold_of != k)
        counts = None if weights is None else weights[rest]
        model = fitted_boosting(X[rest], y[rest], counts, classify=classify)
        if classify:
            places = np.searchsorted(labels, model.classes_)
            held_out[np.ix_(test, places)] = model.predict_proba(X[test])
        else:
            held_out[test] = model.predict(X[test])
    seconds = time.perf_counter() - begun
    tested = np.flatnonzero(fold_of >= 0)
    counts = None if weights is None else weights[tested]
    if classify:
        error = float(log_loss(y[tested], held_out[tested], sample_weight=counts, labels=labels))
    else:
        missed = (held_out - y)[tested] ** 2
        error = float(np.sqrt(np.average(missed, weights=counts)))
    return BoostingBeside(error, seconds)

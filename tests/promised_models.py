"""One small fitted case of every public estimator, for promises that hold for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold import (
    Compute,
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    PartitionedLSSVMClassifier,
    PartitionedLSSVMRegressor,
)

_RNG = np.random.default_rng(7)
X = _RNG.uniform(-2, 2, size=(120, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * _RNG.standard_normal(120)
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [0.5, 1.5])]
X_NEW = _RNG.uniform(-2, 2, size=(40, 3))


@dataclass(frozen=True)
class Case:
    """An estimator to be made, and the targets that suit it."""

    make: Callable[[], Any]
    targets: np.ndarray

    def fitted(self, rows: Any = X, targets: Any = None) -> Any:
        return self.make().fit(rows, self.targets if targets is None else targets)


CASES = {
    "KernelRidge": Case(lambda: KernelRidge(0.1, kernel="rbf", gamma=0.5), Y),
    "KernelRidge, conjugate gradients": Case(
        lambda: KernelRidge(
            0.1, kernel="rbf", gamma=0.5, compute=Compute(solver="conjugate_gradient")
        ),
        Y,
    ),
    "LSSVMRegressor": Case(lambda: LSSVMRegressor(0.1, intervals="jackknife+"), Y),
    "LSSVMClassifier": Case(lambda: LSSVMClassifier(0.1, probability=True), LABELS),
    "KernelRidgeCV": Case(lambda: KernelRidgeCV(cv=4), Y),
    "LSSVMRegressorCV": Case(lambda: LSSVMRegressorCV(cv=4, kernel="laplacian"), Y),
    "LSSVMRegressorCV, learned scales": Case(
        lambda: LSSVMRegressorCV([0.1, 1.0], cv=4, random_state=3, metric="learned"), Y
    ),
    "LSSVMClassifierCV": Case(lambda: LSSVMClassifierCV(cv=4, probability=True), LABELS),
    "PartitionedKernelRidge": Case(
        lambda: PartitionedLSSVMRegressor(n_partitions=4, random_state=3), Y
    ),
    "PartitionedKernelRidge, random cells": Case(
        lambda: PartitionedLSSVMRegressor("random", 4, "average", random_state=3), Y
    ),
    "PartitionedKernelRidge, k-means": Case(
        lambda: PartitionedLSSVMRegressor("kmeans", 4, random_state=3), Y
    ),
    "PartitionedLSSVMClassifier": Case(
        lambda: PartitionedLSSVMClassifier(n_partitions=3, random_state=3), LABELS
    ),
}


def outputs(model: Any, rows: Any = X_NEW) -> list[np.ndarray]:
    """Everything that a model predicts as numbers."""
    found = []
    for name in ("decision_function", "predict_proba", "predict_interval"):
        if name == "predict_interval" and not _has_intervals(model):
            continue
        if hasattr(model, name):
            result = getattr(model, name)(rows)
            found.extend(result if isinstance(result, tuple) else [result])
    if not hasattr(model, "classes_"):
        found.append(model.predict(rows))
    return [np.asarray(part) for part in found]


def _has_intervals(model: Any) -> bool:
    if hasattr(model, "intervals_"):
        return model.intervals_ is not None
    if not hasattr(model, "predict_interval"):
        return False
    return model.combine != "average" and model.held_out_residuals_ is not None

"""Fitted models of every kind that a report can be about, small and made once."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from ridgefold import (
    CellOptions,
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressorCV,
    PartitionedLSSVMClassifier,
    PartitionedLSSVMRegressor,
    RidgefoldClassifier,
    RidgefoldRegressor,
    Search,
)
from ridgefold.kernels import RBF

ALPHAS = np.logspace(-4, 1, 6)
HOSTILE = (
    "</script><script>alert(1)</script>",
    '" onload="alert(1)',
    "$x^2$ & <b>bold</b>",
    "=cmd()|😀\x00\u202e _x",
    "<img src=x onerror=alert(1)>",
    "&lt;{{ 7 * 7 }}{% raw %}",
)


def rows(n: int = 160, d: int = 4) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, d))


def numbers(X: np.ndarray) -> np.ndarray:
    noise = np.random.default_rng(1).standard_normal(len(X))
    return np.asarray(10 + np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * noise)


def labels(X: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    y = numbers(X)
    cuts = np.quantile(y, np.linspace(0, 1, len(names) + 1)[1:-1])
    return np.asarray(names)[np.digitize(y, cuts)]


def _regressor() -> Any:
    return LSSVMRegressorCV(ALPHAS, cv=5).fit(rows(), numbers(rows()))


def _table() -> Any:
    X = rows()
    frame = pd.DataFrame({"size": X[:, 0], "colour": np.where(X[:, 1] > 0, "red", "blue")})
    return RidgefoldRegressor(model=KernelRidgeCV(ALPHAS, cv=4)).fit(frame, numbers(X))


def _raced() -> Any:
    return KernelRidgeCV(ALPHAS, cv=4, search=Search(race="race")).fit(rows(), numbers(rows()))


def _one_kernel() -> Any:
    return KernelRidgeCV(ALPHAS, kernel=RBF(2.0), cv="loo").fit(rows(), numbers(rows()))


def _families() -> Any:
    kernels = ["rbf", "laplacian", "linear"]
    return KernelRidgeCV(ALPHAS, kernel=kernels, cv=3).fit(rows(), numbers(rows()))


def _learned() -> Any:
    model = KernelRidgeCV(cv=4, fit_intercept=True, metric="learned")
    return model.fit(rows(200, 5), numbers(rows(200, 5)))


def _precomputed() -> Any:
    X = rows()
    return KernelRidgeCV(ALPHAS, kernel="precomputed", cv=4).fit(RBF(2.0)(X), numbers(X))


def _several_targets() -> Any:
    X = rows()
    Y = np.stack([numbers(X), X[:, 0] ** 2, np.random.default_rng(3).standard_normal(len(X))], 1)
    return KernelRidgeCV(ALPHAS, cv=4, fit_intercept=True).fit(X, Y)


def _classifier() -> Any:
    return LSSVMClassifierCV(ALPHAS, cv=4, probability=True).fit(
        rows(), labels(rows(), ("below", "above"))
    )


def _three_classes() -> Any:
    return LSSVMClassifierCV(ALPHAS, cv=4, scoring="balanced_accuracy").fit(
        rows(), labels(rows(), ("low", "middle", "high"))
    )


def _plain_classifier() -> Any:
    model = LSSVMClassifier(0.1, gamma=0.3, probability=True)
    return model.fit(rows(), labels(rows(), ("no", "yes")))


def _cells() -> Any:
    return PartitionedLSSVMRegressor(n_partitions=4).fit(rows(600), numbers(rows(600)))


def _cells_of_classes() -> Any:
    model = PartitionedLSSVMClassifier(n_partitions=3, probability=True, metric="learned")
    return model.fit(rows(400), labels(rows(400), ("a", "b", "c")))


def _average() -> Any:
    model = PartitionedLSSVMRegressor("random", 3, "average", alpha=0.1)
    return model.fit(rows(), numbers(rows()))


def _refined() -> Any:
    model = PartitionedLSSVMRegressor(n_partitions=2, alpha=0.1, cells=CellOptions(refine="exact"))
    return model.fit(rows(), numbers(rows()))


def _plain() -> Any:
    return KernelRidge(0.1, kernel="rbf").fit(rows(), numbers(rows()))


def _with_intervals() -> Any:
    return KernelRidge(0.1, kernel="rbf", intervals="jackknife+").fit(rows(), numbers(rows()))


def _compressed() -> Any:
    return _regressor().compress(30)


def _hostile_columns() -> Any:
    frame = pd.DataFrame(rows(120, 6), columns=list(HOSTILE))
    return KernelRidgeCV(cv=3, metric="learned").fit(frame, numbers(rows(120, 6)))


def _hostile_classes() -> Any:
    frame = pd.DataFrame(rows(180, 6), columns=list(HOSTILE))
    model = LSSVMClassifierCV(ALPHAS, cv=3, probability=True)
    return RidgefoldClassifier(model=model).fit(frame, labels(rows(180, 6), HOSTILE))


def _table_columns() -> dict[str, Any]:
    X = rows()
    return {
        "size": X[:, 0],
        "colour": np.where(X[:, 1] > 0, "red", "blue"),
        "height": [f"{value:.3f} m" for value in X[:, 2]],
        "y": 10 + np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * X[:, 3],
    }


def _automatic() -> Any:
    return RidgefoldRegressor(time_budget=30).fit(_table_columns(), target="y")


def _automatic_classes() -> Any:
    table = _table_columns()
    table["y"] = np.where(table["y"] > 10, HOSTILE[0], HOSTILE[1])
    return RidgefoldClassifier(time_budget=30).fit(table, target="y")


MAKERS = {
    "automatic": _automatic,
    "automatic classes": _automatic_classes,
    "regressor": _regressor,
    "table": _table,
    "raced": _raced,
    "one kernel": _one_kernel,
    "families": _families,
    "learned": _learned,
    "precomputed": _precomputed,
    "several targets": _several_targets,
    "classifier": _classifier,
    "three classes": _three_classes,
    "plain classifier": _plain_classifier,
    "cells": _cells,
    "cells of classes": _cells_of_classes,
    "average": _average,
    "refined": _refined,
    "plain": _plain,
    "with intervals": _with_intervals,
    "compressed": _compressed,
    "hostile columns": _hostile_columns,
    "hostile classes": _hostile_classes,
}


@cache
def model(name: str) -> Any:
    return MAKERS[name]()

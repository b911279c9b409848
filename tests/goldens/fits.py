"""Every public way of fitting, and what is frozen of a fit.

Only public names are used, so that the house behind them may change; where a public name changes,
this file is where the goldens learn of it.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from goldens.tables import TABLES, Table, at_hand, table
from ridgefold import (
    CellOptions,
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    MetricLearning,
    PartitionedKernelRidge,
    PartitionedLSSVMClassifier,
    PartitionedLSSVMRegressor,
    RidgefoldClassifier,
    RidgefoldRegressor,
    Search,
    cross_val_path,
)
from ridgefold.exact.fit import Fit

MEMORY = "1GB"
"""Given, so that plans do not follow what is free at the moment."""
COVERAGE = 0.9
EXACT_ROWS, CELL_ROWS, LEARNING_ROWS = 300, 1400, 150

Facts = dict[str, Any]


@dataclass(frozen=True)
class Way:
    """A model of a table, and how many of its rows are fitted."""

    make: Callable[[Table], Any]
    """The model; for paths the arguments of `cross_val_path`."""
    classes: bool
    rows: int = EXACT_ROWS
    frames: bool = False
    """True if it takes tables of text, numbers and gaps."""
    targets: int = 1
    """The fewest targets it is meant for."""
    only: tuple[str, ...] = ()
    """The tables it is for, where it takes too long for all."""
    path: bool = False
    """True if nothing is fitted but one kernel cross-validated."""

    def suits(self, name: str) -> bool:
        data = table(name)
        many = 1 if data.y.ndim == 1 else data.y.shape[1]
        plain = isinstance(data.X, np.ndarray)
        return (
            self.classes == data.classes
            and self.frames != plain
            and many >= self.targets
            and (not self.only or name in self.only)
        )


def _exact(estimator: Any, **settings: Any) -> Callable[[Table], Any]:
    return lambda data: estimator(memory_budget=MEMORY, **settings)


def _fixed(estimator: Any, **settings: Any) -> Callable[[Table], Any]:
    """Width and ridge given: the width grows with the columns, as distances do."""
    return lambda data: estimator(
        0.1, kernel="rbf", gamma=0.5 / data.X.shape[1], memory_budget=MEMORY, **settings
    )


def _cells(*given: Any, classes: bool = False, only: tuple[str, ...] = (), **settings: Any) -> Way:
    estimator = PartitionedLSSVMClassifier if classes else PartitionedLSSVMRegressor

    def make(data: Table) -> Any:
        return estimator(*given, memory_budget=MEMORY, **settings)

    return Way(make, classes, CELL_ROWS, only=only)


SCALES = MetricLearning(rows=LEARNING_ROWS)
PRODUCTS = MetricLearning(rows=LEARNING_ROWS, groups=["colour"])
NO_SCALES = MetricLearning(scales=False, rows=LEARNING_ROWS)
TRANSFORMS = MetricLearning(scales=False, transforms="auto", rows=LEARNING_ROWS)


def _path(*only: str, rows: int = EXACT_ROWS, width: float = 1.0, **settings: Any) -> Way:
    """One kernel, `width` times as wide as the root of the number of columns."""

    def arguments(data: Table) -> dict[str, Any]:
        gamma = 0.5 / (data.X.shape[1] * width**2)
        return {"kernel": "rbf", "gamma": gamma, **settings}

    return Way(arguments, False, rows, only=only, path=True)


def _tables(model: Any) -> Callable[[Table], Any]:
    front_door = RidgefoldClassifier if is_classifier(model) else RidgefoldRegressor
    return lambda data: front_door(model=model)


WAYS: dict[str, Way] = {
    "path": _path(),
    "path, leave one out": _path(cv="loo", fit_intercept=True),
    "path of a wide kernel": _path(width=4.0),
    "path of a narrow kernel": _path(width=0.3),
    "path of two ridges": _path(alpha=[0.01, 0.1], cv=10),
    "path of many rows": _path("smooth", "weighted", "five targets", "ccpp", rows=CELL_ROWS),
    "linear": Way(_exact(KernelRidge), False),
    "given": Way(_fixed(KernelRidge), False),
    "given, jackknife+": Way(_fixed(LSSVMRegressor, intervals="jackknife+"), False),
    "five folds": Way(_exact(KernelRidgeCV), False),
    "leave one out": Way(_exact(KernelRidgeCV, cv="loo"), False),
    "every pair": Way(_exact(KernelRidgeCV, cv=KFold(4), search=Search(race="full")), False),
    "race": Way(_exact(KernelRidgeCV, cv=3, search=Search(race="race")), False),
    "bias": Way(_exact(LSSVMRegressorCV), False),
    "bias, leave one out": Way(_exact(LSSVMRegressorCV, cv="loo"), False),
    "families": Way(_exact(LSSVMRegressorCV, kernel=["rbf", "laplacian", "matern"]), False),
    "any family": Way(_exact(LSSVMRegressorCV, kernel="auto", metric=NO_SCALES), False),
    "scales": Way(_exact(LSSVMRegressorCV, metric=SCALES), False),
    "scales of any family": Way(
        _exact(KernelRidgeCV, kernel="auto", metric=SCALES),
        False,
    ),
    "transforms": Way(_exact(LSSVMRegressorCV, metric=TRANSFORMS), False),
    "averaged folds": Way(_exact(KernelRidgeCV, search=Search(average_folds=True)), False),
    "one standard error": Way(_exact(KernelRidgeCV, search=Search(one_standard_error=True)), False),
    "alpha by target": Way(
        _exact(KernelRidgeCV, search=Search(alpha_per_target=True)), False, targets=2
    ),
    "cells": _cells(),
    "cells without a bias": Way(
        lambda data: PartitionedKernelRidge(memory_budget=MEMORY),
        False,
        CELL_ROWS,
        only=("smooth", "weighted", "ccpp"),
    ),
    "cells of any family": _cells(
        kernel="auto", only=("rough", "additive", "ccpp", "california", "kin8nm")
    ),
    "cells in learned scales": _cells(
        metric="learned",
        only=("irrelevant columns", "additive", "diabetes", "puma32h", "cpusmall"),
    ),
    "cells, one pair": _cells(cells=CellOptions(tuning="shared")),
    "cells, refined": _cells(n_partitions=4, alpha=[0.01, 0.1], cells=CellOptions(refine=2)),
    "principal cells": _cells("principal", 5),
    "hyperplanes, routed": _cells("hyperplanes", 5, "route"),
    "k-means": _cells("kmeans", 4),
    "random average": _cells(
        "random",
        combine="average",
        only=("smooth", "heteroscedastic", "five targets", "ccpp", "protein"),
    ),
    "stratified average": _cells("stratified", 4, "average"),
    "a table": Way(_tables(LSSVMRegressorCV(memory_budget=MEMORY)), False, frames=True),
    "a table, products": Way(
        _tables(LSSVMRegressorCV(memory_budget=MEMORY, metric=PRODUCTS)), False, frames=True
    ),
    "a table in cells": Way(
        _tables(PartitionedLSSVMRegressor(memory_budget=MEMORY)), False, CELL_ROWS, frames=True
    ),
    "classes, given": Way(_fixed(LSSVMClassifier, probability=True), True),
    "classes": Way(_exact(LSSVMClassifierCV, probability=True), True),
    "classes, leave one out": Way(_exact(LSSVMClassifierCV, cv="loo", probability=True), True),
    "classes, balanced": Way(
        _exact(LSSVMClassifierCV, class_weight="balanced", probability=True), True
    ),
    "classes, any family": Way(
        _exact(LSSVMClassifierCV, kernel="auto", metric=NO_SCALES, probability=True),
        True,
    ),
    "classes, scales": Way(
        _exact(LSSVMClassifierCV, metric=SCALES, probability=True),
        True,
    ),
    "classes, averaged folds": Way(
        _exact(LSSVMClassifierCV, search=Search(average_folds=True), probability=True), True
    ),
    "classes in cells": _cells(classes=True, probability=True),
    "classes in k-means": _cells(
        "kmeans", 3, classes=True, class_weight="balanced", probability=True
    ),
    "a table of classes": Way(
        _tables(LSSVMClassifierCV(probability=True, memory_budget=MEMORY)), True, frames=True
    ),
}


def cases() -> list[tuple[str, str]]:
    """Every table at hand with every way of fitting that suits it."""
    return [
        (name, way) for name in TABLES if at_hand(name) for way in WAYS if WAYS[way].suits(name)
    ]


def facts(name: str, way: str, shaken: int = 0) -> Facts:
    """Fit, predict, and say what came of it; rounding differs with `shaken`."""
    data = table(name).first(WAYS[way].rows)
    if shaken:
        data = data.shaken(shaken)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # what is warned of is other tests' claim
        if WAYS[way].path:
            return _of_path(data, WAYS[way].make(data))
        model = WAYS[way].make(data).fit(data.X, data.y, data.weights)
        found = _of_classes(model, data) if data.classes else _of_numbers(model, data)
    inner = getattr(model, "model_", model)
    return found | _choice(inner) | _planned(inner)


def _of_numbers(model: Any, data: Table) -> Facts:
    """Test error (the targets have variance 1, but for tables of text) and intervals."""
    predictions = np.asarray(model.predict(data.new), dtype=np.float64)
    found: Facts = {"error": float(np.sqrt(np.mean((predictions - data.truth) ** 2)))}
    inner = getattr(model, "model_", model)
    if getattr(inner, "best_score_", None) is not None:
        found["held-out error"] = float(np.sqrt(-inner.best_score_))
    residuals = getattr(inner, "held_out_residuals_", None)
    if residuals is not None and np.isfinite(residuals).all():  # a cell of one row has none
        found["held-out error"] = float(np.sqrt(np.mean(np.square(residuals))))
    try:
        lower, upper = model.predict_interval(data.new, COVERAGE)
    except (AttributeError, ValueError):
        return found | {"intervals": "none"}
    found["coverage"] = float(np.mean((lower <= data.truth) & (data.truth <= upper)))
    width = float(np.mean(upper - lower))
    return found | ({"interval": width} if np.isfinite(width) else {"intervals": "infinite"})


def _of_classes(model: Any, data: Table) -> Facts:
    probabilities = model.predict_proba(data.new)
    inner = getattr(model, "model_", model)
    found: Facts = {
        "log loss": float(log_loss(data.truth, probabilities, labels=inner.classes_)),
        "accuracy": float(np.mean(np.asarray(model.predict(data.new)) == data.truth)),
    }
    if getattr(inner, "best_score_", None) is not None:
        found["held-out score"] = float(inner.best_score_)
    return found


def _choice(model: Any) -> Facts:
    """Family, width and ridge; for cells those of most cells, and how many there are."""
    if hasattr(model, "n_partitions_"):
        return _choice_of_cells(model)
    found: Facts = {"family": _family(model.kernel_)}
    if hasattr(model, "metric_"):
        found["family"] = model.metric_.family
        found["one width"] = bool(model.metric_.isotropic)
        found["columns"] = int(np.isfinite(model.length_scales_).sum())
        if model.metric_.transforms is not None:
            found["transforms"] = sorted(model.metric_.transforms)
        relevance = np.asarray(model.column_shares_)
        found["relevance"] = float(relevance.max())
        scales = np.asarray(model.length_scales_)
        found["log2 width"] = float(np.log2(scales[np.isfinite(scales)]).mean())
    elif _width(model.kernel_) is not None:
        found["log2 width"] = float(np.log2(_width(model.kernel_)))
    alpha = getattr(model, "alpha_", None)
    if alpha is not None:
        found["log10 alpha"] = float(np.log10(alpha).mean())
    return found


def _choice_of_cells(model: Any) -> Facts:
    kernels = list(model.kernels_)
    widths = [width for width in map(_width, kernels) if width is not None]
    found: Facts = {
        "family": Counter(map(_family, kernels)).most_common(1)[0][0],
        "cells": int(model.n_partitions_),
        "log10 alpha": float(np.log10(model.alpha_).mean()),
        "rows in cells": int(np.sum(model.partition_sizes_)),
        "sizes tried": [int(trial.cell_rows) for trial in model.trials_],
        "steps": int(model.n_steps_),
    }
    if widths:
        found["log2 width"] = float(np.log2(widths).mean())
    if getattr(model, "coarse_model_share_", None) is not None:
        found["coarse model"] = float(np.mean(model.coarse_model_share_))
    if getattr(model, "effective_dimension_", None) is not None:
        found["dimension"] = float(model.effective_dimension_)
    scales = getattr(model, "length_scales_", None)
    if scales is not None:
        found["columns"] = int(np.isfinite(scales).sum())
    return found


def _family(kernel: Any) -> str:
    while hasattr(kernel, "kernel"):  # on some of the columns, or on transformed ones
        kernel = kernel.kernel
    nu = getattr(kernel, "nu", None)
    return type(kernel).__name__ + ("" if nu is None else f" {nu:g}")


def _width(kernel: Any) -> float | None:
    while hasattr(kernel, "kernel"):
        kernel = kernel.kernel
    scale = getattr(kernel, "length_scale", None)
    if scale is None:
        return None
    return float(np.exp(np.mean(np.log(scale))))


def _planned(model: Any) -> Facts:
    """What solved the system of all rows.

    Of several kernels the record keeps the method of the one that took longest, which may be
    another one tomorrow: methods are frozen by paths of one kernel.
    """
    if hasattr(model, "n_partitions_"):
        return {}
    record = getattr(model, "run_record_", None)
    if record is None:
        return {}
    return {"solver": next(step.method for step in record.steps if step.name == Fit.name)}


def _of_path(data: Table, settings: dict[str, Any]) -> Facts:
    """What cross-validating one kernel says, and by which method."""
    path = cross_val_path(
        data.X, data.y, sample_weight=data.weights, memory_budget=MEMORY, **settings
    )
    return {
        "method": path.method,
        "held-out error": float(np.sqrt(np.min(path.mse))),
        "log10 alpha": float(np.log10(path.best_alpha)),
        "ridges": len(path.alphas),
    }

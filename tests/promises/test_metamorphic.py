"""What must not change a model, or change it in a known way: true without knowing any answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from promised_models import outputs
from ridgefold import (
    CellOptions,
    Compute,
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    PartitionedLSSVMClassifier,
    PartitionedLSSVMRegressor,
    Search,
)
from ridgefold.kernels import RBF, Laplacian, Matern

N_ROWS, N_NEW, N_COLUMNS, N_FOLDS = 120, 25, 3, 4


@dataclass(frozen=True)
class Data:
    """What a model is fitted on, and the rows that it then predicts."""

    X: np.ndarray
    y: np.ndarray
    new: np.ndarray
    weights: np.ndarray | None = None
    folds: np.ndarray | None = None
    """The fold that holds each row out."""
    scales: tuple[float, ...] = (1.0,) * N_COLUMNS
    """Length scales of the columns."""
    unit: float = 1.0
    """What ridge values are multiplied with."""

    def of(self, rows: np.ndarray) -> Data:
        """Some of the rows, in this order."""
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            weights=None if self.weights is None else self.weights[rows],
            folds=None if self.folds is None else self.folds[rows],
        )

    @property
    def splits(self) -> list[tuple[np.ndarray, np.ndarray]]:
        assert self.folds is not None
        return [
            (np.flatnonzero(self.folds != k), np.flatnonzero(self.folds == k))
            for k in range(N_FOLDS)
        ]


@dataclass(frozen=True)
class Model:
    """A model whose settings are those of the data."""

    make: Callable[[Data], Any]
    classes: bool = False
    bias: bool = True
    """Whether targets may be moved."""
    by_order: bool = False
    """True if rows are drawn by their numbers: then another order is another model."""

    def predicted(self, data: Data, *, intervals: bool) -> list[np.ndarray]:
        y = data.y
        if self.classes:
            y = np.array(["low", "middle", "high"])[np.digitize(y, [0.5, 1.5])]
        model = self.make(data).fit(data.X, y, data.weights)
        if intervals:
            return outputs(model, data.new)
        return [np.asarray((model.decision_function if self.classes else model.predict)(data.new))]


def _rbf(data: Data) -> RBF:
    return RBF(data.scales)


def _laplacian(data: Data) -> Laplacian:
    return Laplacian(data.scales)


def _matern(data: Data) -> Matern:
    return Matern(tuple(1.5 * scale for scale in data.scales))


WHOLE = {
    "KernelRidge": Model(lambda d: KernelRidge(0.1 * d.unit, kernel=_rbf(d)), bias=False),
    "KernelRidge, eigendecomposition": Model(
        lambda d: KernelRidge(
            0.1 * d.unit, kernel=_rbf(d), compute=Compute(solver="eigendecomposition")
        ),
        bias=False,
    ),
    "LSSVMRegressor": Model(
        lambda d: LSSVMRegressor(0.1 * d.unit, kernel=_laplacian(d), intervals="jackknife+")
    ),
    "LSSVMClassifier": Model(
        lambda d: LSSVMClassifier(0.1 * d.unit, kernel=_matern(d), class_weight="balanced"),
        classes=True,
    ),
}
SEARCHED = {
    f"{estimator.__name__}, {method}": Model(
        lambda d, estimator=estimator, method=method: estimator(
            [1e-3 * d.unit, 0.1 * d.unit, 10.0 * d.unit],
            kernel=[_rbf(d), _laplacian(d)],
            cv=d.splits,
            search=Search(method=method),
        ),
        classes=estimator is LSSVMClassifierCV,
        bias=estimator is not KernelRidgeCV,
    )
    for estimator, method in [
        (KernelRidgeCV, "auto"),
        (KernelRidgeCV, "eigendecomposition"),
        (LSSVMRegressorCV, "inverse_blocks"),
        (LSSVMRegressorCV, "block_recursive"),
        (LSSVMClassifierCV, "banded"),
    ]
}
CELLS = {
    "cells of a tree": Model(
        lambda d: PartitionedLSSVMRegressor(
            n_partitions=3, alpha=[0.01 * d.unit, 0.3 * d.unit], kernel=_rbf(d)
        ),
        by_order=True,
    ),
    "cells around centres": Model(
        lambda d: PartitionedLSSVMRegressor(
            "kmeans", 3, alpha=0.1 * d.unit, kernel=_rbf(d), intervals="jackknife+"
        ),
        by_order=True,
    ),
    "random cells": Model(
        lambda d: PartitionedLSSVMRegressor(
            "random", 3, "average", alpha=0.1 * d.unit, kernel=_rbf(d)
        ),
        by_order=True,
    ),
    "refined cells": Model(
        lambda d: PartitionedLSSVMRegressor(
            n_partitions=3, alpha=0.1 * d.unit, kernel=_rbf(d), cells=CellOptions(refine="exact")
        )
    ),
    "cells of a classifier": Model(
        lambda d: PartitionedLSSVMClassifier(
            "principal", 3, alpha=0.1 * d.unit, kernel=_rbf(d), class_weight="balanced"
        ),
        classes=True,
    ),
}
CHOOSING = {
    "KernelRidgeCV that chooses": Model(lambda d: KernelRidgeCV(cv=d.splits), bias=False),
    "LSSVMRegressorCV, learned scales": Model(
        lambda d: LSSVMRegressorCV([0.1, 1.0], cv=d.splits, metric="learned")
    ),
    "cells that choose": Model(lambda d: PartitionedLSSVMRegressor(n_partitions=3), by_order=True),
    "as many cells as needed": Model(
        lambda d: PartitionedLSSVMRegressor(kernel=["rbf", "laplacian"]), by_order=True
    ),
    "a classifier's cells that choose": Model(
        lambda d: PartitionedLSSVMClassifier("kmeans", 3), classes=True, by_order=True
    ),
}
MODELS = {**WHOLE, **SEARCHED, **CELLS, **CHOOSING}


def draw(seed: int) -> tuple[np.random.Generator, Data]:
    generator = np.random.default_rng(seed)
    X = generator.uniform(-2, 2, (N_ROWS, N_COLUMNS))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * generator.standard_normal(N_ROWS)
    new = generator.uniform(-2, 2, (N_NEW, N_COLUMNS))
    folds = generator.permutation(np.arange(N_ROWS) % N_FOLDS)
    return generator, Data(X, y, new, folds=folds)


def close(mine: np.ndarray, other: np.ndarray) -> None:
    np.testing.assert_allclose(mine, other, rtol=0, atol=1e-7 * float(np.max(np.abs(other))))


@dataclass(frozen=True)
class Relation:
    """Two fits, and what the predictions of the second must become to be those of the first."""

    of: Callable[
        [np.random.Generator, Data], tuple[Data, Data, Callable[[np.ndarray], np.ndarray] | None]
    ]
    holds_for: Callable[[str, Model], bool] = lambda name, model: True
    intervals: bool = True
    """Whether intervals are alike too."""


def _a_mask(generator: np.random.Generator, data: Data) -> tuple[Data, Data, None]:
    """Rows of weight zero are no rows, whatever they hold."""
    used = generator.random(N_ROWS) < generator.uniform(0.5, 0.95)
    X = np.where(used[:, None], data.X, 30.0 + data.X)
    everything = replace(data, X=X, weights=used.astype(float))
    return everything, replace(everything.of(np.flatnonzero(used)), weights=None), None


def _weights_with_zeros(generator: np.random.Generator, data: Data) -> tuple[Data, Data, None]:
    used = generator.random(N_ROWS) < 0.8
    X = np.where(used[:, None], data.X, 30.0 + data.X)
    weights = np.where(used, generator.uniform(0.3, 3.0, N_ROWS), 0.0)
    everything = replace(data, X=X, weights=weights)
    return everything, everything.of(np.flatnonzero(used)), None


def _whole_weights(generator: np.random.Generator, data: Data) -> tuple[Data, Data, None]:
    """A row of weight 3 is three rows."""
    counts = generator.integers(0, 4, N_ROWS)
    repeated = data.of(generator.permutation(np.repeat(np.arange(N_ROWS), counts)))
    return replace(data, weights=counts.astype(float)), repeated, None


def _another_order(generator: np.random.Generator, data: Data) -> tuple[Data, Data, None]:
    data = replace(data, weights=generator.uniform(0.3, 3.0, N_ROWS))
    return data, data.of(generator.permutation(N_ROWS)), None


def _other_columns(generator: np.random.Generator, data: Data) -> tuple[Data, Data, None]:
    data = replace(data, scales=tuple(generator.uniform(0.5, 2.0, N_COLUMNS).tolist()))
    order = generator.permutation(N_COLUMNS)
    scales = tuple(data.scales[j] for j in order)
    return data, replace(data, X=data.X[:, order], new=data.new[:, order], scales=scales), None


def _in_units(data: Data, units: np.ndarray) -> tuple[Data, Data, None]:
    scales = tuple(scale * unit for scale, unit in zip(data.scales, units.tolist(), strict=True))
    return data, replace(data, X=data.X * units, new=data.new * units, scales=scales), None


def _units_of_columns(generator: np.random.Generator, data: Data) -> tuple[Data, Data, None]:
    return _in_units(data, 10.0 ** generator.uniform(-3, 3, N_COLUMNS))


def _one_unit(generator: np.random.Generator, data: Data) -> tuple[Data, Data, None]:
    return _in_units(data, np.full(N_COLUMNS, 2.0 ** generator.integers(-20, 20)))


def _larger_targets(
    generator: np.random.Generator, data: Data
) -> tuple[Data, Data, Callable[[np.ndarray], np.ndarray]]:
    unit = 10.0 ** generator.uniform(-4, 4)
    return replace(data, y=unit * data.y), data, lambda predicted: unit * predicted


def _moved_targets(
    generator: np.random.Generator, data: Data
) -> tuple[Data, Data, Callable[[np.ndarray], np.ndarray]]:
    distance = generator.uniform(-10, 10)
    return replace(data, y=data.y + distance), data, lambda predicted: predicted + distance


def _weights_in_another_unit(generator: np.random.Generator, data: Data) -> tuple[Data, Data, None]:
    """Only the ratio of weights and ridge counts."""
    weights, unit = generator.uniform(0.3, 3.0, N_ROWS), 10.0 ** generator.uniform(-3, 3)
    data = replace(data, weights=weights)
    return data, replace(data, weights=unit * weights, unit=unit), None


RELATIONS = {
    "a mask is the rows in it": Relation(_a_mask),
    "weight 0 is no row": Relation(_weights_with_zeros),
    # A grid laid by default is over the rows as they are given.
    "a weight is as many rows": Relation(
        _whole_weights, lambda name, model: name != "KernelRidgeCV that chooses", intervals=False
    ),
    "another order of the rows": Relation(_another_order, lambda name, model: not model.by_order),
    "another order of the columns": Relation(_other_columns),
    "other units of columns and scales": Relation(
        _units_of_columns, lambda name, model: name in {**WHOLE, **SEARCHED, "refined cells": None}
    ),
    # Learning ends where it gains next to nothing: scales are right to a few digits.
    "another unit of all columns": Relation(
        _one_unit, lambda name, model: name != "LSSVMRegressorCV, learned scales"
    ),
    "larger targets": Relation(_larger_targets, lambda name, model: not model.classes),
    "moved targets": Relation(_moved_targets, lambda name, model: model.bias and not model.classes),
    "weights and ridge in another unit": Relation(
        _weights_in_another_unit, lambda name, model: name not in CHOOSING
    ),
}
PAIRS = [
    (relation, model)
    for relation in RELATIONS
    for model in MODELS
    if RELATIONS[relation].holds_for(model, MODELS[model])
]


def check(relation: str, model: str, seed: int) -> None:
    known, fitted = RELATIONS[relation], MODELS[model]
    first, second, change = known.of(*draw(seed))
    intervals = known.intervals
    ours, theirs = (fitted.predicted(data, intervals=intervals) for data in (first, second))
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        close(mine, other if change is None else change(other))


@pytest.mark.parametrize(("relation", "model"), PAIRS)
def test_what_must_not_matter_does_not(relation, model):
    check(relation, model, seed=0)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 40))
def test_what_must_not_matter_does_not_on_other_data(seed):
    for relation, model in PAIRS:
        check(relation, model, seed)


@pytest.mark.parametrize("kernel", [RBF(0.8), Laplacian(1.5), Matern(1.2)], ids=str)
def test_a_kernel_matrix_is_the_kernel(kernel):
    _, data = draw(0)
    K, between = np.asarray(kernel(data.X)), np.asarray(kernel(data.new, data.X))
    alphas, splits = [0.01, 1.0], data.splits
    for given, made in [
        (LSSVMRegressor(0.1, kernel="precomputed"), LSSVMRegressor(0.1, kernel=kernel)),
        (
            LSSVMRegressorCV(alphas, kernel="precomputed", cv=splits),
            LSSVMRegressorCV(alphas, kernel=kernel, cv=splits),
        ),
    ]:
        close(given.fit(K, data.y).predict(between), made.fit(data.X, data.y).predict(data.new))

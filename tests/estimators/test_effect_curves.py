"""Curves are means of predictions, and their errors what other rows would have changed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ridgefold import (
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifierCV,
    LSSVMRegressorCV,
    PartitionedKernelRidge,
    RidgefoldRegressor,
)
from ridgefold.errors import InvalidInputError
from ridgefold.kernels import RBF

RNG = np.random.default_rng(11)
N = 150
X = RNG.normal(size=(N, 3))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.2 * RNG.normal(size=N)
WEIGHTS = RNG.integers(0, 3, N).astype(float)


def mean_predictions(model, rows, column, values, weights=None, *, method="predict"):
    found = []
    for value in values:
        changed = rows.copy()
        changed[:, column] = value
        found.append(np.average(getattr(model, method)(changed), weights=weights, axis=0))
    return np.array(found)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weights"])
@pytest.mark.parametrize(
    "model",
    [
        KernelRidgeCV(),
        KernelRidgeCV(intervals="jackknife+"),
        KernelRidge(0.1, kernel="rbf", gamma=0.3),
        LSSVMRegressorCV(metric="learned"),
        PartitionedKernelRidge(n_partitions=3),
    ],
    ids=["cv+", "jackknife+", "given", "learned", "cells"],
)
def test_a_curve_is_the_mean_of_the_predictions(model, weights):
    model.fit(X, Y, weights)
    curves = model.effect_curves(max_rows=1000)
    assert [curve.name for curve in curves] == ["column 0", "column 1", "column 2"]
    for j, curve in enumerate(curves):
        expected = mean_predictions(model, X, j, curve.positions, weights)
        np.testing.assert_allclose(curve.means, expected, atol=1e-7)


def test_errors_of_both_kinds_of_models_left_out_are_those_of_other_samples():
    def drawn(seed):
        rng = np.random.default_rng(seed)
        rows = rng.uniform(-2, 2, size=(120, 2))
        return rows, np.sin(rows[:, 0]) + rows[:, 1] + 0.5 * rng.normal(size=120)

    fixed = drawn(1000)[0][:50]
    positions = np.linspace(-1.5, 1.5, 5)
    means, by_folds, by_rows = [], [], []
    for seed in range(30):
        rows, y = drawn(seed)
        model = KernelRidge(0.5, kernel=RBF(1.0), intervals="cv+").fit(rows, y)
        means.append(mean_predictions(model, fixed, 0, positions))
        curve = model.effect_curves([0], max_rows=120)[0]
        by_folds.append(np.interp(positions, curve.positions, curve.standard_errors))
        model = KernelRidge(0.5, kernel=RBF(1.0), intervals="jackknife+").fit(rows, y)
        curve = model.effect_curves([0], max_rows=120)[0]
        by_rows.append(np.interp(positions, curve.positions, curve.standard_errors))
    spread = np.std(means, axis=0)
    for errors in (by_folds, by_rows):
        ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / spread
        assert np.all((ratio > 0.6) & (ratio < 1.7))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_curves_of_classes_are_of_probabilities(n_classes):
    labels = np.digitize(Y, np.quantile(Y, np.arange(1, n_classes) / n_classes))
    model = LSSVMClassifierCV(alpha=0.3, gamma=0.3, probability=True).fit(X, labels)
    for place in (None, 0, n_classes - 1):
        curve = model.effect_curves([1], target=place, max_rows=1000)[0]
        own = n_classes - 1 if place is None else place
        expected = mean_predictions(model, X, 1, curve.positions, method="predict_proba")[:, own]
        np.testing.assert_allclose(curve.means, expected, atol=1e-8)
        assert curve.quantity == f"mean probability of {own}"
    decisions = LSSVMClassifierCV(alpha=0.3, gamma=0.3).fit(X, labels).effect_curves([0])[0]
    assert decisions.quantity == f"mean decision value for {n_classes - 1}"


def test_columns_of_a_table_have_their_own_units_and_levels():
    table = pd.DataFrame(
        {
            "size": 50 + 10 * X[:, 0],
            "colour": np.array(["red", "blue", "green"])[np.arange(N) % 3],
            "rooms": np.arange(N) % 4,
        }
    )
    y = table["size"] / 10 + (table["colour"] == "red") + 0.1 * RNG.normal(size=N)
    model = RidgefoldRegressor(model=LSSVMRegressorCV()).fit(table, y)
    size, colour, rooms = model.effect_curves(max_rows=1000)
    assert size.positions[0] > 20
    assert size.positions[-1] < 80
    assert colour.levels == ("blue", "green", "red")
    np.testing.assert_allclose(rooms.positions, [0, 1, 2, 3], atol=1e-9)
    for level, mean in zip(colour.levels, colour.means, strict=True):
        assert mean == pytest.approx(np.mean(model.predict(table.assign(colour=level))))
    for value, mean in zip(size.positions[:3], size.means, strict=False):
        assert mean == pytest.approx(np.mean(model.predict(table.assign(size=value))))
    assert [c.name for c in model.effect_curves(["colour"])] == ["colour"]


def test_what_cannot_be_drawn_is_said():
    model = KernelRidgeCV().fit(X, Y)
    with pytest.raises(InvalidInputError, match="names or numbers of columns, got 'size'"):
        model.effect_curves(["size"])
    with pytest.raises(InvalidInputError, match="target must be one of 0 to 0, got 1"):
        model.effect_curves(target=1)
    with pytest.raises(InvalidInputError, match="max_rows must be a whole number >= 1"):
        model.effect_curves(max_rows=0)
    constant = KernelRidgeCV().fit(np.column_stack([X[:, :1], np.ones(N)]), Y)
    assert [c.name for c in constant.effect_curves()] == ["column 0"]
    with pytest.raises(InvalidInputError, match="a compressed model keeps few"):
        model.compress(10).effect_curves()

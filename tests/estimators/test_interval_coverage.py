"""Intervals hold their own prediction; new targets as often as they say, learned scales or not."""

from __future__ import annotations

import numpy as np
import pytest

import ridgefold
from namespaces import LIBRARIES, to_numpy
from ridgefold import (
    CellOptions,
    KernelRidge,
    KernelRidgeCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    PartitionedLSSVMRegressor,
    Search,
)

MODELS = {
    "cv+": KernelRidge(1e-2, kernel="rbf", gamma=0.1, intervals="cv+"),
    "jackknife+": KernelRidge(1e-2, kernel="rbf", gamma=0.1, intervals="jackknife+"),
    "linear": KernelRidge(1e-6, kernel="polynomial", degree=3, intervals="jackknife+"),
    "bias": LSSVMRegressor(1e-3, kernel="linear", intervals="cv+"),
    "chosen": KernelRidgeCV(cv=3),
    "chosen, mean of folds": LSSVMRegressorCV(cv=4, search=Search(average_folds=True)),
    "cells": PartitionedLSSVMRegressor(n_partitions=4),
    "cells, linear": PartitionedLSSVMRegressor(
        n_partitions=3, kernel="linear", cells=CellOptions(clip=False)
    ),
}


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::ridgefold.errors.ConditionWarning")
def test_intervals_hold_their_own_prediction_however_far_from_the_rows(name, targets):
    generator = np.random.default_rng(2)
    X = generator.standard_normal((120, 3))
    y = np.sin(X[:, :targets]) + 0.1 * generator.standard_normal((120, targets))
    y = y[:, 0] if targets == 1 else y
    model = MODELS[name].fit(X, y)
    directions = generator.standard_normal((40, 3))
    for distance in (1.0, 4.0, 30.0, 1e3):
        new = distance * directions
        predicted = model.predict(new)
        for coverage in (0.05, 0.5, 0.9):
            lower, upper = model.predict_interval(new, coverage)
            assert np.all(lower <= predicted)
            assert np.all(predicted <= upper)


def test_tensors_have_intervals_that_hold_their_prediction():
    X = np.random.default_rng(0).standard_normal((60, 2)).astype(np.float32)
    convert = LIBRARIES["torch"]
    model = KernelRidge(0.1, kernel="rbf", intervals="cv+").fit(convert(X), convert(X[:, 0]))
    new = convert(5 * X)
    lower, upper = (to_numpy(end) for end in model.predict_interval(new, 0.05))
    predicted = to_numpy(model.predict(new))
    assert np.all(lower <= predicted)
    assert np.all(predicted <= upper)


# -- learned scales ----------------------------------------------------------------------------


def few_relevant(generator, n, d):
    """Two columns that matter, noise in y, and columns of nothing but noise."""
    X = generator.standard_normal((n, d))
    return X, 1.5 * np.sin(X[:, 0]) + X[:, 1] + 0.5 * generator.standard_normal(n)


def nothing_relevant(generator, n, d):
    return generator.standard_normal((n, d)), generator.standard_normal(n)


def covered(model, draw, n, d, times):
    """Share of new targets in 90% intervals, for several draws of training rows."""
    shares = []
    for k in range(times):
        generator = np.random.default_rng([7, k, n, d])
        X, y = draw(generator, n, d)
        new, truth = draw(generator, 1000, d)
        lower, upper = model.fit(X, y).predict_interval(new, 0.9)
        shares.append(np.mean((lower <= truth) & (truth <= upper)))
    return np.asarray(shares)


def require_honest(shares):
    """Between 88% and 93%, as far as so many draws can tell: each side is a test at 5%."""
    error = 1.64 * shares.std(ddof=1) / np.sqrt(len(shares))
    assert 0.88 - error <= shares.mean() <= 0.93 + error, (shares.mean(), error)


@pytest.mark.parametrize(
    ("model", "draws"),
    [
        (LSSVMRegressorCV(kernel="rbf", metric="learned"), 12),
        (PartitionedLSSVMRegressor(n_partitions=1, kernel="rbf", metric="learned"), 8),
    ],
    ids=["whole", "cells"],
)
def test_intervals_of_scales_learned_from_few_rows_cover_what_they_say(model, draws):
    require_honest(covered(model, few_relevant, 100, 200, draws))


@pytest.mark.full
@pytest.mark.parametrize("draw", [few_relevant, nothing_relevant])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize(("n", "d"), [(100, 60), (100, 200), (200, 50), (100, 5), (500, 5)])
@pytest.mark.parametrize("cells", [False, True], ids=["whole", "cells"])
def test_intervals_of_learned_scales_cover_what_they_say(cells, n, d, kernel, draw):
    if cells:
        model = PartitionedLSSVMRegressor(n_partitions=2, kernel=kernel, metric="learned")
    else:
        model = LSSVMRegressorCV(kernel=kernel, metric="learned")
    require_honest(covered(model, draw, n, d, 24))


@pytest.mark.parametrize("intervals", ["cv+", "jackknife+"])
def test_errors_are_widened_where_learning_has_seen_the_held_out_rows(intervals, tmp_path):
    X, y = few_relevant(np.random.default_rng(0), 80, 40)
    y = np.column_stack([y, -y])
    model = KernelRidgeCV(kernel="rbf", intervals=intervals, metric="learned").fit(X, y)
    widening = model.intervals_.widening
    assert widening.shape == (2,)
    assert np.all(widening > 1)
    np.testing.assert_allclose(widening[0], widening[1], rtol=1e-6)  # the metric is one
    model.save(tmp_path / "model.rfold")
    again = ridgefold.load(tmp_path / "model.rfold")
    for ours, theirs in zip(again.predict_interval(X), model.predict_interval(X), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_many_rows_a_column_need_no_widening():
    X, y = few_relevant(np.random.default_rng(0), 150, 5)
    model = KernelRidgeCV(kernel="rbf", metric="learned").fit(X, y)
    assert model.intervals_.widening is None


def test_cells_keep_what_widens_their_intervals(tmp_path):
    X, y = few_relevant(np.random.default_rng(0), 90, 40)
    model = PartitionedLSSVMRegressor(n_partitions=2, kernel="rbf", metric="learned").fit(X, y)
    model.save(tmp_path / "model.rfold")
    again = ridgefold.load(tmp_path / "model.rfold")
    ends, kept = model.predict_interval(X), again.predict_interval(X)
    for ours, theirs in zip(kept, ends, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    widths = [np.mean(upper - lower) for lower, upper in (ends, _without_learning(X, y))]
    assert widths[0] > widths[1]


def _without_learning(X, y):
    """Intervals of cells in the learned metric, as if it had been given."""
    model = PartitionedLSSVMRegressor(n_partitions=2, kernel="rbf", metric="learned").fit(X, y)
    seen = np.isfinite(model.length_scales_)
    scaled = X[:, seen] / model.length_scales_[seen]
    return (
        PartitionedLSSVMRegressor(n_partitions=2, kernel="rbf")
        .fit(scaled, y)
        .predict_interval(scaled)
    )

"""Importance of a column is what its exchange costs models that have not seen the rows."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.inspection import permutation_importance

import ridgefold
from ridgefold import (
    CellOptions,
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    PartitionedKernelRidge,
    PartitionedLSSVMClassifier,
    RidgefoldRegressor,
)
from ridgefold.errors import InvalidInputError
from ridgefold.kernels import Laplacian
from ridgefold.selection.held_out_predictions import shuffled_folds

RNG = np.random.default_rng(5)
N = 60
X = RNG.normal(size=(N, 3))
Y = 2 * X[:, 0] + np.sin(3 * X[:, 1]) + 0.1 * RNG.normal(size=N)
WEIGHTS = RNG.integers(0, 3, N).astype(float)


def changed(rows: np.ndarray) -> np.ndarray:
    """Rows with the values of the second column of others."""
    other = rows.copy()
    other[:, 1] = np.roll(rows[:, 1], 3)
    return other


def sample_of(model, max_rows=1000):
    return model._held_out_sample(max_rows, np.random.default_rng(0))


def refits(make, folds, y, new, weights=None):
    """Every changed row by a plain fit without its fold."""
    found = np.full(len(new), np.nan)
    for rows in folds:
        train = np.setdiff1d(np.arange(N), rows)
        w = None if weights is None else weights[train]
        found[rows] = make().fit(X[train], y[train], w).predict(new[rows])
    return found


def consecutive(n_folds):
    return np.array_split(np.arange(N), n_folds)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weights"])
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("kept", ["cv+", "jackknife+", None])
def test_changed_rows_are_predicted_as_by_refits_without_them(kept, bias, weights):
    model = KernelRidgeCV(kernel="rbf", cv=4, intervals=kept, fit_intercept=bias)
    model.fit(X, Y, weights)
    folds = {
        "cv+": consecutive(4),
        "jackknife+": consecutive(N),
        None: shuffled_folds(N, 5).test,
    }[kept]

    def make():
        return KernelRidge(model.alpha_, kernel=model.kernel_, fit_intercept=bias)

    counted = np.arange(N) if weights is None else np.flatnonzero(weights > 0)
    sample = sample_of(model)
    np.testing.assert_array_equal(sample.X, X[counted])
    for change in (lambda rows: rows, changed):
        new = X.copy()
        new[counted] = change(X[counted])
        by_refits = refits(make, folds, Y, new, weights)[counted]
        np.testing.assert_allclose(sample.predict(new[counted])[:, 0], by_refits, atol=1e-7)


@pytest.mark.parametrize("cls", [KernelRidge, LSSVMRegressor])
def test_models_of_a_given_ridge_leave_rows_out_too(cls):
    model = cls(0.2, kernel="rbf", gamma=0.4).fit(X, Y)

    def make():
        return cls(0.2, kernel="rbf", gamma=0.4)

    expected = refits(make, shuffled_folds(N, 5).test, Y, changed(X))
    np.testing.assert_allclose(sample_of(model).predict(changed(X))[:, 0], expected, atol=1e-8)


def test_several_targets_have_their_own_ridges():
    both = np.stack([Y, Y**2], axis=1)
    model = KernelRidge([0.1, 2.0], kernel="rbf").fit(X, both)
    found = sample_of(model).predict(changed(X))
    for j, alpha in enumerate((0.1, 2.0)):
        one = KernelRidge(alpha, kernel="rbf").fit(X, both[:, j])
        np.testing.assert_allclose(found[:, j], sample_of(one).predict(changed(X))[:, 0], atol=1e-8)


@pytest.mark.parametrize("kept", ["cv+", None])
def test_a_stack_is_left_out_with_all_its_members(kept):
    model = LSSVMRegressorCV(kernel=["rbf", "laplacian"], cv=5, intervals=kept)
    model.set_params(search__stack=True)
    model.fit(X, Y)
    folds = consecutive(5) if kept else shuffled_folds(N, 5).test
    expected = np.zeros(N)
    for each in model.stack_.members:

        def make(each=each):
            return LSSVMRegressor(float(each.alpha[0]), kernel=each.kernel)

        expected += each.weight[0] * refits(make, folds, Y, changed(X))
    expected += model.stack_.offset[0]
    found = sample_of(model).predict(changed(X))[:, 0]
    # The kept models have weights that have not seen the fold either.
    tolerance = 0.2 * np.std(Y) if kept else 1e-8
    np.testing.assert_allclose(found, expected, atol=tolerance)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_partitions": 4},
        {"n_partitions": 4, "combine": "route"},
        {"n_partitions": 1},
        {"n_partitions": 3, "metric": "learned"},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_left_out_of_their_cells(settings, weighted):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 3))
    y = rows[:, 0] + np.sin(2 * rows[:, 1]) + 0.3 * rng.normal(size=300)
    weights = rng.integers(0, 3, 300).astype(float) if weighted else None
    options = CellOptions(clip=False)
    model = PartitionedKernelRidge(**settings, cells=options).fit(rows, y, weights)
    sample = sample_of(model)
    counted = np.arange(300) if weights is None else np.flatnonzero(weights > 0)
    held_out = (y - model.held_out_residuals_[:, 0])[counted]
    np.testing.assert_allclose(sample.predict(sample.X)[:, 0], held_out, atol=1e-7)


def test_a_changed_row_is_predicted_by_its_cell_fitted_again_without_it():
    model = PartitionedKernelRidge(n_partitions=1, alpha=0.3, kernel="rbf", gamma=0.4).fit(X, Y)

    def make():
        return KernelRidge(0.3, kernel="rbf", gamma=0.4)

    expected = refits(make, consecutive(N), Y, changed(X))
    low, high = model._models.lowest[0, 0], model._models.highest[0, 0]
    found = sample_of(model).predict(changed(X))[:, 0]
    np.testing.assert_allclose(found, np.clip(expected, low, high), atol=1e-8)


def test_of_many_cells_some_stand_for_all():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(4000, 3))
    y = 2 * rows[:, 0] + rows[:, 1] + 0.3 * rng.normal(size=4000)
    cells = PartitionedKernelRidge(n_partitions=100, cells=CellOptions(linear_part=None))
    few = cells.fit(rows, y).held_out_importances()
    # Of independent columns the exchange costs twice the variance that comes by them.
    expected = np.array([8.0, 2.0, 0.0]) / np.var(y)
    assert np.all(np.abs(few.rises - expected) <= 4 * few.standard_errors + 0.02)
    assert few.n_rows <= 1050


@pytest.mark.parametrize("seed", range(3))
def test_a_steep_line_is_important_and_an_identifier_is_not(seed):
    rng = np.random.default_rng(seed)
    n = 400
    rows = np.column_stack([rng.normal(size=(n, 3)), rng.permutation(n) / n])
    y = 3 * rows[:, 0] + np.sin(2 * rows[:, 1]) + 0.2 * rng.normal(size=n)
    model = KernelRidge(1e-3, kernel=Laplacian((3.0, 1.0, 6.0, 0.1))).fit(rows, y)
    found = model.held_out_importances(random_state=seed)
    assert np.argsort(-found.rises)[:2].tolist() == [0, 1]
    assert np.all(found.rises[2:] < 2 * found.standard_errors[2:] + 0.01)
    # On rows that the model has seen the identifier looks as if it counted.
    seen = permutation_importance(model, rows, y, n_repeats=3, random_state=0).importances_mean
    assert seen[3] > 4 * max(found.rises[3], 0.01)


def test_smooth_columns_have_long_scales_however_much_they_matter():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 4))
    y = 3 * rows[:, 0] + np.sin(2 * rows[:, 1]) + 0.1 * rng.normal(size=400)
    model = LSSVMRegressorCV(metric="learned").fit(rows, y)
    found = model.held_out_importances()
    assert np.argmax(model.column_shares_) == 1
    assert np.argmax(found.rises) == 0


@pytest.mark.parametrize(
    "model",
    [
        KernelRidgeCV(kernel="matern"),
        LSSVMRegressorCV(metric="learned"),
        PartitionedKernelRidge(n_partitions=6),
    ],
    ids=["exact", "learned", "cells"],
)
def test_numbers_have_the_order_of_test_rows(model):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(1200, 5))
    y = 2 * rows[:, 0] + np.sin(2 * rows[:, 1]) + 0.4 * rows[:, 2] * rows[:, 0]
    y = y + 0.2 * rng.normal(size=len(y))
    model = model.fit(rows[:600], y[:600])
    found = model.held_out_importances()
    test = permutation_importance(model, rows[600:], y[600:], n_repeats=5, random_state=0)
    assert_same_order(found, test.importances_mean)
    near = np.abs(found.rises - test.importances_mean)
    assert np.all(near <= 4 * found.standard_errors + 0.15 * test.importances_mean + 0.01)


@pytest.mark.parametrize("cls", [LSSVMClassifierCV, LSSVMClassifier, PartitionedLSSVMClassifier])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_have_the_order_of_test_rows(cls, n_classes):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(1200, 4))
    signal = 2 * rows[:, 0] + rows[:, 1] ** 2 + 0.3 * rng.normal(size=1200)
    y = np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
    settings = {"alpha": 0.3, "gamma": 0.2}
    model = cls(probability=True, **settings).fit(rows[:600], y[:600])
    found = model.held_out_importances()
    test = permutation_importance(
        model, rows[600:], y[600:], scoring="neg_log_loss", n_repeats=5, random_state=0
    )
    assert np.argsort(-found.rises)[:2].tolist() == [0, 1]
    assert_same_order(found, test.importances_mean / np.log(n_classes))
    without = cls(**settings).fit(rows[:600], y[:600]).held_out_importances()
    assert np.argsort(-without.rises)[:2].tolist() == [0, 1]


def assert_same_order(found, test, first=3):
    """Columns above two standard errors are in the order of test rows, the first ones alike."""
    clear = np.flatnonzero(found.rises > 2 * found.standard_errors)
    ours = clear[np.argsort(-found.rises[clear])]
    theirs = clear[np.argsort(-test[clear])]
    assert ours[:first].tolist() == theirs[:first].tolist()
    for left, right in itertools.pairwise(ours):
        error = np.hypot(found.standard_errors[left], found.standard_errors[right])
        assert test[left] > test[right] - 4 * error


def test_columns_of_a_table_are_exchanged_as_a_whole():
    rng = np.random.default_rng(6)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=300),
            "colour": rng.choice(["red", "blue", "green"], 300),
            "noise": rng.normal(size=300),
        }
    )
    y = 2.0 * (table["colour"] == "red") + table["size"] + 0.1 * rng.normal(size=300)
    model = RidgefoldRegressor(model=LSSVMRegressorCV()).fit(table, y)
    found = model.held_out_importances()
    assert found.names == ("size", "colour", "noise")
    assert found.repeats.shape == (3, 5)
    assert np.all(found.rises[:2] > 10 * np.abs(found.rises[2]))
    groups = [[0], [1, 2, 3], [4]]
    inner = model.model_.held_out_importances(groups=groups)
    np.testing.assert_array_equal(inner.rises, found.rises)


def test_a_column_that_the_metric_leaves_out_has_no_importance():
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(400, 8))
    y = np.sin(3 * rows[:, 2])
    model = LSSVMRegressorCV(metric="learned").fit(rows, y)
    left_out = np.isinf(model.length_scales_)
    assert left_out.any()
    assert np.all(model.held_out_importances().rises[left_out] == 0.0)


def test_sparse_rows_are_looked_at_as_rows():
    dense = X * (np.abs(X) > 0.5)
    one = KernelRidgeCV(kernel="rbf", gamma=0.3).fit(dense, Y).held_out_importances()
    rows = scipy.sparse.csr_array(dense)
    other = KernelRidgeCV(kernel="rbf", gamma=0.3).fit(rows, Y).held_out_importances()
    np.testing.assert_allclose(other.rises, one.rises, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weights"])
def test_a_model_from_a_file_says_the_same(weights, tmp_path):
    model = LSSVMClassifierCV().fit(X, Y > 0, weights)
    model.save(tmp_path / "m")
    again = ridgefold.load(tmp_path / "m").held_out_importances()
    np.testing.assert_array_equal(again.rises, model.held_out_importances().rises)


def test_what_cannot_be_answered_is_said():
    model = KernelRidgeCV().fit(X, Y)
    with pytest.raises(InvalidInputError, match="n_repeats must be a whole number >= 1, got 0"):
        model.held_out_importances(n_repeats=0)
    with pytest.raises(InvalidInputError, match="max_rows must be a whole number >= 2, got 1"):
        model.held_out_importances(max_rows=1)
    with pytest.raises(InvalidInputError, match=r"column numbers from 0 to 2, got \[3\]"):
        model.held_out_importances(groups=[[3]])
    with pytest.raises(InvalidInputError, match="a compressed model keeps few of the rows"):
        model.compress(10).held_out_importances()
    gram = KernelRidge(0.1, kernel="precomputed").fit(X @ X.T, Y)
    with pytest.raises(InvalidInputError, match="knows no columns"):
        gram.held_out_importances()
    average = PartitionedKernelRidge("random", 3, "average").fit(X, Y)
    with pytest.raises(InvalidInputError, match='left out of a combine="average" model'):
        average.held_out_importances()

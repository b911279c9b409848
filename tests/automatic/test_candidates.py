"""Held-out predictions of candidates are those of plain refits."""

from __future__ import annotations

import numpy as np
import pytest

from automatic.tables import rows_of
from ridgefold import LSSVMRegressor
from ridgefold.automatic.automatic_work import AutomaticWork, FoundKernel
from ridgefold.automatic.linear_ridge import linear_path
from ridgefold.automatic.models_of_numbers import fit_whole, splits_of, whole_model
from ridgefold.automatic.promised_time import PromisedTime
from ridgefold.automatic.steps import _sampled
from ridgefold.crossval import make_folds
from ridgefold.kernels import RBF
from ridgefold.selection.held_out_predictions import shuffled_folds


def work_of(X, y, folds, weights=None):
    return AutomaticWork(
        X=X,
        targets=y[:, None],
        codes=None,
        weights=weights,
        folds=folds,
        category_features=(),
        seed=0,
        time=PromisedTime(),
        memory_budget="auto",
        n_jobs=None,
        device=None,
    )


def test_a_model_of_some_rows_holds_out_its_own_by_folds_and_the_others_as_they_are():
    X, y = rows_of(600)
    work = work_of(X, y, shuffled_folds(600, 5))
    rows, splits = _sampled(work, 200)
    model = whole_model(work, RBF(1.0), [0.1], splits)
    held_out = fit_whole(work, model, rows)[:, 0]
    others = np.setdiff1d(np.arange(600), rows)
    plain = LSSVMRegressor(0.1, kernel=RBF(1.0), intervals=None)
    whole = plain.fit(X[rows], y[rows]).predict(X[others])
    np.testing.assert_allclose(held_out[others], whole, atol=1e-8)
    for train, test in splits:
        without = plain.fit(X[rows[train]], y[rows[train]]).predict(X[rows[test]])
        np.testing.assert_allclose(held_out[rows[test]], without, atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("in_time", [False, True])
def test_the_linear_model_is_held_out_as_refits_are(weighted, in_time):
    X, y = rows_of(90)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])  # a column that depends on others
    weights = np.random.default_rng(0).uniform(0, 2, 90) if weighted else None
    folds = shuffled_folds(90, 4)
    if in_time:
        order = np.arange(90)
        folds = make_folds([(order[: 30 * k], order[30 * k : 30 * k + 30]) for k in (1, 2)], 90)
    path = linear_path(X, y[:, None], weights, folds)
    tested = np.zeros(90, dtype=bool)
    for k, test in enumerate(folds.test):
        train = folds.training_rows(k)
        plain = LSSVMRegressor(path.alpha, kernel="linear", intervals=None)
        plain.fit(X[train], y[train], None if weights is None else weights[train])
        np.testing.assert_allclose(path.held_out[test, 0], plain.predict(X[test]), atol=1e-6)
        tested[test] = True
    assert np.all(np.isnan(path.held_out[~tested]))


def test_models_with_a_ridge_far_above_rounding_are_in_single_precision():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1600, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + rng.normal(size=1600)
    folds = shuffled_folds(1600, 5)
    work = work_of(X, y, folds)

    def found(alpha):
        return FoundKernel("", RBF(length_scale=1.5), "rbf", alpha)

    assert found(0.1).itemsize(work) == 4
    assert found(1e-4).itemsize(work) == 8
    assert found(0.1).itemsize(work_of(X, y, folds, weights=np.full(1600, 100.0))) == 8
    few = work_of(X[:300], y[:300], shuffled_folds(300, 5))
    assert found(0.1).itemsize(few) == 8

    single, double = (
        whole_model(work, RBF(length_scale=1.5), [0.1], splits_of(work), dtype)
        for dtype in (np.float32, np.float64)
    )
    held_out = fit_whole(work, single, dtype=np.float32)
    expected = fit_whole(work, double)
    assert single.X_fit_.dtype == np.float32
    assert np.abs(held_out - expected).max() < 1e-3 * expected.std()

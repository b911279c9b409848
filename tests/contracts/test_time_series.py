"""Folds that are not trained on all the other rows, which some methods do not cover."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import TimeSeriesSplit

from cases import rows, targets, tolerance
from ridgefold import KernelRidgeCV, cross_val_path
from ridgefold.crossval import METHODS
from ridgefold.errors import InvalidInputError, MethodGaveUpError
from ridgefold.records import FoldShape, Problem

X, Y = rows(30), targets(rows(30))
ALPHAS = [0.05, 1.0]
COMPLEMENT_ONLY = ("inverse_blocks", "eigendecomposition", "block_recursive")
FOLDS = Problem(
    n_rows=30, n_columns=3, folds=(FoldShape(6, 6), FoldShape(6, 12)), complement_folds=False
)
NOT_SHORTCUTS = [name for name in METHODS if METHODS[name].can_run(FOLDS) is None]
BOOTSTRAP = [(np.repeat(np.arange(10), 2), np.arange(10, 30))]


def expected(alpha, splits):
    K = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / 3)
    parts = []
    for train, test in splits:
        A = K[np.ix_(train, train)] + alpha * np.eye(len(train))
        parts.append(K[np.ix_(test, train)] @ np.linalg.solve(A, Y[train]))
    values = np.concatenate(parts)
    return values, tolerance(K, alpha, values, np.float64)


@pytest.mark.parametrize("cv", [TimeSeriesSplit(4), BOOTSTRAP], ids=["time series", "bootstrap"])
@pytest.mark.parametrize("method", ["auto", *(m for m in NOT_SHORTCUTS if METHODS[m].exact)])
def test_methods_that_train_on_what_is_given_are_right(cv, method):
    path = cross_val_path(X, Y, alpha=ALPHAS, cv=cv, method=method)
    assert path.method in NOT_SHORTCUTS
    splits = list(cv.split(X)) if hasattr(cv, "split") else cv
    for j, alpha in enumerate(ALPHAS):
        values, allowed = expected(alpha, splits)
        if not METHODS[path.method].exact:
            allowed += float(np.max(path.certificate[j]))
        np.testing.assert_allclose(path.predictions[j, :, 0], values, rtol=0, atol=allowed)


@pytest.mark.parametrize("method", [m for m in NOT_SHORTCUTS if not METHODS[m].exact])
def test_inexact_methods_keep_to_their_certificate_or_give_up(method):
    for cv in (TimeSeriesSplit(4), BOOTSTRAP):
        splits = list(cv.split(X)) if hasattr(cv, "split") else cv
        try:
            path = cross_val_path(X, Y, alpha=ALPHAS, cv=cv, method=method)
        except MethodGaveUpError:
            assert cv is BOOTSTRAP
            continue
        for j, alpha in enumerate(ALPHAS):
            values, allowed = expected(alpha, splits)
            allowed += float(np.max(path.certificate[j]))
            np.testing.assert_allclose(path.predictions[j, :, 0], values, rtol=0, atol=allowed)


def test_every_shortcut_says_why_it_was_not_chosen():
    path = cross_val_path(X, Y, alpha=ALPHAS, cv=TimeSeriesSplit(4))
    reasons = {rejection.method: rejection.reason for rejection in path.plan.rejected}
    assert set(reasons) == set(METHODS) - {path.method}
    for method in COMPLEMENT_ONLY:
        assert "not all the rows it does not test" in reasons[method]
        assert "time-series" in reasons[method]


@pytest.mark.parametrize("method", [name for name in METHODS if name not in NOT_SHORTCUTS])
def test_a_shortcut_asked_for_by_name_gives_the_reason_and_the_way_out(method):
    with pytest.raises(InvalidInputError, match="refit") as raised:
        cross_val_path(X, Y, alpha=ALPHAS, cv=TimeSeriesSplit(4), method=method)
    text = str(raised.value)
    assert f'method="{method}"' in text
    assert 'use method="auto"' in text
    assert "training rows" in text or "time-series" in text


def test_refitting_takes_such_folds_and_the_shortcuts_do_not():
    assert "refit" in NOT_SHORTCUTS
    assert not set(COMPLEMENT_ONLY) & set(NOT_SHORTCUTS)


def test_the_estimators_take_them_too():
    model = KernelRidgeCV(ALPHAS, gamma=[0.1, 1.0], cv=TimeSeriesSplit(3)).fit(X, Y)
    assert model.cv_plan_.method in NOT_SHORTCUTS
    assert np.isnan(model.held_out_predictions_[:9]).all()
    assert np.isfinite(model.held_out_predictions_[9:]).all()

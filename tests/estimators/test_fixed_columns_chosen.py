"""Unpenalised columns where much is chosen: classes, learned metrics, stacks, means of folds."""

from __future__ import annotations

import numpy as np
import pytest

from fixed_effects_oracle import bordered_fit, bordered_predictions
from ridgefold import (
    KernelRidge,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressorCV,
    MetricLearning,
    Search,
    load,
)
from ridgefold.crossval import Folds
from ridgefold.errors import UndeterminedColumnsWarning
from ridgefold.exact.leave_two_out import leave_two_out
from ridgefold.kernels import RBF, Columns, KernelGram, Matern

N = 150
rng = np.random.default_rng(8)
X = rng.standard_normal((N, 4))
X[:, 3] = 2000.0 + 10.0 * X[:, 3]  # far from zero, as years are
TREND = 0.2 * X[:, 3] - 3.0 * X[:, 0]
Y = np.sin(2.0 * X[:, 1]) + TREND + 0.1 * rng.standard_normal(N)
LABELS = Y - TREND + X[:, 0] > 0
WEIGHTS = rng.uniform(0.3, 2.0, N)
NEW = rng.standard_normal((9, 4)) + np.eye(4)[3] * 2000.0
CONSECUTIVE = np.array_split(np.arange(N), 5)


def with_bias(rows, fixed):
    return np.column_stack([np.ones(len(rows)), rows[:, fixed]])


def predictions_of_refits(model, kernel, fixed, y, weights=None):
    """Of every row, by the kernel and ridge of a model without the row's fold."""
    K, F = kernel(X), with_bias(X, fixed)
    found = np.empty_like(y)
    for test in CONSECUTIVE:
        train = np.setdiff1d(np.arange(N), test)
        found[test] = bordered_predictions(K, F, y, model.alpha_, train, test, weights)
    return found


LEARNING = {
    "scales": {"metric": "learned"},
    "transforms": {"metric": MetricLearning(transforms="auto"), "kernel": "matern"},
    "a family": {"kernel": "auto"},
    "scales of a family": {"kernel": "auto", "metric": "learned"},
    "by likelihood": {"metric": "learned", "scoring": "marginal_likelihood"},
}


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("how", LEARNING)
def test_a_learned_metric_is_refitted_with_the_columns_as_they_are(how, weights):
    model = LSSVMRegressorCV(fixed=[0, 3], **LEARNING[how]).fit(X, Y, weights)
    expected = predictions_of_refits(model, model.kernel_, [0, 3], Y[:, None], weights)
    np.testing.assert_allclose(model.held_out_predictions_, expected[:, 0], atol=1e-6)
    kernel, F = model.kernel_, with_bias(X, [0, 3])
    a, beta = bordered_fit(kernel(X), F, Y[:, None], model.alpha_, weights)
    np.testing.assert_allclose(model.fixed_coef_, beta[1:, 0], rtol=1e-6)
    mean = kernel(NEW, X) @ a + with_bias(NEW, [0, 3]) @ beta
    np.testing.assert_allclose(model.predict(NEW), mean[:, 0], atol=1e-6)
    lower, upper = model.predict_interval(NEW)
    assert np.all(lower <= upper)
    np.testing.assert_array_less(np.abs(model.fixed_coef_[1] - 0.2), 0.05)


def test_scales_are_learned_for_what_the_columns_leave():
    """A trend alone makes a column matter to the kernel, unless it stands beside the kernel."""
    y = 5.0 * X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.05 * np.random.default_rng(1).normal(size=N)
    plain = LSSVMRegressorCV(kernel="matern", metric="learned").fit(X, y)
    beside = LSSVMRegressorCV(kernel="matern", metric="learned", fixed=[0]).fit(X, y)
    assert plain.column_shares_[0] > 0.1
    assert beside.column_shares_[0] < 0.05
    assert beside.best_score_ > plain.best_score_


def test_a_level_that_only_one_fold_has_does_not_end_the_learning():
    table = np.column_stack([(np.arange(N) < 12).astype(float), X[:, :3]])
    model = LSSVMRegressorCV(metric="learned", fixed=[0])
    with pytest.warns(UndeterminedColumnsWarning, match="fold"):
        model.fit(table, Y - TREND + 4.0 * table[:, 0])
    assert model.fixed_coef_[0] == pytest.approx(4.0, abs=3.0 * model.fixed_coef_std_[0])


def test_a_mean_of_folds_has_the_mean_of_their_coefficients():
    model = LSSVMRegressorCV(
        [0.1], kernel=RBF(1.0), fixed=[0, 3], search=Search(average_folds=True)
    ).fit(X, Y)
    values, coefficients = [], []
    for test in CONSECUTIVE:
        train = np.setdiff1d(np.arange(N), test)
        one = KernelRidge(0.1, kernel=RBF(1.0), fixed=[0, 3], fit_intercept=True)
        values.append(one.fit(X[train], Y[train]).predict(NEW))
        coefficients.append(one.fixed_coef_)
    np.testing.assert_allclose(model.predict(NEW), np.mean(values, axis=0), atol=1e-7)
    np.testing.assert_allclose(model.fixed_coef_, np.mean(coefficients, axis=0), atol=1e-7)


# -- stacks ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": [RBF(1.0), Matern(1.0, nu=0.5)], "alpha": [0.1]},
        {"kernel": "auto", "metric": "learned"},
    ],
    ids=["a grid of each", "learned metrics"],
)
def test_every_member_of_a_stack_has_the_columns(settings, tmp_path):
    model = LSSVMRegressorCV(fixed=[0, 3], search=Search(stack=True), **settings).fit(X, Y)
    total, linear = model.stack_.offset + np.zeros(len(NEW)), np.zeros(2)
    for member in model.stack_.members:
        one = KernelRidge(member.alpha, kernel=member.kernel, fixed=[0, 3], fit_intercept=True)
        total += member.weight * one.fit(X, Y).predict(NEW)
        linear += member.weight * one.fixed_coef_
    np.testing.assert_allclose(model.predict(NEW), total, atol=1e-6)
    np.testing.assert_allclose(model.fixed_coef_, linear, rtol=1e-7)
    assert not hasattr(model, "fixed_coef_std_")
    model.save(tmp_path / "model.rfm")
    again = load(tmp_path / "model.rfm")
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(again.fixed_coef_, model.fixed_coef_)


def test_slopes_and_effects_of_a_stack_count_every_linear_effect():
    kernels = [Columns(RBF(0.7), [1]), Columns(Matern(1.0, nu=1.5), [2])]
    model = LSSVMRegressorCV([0.1], kernel=kernels, fixed=[0, 3], search=Search(stack=True))
    model.fit(X, Y + np.cos(2.0 * X[:, 2]), WEIGHTS)
    assert len(model.stack_.members) > 1
    slopes, step = model.predict_gradient(NEW), 1e-5
    for j in range(4):
        move = step * np.eye(4)[j]
        by_differences = (model.predict(NEW + move) - model.predict(NEW - move)) / (2 * step)
        np.testing.assert_allclose(slopes[:, j], by_differences, atol=1e-5)
    found = model.marginal_effects()
    average = WEIGHTS @ model.predict_gradient(X) / WEIGHTS.sum()
    np.testing.assert_allclose(found.average, average, atol=1e-8)
    # Every average is Lᵀy: that of unit targets is L.
    L = np.zeros((N, 4))
    for each in model.stack_.members:
        units = KernelRidge(each.alpha, kernel=each.kernel, fixed=[0, 3], fit_intercept=True)
        units.set_params(alpha=np.full(N, each.alpha[0])).fit(X, np.eye(N), WEIGHTS)
        own = units.marginal_effects(standard_errors=False).average
        L += each.weight[0] * own.T
    ratio = found.standard_error / np.sqrt(np.sum(L**2 / WEIGHTS[:, None], axis=0))
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)  # one σ for all


@pytest.mark.parametrize("bias", [False, True])
def test_models_without_two_folds_are_refits_where_a_level_goes_with_them(bias):
    """A level in two folds: without both, its rows are predicted as if they had none."""
    table = np.column_stack([(np.arange(N) % 50 < 3).astype(float), X[:, :2]])
    table[100:, 0] = 0.0  # the rows of two folds of 50
    folds = Folds(N, tuple(np.arange(50 * k, 50 * k + 50) for k in range(3)))
    gram = KernelGram(RBF(1.0), table, fixed=(0, 1))
    y = Y[:, None]
    groups = [np.array([k]) for k in range(3)]
    found = leave_two_out(gram, y, np.array([0.2]), folds, groups, weights=WEIGHTS, bias=bias)
    for g in range(3):
        for k in set(range(3)) - {g}:
            train = folds.test[3 - g - k]
            known = [0, 1] if table[train, 0].any() else [1]
            F = table[:, known] if not bias else with_bias(table, known)
            expected = bordered_predictions(
                RBF(1.0)(table), F, y, 0.2, train, folds.test[k], WEIGHTS
            )
            np.testing.assert_allclose(found[g, folds.test[k]], expected, atol=1e-7)


# -- classes -----------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers_that_choose_hold_out_with_the_columns(classes):
    labels = LABELS if classes == 2 else np.digitize(Y - TREND, [-0.4, 0.4])
    model = LSSVMClassifierCV([0.1, 1.0], kernel=RBF(1.0), fixed=[0, 3], cv=CONSECUTIVE_CV)
    model.fit(X, labels)
    columns = np.where(labels[:, None] == np.unique(labels), 1.0, -1.0)
    columns = columns[:, 1:] if classes == 2 else columns
    expected = predictions_of_refits(model, RBF(1.0), [0, 3], columns)
    held_out = model.held_out_decisions_.reshape(N, -1)
    np.testing.assert_allclose(held_out, expected, atol=1e-8)
    twin = LSSVMClassifier(model.alpha_, kernel=RBF(1.0), fixed=[0, 3]).fit(X, labels)
    np.testing.assert_allclose(model.decision_function(NEW), twin.decision_function(NEW))
    np.testing.assert_allclose(model.fixed_coef_, twin.fixed_coef_)
    np.testing.assert_allclose(model.fixed_coef_std_, twin.fixed_coef_std_)


CONSECUTIVE_CV = [(np.setdiff1d(np.arange(N), test), test) for test in CONSECUTIVE]


@pytest.mark.parametrize("stack", [False, True])
def test_classifiers_that_learn_take_the_columns_and_have_probabilities(stack):
    model = LSSVMClassifierCV(
        kernel="auto", metric="learned", fixed=[0], probability=True, search=Search(stack=stack)
    ).fit(X[:, :3], LABELS)
    assert model.score(X[:, :3], LABELS) > 0.85
    assert model.fixed_coef_[0] > 0
    assert np.all(model.predict_proba(NEW[:, :3]) > 0)

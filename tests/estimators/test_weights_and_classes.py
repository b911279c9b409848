"""What weights, classes and the bias mean."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cases import bordered, rows, targets, tolerance
from ridgefold import Compute, KernelRidge, LSSVMClassifier, LSSVMRegressor
from ridgefold.errors import InvalidInputError, SingularSystemWarning
from ridgefold.kernels import RBF

X, X_NEW = rows(40, 3), rows(15, 3, seed=8)
SOLVERS = ["primal", "cholesky", "eigendecomposition", "conjugate_gradient"]


def models(alpha=0.3):
    for solver in SOLVERS:
        kernel = "linear" if solver == "primal" else RBF(1.2)
        for bias in (False, True):
            yield KernelRidge(
                alpha, kernel=kernel, fit_intercept=bias, compute=Compute(solver=solver, tol=1e-13)
            )


@pytest.mark.parametrize("many", [None, 2], ids=["one target", "many targets"])
def test_weight_two_is_the_row_twice(many):
    y = targets(X, many)
    twice = np.concatenate([np.arange(40), np.arange(0, 40, 3)])
    weights = np.ones(40)
    weights[::3] = 2.0
    for model in models():
        expected = model.fit(X[twice], y[twice]).predict(X_NEW)
        found = model.fit(X, y, sample_weight=weights).predict(X_NEW)
        np.testing.assert_allclose(found, expected, atol=1e-10, err_msg=repr(model))


@pytest.mark.parametrize("many", [None, 2], ids=["one target", "many targets"])
def test_weight_zero_is_the_row_left_out(many):
    y = targets(X, many)
    weights = np.random.default_rng(4).random(40) + 0.5
    weights[::4] = 0.0
    kept = weights > 0
    for model in models():
        expected = model.fit(X[kept], y[kept], sample_weight=weights[kept]).predict(X_NEW)
        found = model.fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(found.predict(X_NEW), expected, atol=1e-10, err_msg=repr(model))
        np.testing.assert_array_equal(found.dual_coef_[::4], 0.0)


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("solver", ["cholesky", "eigendecomposition"])
def test_weight_zero_leaves_the_row_out_without_ridge_too(bias, solver):
    weights = np.ones(12)
    weights[[2, 5]] = 0.0
    A, y = X[:12], targets(X)[:12]
    model = KernelRidge(0, kernel=RBF(0.5), fit_intercept=bias, compute=Compute(solver=solver))
    found = model.fit(A, y, sample_weight=weights).predict(X_NEW)
    expected = model.fit(A[weights > 0], y[weights > 0]).predict(X_NEW)
    np.testing.assert_allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
def test_repeated_rows_of_weight_zero_do_not_make_the_system_singular(bias):
    A, y = np.vstack([X[:10], X[:10]]), np.append(targets(X)[:10], np.full(10, 1e6))
    weights = np.repeat([1.0, 0.0], 10)
    model = KernelRidge(0, kernel=RBF(0.5), fit_intercept=bias).fit(A, y, sample_weight=weights)
    np.testing.assert_allclose(model.predict(A[:10]), y[:10], atol=1e-11)


def test_one_number_as_weight_rescales_alpha():
    y = targets(X)
    heavy = KernelRidge(1.0, kernel="rbf").fit(X, y, sample_weight=4.0).predict(X_NEW)
    np.testing.assert_allclose(heavy, KernelRidge(0.25, kernel="rbf").fit(X, y).predict(X_NEW))
    tensors = torch.from_numpy(X), torch.from_numpy(y)
    model = KernelRidge(1.0, kernel="rbf").fit(*tensors, sample_weight=4.0)
    np.testing.assert_allclose(model.predict(torch.from_numpy(X_NEW)).numpy(), heavy)


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2.0, 40)], ids=["none", "each"])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_ls_svm_is_the_direct_solution_of_the_bordered_system(weights, alpha):
    y, kernel = targets(X), RBF(1.2)
    K = kernel(X)
    solution = np.linalg.solve(bordered(K, alpha, weights), np.append(0.0, y))
    expected = kernel(X_NEW, X) @ solution[1:] + solution[0]
    model = LSSVMRegressor(alpha, kernel=kernel).fit(X, y, sample_weight=weights)
    bound = tolerance(K, alpha / 2, expected, np.float64)
    np.testing.assert_allclose(model.predict(X_NEW), expected, rtol=0, atol=bound)
    np.testing.assert_allclose(model.intercept_, solution[0], rtol=0, atol=bound)


def test_bias_follows_a_shift_of_the_targets():
    y = targets(X)
    for model in models():
        if model.fit_intercept:
            before = model.fit(X, y).predict(X_NEW)
            np.testing.assert_allclose(
                model.fit(X, y + 1e3).predict(X_NEW), before + 1e3, rtol=1e-9
            )


def test_one_row_is_enough():
    assert KernelRidge(1.0, kernel="rbf").fit(X[:1], [4.0]).predict(X[:1]) == pytest.approx([2.0])
    model = LSSVMRegressor().fit(X[:1], [4.0])
    assert model.predict(X_NEW) == pytest.approx(np.full(15, 4.0))


# -- classes ------------------------------------------------------------------------------

LABELS = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
THREE = np.array(["red", "green", "blue"])[np.digitize(X[:, 0], [-0.5, 0.5])]


def test_two_classes_are_a_regression_on_signs():
    model = LSSVMClassifier(0.1).fit(X, LABELS)
    signs = np.where(LABELS == "yes", 1.0, -1.0)
    regression = LSSVMRegressor(0.1).fit(X, signs)
    np.testing.assert_allclose(model.decision_function(X_NEW), regression.predict(X_NEW))
    assert list(model.classes_) == ["no", "yes"]
    expected = np.where(regression.predict(X_NEW) > 0, "yes", "no")
    np.testing.assert_array_equal(model.predict(X_NEW), expected)
    assert model.dual_coef_.shape == (40,)


def test_many_classes_are_one_against_the_rest_from_one_factorisation(monkeypatch):
    from ridgefold.solvers import cholesky

    calls = []
    real = cholesky.factorise
    monkeypatch.setattr(cholesky, "factorise", lambda *a, **k: calls.append(1) or real(*a, **k))
    model = LSSVMClassifier(0.1).fit(X, THREE)
    assert len(calls) == 1
    assert list(model.classes_) == ["blue", "green", "red"]
    decisions = model.decision_function(X_NEW)
    for j, name in enumerate(model.classes_):
        alone = LSSVMRegressor(0.1).fit(X, np.where(name == THREE, 1.0, -1.0)).predict(X_NEW)
        np.testing.assert_allclose(decisions[:, j], alone, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X_NEW), model.classes_[decisions.argmax(axis=1)])


@pytest.mark.parametrize(
    "labels",
    [
        [3, 7],
        [-1.0, 1.0],
        [False, True],
        np.array(["a", "b"], dtype=object),
        ["a", "bb"],
    ],
    ids=["int", "float", "bool", "object", "str"],
)
def test_labels_of_any_kind_come_back_as_they_were(labels):
    y = np.asarray(labels)[(X[:, 0] > 0).astype(int)]
    model = LSSVMClassifier(1e-3).fit(X, y)
    predicted = model.predict(X)
    assert predicted.dtype == y.dtype
    assert model.score(X, y) == 1.0


def test_class_weights_are_sample_weights():
    y = (X[:, 0] > 0.7).astype(int)
    weights = {0: 0.5, 1: 4.0}
    by_class = LSSVMClassifier(class_weight=weights).fit(X, y).decision_function(X_NEW)
    by_row = LSSVMClassifier().fit(X, y, sample_weight=np.where(y == 1, 4.0, 0.5))
    np.testing.assert_allclose(by_class, by_row.decision_function(X_NEW), atol=1e-12)
    balanced = LSSVMClassifier(class_weight="balanced").fit(X, y).decision_function(X_NEW)
    counts = np.bincount(y)
    row_weights = (40 / (2 * counts))[y]
    by_row = LSSVMClassifier().fit(X, y, sample_weight=row_weights).decision_function(X_NEW)
    np.testing.assert_allclose(balanced, by_row, atol=1e-12)


def test_balanced_classes_count_repeated_rows_as_weights():
    y, twice = (X[:, 0] > 0.7).astype(int), np.append(np.arange(40), np.arange(9))
    weights = np.ones(40)
    weights[:9] = 2
    model = LSSVMClassifier(class_weight="balanced")
    expected = model.fit(X[twice], y[twice]).decision_function(X_NEW)
    found = model.fit(X, y, sample_weight=weights).decision_function(X_NEW)
    np.testing.assert_allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("heavy", r'class_weight must be a dict, "balanced" or None, got \'heavy\''),
        ({5: 1.0}, r"class_weight has weights for \[5\], but the classes in y are \[0, 1\]"),
        ({0: -1.0}, r"class_weight must give finite numbers >= 0"),
        ({0: np.nan}, r"class_weight must give finite numbers >= 0"),
        ({0: 0.0, 1: 0.0}, r"sample_weight is zero for every row"),
    ],
)
def test_class_weights_that_cannot_be_used_are_named(class_weight, message):
    with pytest.raises(InvalidInputError, match=message):
        LSSVMClassifier(class_weight=class_weight).fit(X, (X[:, 0] > 0).astype(int))


def test_torch_labels_come_back_as_torch():
    tensors = torch.from_numpy(X)
    y = torch.from_numpy((X[:, 0] > 0).astype(np.int64)) * 3
    model = LSSVMClassifier(1e-3).fit(tensors, y)
    predicted = model.predict(tensors)
    assert isinstance(predicted, torch.Tensor)
    assert predicted.dtype == torch.int64
    assert torch.equal(predicted, y)
    assert list(LSSVMClassifier(0.1).fit(tensors, LABELS).predict(tensors)[:3]) == list(LABELS[:3])


def test_alpha_zero_classifier_on_repeated_rows_warns():
    with pytest.warns(SingularSystemWarning):
        LSSVMClassifier(0).fit(np.vstack([X, X]), np.append(LABELS, LABELS))

"""Changing the import from scikit-learn's KernelRidge changes no number."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
import sklearn.kernel_ridge
from sklearn.gaussian_process.kernels import ExpSineSquared
from sklearn.metrics.pairwise import chi2_kernel, pairwise_kernels

from cases import rows, targets, tolerance
from ridgefold import KernelRidge
from ridgefold.errors import SingularSystemWarning


def minimum_kernel(x, y, power=1.0):
    return float(np.minimum(x, y).sum() ** power)


SETTINGS = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf"},
    "rbf, gamma": {"kernel": "rbf", "gamma": 2.5},
    "rbf, gamma zero": {"kernel": "rbf", "gamma": 0.0},
    "laplacian": {"kernel": "laplacian"},
    "laplacian, gamma": {"kernel": "laplacian", "gamma": 0.4},
    "poly": {"kernel": "poly"},
    "polynomial": {"kernel": "polynomial", "degree": 2, "gamma": 0.7, "coef0": 2.0},
    "polynomial, real degree": {"kernel": "polynomial", "degree": 1.5, "coef0": 3.0},
    "polynomial, homogeneous": {"kernel": "polynomial", "degree": 3, "coef0": 0},
    "cosine": {"kernel": "cosine"},
    "chi2": {"kernel": "chi2", "gamma": 0.8},
    "callable": {"kernel": minimum_kernel},
    "callable, parameters": {"kernel": minimum_kernel, "kernel_params": {"power": 2}},
    "gaussian process": {"kernel": ExpSineSquared(1.3, 2.0)},
}
INDEFINITE = {
    "sigmoid": {"kernel": "sigmoid"},
    "sigmoid, negative": {"kernel": "sigmoid", "gamma": 1.5, "coef0": -0.5},
    "additive_chi2": {"kernel": "additive_chi2"},
}
SPARSE_NAMES = ["linear", "rbf", "laplacian", "poly", "polynomial", "cosine", "rbf, gamma"]


def kernel_matrix(setting, X, Y=None):
    """The Gram matrix that scikit-learn's KernelRidge would build."""
    return sklearn.kernel_ridge.KernelRidge(**setting)._get_kernel(X, Y)


def assert_same(setting, X, y, X_new, *, alpha=0.5, sample_weight=None, dtype=np.float64):
    peer = sklearn.kernel_ridge.KernelRidge(alpha=alpha, **setting)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its singular fallback warns in its own words
        expected = peer.fit(X, y, sample_weight=sample_weight).predict(X_new)
    ours = KernelRidge(alpha=alpha, **setting).fit(X, y, sample_weight=sample_weight)
    predicted = ours.predict(X_new)
    K = kernel_matrix(setting, X)
    if sample_weight is not None:
        root = np.sqrt(np.asarray(sample_weight))
        K = K * np.outer(root, root)
    assert predicted.shape == expected.shape
    assert ours.dual_coef_.shape == peer.dual_coef_.shape
    np.testing.assert_allclose(
        predicted, expected, rtol=0, atol=tolerance(K, alpha, expected, dtype)
    )
    return ours


X, X_NEW = rows(positive=True), rows(15, seed=7, positive=True)
WEIGHTS = np.random.default_rng(5).random(40) + 0.1


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("alpha", [1.0, 1e-3])
def test_one_target_is_predicted_alike(setting, weights, alpha):
    assert_same(setting, X, targets(X), X_NEW, alpha=alpha, sample_weight=weights)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("alpha", [0.3, np.array([1.0, 0.1, 0.1, 2.0])], ids=["one", "each"])
def test_many_targets_are_predicted_alike(setting, alpha):
    assert_same(setting, X, targets(X, 4), X_NEW, alpha=alpha)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_many_weighted_targets_with_an_alpha_each_are_predicted_alike(setting):
    alpha = np.array([1.0, 0.1, 2.0])
    assert_same(setting, X, targets(X, 3), X_NEW, alpha=alpha, sample_weight=WEIGHTS)


@pytest.mark.parametrize("setting", INDEFINITE.values(), ids=INDEFINITE)
@pytest.mark.parametrize("many", [None, 3], ids=["one target", "many targets"])
def test_indefinite_kernels_are_predicted_alike(setting, many):
    with pytest.warns(SingularSystemWarning, match="not positive definite"):
        assert_same(setting, X, targets(X, many), X_NEW, alpha=1e-3)


@pytest.mark.parametrize("name", SPARSE_NAMES)
@pytest.mark.parametrize(
    "form", [scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.csr_array]
)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
def test_sparse_rows_are_predicted_alike(name, form, weights):
    thinned = np.where(X > 0.5, X, 0.0)
    new = np.where(X_NEW > 0.5, X_NEW, 0.0)
    assert_same(SETTINGS[name], form(thinned), targets(X), form(new), sample_weight=weights)


@pytest.mark.parametrize("name", SPARSE_NAMES)
def test_sparse_and_dense_rows_mix(name):
    setting, y = SETTINGS[name], targets(X)
    thinned, new = np.where(X > 0.5, X, 0.0), np.where(X_NEW > 0.5, X_NEW, 0.0)
    dense = KernelRidge(0.5, **setting).fit(thinned, y)
    expected = dense.predict(new)
    bound = tolerance(kernel_matrix(setting, thinned), 0.5, expected, np.float64)
    mixed = [
        dense.predict(scipy.sparse.csr_array(new)),
        KernelRidge(0.5, **setting).fit(scipy.sparse.csr_array(thinned), y).predict(new),
    ]
    for predicted in mixed:
        np.testing.assert_allclose(predicted, expected, rtol=0, atol=bound)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_single_precision_is_predicted_alike(setting):
    ours = assert_same(
        setting,
        X.astype(np.float32),
        targets(X).astype(np.float32),
        X_NEW.astype(np.float32),
        dtype=np.float32,
    )
    assert ours.predict(X_NEW.astype(np.float32)).dtype == np.float32
    assert ours.dual_coef_.dtype == np.float32


@pytest.mark.parametrize("weights", [None, WEIGHTS, 2.5], ids=["none", "each", "one number"])
def test_precomputed_kernels_are_predicted_alike(weights):
    K, K_new = pairwise_kernels(X, metric="rbf"), pairwise_kernels(X_NEW, X, metric="rbf")
    y = targets(X)
    peer = sklearn.kernel_ridge.KernelRidge(0.1, kernel="precomputed").fit(K, y, weights)
    ours = KernelRidge(0.1, kernel="precomputed").fit(K, y, weights)
    expected = peer.predict(K_new)
    root = np.sqrt(np.broadcast_to(1.0 if weights is None else weights, len(K)))
    np.testing.assert_allclose(
        ours.predict(K_new),
        expected,
        rtol=0,
        atol=tolerance(K * np.outer(root, root), 0.1, expected, np.float64),
    )


def test_chi2_without_gamma_takes_its_function_default():
    ours = KernelRidge(0.5, kernel="chi2").fit(X, targets(X))
    K = chi2_kernel(X)
    expected = chi2_kernel(X_NEW, X) @ np.linalg.solve(K + 0.5 * np.eye(len(X)), targets(X))
    bound = tolerance(K, 0.5, expected, np.float64)
    np.testing.assert_allclose(ours.predict(X_NEW), expected, rtol=0, atol=bound)


def test_default_arguments_are_those_of_scikit_learn():
    peer = sklearn.kernel_ridge.KernelRidge().get_params()
    ours = KernelRidge().get_params()
    assert {name: ours[name] for name in peer} == peer


def test_every_kernel_name_of_scikit_learn_is_taken():
    names = sklearn.kernel_ridge.KernelRidge._parameter_constraints["kernel"][0].options
    for name in names - {"precomputed", "additive_chi2", "sigmoid"}:
        model = KernelRidge(kernel=name).fit(X, targets(X))
        assert np.all(np.isfinite(model.predict(X_NEW))), name

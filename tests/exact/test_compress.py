"""A compressed model comes with a bound on what it lost, and the bound holds."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from cases import KERNELS, rows, targets
from ridgefold import Compute, KernelRidge, LSSVMClassifier, LSSVMRegressor
from ridgefold.kernels import RBF

X, X_NEW = rows(60, 3, positive=True), rows(200, 3, seed=8, positive=True)
# Their own norm is what the bound is made of, so the kernel must be positive definite.
DUAL = {n: k for n, k in KERNELS.items() if k.feature_dimension(3) is None}


def largest_error(model, small, A, kernel):
    values, compressed = model.predict(A), small.predict(A)
    scale = np.sqrt(np.diag(kernel(A)))
    difference = np.abs(values - compressed)
    return (difference / (scale if values.ndim == 1 else scale[:, None])).max(axis=0)


@given(
    name=st.sampled_from(list(DUAL)),
    n_centers=st.integers(1, 40),
    alpha=st.sampled_from([1e-6, 1e-2, 1.0]),
    bias=st.booleans(),
    seed=st.integers(0, 20),
)
def test_no_prediction_is_off_by_more_than_the_bound(name, n_centers, alpha, bias, seed):
    A, kernel = rows(40, 3, seed, positive=True), DUAL[name]
    model = KernelRidge(alpha, kernel=kernel, fit_intercept=bias).fit(A, targets(A, 2, seed))
    small = model.compress(n_centers)
    assert 1 <= small.X_fit_.shape[0] <= n_centers
    everywhere = np.vstack([A, X_NEW, 3 * X_NEW])
    assert np.all(largest_error(model, small, everywhere, kernel) <= small.compression_bound_)


@pytest.mark.parametrize("name", ["linear", "polynomial", "nested"])
def test_finite_feature_spaces_need_no_more_centres_than_features(name):
    kernel = KERNELS[name]
    model = KernelRidge(0.5, kernel=kernel, compute=Compute(solver="cholesky")).fit(X, targets(X))
    small = model.compress(60)
    assert small.X_fit_.shape[0] <= kernel.feature_dimension(3)
    np.testing.assert_allclose(small.predict(X_NEW), model.predict(X_NEW), atol=1e-6)


def test_more_centres_lose_less():
    model = KernelRidge(1e-3, kernel=RBF(0.4)).fit(X, targets(X))
    bounds = [model.compress(r).compression_bound_ for r in (1, 5, 20, 60)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 1e-5 * bounds[0]


def test_tolerance_stops_early():
    model = KernelRidge(1e-2, kernel=RBF(0.8)).fit(X, targets(X))
    small = model.compress(60, tol=0.05)
    assert small.X_fit_.shape[0] < 60
    assert small.compression_bound_ <= 0.05 * (1 + 1e-6)
    fewer = model.compress(small.X_fit_.shape[0] - 1)
    assert fewer.compression_bound_ > 0.05


def test_one_target_has_one_bound_and_many_have_many():
    one = LSSVMRegressor(0.1).fit(X, targets(X)).compress(5)
    many = LSSVMRegressor(0.1).fit(X, targets(X, 3)).compress(5)
    assert isinstance(one.compression_bound_, float)
    assert many.compression_bound_.shape == (3,)
    assert one.dual_coef_.shape == (5,)
    assert many.dual_coef_.shape == (5, 3)


def test_the_model_itself_stays_whole():
    model = KernelRidge(0.1, kernel="rbf").fit(X, targets(X))
    before = model.predict(X_NEW)
    small = model.compress(4)
    np.testing.assert_array_equal(model.predict(X_NEW), before)
    assert not hasattr(model, "compression_bound_")
    assert small.get_params() == model.get_params()
    assert small.fit(X, targets(X)).X_fit_.shape == X.shape
    assert not hasattr(small, "compression_bound_")


def test_sparse_models_keep_sparse_centres():
    thinned = np.where(X > 0.5, X, 0.0)
    model = KernelRidge(0.1, kernel="rbf").fit(scipy.sparse.csr_array(thinned), targets(X))
    small = model.compress(10)
    assert scipy.sparse.issparse(small.X_fit_)
    assert small.X_fit_.shape == (10, 3)
    error = np.abs(small.predict(thinned) - model.predict(thinned)).max()
    assert error <= small.compression_bound_


def test_decision_values_of_a_classifier_stay_within_the_bound():
    labels = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [0.3, 0.6])]
    model = LSSVMClassifier(0.1, kernel=RBF(0.7)).fit(X, labels)
    small = model.compress(12)
    error = np.abs(small.decision_function(X_NEW) - model.decision_function(X_NEW)).max(axis=0)
    assert np.all(error <= small.compression_bound_)
    assert set(small.predict(X_NEW)) <= set(labels)


@pytest.mark.parametrize(("A", "y"), [(X, np.zeros(60)), (np.zeros((60, 3)), targets(X))])
def test_the_zero_function_compresses_to_one_centre(A, y):
    small = KernelRidge(0.1).fit(A, y).compress(5)
    assert small.X_fit_.shape == (1, 3)
    np.testing.assert_allclose(small.predict(X_NEW), 0.0, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("alpha", [1e-4, 1e-3, 1e-1])
@pytest.mark.filterwarnings("ignore::ridgefold.errors.ConditionWarning")
def test_smooth_kernels_with_small_ridges_are_projected_and_not_torn(alpha, dtype):
    """Their rank ends at rounding error, and coefficients are a thousand times the targets."""
    rng = np.random.default_rng(0)
    A = rng.uniform(-1, 1, (300, 1))
    y = np.sin(5 * A[:, 0]) + 0.1 * rng.standard_normal(300)
    model = KernelRidge(alpha, kernel="rbf", gamma=10.0).fit(A.astype(dtype), y.astype(dtype))
    small = model.compress(50)
    new = np.linspace(-1.2, 1.2, 500)[:, None].astype(dtype)
    error = np.abs(small.predict(new) - model.predict(new)).max()
    assert error <= small.compression_bound_
    predicting = 10 * np.finfo(dtype).eps * np.abs(model.dual_coef_).sum()
    assert error <= 1e-5 * np.abs(y).max() + predicting

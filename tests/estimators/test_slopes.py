"""`predict_gradient`: slopes of fitted models are those of differences of their predictions."""

from __future__ import annotations

import numpy as np
import pytest

import ridgefold
from cases import rows, targets
from ridgefold import (
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMRegressor,
    LSSVMRegressorCV,
    MetricLearning,
)
from ridgefold.errors import InvalidInputError, NoSlopeError
from ridgefold.kernels import (
    RBF,
    Categorical,
    Columns,
    Laplacian,
    Linear,
    Matern,
    Rotated,
    Warped,
)
from ridgefold.records import Quantile, SignedLog, Standardise

X = rows(60, 3, positive=True)
NEW = rows(15, 3, seed=7, positive=True)
TURNED = [[1.0, -0.5, 0.2], [0.3, 2.0, 0.0]]
WARPS = (
    Standardise(0.4, 0.3),
    SignedLog(0.5, 0.1, 2.0),
    Quantile((0.0, 0.3, 1.0), (-2.0, 0.0, 2.0)),
)


def by_differences(predict, new, step=1e-6):
    slopes = [(predict(new + step * e) - predict(new - step * e)) / (2 * step) for e in np.eye(3)]
    return np.stack(slopes, axis=1)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    return True


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.5),
        Matern((0.5, 1.0, 2.0), nu=0.5),
        Laplacian(0.7),
        2 * Matern(0.6, nu=2.5) * Linear() + 1,
        Columns(RBF(0.5), [2, 0]),
        Warped(RBF(1.0), WARPS),
        Warped(Rotated(Matern((0.5, 2.0), nu=2.5), TURNED), WARPS),
        Rotated(Matern((0.5, 2.0, 1.0), nu=0.5), [*TURNED, [1.0, 0.0, 1.0]]),
    ],
    ids=str,
)
def test_slopes_are_those_of_differences(kernel, fit_intercept):
    model = KernelRidge(0.01, kernel=kernel, fit_intercept=fit_intercept).fit(X, targets(X))
    assert close(model.predict_gradient(NEW), by_differences(model.predict, NEW))


@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
@pytest.mark.filterwarnings("ignore::ridgefold.errors.ConditionWarning")
@pytest.mark.parametrize("alpha", [1e-12, 1e-6, 1.0])
def test_models_solved_in_the_primal_have_slopes_at_every_ridge(kernel, alpha):
    X = rows(300, 3, positive=True)
    model = LSSVMRegressor(alpha, kernel=kernel, degree=2, gamma=1.0).fit(X, targets(X))
    assert model.plan_.method == "primal"
    np.testing.assert_allclose(
        model.predict_gradient(NEW), by_differences(model.predict, NEW), atol=1e-5
    )


def test_several_targets_have_slopes_each():
    model = KernelRidge([0.1, 0.2], kernel=RBF(0.5)).fit(X, targets(X, 2))
    found = model.predict_gradient(NEW)
    assert found.shape == (15, 3, 2)
    assert close(found, by_differences(model.predict, NEW))


def test_learned_metrics_have_slopes_in_the_units_of_the_columns():
    given = X * [1.0, 100.0, 0.01]
    model = LSSVMRegressorCV(
        metric=MetricLearning(transforms="standardise"), alpha=[0.01, 0.1]
    ).fit(given, targets(X))
    assert isinstance(model.kernel_, (Warped, Columns))
    found = model.predict_gradient(NEW * [1.0, 100.0, 0.01])
    expected = by_differences(lambda rows: model.predict(rows * [1.0, 100.0, 0.01]), NEW)
    assert close(found * [1.0, 100.0, 0.01], expected)


def test_a_stack_has_the_weighted_sum_of_its_slopes():
    model = KernelRidgeCV(kernel=["rbf", "laplacian", Matern(0.5)], alpha=[0.01, 0.1])
    model.set_params(search__stack=True)
    model.fit(X, targets(X))
    assert len(model.stack_.members) > 1
    assert close(model.predict_gradient(NEW), by_differences(model.predict, NEW))


def test_classifiers_have_slopes_of_decision_values():
    model = LSSVMClassifier(0.1, gamma=1.0).fit(X, X.sum(axis=1) > 1.5)
    assert close(model.predict_gradient(NEW), by_differences(model.decision_function, NEW))


def test_float32_models_give_float32_slopes():
    model = KernelRidge(0.1, kernel=RBF(0.5)).fit(X.astype(np.float32), targets(X))
    exact = KernelRidge(0.1, kernel=RBF(0.5)).fit(X, targets(X))
    found = model.predict_gradient(NEW.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact.predict_gradient(NEW), atol=1e-3)


def test_a_model_from_a_file_has_the_same_slopes(tmp_path):
    model = LSSVMRegressor(0.1, kernel=RBF(0.5)).fit(X, targets(X))
    model.save(tmp_path / "m")
    loaded = ridgefold.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_gradient(NEW), model.predict_gradient(NEW))


def test_compressed_models_have_slopes_of_their_own():
    model = KernelRidge(0.1, kernel=RBF(0.5)).fit(X, targets(X)).compress(20)
    assert close(model.predict_gradient(NEW), by_differences(model.predict, NEW))


def test_columns_of_codes_have_no_slope():
    codes = np.column_stack([X[:, :2], np.arange(60) % 3])
    kernel = Columns(RBF(0.5), [0, 1]) * Columns(Categorical(0.5), [2])
    model = KernelRidge(0.1, kernel=kernel).fit(codes, targets(X))
    found = model.predict_gradient(codes[:5])
    assert np.isnan(found[:, 2]).all()
    assert np.isfinite(found[:, :2]).all()
    only = KernelRidge(0.1, kernel=Categorical(0.5)).fit(codes, targets(X))
    with pytest.raises(NoSlopeError, match="codes"):
        only.predict_gradient(codes)


@pytest.mark.parametrize("kernel", ["precomputed", lambda x, y: float(x @ y)])
def test_a_kernel_without_columns_or_slopes_is_refused_by_name(kernel):
    given = X @ X.T if kernel == "precomputed" else X
    model = KernelRidge(0.1, kernel=kernel).fit(given, targets(X))
    with pytest.raises(NoSlopeError):
        model.predict_gradient(given)


def test_rows_of_other_columns_are_refused():
    with pytest.raises(InvalidInputError, match="features"):
        KernelRidge().fit(X, targets(X)).predict_gradient(X[:, :2])

"""scikit-learn's own checks, on every estimator; one of them cannot pass, and is named."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ridgefold import Compute, KernelRidge, LSSVMClassifier, LSSVMRegressor
from ridgefold.kernels import RBF

ESTIMATORS = [
    KernelRidge(),
    KernelRidge(kernel="rbf", fit_intercept=True),
    KernelRidge(kernel="polynomial", compute=Compute(solver="eigendecomposition")),
    KernelRidge(kernel="precomputed"),
    KernelRidge(kernel="sobolev"),
    KernelRidge(kernel="chi2"),
    KernelRidge(compute=Compute(solver="conjugate_gradient")),
    LSSVMRegressor(),
    LSSVMRegressor(kernel="laplacian", compute=Compute(solver="eigendecomposition")),
    LSSVMRegressor(kernel=0.5 * RBF(2.0) + 1),
    LSSVMClassifier(),
    LSSVMClassifier(kernel="linear", class_weight="balanced"),
    LSSVMClassifier(kernel="precomputed"),
]


def not_to_be_passed(estimator):
    """One check hands random numbers in place of a kernel matrix, which is symmetric."""
    if isinstance(estimator, LSSVMClassifier) and estimator.kernel == "precomputed":
        return {"check_classifiers_one_label_sample_weights": "its matrix is not symmetric"}
    return {}


# The checks fit what is ill-conditioned on purpose; that the library says so is no failure.
@pytest.mark.filterwarnings("ignore::ridgefold.errors.ConditionWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=not_to_be_passed)
def test_estimator_keeps_the_conventions(estimator, check):
    check(estimator)

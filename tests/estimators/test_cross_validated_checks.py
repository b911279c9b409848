"""scikit-learn's own checks on the estimators that choose their parameters."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ridgefold import KernelRidgeCV, LSSVMClassifierCV, LSSVMRegressorCV, Search

ESTIMATORS = [
    KernelRidgeCV(),
    KernelRidgeCV([0.1, 1.0], kernel="linear", cv="loo"),
    KernelRidgeCV(
        [0.1, 1.0], kernel=["rbf", "linear"], gamma=0.5, cv=3, search=Search(alpha_per_target=True)
    ),
    KernelRidgeCV([0.1, 1.0], kernel="precomputed", cv=3),
    LSSVMRegressorCV([0.1, 1.0], cv=3),
    LSSVMClassifierCV([0.1, 1.0], cv=2),
    LSSVMClassifierCV([0.1, 1.0], gamma=0.5, cv=2, class_weight="balanced"),
]


# The checks fit what is ill-conditioned on purpose; that the library says so is no failure.
@pytest.mark.filterwarnings("default::ridgefold.errors.ConditionWarning")
@parametrize_with_checks(ESTIMATORS)
def test_estimator_keeps_the_conventions(estimator, check):
    check(estimator)

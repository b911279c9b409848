"""scikit-learn's own checks on the partitioned estimators."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ridgefold import PartitionedKernelRidge, PartitionedLSSVMClassifier

ESTIMATORS = [
    PartitionedKernelRidge(),
    PartitionedKernelRidge("kmeans", 3, "route", kernel="laplacian"),
    PartitionedKernelRidge("random", 3, "average"),
    PartitionedKernelRidge(n_partitions=3, refine="exact", alpha=1.0),
    PartitionedLSSVMClassifier(),
    PartitionedLSSVMClassifier("hyperplanes", 2, weighted_scores=True),
]


@pytest.mark.filterwarnings("ignore::ridgefold.errors.ConditionWarning")
@parametrize_with_checks(ESTIMATORS)
def test_estimator_keeps_the_conventions(estimator, check):
    check(estimator)

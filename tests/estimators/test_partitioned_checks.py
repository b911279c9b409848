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
BY_ROWS = "cells are cut, and rows are left out, by rows: a weight of 2 is not two of them there"


@pytest.mark.filterwarnings("ignore::ridgefold.errors.ConditionWarning")
@parametrize_with_checks(
    ESTIMATORS,
    expected_failed_checks=lambda _: {"check_sample_weight_equivalence_on_dense_data": BY_ROWS},
)
def test_estimator_keeps_the_conventions(estimator, check):
    check(estimator)

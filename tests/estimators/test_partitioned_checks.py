"""scikit-learn's own checks on the partitioned estimators."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ridgefold import CellOptions, PartitionedLSSVMClassifier, PartitionedLSSVMRegressor

ESTIMATORS = [
    PartitionedLSSVMRegressor(),
    PartitionedLSSVMRegressor("kmeans", 3, "route", kernel="laplacian"),
    PartitionedLSSVMRegressor("random", 3, "average"),
    PartitionedLSSVMRegressor(n_partitions=3, alpha=1.0, cells=CellOptions(refine="exact")),
    PartitionedLSSVMClassifier(),
    PartitionedLSSVMClassifier("hyperplanes", 2, cells=CellOptions(weighted_scores=True)),
]


@pytest.mark.filterwarnings("ignore::ridgefold.errors.ConditionWarning")
@parametrize_with_checks(ESTIMATORS)
def test_estimator_keeps_the_conventions(estimator, check):
    check(estimator)

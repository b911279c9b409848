"""scikit-learn's own checks on the estimators that choose everything."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ridgefold import RidgefoldClassifier, RidgefoldRegressor


class HurriedRegressor(RidgefoldRegressor):
    """For whom time stands still: what is planned depends on predictions alone."""

    _clock = staticmethod(lambda: 0.0)


class HurriedClassifier(RidgefoldClassifier):
    _clock = staticmethod(lambda: 0.0)


@parametrize_with_checks([HurriedRegressor(time_budget=0.5), HurriedClassifier(time_budget=0.5)])
def test_estimator_keeps_the_conventions(estimator, check):
    check(estimator)


@pytest.mark.full
@parametrize_with_checks(
    [RidgefoldRegressor(time_budget=600.0), RidgefoldClassifier(time_budget=600.0)]
)
def test_estimator_with_time_for_everything_keeps_the_conventions(estimator, check):
    check(estimator)

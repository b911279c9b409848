"""Weights that differ by many decades: no method loses digits without saying so."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold

from ridgefold import KernelRidgeCV, LSSVMRegressorCV, Search
from ridgefold.errors import InvalidInputError

N = 120
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, 2))
Y = np.sin(2 * X[:, 0]) + 0.2 * RNG.standard_normal(N)
FORGETTING = np.exp(-0.3 * np.arange(N))
"""Weights that fall exponentially with the age of a row."""
ON_ONE_ROW = np.where(np.arange(N) == 7, 1.0, 1e-12)
# Rows of little weight are most of the rows, and count as much as the others here.
SETTINGS = {"gamma": [0.3, 1.0]}
ALPHAS = [1e-6, 1e-3, 1e-1]


def scores(cls, weights, cv, method):
    model = cls(
        ALPHAS, cv=cv, search=Search(method=method, race="full", weighted_scores=False), **SETTINGS
    ).fit(X, Y, weights)
    return model.cv_results_["mean_test_score"]


@pytest.mark.parametrize("cls", [KernelRidgeCV, LSSVMRegressorCV])
@pytest.mark.parametrize("method", ["auto", "banded", "eigendecomposition", "inverse_blocks"])
def test_leave_one_out_has_the_scores_of_refits(cls, method):
    refits = scores(cls, FORGETTING, "loo", "refit")
    np.testing.assert_allclose(scores(cls, FORGETTING, "loo", method), refits, rtol=1e-8)


@pytest.mark.parametrize("method", ["auto", "banded", "inverse_blocks", "block_recursive"])
@pytest.mark.parametrize("cv", [KFold(4), KFold(4, shuffle=True, random_state=0)], ids=str)
def test_folds_have_the_scores_of_refits(cv, method):
    refits = scores(KernelRidgeCV, FORGETTING, cv, "refit")
    np.testing.assert_allclose(scores(KernelRidgeCV, FORGETTING, cv, method), refits, rtol=1e-8)


@pytest.mark.parametrize("method", ["banded", "block_recursive"])
@pytest.mark.parametrize("cv", ["loo", KFold(12)], ids=str)
def test_a_row_with_nearly_all_the_weight_is_held_out_as_by_refits(cv, method):
    refits = scores(LSSVMRegressorCV, ON_ONE_ROW, cv, "refit")
    np.testing.assert_allclose(scores(LSSVMRegressorCV, ON_ONE_ROW, cv, method), refits, rtol=1e-8)


def test_a_method_that_would_lose_digits_says_why_it_is_not_used():
    model = LSSVMRegressorCV(ALPHAS, cv=4, search=Search(method="eigendecomposition"))
    with pytest.raises(
        InvalidInputError, match=r'the largest weight is 3\.2e\+15 times.*method="auto"'
    ):
        model.fit(X, Y, FORGETTING)
    model = LSSVMRegressorCV(ALPHAS, cv=4, search=Search(method="inverse_blocks"))
    with pytest.raises(
        InvalidInputError, match=r"a fold is trained on rows with a share of 9\.0e-11"
    ):
        model.fit(X, Y, ON_ONE_ROW)
    rejected = KernelRidgeCV(ALPHAS, cv=4).fit(X, Y, FORGETTING).cv_plan_.rejected
    reasons = {each.method: each.reason for each in rejected}
    assert "loses digits of the predictions of rows with little" in reasons["eigendecomposition"]

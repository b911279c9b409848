"""`scoring="marginal_likelihood"`: kernel and ridge by the likelihood of the targets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF as SklearnRBF
from sklearn.gaussian_process.kernels import ConstantKernel

import ridgefold
from cases import rows, targets
from ridgefold import KernelRidge, KernelRidgeCV, LSSVMClassifierCV, LSSVMRegressorCV, Search
from ridgefold.errors import BudgetError, InvalidInputError
from ridgefold.kernels import RBF

X = rows(60)
Y = targets(X)
ALPHAS, WIDTHS = [0.001, 0.01, 0.1, 1.0], [0.5, 1.0, 2.0, 4.0]
BY_LIKELIHOOD = {"scoring": "marginal_likelihood", "cv": 4}


def fitted(y=Y, weights=None, **options):
    kernels = [RBF(width) for width in WIDTHS]
    model = KernelRidgeCV(ALPHAS, kernel=kernels, **{**BY_LIKELIHOOD, **options})
    return model.fit(X, y, weights)


@pytest.mark.parametrize("weights", [None, np.arange(60) % 3])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_choice_is_the_most_likely_pair(fit_intercept, weights):
    model = fitted(weights=weights, fit_intercept=fit_intercept)
    expected = {
        (alpha, width): KernelRidge(alpha, kernel=RBF(width), fit_intercept=fit_intercept)
        .fit(X, Y, weights)
        .log_marginal_likelihood()
        for alpha in ALPHAS
        for width in WIDTHS
    }
    best = max(expected, key=expected.get)
    assert (model.alpha_, model.kernel_) == (best[0], RBF(best[1]))
    assert model.best_score_ == pytest.approx(expected[best])
    for params, score in zip(
        model.cv_results_["params"], model.cv_results_["mean_test_score"], strict=True
    ):
        key = (params["alpha"], params["kernel"].length_scale)
        assert score == pytest.approx(expected[key], rel=1e-8, abs=1e-6)


def test_without_a_bias_the_likelihood_is_scikit_learns():
    model = fitted()
    variance = model.prior_variance_
    process = GaussianProcessRegressor(
        ConstantKernel(variance) * SklearnRBF(model.kernel_.length_scale),
        alpha=variance * model.alpha_,
        optimizer=None,
    ).fit(X, Y)
    assert model.best_score_ == pytest.approx(process.log_marginal_likelihood())


def test_held_out_predictions_and_intervals_are_those_of_the_choice():
    model = fitted()
    plain = KernelRidgeCV([model.alpha_], kernel=model.kernel_, cv=4).fit(X, Y)
    np.testing.assert_allclose(model.held_out_predictions_, plain.held_out_predictions_, atol=1e-10)
    for ours, theirs in zip(model.predict_interval(X), plain.predict_interval(X), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_widths_and_ridges_from_the_data_go_on_past_the_ends_of_the_grid():
    model = LSSVMRegressorCV(**BY_LIKELIHOOD).fit(X, Y)
    scores = model.cv_results_["mean_test_score"]
    assert model.best_score_ == np.nanmax(scores)
    near = KernelRidge(model.alpha_, kernel=model.kernel_, fit_intercept=True).fit(X, Y)
    assert near.log_marginal_likelihood() == pytest.approx(model.best_score_)
    assert "choosing kernel and alpha" in str(model.explain())


def test_targets_may_have_ridges_of_their_own():
    both = np.column_stack([Y, np.random.default_rng(0).standard_normal(60)])
    model = fitted(both, search=Search(alpha_per_target=True))
    assert model.alpha_[1] > model.alpha_[0]
    assert model.best_score_ == pytest.approx(model.log_marginal_likelihood() / 2)


def test_a_model_from_a_file_knows_what_it_was_chosen_by(tmp_path):
    model = fitted()
    model.save(tmp_path / "m")
    again = ridgefold.load(tmp_path / "m")
    assert again.scoring == "marginal_likelihood"
    assert again.best_score_ == model.best_score_
    ridgefold.write_report(again, tmp_path / "r.html")


def test_what_goes_by_folds_or_classes_is_refused():
    with pytest.raises(InvalidInputError, match="labels are no normal"):
        LSSVMClassifierCV(scoring="marginal_likelihood").fit(X, Y > 0)
    with pytest.raises(InvalidInputError, match="one_standard_error"):
        fitted(search=Search(one_standard_error=True))
    model = KernelRidgeCV(**BY_LIKELIHOOD)
    model.set_params(search__stack=True)
    with pytest.raises(InvalidInputError, match="stack"):
        model.fit(X, Y)
    with pytest.raises(BudgetError, match="marginal_likelihood"):
        fitted(memory_budget=60_000)

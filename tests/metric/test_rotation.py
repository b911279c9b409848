"""Directions that mix columns are found where functions change along them, and only there."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ridgefold import LSSVMClassifierCV, LSSVMRegressorCV, MetricLearning, Search, load
from ridgefold.errors import InvalidInputError
from ridgefold.kernels import Columns, Rotated, Warped
from ridgefold.metric import candidates, learn_metric
from ridgefold.report import write_report
from ridgefold.report.kernel_description import described_kernel


def of_sums(n: int = 300, d: int = 4, seed: int = 0):
    """A function of one sum and one difference of columns, neither seen in a single column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(1.5 * (X[:, 0] + X[:, 1])) + np.tanh(X[:, 2] - X[:, 0])
    return X, y + 0.05 * rng.normal(size=n)


def of_columns(n: int = 300, d: int = 4, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + 0.05 * rng.normal(size=n)


def is_rotated(kernel) -> bool:
    while isinstance(kernel, (Columns, Warped)):
        kernel = kernel.kernel
    return isinstance(kernel, Rotated)


@pytest.mark.parametrize("preprocess", [None, "standardise", "auto"])
def test_functions_of_sums_of_columns_are_predicted_better_along_directions(preprocess):
    X, y = of_sums()
    straight = learn_metric(X, y, "auto", preprocess=preprocess)
    rotated = learn_metric(X, y, "auto", preprocess=preprocess, rotate=True)
    assert is_rotated(rotated.kernel)
    assert not is_rotated(straight.kernel)
    assert rotated.outside_error < 0.7 * straight.outside_error


@pytest.mark.parametrize("seed", range(3))
def test_functions_of_single_columns_keep_their_scales(seed):
    X, y = of_columns(seed=seed)
    straight, asked = (learn_metric(X, y, "auto", rotate=each) for each in (False, True))
    assert asked.kernel == straight.kernel


def test_noise_has_no_directions():
    rng = np.random.default_rng(0)
    for seed in range(3):
        metric = learn_metric(
            rng.normal(size=(250, 5)), rng.normal(size=250), "auto", rotate=True, random_state=seed
        )
        assert not is_rotated(metric.kernel)


def test_the_kernel_of_sums_and_the_manhattan_family_have_no_directions_to_learn():
    X, y = of_sums()
    assert not is_rotated(learn_metric(X, y, "laplacian", rotate=True).kernel)
    assert not is_rotated(learn_metric(X, y, "rbf", rotate=True, learn_scales=False).kernel)
    few = learn_metric(X[:100], y[:100], "rbf", rotate=True)
    assert not is_rotated(few.kernel)


def test_scales_and_shares_are_those_of_columns_while_others_stay():
    X, y = of_sums()
    units = np.asarray([1.0, 100.0, 0.01, 1.0])
    metric = learn_metric(X * units, y, "rbf", rotate=True)
    assert is_rotated(metric.kernel)
    assert not metric.isotropic
    K = metric.kernel
    for j, scale in enumerate(metric.length_scales):
        pair = np.zeros((2, 4))
        pair[1, j] = scale
        assert K(pair)[0, 1] == pytest.approx(np.exp(-0.5), rel=1e-3)
    assert metric.relevance.sum() == pytest.approx(1.0)
    assert metric.relevance[3] < 0.05


def test_candidates_on_directions_stand_beside_those_on_columns():
    X, y = of_sums()
    made = candidates(X, y, ["matern12", "rbf", "laplacian"], rotate=True)
    assert {each.origin for each in made} >= {"rotated", "descended", "isotropic"}
    assert made[0].origin == "rotated"
    assert all(is_rotated(each.kernel) == (each.origin == "rotated") for each in made)


def test_rows_that_repeat_or_weigh_and_other_libraries_find_the_same_directions():
    X, y = of_sums(200)
    plain = learn_metric(X, y, "rbf", rotate=True)
    on_torch = learn_metric(torch.from_numpy(X), torch.from_numpy(y), "rbf", rotate=True)
    twice = np.repeat(np.arange(200), 2)
    repeated = learn_metric(X[twice], y[twice], "rbf", rotate=True, folds=5)
    weighted = learn_metric(X, y, "rbf", rotate=True, folds=5, weights=np.full(200, 2.0))
    assert all(is_rotated(each.kernel) for each in (plain, repeated, weighted))
    np.testing.assert_allclose(on_torch.kernel(X), plain.kernel(X), atol=0.02)
    np.testing.assert_allclose(repeated.kernel(X), weighted.kernel(X), atol=0.05)


@pytest.fixture(scope="module", params=[False, True], ids=["one kernel", "stack"])
def fitted(request):
    X, y = of_sums()
    return LSSVMRegressorCV(
        kernel="auto",
        metric=MetricLearning(transforms="standardise"),
        search=Search(stack=request.param),
    ).fit(X, y)


def parts(model):
    return [each.kernel for each in model.stack_.members] if model.search.stack else [model.kernel_]


def test_models_learn_directions_predict_better_and_say_so(fitted):
    assert any(map(is_rotated, parts(fitted)))
    X, y = of_sums(1000, seed=1)
    straight = LSSVMRegressorCV(
        kernel="auto",
        metric=MetricLearning(transforms="standardise", rotate=False),
        search=fitted.search,
    ).fit(*of_sums())
    errors = [np.mean((each.predict(X) - y) ** 2) for each in (fitted, straight)]
    assert errors[0] < 0.7 * errors[1]
    assert "along 4 directions" in described_kernel(next(filter(is_rotated, parts(fitted))))


def test_the_report_says_what_the_scales_are_of(fitted, tmp_path):
    write_report(fitted, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert ("scales of 4 directions that mix columns" in page) is not fitted.search.stack


def test_slopes_of_models_with_directions_are_those_of_differences(fitted):
    X, step = of_sums(20, seed=2)[0], 1e-5
    expected = [
        (fitted.predict(X + step * e) - fitted.predict(X - step * e)) / (2 * step)
        for e in np.eye(4)
    ]
    np.testing.assert_allclose(fitted.predict_gradient(X), np.stack(expected, 1), atol=1e-5)


def test_files_and_intervals_hold_the_directions(fitted, tmp_path):
    X = of_sums(20, seed=2)[0]
    fitted.save(tmp_path / "model.ridgefold")
    again = load(tmp_path / "model.ridgefold")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.predict_interval(X, 0.9)[0] == pytest.approx(fitted.predict_interval(X, 0.9)[0])
    if not fitted.search.stack:
        np.testing.assert_array_equal(again.length_scales_, fitted.length_scales_)
        assert again.metric_.kernel == fitted.metric_.kernel


def test_importances_are_those_of_columns(fitted):
    found = fitted.held_out_importances(n_repeats=1, max_rows=100).rises
    assert np.all(found[:3] > 10 * abs(found[3]))


def test_classes_and_choice_by_the_likelihood_keep_to_columns():
    X, y = of_sums(200)
    classes = LSSVMClassifierCV(kernel="rbf", metric="learned").fit(X, y > 0)
    assert not is_rotated(classes.kernel_)
    likely = LSSVMRegressorCV(kernel="rbf", metric="learned", scoring="marginal_likelihood").fit(
        X, y
    )
    assert not is_rotated(likely.kernel_)


def test_what_is_no_yes_or_no_is_refused():
    with pytest.raises(InvalidInputError, match=r"metric\.rotate must be"):
        LSSVMRegressorCV(kernel="rbf", metric=MetricLearning(rotate="yes")).fit(*of_sums(50))

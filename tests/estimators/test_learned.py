"""Estimators that learn their metric, their family and transforms of columns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.utils.estimator_checks import parametrize_with_checks

from ridgefold import (
    KernelRidgeCV,
    LSSVMClassifierCV,
    LSSVMRegressorCV,
    MetricLearning,
    Search,
    load,
)
from ridgefold.errors import InvalidInputError, UnsupportedInputError
from ridgefold.kernels import Columns, Laplacian, Matern, Warped


def rows_and_targets(n: int = 240, d: int = 8):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 3.0
    y = np.sin(2 * X[:, 1]) * (X[:, 2] - 3.0) + 10.0
    return X, y + 0.05 * rng.normal(size=n)


def test_learned_scales_beat_one_scale_and_name_the_columns():
    X, y = rows_and_targets(400)
    plain = LSSVMRegressorCV().fit(X[:240], y[:240])
    learned = LSSVMRegressorCV(metric="learned").fit(X[:240], y[:240])
    assert learned.score(X[240:], y[240:]) > 0.95
    assert plain.score(X[240:], y[240:]) < 0.9
    assert set(np.argsort(-learned.column_shares_)[:2]) == {1, 2}
    assert learned.column_shares_.sum() == pytest.approx(1.0)
    kept = np.isfinite(learned.length_scales_)
    assert kept[[1, 2]].all()
    assert learned.length_scales_[kept] == pytest.approx(
        getattr(learned.kernel_, "kernel", learned.kernel_).length_scale
    )
    assert not learned.metric_.isotropic
    assert learned.best_params_["kernel"] == "rbf"


def noisy_columns(n: int = 500):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    return X, np.sin(2 * X[:, 1]) + X[:, 2] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("preprocess", [None, "standardise"])
def test_columns_that_do_not_matter_are_left_out_of_the_kernel_and_the_plan(preprocess, tmp_path):
    X, y = noisy_columns()
    model = LSSVMRegressorCV(kernel="matern32", metric=MetricLearning(transforms=preprocess))
    model.fit(X, y)
    assert isinstance(model.kernel_, Columns)
    kept = list(model.kernel_.columns)
    assert {1, 2} <= set(kept)
    assert np.all(np.isfinite(model.length_scales_[kept]))
    assert np.all(np.isinf(np.delete(model.length_scales_, kept)))
    assert np.all(np.delete(model.column_shares_, kept) == 0.0)
    assert f"500 rows, {len(kept)} of 20 columns" in str(model.explain())
    moved = X.copy()
    moved[:, np.setdiff1d(np.arange(20), kept)] = 1e3
    np.testing.assert_allclose(model.predict(moved), model.predict(X), rtol=1e-12)
    model.save(tmp_path / "m.ridgefold")
    loaded = load(tmp_path / "m.ridgefold")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.length_scales_, model.length_scales_)


def test_one_scale_for_the_columns_of_a_category(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 300)
    X = np.column_stack([rng.normal(size=(300, 2)), codes[:, None] == np.arange(4)])
    labels = np.where(X[:, 0] * (codes - 1.5) > 0, "a", "b")
    model = LSSVMClassifierCV(
        kernel="laplacian", metric=MetricLearning(groups=[[2, 3, 4, 5]], transforms="auto")
    ).fit(X, labels)
    assert len(set(model.length_scales_[2:])) == 1
    assert model.score(X, labels) > 0.9
    model.save(tmp_path / "m.ridgefold")
    loaded = load(tmp_path / "m.ridgefold")
    assert loaded.metric.groups == [[2, 3, 4, 5]]
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    tensor = LSSVMClassifierCV(kernel="laplacian", metric=MetricLearning(groups=[[2, 3, 4, 5]]))
    tensor.fit(torch.from_numpy(X), labels)
    assert len(set(np.asarray(tensor.length_scales_)[2:])) == 1


def test_held_out_predictions_are_those_of_the_learned_kernel():
    X, y = rows_and_targets(90, 3)
    model = LSSVMRegressorCV(cv=KFold(3), metric="learned").fit(X, y)
    fixed = LSSVMRegressorCV([model.alpha_], kernel=model.kernel_, cv=KFold(3)).fit(X, y)
    np.testing.assert_allclose(model.held_out_predictions_, fixed.held_out_predictions_)
    np.testing.assert_allclose(model.predict(X), fixed.predict(X))


def test_automatic_family_finds_the_rough_one():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = np.sign(X[:, 0]) + np.abs(np.round(3 * X[:, 1])) + 0.02 * rng.normal(size=300)
    model = LSSVMRegressorCV(kernel="auto", cv=4, metric="learned").fit(X, y)
    assert model.metric_.family in ("laplacian", "matern12")
    assert {"laplacian", "matern12", "matern32", "rbf"} <= set(model.metric_.families)
    errors = list(model.metric_.families.values())
    assert errors[0] == min(errors)
    isotropic = LSSVMRegressorCV(
        kernel=["rbf", "laplacian"], metric=MetricLearning(scales=False, transforms="standardise")
    ).fit(X, y)
    assert isotropic.metric_.isotropic
    assert isotropic.metric_.family == "laplacian"


def test_transforms_straighten_heavy_tails():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(500, 2))
    X = np.column_stack([np.exp(3 * Z[:, 0]), Z[:, 1]])
    y = np.sin(2 * Z[:, 0]) + 0.3 * Z[:, 1] + 0.05 * rng.normal(size=500)
    scores = {
        preprocess: KernelRidgeCV(fit_intercept=True, metric=MetricLearning(transforms=preprocess))
        .fit(X[:250], y[:250])
        .score(X[250:], y[250:])
        for preprocess in (None, "auto", "quantile", "signed_log", "standardise")
    }
    assert scores["auto"] > 0.95
    assert scores["standardise"] < 0.9
    assert scores[None] < 0.9
    assert min(scores["quantile"], scores["signed_log"]) > scores["standardise"]


def test_transforms_are_a_part_of_the_kernel():
    X, y = rows_and_targets(100, 5)
    model = LSSVMRegressorCV(metric=MetricLearning(transforms="auto")).fit(X, y)
    warped = model.kernel_.kernel if isinstance(model.kernel_, Columns) else model.kernel_
    assert isinstance(warped, Warped)
    assert len(model.metric_.transforms) == 5
    small = model.compress(100)
    np.testing.assert_allclose(small.predict(X), model.predict(X), atol=1e-6)


def test_what_was_learned_is_kept_in_model_files(tmp_path):
    X, y = rows_and_targets(80, 4)
    model = LSSVMRegressorCV(metric=MetricLearning(transforms="auto")).fit(X, y)
    model.save(tmp_path / "m.ridgefold")
    loaded = load(tmp_path / "m.ridgefold")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.length_scales_, model.length_scales_)
    np.testing.assert_array_equal(loaded.column_shares_, model.column_shares_)
    assert loaded.metric_.history == model.metric_.history
    assert loaded.kernel_ == model.kernel_


def test_classes_are_learned_from_their_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    labels = np.asarray(["a", "b", "c"])[np.digitize(X[:, 2] * X[:, 3], [-0.3, 0.3])]
    model = LSSVMClassifierCV(kernel="matern12", metric="learned").fit(X[:250], labels[:250])
    assert model.score(X[250:], labels[250:]) > 0.75
    assert set(np.argsort(-model.column_shares_)[:2]) == {2, 3}
    assert model.best_score_ > 0.75


def test_several_targets_weights_and_torch_agree_with_numpy():
    X, y = rows_and_targets(100, 5)
    Y, weights = np.column_stack([y, X[:, 0] ** 2]), np.linspace(0.5, 2.0, 100)
    settings = {"metric": "learned", "metric__transforms": "quantile", "kernel": Matern(nu=1.5)}
    model = KernelRidgeCV().set_params(**settings).fit(X, Y, sample_weight=weights)
    other = (
        KernelRidgeCV()
        .set_params(**settings)
        .fit(torch.from_numpy(X), torch.from_numpy(Y), sample_weight=torch.from_numpy(weights))
    )
    found = other.predict(torch.from_numpy(X))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), model.predict(X), rtol=0, atol=1e-2)
    np.testing.assert_allclose(other.length_scales_, model.length_scales_, rtol=1e-2)


def test_the_same_state_gives_the_same_model():
    X, y = rows_and_targets(150, 4)
    first, second, other = (
        LSSVMRegressorCV(random_state=state, metric=MetricLearning(rows=80)).fit(X, y)
        for state in (1, 1, 2)
    )
    assert first.kernel_ == second.kernel_
    assert first.kernel_ != other.kernel_
    assert first.metric_.rows == 80


@pytest.mark.parametrize("cv", ["loo", TimeSeriesSplit(3), KFold(4, shuffle=True, random_state=0)])
def test_any_folds_will_do(cv):
    X, y = rows_and_targets(100, 4)
    model = LSSVMRegressorCV(
        cv=cv, scoring="neg_mean_absolute_error" if cv != "loo" else None, metric="learned"
    ).fit(X, y)
    assert model.score(X, y) > 0.9


def test_nothing_learned_is_left_after_a_plain_fit():
    X, y = rows_and_targets(80, 3)
    model = LSSVMRegressorCV(metric="learned").fit(X, y)
    model.set_params(metric=None).fit(X, y)
    assert not hasattr(model, "metric_")
    assert not hasattr(model, "length_scales_")


def test_bad_settings_are_named():
    X, y = rows_and_targets(60, 3)
    for settings, message in (
        ({"metric__scales": "yes"}, "metric.scales must be True or False"),
        ({"metric": "learned", "gamma": 0.1}, "leave gamma out"),
        (
            {"kernel": "auto", "kernel_params": {"length_scale": [1.0, 2.0]}},
            "leave length_scale out",
        ),
        ({"metric": "learned", "kernel": "linear"}, "has no length scales to learn"),
        ({"metric": "learned", "kernel": "gaussian"}, "family must be one of"),
        ({"metric__scales": False, "metric__transforms": "log"}, "metric.transforms must be None"),
        ({"metric": "learned", "metric__rows": 1}, "metric.rows must be"),
        ({"metric": "learned", "random_state": "x"}, "random_state must be"),
        ({"metric": "learned", "kernel": []}, "empty list"),
        ({"metric": "scales"}, 'metric must be None, "learned" or an object such as'),
        ({"metric": "learned", "metric__groups": [[0, 9]]}, "from 0 to 2, got 9"),
        ({"metric__scales": False, "metric__groups": [[0, 1]]}, "needs metric.scales=True"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            LSSVMRegressorCV().set_params(**settings).fit(X, y)
    with pytest.raises(InvalidInputError, match="family must be one of"):
        LSSVMRegressorCV(kernel="precomputed", metric="learned").fit(np.eye(60), y)
    with pytest.raises(UnsupportedInputError, match="sparse X"):
        LSSVMRegressorCV(metric="learned").fit(scipy.sparse.csr_array(X), y)


# The checks fit what is ill-conditioned on purpose; that the library says so is no failure.
@pytest.mark.filterwarnings("default::ridgefold.errors.ConditionWarning")
@parametrize_with_checks([KernelRidgeCV([0.1, 1.0], cv=3, metric=MetricLearning(rows=60))])
def test_estimator_keeps_the_conventions(estimator, check):
    check(estimator)


OTHERS = [
    LSSVMRegressorCV(
        [0.1, 1.0], kernel=Laplacian(), cv=3, metric=MetricLearning(transforms="auto")
    ),
    LSSVMClassifierCV([0.1, 1.0], kernel="auto", cv=2, metric=MetricLearning(rows=60)),
]


@pytest.mark.full
@pytest.mark.filterwarnings("default::ridgefold.errors.ConditionWarning")
@parametrize_with_checks(OTHERS)
def test_other_estimators_keep_the_conventions(estimator, check):
    check(estimator)


def interactions(n):
    """Two of six columns matter."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    return X, np.tanh(X[:, 0] * X[:, 2]) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("stack", [False, True])
def test_with_next_to_no_time_scales_come_from_slopes_alone(stack):
    X, y = interactions(200)
    asked = MetricLearning(transforms="auto", seconds=1e-6)
    model = LSSVMRegressorCV(kernel="auto", metric=asked, search=Search(stack=stack)).fit(X, y)
    assert model.best_score_ > -np.var(y)
    if stack:
        everyone = (*model.stack_.members, *model.stack_.left_out)
        assert {each.origin for each in everyone} <= {"isotropic", "slopes"}
    else:
        assert {step.rows for step in model.metric_.history} == {160}
        assert len(model.metric_.history) < 20


def test_what_was_tried_is_kept_with_its_time():
    X, y = interactions(150)
    history = LSSVMRegressorCV(kernel="rbf", metric="learned").fit(X, y).metric_.history
    times = [step.seconds for step in history]
    assert times == sorted(times)
    assert times[0] > 0


@pytest.mark.parametrize("seconds", [0, -1.0, "1", True])
def test_a_time_that_is_none_is_refused(seconds):
    with pytest.raises(InvalidInputError, match=r"metric\.seconds"):
        KernelRidgeCV(metric=MetricLearning(seconds=seconds)).fit(*interactions(60))

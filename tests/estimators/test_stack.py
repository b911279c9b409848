"""A stack predicts as the weighted sum of its members; what it says of itself is that of refits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.model_selection import KFold, TimeSeriesSplit

import ridgefold
from cases import rows, targets
from namespaces import LIBRARIES, to_numpy
from ridgefold import (
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifierCV,
    LSSVMRegressorCV,
    MetricLearning,
    Search,
)
from ridgefold.errors import BudgetError, InvalidInputError, UnsupportedInputError
from ridgefold.exact.interval_ranks import interval_from_models
from ridgefold.selection.stack.weights import weights_for_classes, weights_for_numbers

N = 60
X, X_NEW = rows(N, 3), rows(15, 3, seed=9)
Y, TWO = targets(X), targets(X, 2) + np.asarray([0.0, 30.0])
CODES = np.digitize(Y, [-0.5, 0.5])
WEIGHTS = np.random.default_rng(3).uniform(0.2, 3.0, N)
SOME_ZERO = np.where(np.arange(N) % 7 == 0, 0.0, WEIGHTS)
FOLDS = [test for _, test in KFold(5).split(X)]
THREE = ["rbf", "laplacian", "matern"]


def stacked(cls=LSSVMRegressorCV, **settings):
    model = cls(**{"kernel": THREE, **settings})
    return model.set_params(search__stack=True)


def refitted(member, y, kept, *, bias=True, fixed=None, weights=None):
    model = KernelRidge(member.alpha, kernel=member.kernel, fit_intercept=bias, fixed=fixed)
    return model.fit(X[kept], y[kept], None if weights is None else weights[kept])


def stack_without(model, y, gone, *, weights=None):
    """Members and weights fitted by refits alone to the rows that are not in `gone`."""
    bias, counts = model.fit_intercept, np.ones(N) if weights is None else weights
    kept, t = np.setdiff1d(np.arange(N), gone), y.shape[1]
    members = model.stack_.members
    held_out = np.full((len(members), N, t), np.nan)
    for m, member in enumerate(members):
        for test in (np.setdiff1d(fold, gone) for fold in FOLDS):
            if len(test):
                train = np.setdiff1d(kept, test)
                part = refitted(member, y, train, bias=bias, fixed=model.fixed, weights=weights)
                held_out[m, test] = part.predict(X[test]).reshape(len(test), t)
    used = kept[counts[kept] > 0]
    found = weights_for_numbers(held_out[:, used], y[used], counts[used], bias=bias)
    settings = {"bias": bias, "fixed": model.fixed, "weights": weights}
    models = [refitted(member, y, kept, **settings) for member in members]

    def predict(new):
        own = [each.predict(new).reshape(len(new), t) for each in models]
        return found.combined(np.stack(own))

    return predict


CASES = {
    "bias": (stacked(), Y, None),
    "no bias": (stacked(KernelRidgeCV), Y, None),
    "weights": (stacked(), Y, WEIGHTS),
    "rows of weight zero": (stacked(), Y, SOME_ZERO),
    "two targets": (stacked(), TWO, None),
    "an alpha a target": (stacked(search=Search(alpha_per_target=True)), TWO, WEIGHTS),
    "a fixed column": (stacked(fixed=[1]), Y, WEIGHTS),
    "fixed columns, weights": (stacked(KernelRidgeCV, fixed="linear"), Y, SOME_ZERO),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    model, y, weights = CASES[request.param]
    return model.fit(X, y, weights), y.reshape(N, -1), weights


def test_it_predicts_the_weighted_sum_of_refits_with_weights_from_held_out_predictions(case):
    model, y, weights = case
    expected = stack_without(model, y, [], weights=weights)(X_NEW)
    assert len(model.stack_.members) > 1
    found = model.predict(X_NEW).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_held_out_predictions_are_those_of_members_and_weights_without_the_fold(case):
    model, y, weights = case
    expected = np.empty_like(y)
    for test in FOLDS:
        expected[test] = stack_without(model, y, test, weights=weights)(X[test])
    found = model.held_out_predictions_.reshape(N, -1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    counts = np.ones(N) if weights is None else weights
    error = np.mean(np.square(found - y), axis=1) @ counts / counts.sum()
    assert model.best_score_ == pytest.approx(-error)


def test_intervals_are_those_of_stacks_without_each_fold(case):
    model, y, weights = case
    left_out, errors = [], []
    for test in FOLDS:
        part = stack_without(model, y, test, weights=weights)
        counted = [i for i in test if weights is None or weights[i] > 0]
        left_out += [part(X_NEW)] * len(counted)
        errors += list(y[counted] - part(X[counted]))
    lower, upper = model.predict_interval(X_NEW, 0.8)
    centre = model.predict(X_NEW).reshape(len(X_NEW), -1)
    for j in range(y.shape[1]):
        of_target = np.stack([each[:, j] for each in left_out], axis=1)
        low, high = interval_from_models(of_target, np.stack(errors)[:, j], 0.8)
        ours = lower.reshape(centre.shape)[:, j], upper.reshape(centre.shape)[:, j]
        np.testing.assert_allclose(ours[0], np.minimum(low, centre[:, j]), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(ours[1], np.maximum(high, centre[:, j]), rtol=1e-4, atol=1e-4)


def test_single_rows_may_be_held_out_and_give_jackknife_plus():
    model = stacked(cv="loo", intervals="jackknife+").fit(X, Y)
    errors = Y - model.held_out_predictions_
    assert model.best_score_ == pytest.approx(-np.mean(errors**2))
    lower, upper = model.predict_interval(X_NEW, 0.8)
    assert np.all(lower < upper)
    np.testing.assert_array_equal(model.intervals_.groups, np.arange(N))
    # The model without a row has its held-out prediction there.
    at_own_row = model._predictor()(X[:4], model.intervals_.model)
    np.testing.assert_allclose(
        np.diagonal(at_own_row), model.held_out_predictions_[:4], rtol=1e-6, atol=1e-7
    )


def test_candidates_that_are_not_members_have_no_weight_and_are_named():
    model = stacked(kernel=["rbf", "linear", "laplacian", "matern"]).fit(X, Y)
    everyone = (*model.stack_.members, *model.stack_.left_out)
    assert {each.family for each in everyone} == {"rbf", "linear", "laplacian", "matern"}
    assert all(np.all(each.weight > 0) for each in model.stack_.members)
    assert all(np.all(each.weight == 0) for each in model.stack_.left_out)
    heaviest = model.stack_.members[0]
    assert heaviest.kernel == model.kernel_
    assert model.alpha_ == heaviest.alpha[0]
    assert {each["kernel"] for each in model.cv_results_["params"]} == {
        each.family for each in everyone
    }
    assert model.cv_results_["params"][model.best_index_]["kernel"] == heaviest.family


def test_all_families_are_candidates_of_an_automatic_kernel():
    model = stacked(kernel="auto", alpha=[0.01, 0.1, 1.0]).fit(X, Y)
    everyone = (*model.stack_.members, *model.stack_.left_out)
    assert {each.family for each in everyone} == set(ridgefold.metric.FAMILIES)


# -- classes -----------------------------------------------------------------------------


def sums_of_refits(model, columns):
    total = model.stack_.offset + np.zeros((len(X_NEW), columns.shape[1]))
    for member in model.stack_.members:
        part = refitted(member, columns, np.arange(N)).predict(X_NEW)
        total += member.weight * part.reshape(total.shape)
    return total


def test_two_classes_are_decided_by_the_log_odds_of_a_logistic_regression():
    labels = np.where(CODES > 0, "yes", "no")
    model = stacked(LSSVMClassifierCV, probability=True).fit(X, labels)
    signs = np.where(CODES > 0, 1.0, -1.0)[:, None]
    expected = sums_of_refits(model, signs)[:, 0]
    found = model.decision_function(X_NEW)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(model.predict(X_NEW), np.where(expected > 0, "yes", "no"))
    slope, offset = model.calibration_[0]
    chances = model.predict_proba(X_NEW)[:, 1]
    np.testing.assert_allclose(chances, expit(slope * found + offset))
    assert np.mean(model.held_out_predictions_ == labels) == pytest.approx(model.best_score_)


def test_held_out_decisions_of_classes_come_from_weights_without_the_fold():
    model = stacked(LSSVMClassifierCV, cv=KFold(5)).fit(X, CODES > 0)
    signs = np.where(CODES > 0, 1.0, -1.0)[:, None]
    members = model.stack_.members
    for gone in FOLDS:
        kept = np.setdiff1d(np.arange(N), gone)
        inner = np.full((len(members), N, 1), np.nan)
        own = np.empty((len(members), len(gone), 1))
        for m, member in enumerate(members):
            for test in FOLDS:
                if test is not gone:
                    part = refitted(member, signs, np.setdiff1d(kept, test))
                    inner[m, test] = part.predict(X[test]).reshape(-1, 1)
            own[m] = refitted(member, signs, kept).predict(X[gone]).reshape(-1, 1)
        weights = weights_for_classes(inner[:, kept], (CODES > 0).astype(int)[kept], np.ones(48))
        expected = weights.combined(own)[:, 0]
        np.testing.assert_allclose(model.held_out_decisions_[gone], expected, rtol=1e-3, atol=1e-4)


def test_the_weights_of_classes_are_their_calibration():
    """A second calibration, on rows that the stack has not seen, changes next to nothing."""
    Z = np.random.default_rng(0).standard_normal((300, 2))
    labels = np.random.default_rng(1).uniform(size=300) < expit(3 * np.sin(2 * Z[:, 0]))
    model = stacked(LSSVMClassifierCV, probability=True).fit(Z, labels)
    ((slope, offset),) = model.calibration_
    assert slope == pytest.approx(1.0, abs=0.15)
    assert offset == pytest.approx(0.0, abs=0.1)


def test_several_classes_have_log_odds_each_and_probabilities_that_add_up():
    model = stacked(LSSVMClassifierCV, probability=True).fit(X, CODES)
    columns = np.where(CODES[:, None] == np.arange(3), 1.0, -1.0)
    total = sums_of_refits(model, columns)
    shares = np.exp(total) / np.exp(total).sum(axis=1, keepdims=True)
    found = model.decision_function(X_NEW)
    np.testing.assert_allclose(found, np.log(shares / (1 - shares)), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(model.predict(X_NEW), np.argmax(shares, axis=1))
    np.testing.assert_allclose(model.predict_proba(X_NEW).sum(axis=1), 1.0)


# -- files, libraries, refusals ----------------------------------------------------------


@pytest.mark.parametrize("classify", [False, True], ids=["numbers", "classes"])
def test_a_file_holds_the_whole_stack(tmp_path, classify):
    if classify:
        model = stacked(LSSVMClassifierCV, probability=True).fit(X, CODES)
    else:
        model = stacked().fit(X, TWO)
    model.save(tmp_path / "stack.ridgefold")
    again = ridgefold.load(tmp_path / "stack.ridgefold")
    np.testing.assert_array_equal(again.predict(X_NEW), model.predict(X_NEW))
    assert len(again.stack_.members) == len(model.stack_.members)
    assert [each.kernel for each in again.stack_.members] == [
        each.kernel for each in model.stack_.members
    ]
    if classify:
        np.testing.assert_array_equal(again.predict_proba(X_NEW), model.predict_proba(X_NEW))
    else:
        for ours, theirs in zip(
            again.predict_interval(X_NEW), model.predict_interval(X_NEW), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
    model.save(tmp_path / "half.ridgefold", dtype="float32")
    half = ridgefold.load(tmp_path / "half.ridgefold")
    if not classify:
        np.testing.assert_allclose(half.predict(X_NEW), model.predict(X_NEW), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_array_library_gives_the_same_stack(library):
    convert = LIBRARIES[library]
    ridges = [0.01, 0.1, 1.0]
    expected = stacked(alpha=ridges).fit(X, Y)
    model = stacked(alpha=ridges).fit(convert(X), convert(Y))
    found = model.predict(convert(X_NEW))
    assert type(found) is type(convert(X_NEW))
    np.testing.assert_allclose(to_numpy(found), expected.predict(X_NEW), rtol=1e-6, atol=1e-7)
    lower, _ = model.predict_interval(convert(X_NEW))
    theirs, _ = expected.predict_interval(X_NEW)
    np.testing.assert_allclose(to_numpy(lower), theirs, rtol=1e-5, atol=1e-6)


def test_a_fit_without_a_stack_leaves_none_of_an_earlier_one():
    model = stacked().fit(X, Y)
    model.set_params(search__stack=False)
    model.fit(X, Y)
    assert not hasattr(model, "stack_")
    expected = LSSVMRegressorCV(kernel=THREE).fit(X, Y).predict(X_NEW)
    np.testing.assert_array_equal(model.predict(X_NEW), expected)


def test_what_cannot_be_stacked_is_refused():
    for cv in (2, TimeSeriesSplit(4)):
        with pytest.raises(InvalidInputError, match="at least 3 folds that holds every row out"):
            stacked(cv=cv).fit(X, Y)
    with pytest.raises(InvalidInputError, match="combines several kernels"):
        stacked(kernel="rbf").fit(X, Y)
    with pytest.raises(InvalidInputError, match='needs cv="loo"'):
        stacked(intervals="jackknife+").fit(X, Y)
    with pytest.raises(UnsupportedInputError, match="a stack of"):
        stacked().fit(X, Y).compress(10)


# -- learned metrics ---------------------------------------------------------------------


def noisy(n, d, seed=0, share=1.0):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, d))
    return Z, share * np.sin(2 * Z[:, 0]) + 0.4 * rng.standard_normal(n)


def test_learned_metrics_are_candidates_on_their_own_merits():
    Z, y = noisy(250, 4)
    model = stacked(kernel=["matern12", "rbf"], metric="learned").fit(Z, y)
    everyone = (*model.stack_.members, *model.stack_.left_out)
    assert {each.origin for each in everyone} <= {"isotropic", "slopes", "descended"}
    Z_new, y_new = noisy(1000, 4, seed=1)
    found = np.mean((model.predict(Z_new) - y_new) ** 2)
    alone = min(each.held_out_error for each in everyone)
    assert found < 1.15 * alone
    assert -model.best_score_ == pytest.approx(found, rel=0.3)


def test_what_is_learned_from_few_rows_does_not_flatter_itself():
    gains, covered = [], []
    for seed in range(3):
        Z, y = noisy(100, 30, seed, share=0.0)
        model = stacked(kernel=["matern32"], metric="learned").fit(Z, y)
        gains.append(1.0 + model.best_score_ / np.var(y))
        Z_new, y_new = noisy(1000, 30, seed=100 + seed, share=0.0)
        lower, upper = model.predict_interval(Z_new, 0.9)
        covered.append(np.mean((lower <= y_new) & (y_new <= upper)))
    assert np.mean(gains) < 0.02
    assert 0.87 <= np.mean(covered) <= 0.95


@pytest.mark.full
@pytest.mark.parametrize("d", [60, 200])
def test_intervals_of_stacks_of_metrics_learned_from_few_rows_cover(d):
    covered = []
    for seed in range(6):
        Z, y = noisy(100, d, seed)
        model = stacked(kernel="auto", metric="learned").fit(Z, y)
        Z_new, y_new = noisy(1000, d, seed=100 + seed)
        lower, upper = model.predict_interval(Z_new, 0.9)
        covered.append(np.mean((lower <= y_new) & (y_new <= upper)))
    assert 0.87 <= np.mean(covered) <= 0.96


@pytest.mark.full
def test_a_stack_finds_nothing_in_noise():
    gains = []
    for seed in range(3):
        Z, y = noisy(200, 50, seed, share=0.0)
        asked = MetricLearning(transforms="auto")
        model = stacked(kernel="auto", metric=asked).fit(Z, y)
        gains.append(1.0 + model.best_score_ / np.var(y))
    assert np.mean(gains) < 0.02


def test_its_explanation_has_a_step_for_every_candidate_and_for_every_member():
    model = stacked(kernel=["rbf", "linear", "laplacian"], alpha=[0.1, 1.0]).fit(X, Y)
    members = [each.family for each in model.stack_.members]
    found = [step["step"] for step in model.explain().steps]
    assert found == [
        *(f"choosing kernel and alpha: {name}" for name in ("rbf", "linear", "laplacian")),
        *(f"leaving two folds out: {name}" for name in members),
        *(f"fitting: {name}" for name in members),
    ]
    assert all(step["measured_seconds"] >= 0 for step in model.explain().steps)


def test_a_stack_that_does_not_fit_the_memory_is_refused_with_a_way_out():
    with pytest.raises(BudgetError, match="memory_budget"):
        stacked(alpha=[0.1, 1.0], memory_budget="40KB").fit(rows(300, 3), targets(rows(300, 3)))

"""What the CV estimators search, choose and keep."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import mean_absolute_error
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
)

from cases import rows, targets, tolerance
from ridgefold import (
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifierCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    Search,
)
from ridgefold.crossval import METHODS
from ridgefold.errors import InvalidInputError
from ridgefold.kernels import RBF, Linear, Matern

X, Y = rows(45), targets(rows(45))
Y3 = targets(X, 3)
LABELS = np.where(X[:, 0] + 0.3 * Y > 0, "up", "down")
GROUPS = np.arange(45) % 6
ALPHAS = [0.01, 0.1, 1.0, 10.0]
EXACT = [name for name in METHODS if METHODS[name].exact]


def held_out_by_refitting(model, X, y, splits, **fit):
    """Mean over the folds that test a row, NaN where none does."""
    total, count = np.zeros(y.shape), np.zeros(len(X))
    for train, test in splits:
        part = {name: values[train] for name, values in fit.items()}
        total[test] += model.fit(X[train], y[train], **part).predict(X[test])
        count[test] += 1
    with np.errstate(invalid="ignore"):
        return total / (count if y.ndim == 1 else count[:, None])


def bound(model, y, weights=None):
    K = model.kernel_(X)
    if weights is not None:
        K = K * np.outer(np.sqrt(weights), np.sqrt(weights))
    return tolerance(K, model.alpha_, y, np.float64)


# -- folds -------------------------------------------------------------------------------

SPLITTERS = {
    "5": 5,
    "loo": "loo",
    "LeaveOneOut": LeaveOneOut(),
    "shuffled": KFold(4, shuffle=True, random_state=0),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "random": ShuffleSplit(3, test_size=0.2, random_state=0),
    "groups": GroupKFold(3),
    "pairs": [(np.arange(20, 45), np.arange(20)), (np.arange(25), np.arange(25, 45))],
}


def splits_of(cv):
    if cv == "loo":
        cv = LeaveOneOut()
    if isinstance(cv, int):
        cv = KFold(cv)
    groups = GROUPS if isinstance(cv, GroupKFold) else None
    return list(cv.split(X, Y, groups)) if hasattr(cv, "split") else cv


@pytest.mark.parametrize("name", SPLITTERS)
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_held_out_predictions_are_those_of_refits(name, weighted):
    weights = np.random.default_rng(0).uniform(0.3, 2.0, 45) if weighted else None
    model = LSSVMRegressorCV(ALPHAS, gamma=[0.1, 0.5], cv=SPLITTERS[name])
    model.fit(X, Y, weights, groups=GROUPS if name == "groups" else None)
    single = LSSVMRegressor(model.alpha_, gamma=model.best_params_["gamma"])
    fit = {} if weights is None else {"sample_weight": weights}
    expected = held_out_by_refitting(single, X, Y, splits_of(SPLITTERS[name]), **fit)
    np.testing.assert_allclose(
        model.held_out_predictions_, expected, rtol=0, atol=bound(model, Y, weights)
    )
    assert model.n_splits_ == len(splits_of(SPLITTERS[name]))


def test_leave_one_out_by_name_and_by_splitter_is_the_same():
    by_name = KernelRidgeCV(ALPHAS, gamma=0.3, cv="loo").fit(X, Y)
    by_splitter = KernelRidgeCV(ALPHAS, gamma=0.3, cv=LeaveOneOut()).fit(X, Y)
    np.testing.assert_array_equal(by_name.held_out_predictions_, by_splitter.held_out_predictions_)


def test_a_generator_of_pairs_is_taken():
    model = KernelRidgeCV(ALPHAS, gamma=0.3, cv=KFold(3).split(X)).fit(X, Y)
    assert model.n_splits_ == 3


def test_stratified_folds_serve_whole_numbers_as_targets():
    counts = np.arange(45) % 3
    model = KernelRidgeCV(ALPHAS, gamma=0.3, cv=StratifiedKFold(3)).fit(X, counts)
    peer = GridSearchCV(
        KernelRidge(kernel="rbf", gamma=0.3),
        {"alpha": ALPHAS},
        cv=StratifiedKFold(3),
        scoring="neg_mean_squared_error",
    ).fit(X, counts)
    assert model.alpha_ == peer.best_params_["alpha"]


def test_rows_in_no_test_set_have_no_held_out_prediction():
    model = KernelRidgeCV([1.0], gamma=0.3, cv=[(np.arange(5, 45), np.arange(5))]).fit(X, Y)
    assert np.isfinite(model.held_out_predictions_[:5]).all()
    assert np.isnan(model.held_out_predictions_[5:]).all()
    classifier = LSSVMClassifierCV([1.0], gamma=0.3, cv=[(np.arange(5, 45), np.arange(5))])
    classifier.fit(X, LABELS)
    assert set(classifier.held_out_predictions_[:5]) <= {"up", "down"}
    assert all(label is None for label in classifier.held_out_predictions_[5:])


@pytest.mark.parametrize("method", EXACT)
def test_every_exact_method_makes_the_same_choice(method):
    model = LSSVMRegressorCV(ALPHAS, gamma=[0.1, 0.5], search=Search(method=method)).fit(X, Y3)
    expected = LSSVMRegressorCV(ALPHAS, gamma=[0.1, 0.5], search=Search(method="refit")).fit(X, Y3)
    assert model.cv_plan_.method == method
    assert model.best_params_ == expected.best_params_
    np.testing.assert_allclose(
        model.held_out_predictions_, expected.held_out_predictions_, rtol=0, atol=bound(model, Y3)
    )


# -- scores ------------------------------------------------------------------------------


def test_the_default_score_pools_the_rows_of_all_folds():
    cv = [(np.arange(40), np.arange(40, 45)), (np.arange(30, 45), np.arange(30))]
    model = KernelRidgeCV([0.5], gamma=0.3, cv=cv).fit(X, Y)
    tested = np.r_[40:45, 0:30]
    pooled = np.mean((model.held_out_predictions_[tested] - Y[tested]) ** 2)
    assert model.best_score_ == pytest.approx(-pooled, rel=1e-14)
    by_fold = [model.cv_results_[f"split{k}_test_score"][0] for k in range(2)]
    assert np.average(by_fold, weights=[5, 30]) == pytest.approx(-pooled, rel=1e-14)


def test_a_callable_gets_all_held_out_rows():
    seen = []

    def score(y_true, y_predicted):
        seen.append(len(y_true))
        return -mean_absolute_error(y_true, y_predicted)

    model = KernelRidgeCV(ALPHAS, gamma=0.3, cv=5, scoring=score).fit(X, Y)
    assert max(seen) == 45
    expected = -mean_absolute_error(Y, model.held_out_predictions_)
    assert model.best_score_ == pytest.approx(expected, rel=1e-12)


def test_a_callable_of_labels_serves_a_classifier():
    def errors(labels, predicted):
        assert set(predicted) <= {"up", "down"}
        return -np.sum(labels != predicted)

    model = LSSVMClassifierCV(ALPHAS, gamma=[0.1, 1.0], scoring=errors).fit(X, LABELS)
    assert model.best_score_ == -np.sum(model.held_out_predictions_ != LABELS)


def test_scores_count_rows_by_their_weights_unless_told_otherwise():
    weights = np.random.default_rng(3).uniform(0.1, 3.0, 45)
    weights[::7] = 0.0
    weighted = KernelRidgeCV([0.3], gamma=0.3).fit(X, Y, weights)
    errors = (weighted.held_out_predictions_ - Y) ** 2
    assert weighted.best_score_ == pytest.approx(-np.average(errors, weights=weights), rel=1e-12)
    alike = KernelRidgeCV([0.3], gamma=0.3, search=Search(weighted_scores=False)).fit(X, Y, weights)
    np.testing.assert_allclose(alike.held_out_predictions_, weighted.held_out_predictions_)
    assert alike.best_score_ == pytest.approx(-errors.mean(), rel=1e-12)


EVERY_KIND_OF_SCORE = [None, "neg_mean_absolute_error", "r2", mean_absolute_error]


@pytest.mark.parametrize("scoring", EVERY_KIND_OF_SCORE)
def test_weights_reach_every_kind_of_score(scoring):
    weights = np.random.default_rng(3).uniform(0.1, 3.0, 45)
    settings = {"gamma": 0.3, "scoring": scoring, "cv": 3}
    alike = (
        KernelRidgeCV([0.3], search=Search(weighted_scores=False))
        .set_params(**settings)
        .fit(X, Y, weights)
    )
    weighted = KernelRidgeCV([0.3]).set_params(**settings).fit(X, Y, weights)
    assert weighted.best_score_ != alike.best_score_


@pytest.mark.parametrize("scoring", EVERY_KIND_OF_SCORE)
def test_a_fold_without_weight_says_nothing(scoring):
    weights = np.ones(45)
    weights[:15] = 0.0
    settings = {"gamma": 0.3, "scoring": scoring}
    three = KernelRidgeCV(ALPHAS, cv=KFold(3)).set_params(**settings).fit(X, Y, weights)
    rest = np.arange(15, 45)
    splits = [(rest[15:], rest[:15]), (rest[:15], rest[15:])]
    two = KernelRidgeCV(ALPHAS, cv=splits).set_params(**settings).fit(X, Y, weights)
    assert three.best_params_ == two.best_params_
    assert three.best_score_ == pytest.approx(two.best_score_, rel=1e-12)
    assert np.isnan(three.cv_results_["split0_test_score"]).all()


def test_nothing_to_score_is_an_error():
    weights = np.ones(45)
    weights[:15] = 0.0
    with pytest.raises(InvalidInputError, match="zero for every row that cv holds out"):
        KernelRidgeCV(ALPHAS, cv=[(np.arange(15, 45), np.arange(15))]).fit(X, Y, weights)


def test_ties_go_to_the_first_in_grid_order():
    alphas = [3.0, 0.1, 1.0]
    model = KernelRidgeCV(alphas, gamma=[0.5, 0.1], scoring=lambda y, p: 1.0).fit(X, Y)
    assert model.best_params_ == {"alpha": 3.0, "gamma": 0.5}
    assert model.best_index_ == 0
    assert set(model.cv_results_["rank_test_score"]) == {1}


def test_ties_between_kernels_keep_the_held_out_predictions_of_the_first():
    model = KernelRidgeCV([0.5], gamma=[0.1, 2.0], scoring=lambda y, p: 1.0).fit(X, Y)
    expected = KernelRidgeCV([0.5], gamma=0.1).fit(X, Y).held_out_predictions_
    np.testing.assert_array_equal(model.held_out_predictions_, expected)


@pytest.mark.parametrize("name", ["5", "loo", "repeated", "random", "groups"])
def test_one_alpha_a_target_is_the_choice_of_each_target_alone(name):
    settings = {"gamma": 0.3, "cv": SPLITTERS[name]}
    together = KernelRidgeCV(ALPHAS, search=Search(alpha_per_target=True)).set_params(**settings)
    groups = GROUPS if name == "groups" else None
    together.fit(X, Y3, groups=groups)
    alone = [
        KernelRidgeCV(ALPHAS).set_params(**settings).fit(X, Y3[:, j], groups=groups)
        for j in range(3)
    ]
    np.testing.assert_array_equal(together.alpha_, [model.alpha_ for model in alone])
    held_out = np.column_stack([model.held_out_predictions_ for model in alone])
    np.testing.assert_allclose(
        together.held_out_predictions_, held_out, rtol=0, atol=bound(together, Y3)
    )
    predicted = np.column_stack([model.predict(X) for model in alone])
    np.testing.assert_allclose(together.predict(X), predicted, rtol=0, atol=bound(together, Y3))
    assert together.best_score_ == pytest.approx(np.mean([m.best_score_ for m in alone]))


def test_one_standard_error_takes_the_largest_alpha_that_is_as_good():
    alphas = np.logspace(-4, 2, 13)
    best = KernelRidgeCV(alphas, gamma=0.3).fit(X, Y)
    simpler = KernelRidgeCV(alphas, gamma=0.3, search=Search(one_standard_error=True)).fit(X, Y)
    results = best.cv_results_
    folds = [results[f"split{k}_test_score"][best.best_index_] for k in range(5)]
    floor = best.best_score_ - np.std(folds, ddof=1) / np.sqrt(5)
    good = alphas[results["mean_test_score"] >= floor]
    assert simpler.alpha_ == good.max() > best.alpha_
    assert simpler.best_score_ == results["mean_test_score"][simpler.best_index_]


def test_one_standard_error_serves_every_target_by_itself():
    alphas = np.logspace(-4, 2, 13)
    settings = {"gamma": 0.3, "search__one_standard_error": True}
    together = (
        KernelRidgeCV(alphas, search=Search(alpha_per_target=True))
        .set_params(**settings)
        .fit(X, Y3)
    )
    alone = [KernelRidgeCV(alphas).set_params(**settings).fit(X, Y3[:, j]).alpha_ for j in range(3)]
    np.testing.assert_array_equal(together.alpha_, alone)


# -- grids -------------------------------------------------------------------------------


def test_widths_come_from_the_median_distance():
    model = KernelRidgeCV([1.0], cv=3).fit(X, Y)
    widths = [params["length_scale"] for params in model.cv_results_["params"]]
    differences = X[:, None] - X[None]
    distances = np.sqrt(np.sum(differences**2, axis=2))[np.triu_indices(45, 1)]
    ratios = np.log2(np.asarray(widths) / np.median(distances))
    np.testing.assert_allclose(ratios, np.round(ratios), atol=1e-9)
    assert {-3, -2, -1, 0, 1, 2, 3} <= set(np.round(ratios).astype(int))


def test_manhattan_kernels_take_manhattan_distances():
    model = KernelRidgeCV([1.0], kernel="laplacian", cv=3).fit(X, Y)
    widths = np.asarray([params["length_scale"] for params in model.cv_results_["params"]])
    distances = np.abs(X[:, None] - X[None]).sum(axis=2)[np.triu_indices(45, 1)]
    assert np.min(np.abs(widths / np.median(distances) - 1)) < 1e-12


def test_alphas_span_the_spectrum():
    model = KernelRidgeCV(gamma=0.3, cv=3).fit(X, Y)
    alphas = np.unique([params["alpha"] for params in model.cv_results_["params"]])
    largest = np.linalg.eigvalsh(rbf_kernel(X, gamma=0.3))[-1]
    assert largest <= alphas.max() <= 100 * largest
    assert 1e-9 * largest <= alphas.min() <= 1e-6 * largest
    assert len(alphas) >= 20


def test_a_best_alpha_at_the_end_of_the_default_grid_extends_it():
    straight = X @ np.array([1.0, -2.0, 0.5])  # no noise: the smaller the ridge the better
    model = KernelRidgeCV(kernel="linear", cv=3).fit(X, straight)
    alphas = np.unique([params["alpha"] for params in model.cv_results_["params"]])
    first = KernelRidgeCV(kernel="linear", cv=3).fit(X, Y)
    base = np.unique([params["alpha"] for params in first.cv_results_["params"]])
    assert alphas.min() < base.min() / 50


def test_a_best_width_at_the_end_of_the_default_grid_extends_it():
    line = np.linspace(-1, 1, 45)[:, None]
    model = KernelRidgeCV(np.logspace(-9, 0, 10), cv=3).fit(line, line[:, 0])
    widths = [params["length_scale"] for params in model.cv_results_["params"]]
    assert len(set(widths)) > 7
    assert model.best_params_["length_scale"] > np.median(np.abs(line - line.T)) * 7.9


def test_given_grids_are_not_extended():
    model = KernelRidgeCV([1e-3, 1e3], gamma=[1e-4, 1e-3]).fit(X, Y)
    assert len(model.cv_results_["params"]) == 4


def test_lists_of_kernels_compete():
    kernels = ["linear", RBF(0.8), Matern(1.0) + 1, "laplacian"]
    model = KernelRidgeCV(ALPHAS, kernel=kernels, gamma=0.4).fit(X, Y)
    assert len(model.cv_results_["params"]) == 16
    scores = [
        KernelRidgeCV(ALPHAS, kernel=kernel, gamma=0.4).fit(X, Y).best_score_ for kernel in kernels
    ]
    assert model.best_score_ == max(scores)
    assert model.best_params_["kernel"] is kernels[int(np.argmax(scores))]


def test_kernel_objects_and_callables_are_taken_as_they_are():
    kernel = 0.5 * RBF(0.9) + Linear()
    model = KernelRidgeCV(ALPHAS, kernel=kernel).fit(X, Y)
    assert model.kernel_ == kernel
    assert set(model.best_params_) == {"alpha"}

    def product(x, z):
        return float(x @ z)

    by_function = KernelRidgeCV(ALPHAS, kernel=product).fit(X, Y)
    by_name = KernelRidgeCV(ALPHAS, kernel="linear").fit(X, Y)
    assert by_function.alpha_ == by_name.alpha_
    np.testing.assert_allclose(
        by_function.held_out_predictions_, by_name.held_out_predictions_, atol=bound(by_name, Y)
    )


@pytest.mark.parametrize("alphas", [None, ALPHAS], ids=["default", "given"])
def test_a_precomputed_kernel_gives_what_its_rows_give(alphas):
    K = rbf_kernel(X, gamma=0.3)
    by_matrix = KernelRidgeCV(alphas, kernel="precomputed").fit(K, Y)
    by_rows = KernelRidgeCV(alphas, gamma=0.3).fit(X, Y)
    assert by_matrix.alpha_ == pytest.approx(by_rows.alpha_, rel=1e-12)
    np.testing.assert_allclose(by_matrix.predict(K), by_rows.predict(X), atol=bound(by_rows, Y))


# -- what is kept ------------------------------------------------------------------------


def test_results_are_a_table_in_the_shape_of_scikit_learn():
    model = KernelRidgeCV(ALPHAS, gamma=[0.1, 0.5], scoring="r2", cv=3).fit(X, Y)
    peer = GridSearchCV(
        KernelRidge(kernel="rbf"), {"alpha": ALPHAS, "gamma": [0.1, 0.5]}, scoring="r2", cv=3
    ).fit(X, Y)
    assert list(model.cv_results_) == list(peer.cv_results_)
    for key, values in peer.cv_results_.items():
        assert len(model.cv_results_[key]) == len(values)
        assert type(model.cv_results_[key]) is type(values)
        if isinstance(values, np.ndarray):
            assert model.cv_results_[key].dtype == values.dtype
    table = pd.DataFrame(model.cv_results_)
    pivot = table.pivot_table("mean_test_score", "param_alpha", "param_gamma")
    assert pivot.shape == (4, 2)
    assert table["rank_test_score"].min() == 1
    best = table.loc[model.best_index_]
    assert best["params"] == model.best_params_
    assert best["mean_test_score"] == model.best_score_
    np.testing.assert_allclose(
        table["std_test_score"],
        table[[f"split{k}_test_score" for k in range(3)]].std(axis=1, ddof=0),
    )


def test_the_plan_of_the_choice_is_kept():
    model = KernelRidgeCV(ALPHAS, gamma=[0.1, 0.5]).fit(X, Y)
    assert model.cv_plan_.method in METHODS
    assert model.cv_plan_.problem.n_alphas == 4
    assert model.plan_.problem.n_alphas == 1
    assert {r.method for r in model.cv_plan_.rejected} == set(METHODS) - {model.cv_plan_.method}


def test_the_fit_is_that_of_the_plain_model_with_the_chosen_parameters():
    model = LSSVMRegressorCV(ALPHAS, gamma=[0.1, 0.5]).fit(X, Y)
    plain = LSSVMRegressor(model.alpha_, gamma=model.best_params_["gamma"]).fit(X, Y)
    # To rounding: the model without each fold is solved beside it, as further columns.
    np.testing.assert_allclose(model.predict(X), plain.predict(X), rtol=1e-12)
    np.testing.assert_allclose(model.dual_coef_, plain.dual_coef_, rtol=1e-10)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, rtol=1e-12)
    model.set_params(intervals=None).fit(X, Y)
    np.testing.assert_array_equal(model.dual_coef_, plain.dual_coef_)
    assert model.intercept_ == plain.intercept_


MODELS = {
    "kernel ridge": (KernelRidgeCV(ALPHAS, cv=3), Y),
    "regressor": (LSSVMRegressorCV(ALPHAS, gamma=[0.1, 1.0]), Y3),
    "classifier": (LSSVMClassifierCV(ALPHAS, gamma=[0.1, 1.0], scoring="roc_auc"), LABELS),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_survives_pickling_and_cloning(name):
    estimator, y = MODELS[name]
    model = clone(estimator).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert copy.best_params_ == model.best_params_
    again = clone(model)
    assert not hasattr(again, "best_params_")
    np.testing.assert_array_equal(again.fit(X, y).predict(X), model.predict(X))


def test_float32_rows_give_float32_results():
    model = KernelRidgeCV(ALPHAS, gamma=0.3).fit(X.astype(np.float32), Y.astype(np.float32))
    assert model.predict(X[:3].astype(np.float32)).dtype == np.float32
    assert model.held_out_predictions_.dtype == np.float32


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_tensors_in_tensors_out(dtype):
    tensor, y = torch.tensor(X, dtype=dtype), torch.tensor(Y3, dtype=dtype)
    model = LSSVMRegressorCV(ALPHAS, gamma=[0.1, 0.5]).fit(tensor, y)
    expected = LSSVMRegressorCV(ALPHAS, gamma=[0.1, 0.5]).fit(X, Y3)
    assert model.best_params_ == expected.best_params_
    assert model.predict(tensor).dtype == dtype
    assert isinstance(model.held_out_predictions_, torch.Tensor)
    assert model.held_out_predictions_.dtype == dtype
    eps = torch.finfo(dtype).eps / np.finfo(np.float64).eps
    np.testing.assert_allclose(
        model.held_out_predictions_.numpy(),
        expected.held_out_predictions_,
        rtol=0,
        atol=eps * bound(expected, Y3),
    )


def test_tensors_serve_the_classifier():
    codes = torch.tensor((LABELS == "up").astype(np.int64))
    model = LSSVMClassifierCV(ALPHAS, gamma=[0.1, 0.5]).fit(torch.tensor(X), codes)
    expected = LSSVMClassifierCV(ALPHAS, gamma=[0.1, 0.5]).fit(X, codes.numpy())
    assert model.best_params_ == expected.best_params_
    assert isinstance(model.held_out_decisions_, torch.Tensor)
    assert isinstance(model.held_out_predictions_, torch.Tensor)
    np.testing.assert_array_equal(
        model.held_out_predictions_.numpy(), expected.held_out_predictions_
    )


def test_more_than_two_classes_have_a_decision_each():
    labels = np.array(["a", "b", "c"])[np.digitize(Y, [-0.4, 0.4])]
    model = LSSVMClassifierCV(ALPHAS, gamma=[0.1, 1.0], scoring="balanced_accuracy")
    model.fit(X, labels)
    assert model.held_out_decisions_.shape == (45, 3)
    np.testing.assert_array_equal(
        model.held_out_predictions_, model.classes_[np.argmax(model.held_out_decisions_, axis=1)]
    )


# -- running -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_verbose_shows_progress(name, capsys):
    estimator, y = MODELS[name]
    clone(estimator).set_params(compute__verbose=1).fit(X, y)
    assert "100%" in capsys.readouterr().err


def test_silence_is_the_default(capsys):
    KernelRidgeCV(ALPHAS).fit(X, Y)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


class Interrupting:
    """A kernel function that is interrupted after some calls."""

    def __init__(self):
        self.left = None

    def __call__(self, x, z):
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        return float(np.exp(-np.sum((x - z) ** 2)))


@pytest.mark.parametrize("calls", [0, 500, 1000])
def test_an_interrupted_search_leaves_the_model_as_it_was(calls):
    kernel = Interrupting()
    fresh = KernelRidgeCV(ALPHAS, kernel=kernel)
    kernel.left = calls
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, Y)
    assert not [name for name in vars(fresh) if name.endswith("_")]
    kernel.left = None
    fresh.fit(X, Y)
    before = dict(vars(fresh))
    kernel.left = calls
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X[:30], Y[:30])
    assert vars(fresh) == before
    kernel.left = None
    assert fresh.predict(X[:2]).shape == (2,)

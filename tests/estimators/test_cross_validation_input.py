"""Whatever is wrong with folds, grids and scores is said in one sentence, and nothing is kept."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, RepeatedKFold

from cases import rows, targets
from ridgefold import (
    KernelRidgeCV,
    LSSVMClassifierCV,
    LSSVMRegressorCV,
    Search,
    cross_val_path,
)
from ridgefold.crossval import METHODS
from ridgefold.errors import InvalidInputError, RidgefoldError
from ridgefold.selection import search
from ridgefold.selection.search import GridSearch, _largest_within_one_error

N = 24
X, Y = rows(N), targets(rows(N))
LABELS = np.where(Y > 0, 1, -1)
ALL = np.arange(N)
ALPHAS = [0.1, 1.0]

CASES = {
    "no folds": ({"cv": []}, r"cv gave no folds.*cv=5"),
    "an empty test set": ({"cv": [(ALL, [])]}, "test set of fold 0 is empty"),
    "an empty training set": (
        {"cv": [(ALL[:9], ALL[9:]), ([], ALL)]},
        "training set of fold 1 is empty",
    ),
    "a row that is too large": ({"cv": [(ALL[:9], [3, 24])]}, "names row 24, .*0 to 23"),
    "a negative row": ({"cv": [(ALL[1:], [-1])]}, "names row -1, .*0 to 23"),
    "a row twice in a test set": ({"cv": [(ALL[:9], [10, 11, 10])]}, "fold 0 names a row twice"),
    "rows that are no numbers": ({"cv": [(["a", "b"], ["c"])]}, "must hold row numbers"),
    "rows that are no whole numbers": ({"cv": [(ALL[:9], [1.5])]}, "must hold row numbers"),
    "one fold by number": ({"cv": 1}, "cv=1 folds"),
    "no fold by number": ({"cv": 0}, "cv=0 folds"),
    "more folds than rows": ({"cv": 25}, "cv=25 folds.*n_samples=24"),
    "an unknown name": ({"cv": "kfold"}, "cv must be .*got 'kfold'"),
    "a truth value": ({"cv": True}, "cv must be .*got True"),
    "no splitter": ({"cv": 2.5}, "cv=2.5"),
    "a splitter without its groups": ({"cv": GroupKFold(3)}, "groups"),
    "alpha zero": ({"alpha": [1.0, 0.0]}, "alpha must be finite and > 0, got 0"),
    "a negative alpha": ({"alpha": [-2.0]}, "alpha must be finite and > 0, got -2"),
    "alpha not a number": ({"alpha": [1.0, np.nan]}, "alpha must be finite and > 0, got nan"),
    "alpha infinite": ({"alpha": [np.inf]}, "alpha must be finite and > 0, got inf"),
    "no alphas": ({"alpha": []}, r"alpha must be None, a number > 0, or a sequence .*got \[\]"),
    "an alpha twice": ({"alpha": [1.0, 0.1, 1.0]}, "must not hold a value twice"),
    "alphas of text": ({"alpha": ["a"]}, "alpha must be None, a number > 0, or a sequence"),
    "alphas in a table": (
        {"alpha": [[1.0, 2.0]]},
        "alpha must be None, a number > 0, or a sequence",
    ),
}
SEARCH_ONLY = {
    "an unknown method": (
        {"search__method": "fast"},
        "search.method must be one of auto, .*got 'fast'",
    ),
    "an unknown score": ({"scoring": "mse"}, "scoring must be .*got 'mse'.*get_scorer_names"),
    "a score that is a number": ({"scoring": 3}, "scoring must be .*got 3"),
    "no kernels": ({"kernel": []}, "kernel is an empty list"),
    "an unknown kernel": ({"kernel": "gaussian"}, "kernel must be one of .*got 'gaussian'"),
    "no widths": ({"gamma": []}, "empty"),
    "a negative width": ({"gamma": [-1.0]}, "gamma must be .*-1"),
}


@pytest.mark.parametrize("name", [*CASES, *SEARCH_ONLY])
@pytest.mark.parametrize("model", [KernelRidgeCV, LSSVMRegressorCV, LSSVMClassifierCV])
def test_estimators_say_what_is_wrong_and_stay_as_they_were(model, name):
    settings, message = {**CASES, **SEARCH_ONLY}[name]
    y = LABELS if model is LSSVMClassifierCV else Y
    fresh = model().set_params(**{"alpha": ALPHAS, **settings})
    with pytest.raises(InvalidInputError, match=message):
        fresh.fit(X, y)
    assert not [attribute for attribute in vars(fresh) if attribute.endswith("_")]
    fitted = model(ALPHAS).fit(X, y)
    fitted.set_params(**settings)
    before = dict(vars(fitted))
    with pytest.raises(InvalidInputError, match=message):
        fitted.fit(X, y)
    assert vars(fitted) == before
    assert len(fitted.predict(X[:3])) == 3


@pytest.mark.parametrize("name", CASES)
def test_cross_val_path_says_what_is_wrong(name):
    settings, message = CASES[name]
    with pytest.raises(InvalidInputError, match=message):
        cross_val_path(X, Y, **{"alpha": ALPHAS, **settings})


def test_cross_val_path_names_an_unknown_method():
    with pytest.raises(InvalidInputError, match=r"^method must be one of auto, .*got 'fast'"):
        cross_val_path(X, Y, alpha=ALPHAS, method="fast")


@pytest.mark.parametrize("method", METHODS)
def test_weights_that_leave_a_fold_nothing_to_train_on_are_an_error(method):
    weights = np.zeros(N)
    weights[:5] = 1.0
    splits = [(ALL[6:], ALL[:6]), (ALL[:6], ALL[6:])]
    with pytest.raises(InvalidInputError, match="fold 0 leaves no training rows of positive") as e:
        cross_val_path(X, Y, alpha=ALPHAS, cv=splits, method=method, sample_weight=weights)
    assert "fewer folds" in str(e.value)


def test_leave_one_out_needs_two_rows():
    with pytest.raises(RidgefoldError, match="at least 2 rows"):
        KernelRidgeCV(ALPHAS, cv="loo").fit(X[:1], Y[:1])


def test_a_grid_without_a_finite_score_is_an_error():
    model = KernelRidgeCV(ALPHAS, gamma=0.3, scoring=lambda y, p: np.nan)
    with pytest.raises(InvalidInputError, match="no pair of kernel and alpha has a finite score"):
        model.fit(X, Y)
    one_row = KernelRidgeCV(ALPHAS, gamma=0.3, scoring="r2", cv="loo")
    with pytest.raises(InvalidInputError, match="no pair of kernel and alpha has a finite score"):
        one_row.fit(X, Y)


def test_some_scores_that_are_not_finite_lose():
    def score(y, predicted):
        return np.nan if np.std(predicted) > 0.2 else float(np.std(predicted))

    model = KernelRidgeCV([1e-3, 1e3, 1e4], gamma=0.3, scoring=score).fit(X, Y)
    assert model.alpha_ == 1e3
    assert model.cv_results_["rank_test_score"][0] == 3
    assert "bound_test_score" not in model.cv_results_  # nothing was dropped


def test_a_score_that_cannot_take_the_predictions_says_so():
    with pytest.raises(InvalidInputError, match="scoring='neg_mean_squared_log_error' cannot"):
        KernelRidgeCV(ALPHAS, gamma=0.3, scoring="neg_mean_squared_log_error").fit(X, Y)

    def wrong(y, predicted):
        raise ValueError("not of use")

    with pytest.raises(InvalidInputError, match="cannot score these held-out predictions: not of"):
        KernelRidgeCV(ALPHAS, gamma=0.3, scoring=wrong).fit(X, Y)


def test_a_fold_trained_on_one_class_predicts_that_class():
    order = np.argsort(LABELS)
    ones = int(np.sum(LABELS == 1))
    X_sorted, labels = X[order], LABELS[order]
    splits = [(ALL[-ones:], ALL[:-ones]), (ALL[:-3], ALL[-3:])]
    model = LSSVMClassifierCV(ALPHAS, gamma=0.3, cv=splits).fit(X_sorted, labels)
    assert (model.held_out_predictions_[:-ones] == 1).all()
    assert np.isfinite(model.best_score_)


def test_a_fold_that_tests_one_class_leaves_some_scores_undefined():
    splits = [(np.delete(ALL, LABELS == 1), ALL[LABELS == 1]), (ALL[:12], ALL[12:])]
    assert np.isfinite(LSSVMClassifierCV(ALPHAS, gamma=0.3, cv=splits).fit(X, LABELS).best_score_)
    undefined = LSSVMClassifierCV(ALPHAS, gamma=0.3, cv=splits, scoring="roc_auc")
    with pytest.raises(InvalidInputError, match="a fold with one class"):
        undefined.fit(X, LABELS)


def test_one_class_in_all_is_an_error():
    with pytest.raises(InvalidInputError, match="only one class: 1"):
        LSSVMClassifierCV(ALPHAS).fit(X, np.ones(N, dtype=int))


@pytest.mark.parametrize("method", ["eigendecomposition", "inverse_blocks"])
def test_a_budget_that_is_too_small_names_what_would_fit(method):
    model = KernelRidgeCV(ALPHAS, gamma=0.3, memory_budget="1kB", search=Search(method=method))
    with pytest.raises(RidgefoldError, match=r"needs .*What would do: raise memory_budget"):
        clone(model).fit(X, Y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"intervals": "cv+", "cv": "loo"}, "at most 50 folds"),
        ({"intervals": "jacknife"}, 'intervals must be "auto", "cv\\+", "jackknife\\+" or None'),
        (
            {"search__average_folds": True, "cv": RepeatedKFold(n_splits=3, n_repeats=2)},
            "average_folds",
        ),
    ],
)
def test_what_the_folds_cannot_give_is_refused_before_the_search(settings, message, monkeypatch):
    def never(*_):
        raise AssertionError("the search began")

    monkeypatch.setattr(GridSearch, "run", never)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.standard_normal(60)
    with pytest.raises(InvalidInputError, match=message):
        KernelRidgeCV().set_params(**settings).fit(X, y)


def test_one_standard_error_where_a_fold_has_no_score():
    scores = np.array([-1.0, -1.05, -3.0])
    by_fold = np.array([-0.9, np.nan, -1.1])
    assert _largest_within_one_error([0.1, 1.0, 10.0], scores, by_fold) == 1
    assert _largest_within_one_error([0.1, 1.0, 10.0], scores, np.array([np.nan, -1.0])) == 0


def test_held_out_predictions_of_an_alpha_that_the_leader_lacks_are_computed(monkeypatch):
    """A kernel that takes the lead with alphas added to the grid has lost those before."""
    wanted = (
        KernelRidgeCV(alpha=[1e-3, 1e-1], search=Search(race="full"))
        .fit(X, Y)
        .held_out_predictions_
    )

    def only_the_last(self, candidate, alphas, predictions, *_):
        self._leader = search._Leader(candidate, np.inf, alphas[-1:], predictions[-1:])

    monkeypatch.setattr(search.GridSearch, "_keep_if_leading", only_the_last)
    for alphas in ([1e-3, 1e-1], [1e-1, 1e-3]):
        model = KernelRidgeCV(alpha=alphas, search=Search(race="full")).fit(X, Y)
        np.testing.assert_allclose(model.held_out_predictions_, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("option", ["search__alpha_per_target", "search__one_standard_error"])
def test_grids_that_are_extended_serve_every_choice(option, seed):
    rng = np.random.default_rng(seed)
    some = rng.standard_normal((40, 2))
    both = np.stack([some[:, 0], np.sin(9 * some[:, 1]) + rng.standard_normal(40)], axis=1)
    model = KernelRidgeCV().set_params(**{option: True}).fit(some, both)
    assert np.isfinite(model.held_out_predictions_).all()

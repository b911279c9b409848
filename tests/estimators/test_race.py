"""A race over the grid finds the winner of the full grid, and computes less."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, RepeatedKFold, TimeSeriesSplit

from ridgefold import KernelRidgeCV, LSSVMClassifierCV, LSSVMRegressorCV, Search, crossval
from ridgefold.crossval import make_folds
from ridgefold.errors import InvalidInputError, MethodGaveUpError
from ridgefold.records import Cost, KernelPath, Plan, Problem, Resources, StepRecord
from ridgefold.selection.race import Contest, promised, settle
from ridgefold.selection.scoring import Truth, scoring_of
from ridgefold.tables import load_bundled


def plant(n: int) -> tuple[np.ndarray, np.ndarray]:
    data = load_bundled("ccpp")
    X = (data.X[:n] - data.X[:n].mean(axis=0)) / data.X[:n].std(axis=0)
    return X, data.y[:n]


def both(cls, X, y, **arguments):
    full = cls().set_params(**arguments, search__race="full").fit(X, y)
    return full, cls().set_params(**arguments, search__race="race").fit(X, y)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"alpha": np.logspace(-4, 1, 12)},
        {"scoring": "neg_mean_absolute_error"},
        {"scoring": "neg_root_mean_squared_error"},
        {"scoring": "neg_mean_squared_error", "cv": 7},
        {"kernel": ["rbf", "laplacian"]},
        {"cv": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)},
        {"cv": TimeSeriesSplit(4)},
        {"fit_intercept": True, "search__method": "eigendecomposition"},
    ],
    ids=lambda arguments: ",".join(arguments) or "default",
)
def test_a_race_has_the_winner_of_the_full_grid(arguments):
    X, y = plant(160)
    full, race = both(KernelRidgeCV, X, y, **arguments)
    assert race.best_params_ == full.best_params_
    assert race.best_score_ == pytest.approx(full.best_score_, rel=1e-6)
    np.testing.assert_allclose(
        race.held_out_predictions_, full.held_out_predictions_, rtol=1e-6, atol=1e-6
    )


def test_pairs_that_cannot_win_are_not_scored_and_the_rest_are_as_in_the_full_grid():
    X, y = plant(200)
    full, race = both(KernelRidgeCV, X, y, alpha=np.logspace(-6, 3, 10), search__method="banded")
    scored = np.isfinite(race.cv_results_["mean_test_score"])
    assert 0 < scored.sum() < len(scored)
    np.testing.assert_allclose(
        race.cv_results_["mean_test_score"][scored],
        full.cv_results_["mean_test_score"][scored],
        rtol=1e-6,
    )
    assert race.cv_results_["rank_test_score"][race.best_index_] == 1


@pytest.mark.parametrize(
    "method", ["auto", "banded", "krylov", "preconditioned", "anchored", "refit"]
)
@pytest.mark.parametrize("cls", [KernelRidgeCV, LSSVMClassifierCV])
def test_dropped_pairs_keep_a_bound_that_their_score_does_not_exceed(cls, method):
    X, y = plant(150)
    y = y if cls is KernelRidgeCV else y > np.median(y)
    full, race = both(cls, X, y, alpha=np.logspace(-1, 4, 8), search__method=method)
    scores, bounds = full.cv_results_["mean_test_score"], race.cv_results_["bound_test_score"]
    dropped = np.isnan(race.cv_results_["mean_test_score"])
    assert dropped.any()
    assert np.all(bounds[dropped] >= scores[dropped] - 1e-6 * np.abs(scores[dropped]))
    assert np.all(bounds[dropped] <= race.best_score_)
    assert "bound_test_score" not in full.cv_results_


def test_a_race_of_classifiers_counts_right_answers():
    data = load_bundled("german")
    X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    full, race = both(LSSVMClassifierCV, X[:250], data.y[:250])
    assert race.best_params_ == full.best_params_
    assert race.best_score_ == full.best_score_


def test_weights_of_the_scores_count_in_a_race():
    X, y = plant(150)
    weights = np.random.default_rng(0).uniform(0.1, 5.0, 150)
    models = [
        LSSVMRegressorCV(search=Search(race=search, weighted_scores=True)).fit(
            X, y, sample_weight=weights
        )
        for search in ("full", "race")
    ]
    assert models[0].best_params_ == models[1].best_params_


METHODS = [
    "auto",
    "banded",
    "krylov",
    "preconditioned",
    "anchored",
    "refit",
    "eigendecomposition",
]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.one_of(st.integers(2, 6), st.just("overlapping")),
    st.booleans(),
    st.sampled_from(METHODS),
    st.sampled_from([1, 3]),
)
def test_a_race_wins_like_the_full_grid_on_any_data(seed, folds, bias, method, targets):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 2))
    y = np.sin(3 * X[:, :1]) + rng.standard_normal((40, targets)) * rng.uniform(0, 1)
    if folds == "overlapping":  # of unequal sizes; some rows are tested twice, some never
        tested = [rng.choice(40, size, replace=False) for size in (3, 11, 20)]
        folds = [(np.setdiff1d(np.arange(40), test), test) for test in tested]
    full, race = both(
        KernelRidgeCV,
        X,
        y,
        alpha=[1e-3, 1e-1, 10.0],
        cv=folds,
        fit_intercept=bias,
        search__method=method,
    )
    assert race.best_params_ == full.best_params_


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([2, 4]), st.sampled_from(METHODS))
def test_a_race_of_classifiers_wins_like_the_full_grid_on_any_data(seed, classes, method):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((48, 2))
    y = (np.digitize(X[:, 0], [-0.7, 0.0, 0.7]) + (rng.random(48) < 0.2)) % classes
    alphas = [1e-3, 1e-1, 10.0]
    full, race = both(LSSVMClassifierCV, X, y, alpha=alphas, cv=4, search__method=method)
    assert race.best_params_ == full.best_params_
    assert race.best_index_ == full.best_index_


@pytest.mark.parametrize(
    "twice", [{"kernel": ["poly", "polynomial"]}, {"kernel": "rbf", "gamma": [0.3, 0.3, 0.1]}]
)
def test_of_a_kernel_that_the_grid_holds_twice_the_first_wins(twice):
    X, y = plant(300)
    full, race = both(KernelRidgeCV, X, y, alpha=[1e-3, 1e-1, 10.0], **twice)
    assert race.best_index_ == full.best_index_
    assert race.best_params_ == full.best_params_


def test_low_rank_races_like_the_others():
    X, y = plant(300)
    arguments = {"kernel_params": {"length_scale": [1.0, 2.0, 4.0]}, "alpha": [1e-2, 1.0, 1e2]}
    full, race = both(
        KernelRidgeCV, X[:, :1], y, kernel="rbf", search__method="low_rank", **arguments
    )
    assert race.best_params_ == full.best_params_
    assert race.best_score_ == pytest.approx(full.best_score_, rel=1e-6)


def test_what_is_told_of_a_pair_that_was_dropped_counts_for_nothing():
    """A method drops a pair, gives up, and the next one says zero of it, as of any it left out."""
    folds = make_folds(KFold(2).split(np.zeros((8, 1))), 8)
    y = np.repeat([10.0, 0.0], 4)[:, None]
    rule, truth = scoring_of(None, classifier=False), Truth(folds, y, None)
    contest = Contest(rule, truth, 2)
    first, second = np.full((2, 4, 1), 10.0), np.stack([np.ones((4, 1)), np.full((4, 1), 2.0)])
    near = np.full((2, 1), 0.01)
    contest.judge(0, first, near)
    assert contest.judge(1, second, near).tolist() == [True, False]
    exact = np.zeros((2, 1))
    assert contest.judge(0, first, exact).tolist() == [True, False]
    second[1] = 0.0
    assert contest.judge(1, second, exact).tolist() == [True, False]
    assert promised(rule, truth, contest.lower) == pytest.approx(-0.5)


def test_a_method_that_gives_up_in_a_race_changes_no_winner(monkeypatch):
    X, y = plant(1000)
    arguments = {
        "alpha": np.logspace(-4, 1, 12),
        "kernel_params": {"length_scale": [0.2, 1.0, 5.0]},
    }
    full = KernelRidgeCV(kernel="rbf", search=Search(race="full")).set_params(**arguments).fit(X, y)
    tried = []
    for name in ("preconditioned", "krylov", "anchored", "low_rank"):
        method = type(crossval.METHODS[name])

        def gives_up(self, *given, held_out=method.held_out, **more):
            held_out(self, *given, **more)
            tried.append(self.name)
            raise MethodGaveUpError(f"{self.name} was told to")

        monkeypatch.setattr(method, "held_out", gives_up)
    race = KernelRidgeCV(kernel="rbf", search=Search(race="race")).set_params(**arguments).fit(X, y)
    assert tried
    assert race.best_params_ == full.best_params_
    assert race.best_score_ == pytest.approx(full.best_score_, rel=1e-9)


def test_an_unknown_search_is_refused():
    X, y = plant(30)
    with pytest.raises(InvalidInputError, match=r"search.race must be one of .*got 'fast'"):
        KernelRidgeCV(search=Search(race="fast")).fit(X, y)


@pytest.mark.parametrize(
    "arguments",
    [
        {"scoring": "r2"},
        {"search__one_standard_error": True},
        {"search__method": "eigendecomposition"},
        {"cv": "loo"},
    ],
)
def test_every_pair_is_scored_where_a_race_cannot_be_run(arguments):
    X, y = plant(60)
    model = (
        KernelRidgeCV(alpha=[1e-2, 1.0], search=Search(race="race"))
        .set_params(**arguments)
        .fit(X, y)
    )
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()


def test_the_pair_whose_score_was_promised_is_kept_if_another_method_finds_a_little_less():
    """A method promises a score, gives up, and the next one computes it with other rounding."""
    folds = make_folds(KFold(2).split(np.zeros((8, 1))), 8)
    y = np.zeros((8, 1))
    contest = Contest(scoring_of(None, classifier=False), Truth(folds, y, None), 2)
    judge, exact = contest.judge, np.zeros((2, 1))
    promised, found = np.stack([np.ones((4, 1)), np.full((4, 1), 2.0)]), 1.0 + 1e-8
    for fold in range(2):
        judge(fold, promised, exact)
    for fold in range(2):
        kept = judge(fold, promised * found, exact)
        assert kept.tolist() == [True, False]


def test_a_winner_that_a_bound_leaves_open_is_computed_again():
    """A wide kernel with a tiny ridge wins, where no certificate is small."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 1))
    y = 1e3 * (X[:, 0] + X[:, 0] ** 2) + 1e-3 * rng.standard_normal(400)
    grid = {
        "alpha": [1e-10, 1e-6, 1e-2, 1.0],
        "kernel_params": {"length_scale": [0.3, 3.0, 30.0]},
        "cv": 5,
    }
    race = KernelRidgeCV(kernel="rbf", search=Search(race="race")).set_params(**grid).fit(X, y)
    full = (
        KernelRidgeCV(kernel="rbf", search=Search(race="full", method="refit"))
        .set_params(**grid)
        .fit(X, y)
    )
    assert race.best_params_ == full.best_params_
    assert race.best_score_ == pytest.approx(full.best_score_, rel=1e-4)
    assert race.cv_plan_.problem.n_kernels == 3  # each once, however often run


PLAN = Plan(Problem(8, 1), Resources(1e9), "refit", Cost({}, 1.0), 1.0, ())


def test_what_is_open_and_beaten_by_another_kernel_is_not_computed_again():
    folds = make_folds(KFold(2).split(np.zeros((8, 1))), 8)
    rule, truth = scoring_of(None, classifier=False), Truth(folds, np.zeros((8, 1)), None)
    never, yes = np.zeros(1, dtype=bool), np.ones(1, dtype=bool)
    settled = []
    for kernel, (kept, left_open) in enumerate([(never, yes), (yes, never)]):
        predictions, contest = np.full((1, 8, 1), 3.0 - kernel), Contest(rule, truth, 1)
        for fold, run in enumerate(folds.runs):
            assert contest.judge(fold, predictions[:, run], np.full((1, 1), 0.01)).all()
        settled.append(
            KernelPath(
                predictions,
                kept,
                left_open,
                contest.upper,
                contest.lower,
                contest.dropped,
                StepRecord("a kernel", PLAN, "refit", 1.0, None),
                (),
            )
        )

    def exactly(kernel, alphas):
        raise AssertionError("nothing had to be computed again")

    worse, better = settle(rule, truth, settled, exactly)
    assert not worse.finished.any()
    assert better.finished.all()


def test_a_fold_without_weight_neither_saves_nor_drops_a_pair():
    folds = make_folds(KFold(2).split(np.zeros((8, 1))), 8)
    weights = np.repeat([0.0, 1.0], 4)
    rule, truth = scoring_of(None, classifier=False), Truth(folds, np.zeros((8, 1)), weights)
    contest = Contest(rule, truth, 2, beat := -2.0)
    predictions = np.stack([np.ones((4, 1)), np.full((4, 1), 3.0)])
    assert contest.judge(1, predictions, np.zeros((2, 1))).tolist() == [True, False]
    assert beat < promised(rule, truth, contest.lower) == -1.0

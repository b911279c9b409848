"""The CV estimators choose what GridSearchCV chooses, with its numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sklearn
import sklearn.kernel_ridge
from sklearn.metrics import (
    brier_score_loss,
    d2_absolute_error_score,
    fbeta_score,
    get_scorer,
    log_loss,
    make_scorer,
    mean_pinball_loss,
    roc_auc_score,
)
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, RepeatedKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from cases import tolerance
from ridgefold import KernelRidgeCV, LSSVMClassifier, LSSVMClassifierCV, Search
from ridgefold.errors import InvalidInputError, UnweightedScoresWarning
from ridgefold.selection.probabilities import probabilities
from ridgefold.tables import load_bundled

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
ALPHAS, GAMMAS = [1e-3, 1e-1, 1.0, 10.0], [0.02, 0.1, 0.5]
REGRESSION_SCORES = (
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_mean_absolute_error",
    "r2",
    "explained_variance",
)
CLASSIFICATION_SCORES = ("accuracy", "balanced_accuracy", "roc_auc", "f1")


def regression_data(name, n=150):
    if name == "ccpp":
        data = load_bundled(name)
        X, y = data.X, data.y
    else:
        path = SHARED / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"{name} is not at hand")
        with np.load(path) as arrays:
            X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.float64)
    rows = np.random.default_rng(0).permutation(len(X))[:n]
    return StandardScaler().fit_transform(X[rows]), (y[rows] - y[rows].mean()) / y[rows].std()


def score_tolerance(name, X, y, alpha, gamma):
    """What predictions that are off by the library's tolerance do to a fold's score."""
    mean_square = 2.0  # no fold does worse: y has variance 1
    t = tolerance(rbf_kernel(X, gamma=gamma), alpha, y, np.float64)
    if name in ("neg_root_mean_squared_error", "neg_mean_absolute_error"):
        return t
    of_square = 2 * np.sqrt(mean_square) * t + t * t
    # r2 and explained variance divide by a fold's variance, which is about 1 here: > 0.1.
    return of_square if name == "neg_mean_squared_error" else 2 * of_square / 0.1


@pytest.mark.parametrize("data", ["ccpp", "cpusmall", "kin8nm"])
@pytest.mark.parametrize("scoring", REGRESSION_SCORES)
def test_regression_has_the_choice_and_scores_of_grid_search(data, scoring):
    X, y = regression_data(data)
    peer = GridSearchCV(
        sklearn.kernel_ridge.KernelRidge(kernel="rbf"),
        {"alpha": ALPHAS, "gamma": GAMMAS},
        scoring=scoring,
        cv=5,
    ).fit(X, y)
    ours = KernelRidgeCV(ALPHAS, gamma=GAMMAS, scoring=scoring, cv=5).fit(X, y)
    assert ours.best_params_ == peer.best_params_
    assert ours.best_index_ == peer.best_index_
    assert ours.cv_results_["params"] == peer.cv_results_["params"]
    np.testing.assert_array_equal(
        ours.cv_results_["rank_test_score"], peer.cv_results_["rank_test_score"]
    )
    for i, params in enumerate(peer.cv_results_["params"]):
        for key in [*(f"split{k}_test_score" for k in range(5)), "mean_test_score"]:
            allowed = score_tolerance(scoring, X, y, params["alpha"], params["gamma"])
            assert abs(ours.cv_results_[key][i] - peer.cv_results_[key][i]) <= allowed
    new = X[:20] + 0.1
    bound = tolerance(rbf_kernel(X, gamma=ours.best_params_["gamma"]), ours.alpha_, y, np.float64)
    np.testing.assert_allclose(ours.predict(new), peer.predict(new), rtol=0, atol=bound)
    assert abs(ours.best_score_ - peer.best_score_) <= score_tolerance(
        scoring, X, y, ours.alpha_, ours.best_params_["gamma"]
    )


@pytest.mark.parametrize(
    "cv",
    [
        KFold(4, shuffle=True, random_state=1),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=2),
    ],
    ids=["shuffled", "repeated"],
)
def test_splitters_and_polynomial_parameters_are_searched_alike(cv):
    X, y = regression_data("ccpp", 90)
    grid = {
        "alpha": [0.1, 1.0],
        "coef0": [0.5, 1.0],
        "degree": [1, 2],
        "gamma": [0.1, 0.4],
    }
    peer = GridSearchCV(
        sklearn.kernel_ridge.KernelRidge(kernel="polynomial"),
        grid,
        scoring="neg_mean_squared_error",
        cv=cv,
    ).fit(X, y)
    ours = KernelRidgeCV(
        grid["alpha"],
        kernel="polynomial",
        kernel_params={"coef0": grid["coef0"], "degree": grid["degree"]},
        gamma=grid["gamma"],
        scoring="neg_mean_squared_error",
        cv=cv,
    ).fit(X, y)
    assert ours.cv_results_["params"] == peer.cv_results_["params"]
    assert ours.best_params_ == peer.best_params_
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"], rtol=1e-9
    )


def test_several_targets_are_scored_alike():
    X, y = regression_data("ccpp", 90)
    Y = np.column_stack([y, np.sin(3 * y), X[:, 0]])
    for scoring in REGRESSION_SCORES:
        peer = GridSearchCV(
            sklearn.kernel_ridge.KernelRidge(kernel="rbf", gamma=0.1),
            {"alpha": ALPHAS},
            scoring=scoring,
            cv=4,
        ).fit(X, Y)
        ours = KernelRidgeCV(ALPHAS, gamma=0.1, scoring=scoring, cv=4).fit(X, Y)
        assert ours.best_params_ == peer.best_params_
        np.testing.assert_allclose(
            ours.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"], rtol=1e-9
        )


WEIGHS_SCORES = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
"""GridSearchCV of earlier versions gives weights to the fits alone."""


def weights_for(n, kind):
    generator = np.random.default_rng(7)
    if kind == "a mask":
        return generator.integers(0, 2, n).astype(float)
    if kind == "counts":
        return generator.integers(1, 4, n).astype(float)
    return generator.uniform(0.05, 3.0, n)


@pytest.mark.parametrize("kind", ["real numbers", "counts", "a mask"])
@pytest.mark.parametrize("scoring", REGRESSION_SCORES)
def test_weighted_rows_are_chosen_by_as_in_grid_search(scoring, kind):
    X, y = regression_data("ccpp", 90)
    weights = weights_for(len(y), kind)
    peer = GridSearchCV(
        sklearn.kernel_ridge.KernelRidge(kernel="rbf"),
        {"alpha": ALPHAS, "gamma": GAMMAS},
        scoring=scoring,
        cv=5,
    ).fit(X, y, sample_weight=weights)
    settings = {} if WEIGHS_SCORES else {"search__weighted_scores": False}
    ours = KernelRidgeCV(ALPHAS, gamma=GAMMAS, scoring=scoring, cv=5).set_params(**settings)
    ours.fit(X, y, sample_weight=weights)
    assert ours.best_params_ == peer.best_params_
    for key in [*(f"split{k}_test_score" for k in range(5)), "mean_test_score"]:
        # Scores are of the size of 1, though some are near 0 as a difference from it.
        np.testing.assert_allclose(
            ours.cv_results_[key], peer.cv_results_[key], rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("scoring", CLASSIFICATION_SCORES)
def test_weighted_classes_are_chosen_by_as_in_grid_search(scoring):
    X, y = german()
    weights, alphas, gammas = weights_for(len(y), "real numbers"), [0.05, 0.5], [0.005, 0.02]
    peer = GridSearchCV(
        LSSVMClassifier(),
        {"alpha": alphas, "gamma": gammas},
        scoring=scoring,
        cv=StratifiedKFold(4),
    ).fit(X, y, sample_weight=weights)
    settings = {} if WEIGHS_SCORES else {"search__weighted_scores": False}
    ours = LSSVMClassifierCV(alphas, gamma=gammas, scoring=scoring, cv=4).set_params(**settings)
    ours.fit(X, y, sample_weight=weights)
    assert ours.best_params_ == peer.best_params_
    for k in range(4):
        key = f"split{k}_test_score"
        np.testing.assert_allclose(ours.cv_results_[key], peer.cv_results_[key], rtol=1e-12)


REGRESSION_SCORERS = {
    "a named one": get_scorer("explained_variance"),
    "a score": make_scorer(d2_absolute_error_score),
    "a loss with an argument": make_scorer(mean_pinball_loss, alpha=0.9, greater_is_better=False),
}
CLASSIFICATION_SCORERS = {
    "a named one": get_scorer("roc_auc"),
    "of labels": make_scorer(fbeta_score, beta=2.0),
    "of decisions": make_scorer(roc_auc_score, response_method="decision_function", max_fpr=0.3),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
@pytest.mark.parametrize("kind", REGRESSION_SCORERS)
def test_scorer_objects_of_numbers_score_as_in_grid_search(kind, weighted):
    X, y = regression_data("ccpp", 90)
    scoring = REGRESSION_SCORERS[kind]
    weights = weights_for(len(y), "real numbers") if weighted else None
    peer = GridSearchCV(
        sklearn.kernel_ridge.KernelRidge(kernel="rbf"),
        {"alpha": ALPHAS, "gamma": GAMMAS},
        scoring=scoring,
        cv=5,
    ).fit(X, y, sample_weight=weights)
    settings = {} if WEIGHS_SCORES else {"search__weighted_scores": False}
    ours = KernelRidgeCV(ALPHAS, gamma=GAMMAS, scoring=scoring, cv=5).set_params(**settings)
    ours.fit(X, y, sample_weight=weights)
    assert ours.best_params_ == peer.best_params_
    for key in [*(f"split{k}_test_score" for k in range(5)), "mean_test_score"]:
        np.testing.assert_allclose(
            ours.cv_results_[key], peer.cv_results_[key], rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
@pytest.mark.parametrize("kind", CLASSIFICATION_SCORERS)
def test_scorer_objects_of_classes_score_as_in_grid_search(kind, weighted):
    X, y = german()
    scoring = CLASSIFICATION_SCORERS[kind]
    weights = weights_for(len(y), "real numbers") if weighted else None
    grid = {"alpha": [0.05, 0.5], "gamma": [0.005, 0.02]}
    peer = GridSearchCV(LSSVMClassifier(), grid, scoring=scoring, cv=StratifiedKFold(4))
    peer.fit(X, y, sample_weight=weights)
    settings = {} if WEIGHS_SCORES else {"search__weighted_scores": False}
    ours = (
        LSSVMClassifierCV(grid["alpha"], gamma=grid["gamma"], scoring=scoring, cv=4)
        .set_params(**settings)
        .fit(X, y, sample_weight=weights)
    )
    assert ours.best_params_ == peer.best_params_
    for key in [*(f"split{k}_test_score" for k in range(4)), "mean_test_score"]:
        np.testing.assert_allclose(ours.cv_results_[key], peer.cv_results_[key], rtol=1e-12)


def test_a_scorer_object_that_knows_no_weights_is_warned_of():
    X, y = regression_data("ccpp", 60)
    scoring = make_scorer(lambda y, p: np.max(np.abs(y - p)), greater_is_better=False)
    settings = {"gamma": 0.1, "scoring": scoring, "cv": 3}
    with pytest.warns(UnweightedScoresWarning, match="takes no sample_weight"):
        asked = (
            KernelRidgeCV([0.1, 1.0])
            .set_params(**settings)
            .fit(X, y, weights_for(len(y), "counts"))
        )
    assert asked.best_score_ < 0


AFTER_NEWTON = 1e-6
"""Rows in another order end the iteration that calibrates at another rounding of the curve."""
SCORES_OF_PROBABILITIES = {
    "neg_log_loss": lambda y, p, w: -log_loss(y, p, sample_weight=w),
    "neg_brier_score": lambda y, p, w: -brier_score_loss(y, p[:, 1], sample_weight=w, pos_label=1),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
@pytest.mark.parametrize("of_object", [False, True], ids=["name", "object"])
@pytest.mark.parametrize("name", SCORES_OF_PROBABILITIES)
def test_scores_of_probabilities_are_of_curves_on_held_out_decisions(name, of_object, weighted):
    X, y = german()
    weights = weights_for(len(y), "real numbers") if weighted else None
    scoring = get_scorer(name) if of_object else name
    splits = list(StratifiedKFold(4).split(X, y))
    model = LSSVMClassifierCV(
        [0.05, 0.5, 5.0], gamma=[0.005, 0.02], scoring=scoring, cv=splits, probability=True
    ).fit(X, y, weights)
    p = probabilities(model.held_out_decisions_[:, None], model.calibration_)
    expected = [
        SCORES_OF_PROBABILITIES[name](y[test], p[test], None if weights is None else weights[test])
        for _, test in splits
    ]
    assert model.best_score_ == pytest.approx(np.mean(expected), rel=AFTER_NEWTON)
    for k, score in enumerate(expected):
        key = f"split{k}_test_score"
        assert model.cv_results_[key][model.best_index_] == pytest.approx(score, rel=AFTER_NEWTON)


def test_scores_of_probabilities_take_several_classes():
    X, y = regression_data("ccpp", 120)
    labels = np.array(["low", "middle", "top"])[np.digitize(y, [-0.5, 0.5])]
    splits = list(StratifiedKFold(4).split(X, labels))
    model = LSSVMClassifierCV(
        [0.01, 1.0], gamma=0.1, scoring="neg_log_loss", cv=splits, probability=True
    ).fit(X, labels)
    p = probabilities(model.held_out_decisions_, model.calibration_)
    expected = [-log_loss(labels[test], p[test]) for _, test in splits]
    assert model.best_score_ == pytest.approx(np.mean(expected), rel=AFTER_NEWTON)
    assert model.best_score_ > -np.log(3)


def test_one_held_out_row_has_a_log_loss_where_the_scorer_names_the_classes():
    X, y = german(60)
    scoring = make_scorer(
        log_loss, response_method="predict_proba", greater_is_better=False, labels=[-1.0, 1.0]
    )
    model = LSSVMClassifierCV([0.5], gamma=0.02, scoring=scoring, cv="loo", probability=True)
    model.fit(X, y)
    p = probabilities(model.held_out_decisions_[:, None], model.calibration_)
    assert model.best_score_ == pytest.approx(-log_loss(y, p), rel=AFTER_NEWTON)
    with pytest.raises(InvalidInputError, match=r"'neg_log_loss' cannot score.*labels"):
        model.set_params(scoring="neg_log_loss").fit(X, y)


@pytest.mark.parametrize(
    "scoring", ["neg_max_error", lambda y, predicted: -np.max(np.abs(y - predicted))]
)
def test_a_score_that_knows_no_weights_is_warned_of(scoring):
    X, y = regression_data("ccpp", 60)
    weights = weights_for(len(y), "counts")
    settings = {"gamma": 0.1, "scoring": scoring, "cv": 3}
    with pytest.warns(
        UnweightedScoresWarning, match="takes no sample_weight.*weighted_scores=False"
    ):
        asked = KernelRidgeCV([0.1, 1.0]).set_params(**settings).fit(X, y, weights)
    plain = (
        KernelRidgeCV([0.1, 1.0], search=Search(weighted_scores=False))
        .set_params(**settings)
        .fit(X, y, weights)
    )
    assert asked.best_score_ == plain.best_score_


def german(n=160):
    data = load_bundled("german")
    rows = np.random.default_rng(1).permutation(len(data.X))[:n]
    return StandardScaler().fit_transform(data.X[rows]), data.y[rows]


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("scoring", CLASSIFICATION_SCORES)
def test_classification_has_the_choice_and_scores_of_grid_search(scoring, class_weight):
    """Fold by fold the classifier is fitted anew; "balanced" only knows its own fold there."""
    X, y = german()
    alphas, gammas = [0.05, 0.5, 5.0], [0.005, 0.02]
    weights = class_weight
    if class_weight == "balanced":  # the same weights for all folds
        values, counts = np.unique(y, return_counts=True)
        weights = dict(zip(values.tolist(), (len(y) / (2 * counts)).tolist(), strict=True))
    peer = GridSearchCV(
        LSSVMClassifier(class_weight=weights),
        {"alpha": alphas, "gamma": gammas},
        scoring=scoring,
        cv=StratifiedKFold(4),
    ).fit(X, y)
    ours = LSSVMClassifierCV(
        alphas, gamma=gammas, scoring=scoring, cv=4, class_weight=class_weight
    ).fit(X, y)
    assert ours.best_params_ == peer.best_params_
    for k in range(4):
        np.testing.assert_allclose(
            ours.cv_results_[f"split{k}_test_score"],
            peer.cv_results_[f"split{k}_test_score"],
            rtol=1e-12,
        )
    np.testing.assert_array_equal(ours.predict(X), peer.predict(X))


def test_the_default_score_of_classes_counts_errors_over_all_folds_together():
    X, y = german(93)
    model = LSSVMClassifierCV([0.1, 1.0], gamma=0.02, cv=4).fit(X, y)
    errors = np.sum(model.held_out_predictions_ != y)
    assert model.best_score_ == pytest.approx(1 - errors / len(y), abs=1e-15)
    assert errors == round(0.5 * np.sum(np.abs(y - model.held_out_predictions_)))
    np.testing.assert_array_equal(
        model.held_out_predictions_, np.where(model.held_out_decisions_ > 0, 1.0, -1.0)
    )


def test_names_are_scored_as_their_scorers_score_held_out_predictions():
    X, y = german(80)
    splits = list(StratifiedKFold(3).split(X, y))
    model = LSSVMClassifierCV([0.3], gamma=0.02, cv=splits, scoring="balanced_accuracy")
    model.fit(X, y)
    scorer = get_scorer("balanced_accuracy")
    for k, (train, test) in enumerate(splits):
        fold = LSSVMClassifier(0.3, gamma=0.02).fit(X[train], y[train])
        assert model.cv_results_[f"split{k}_test_score"][0] == pytest.approx(
            scorer(fold, X[test], y[test]), abs=1e-15
        )

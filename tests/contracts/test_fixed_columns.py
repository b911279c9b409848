"""With unpenalised columns, too, every method gives what fitting each fold anew gives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.model_selection import KFold, ShuffleSplit

from cases import tolerance
from fixed_effects_oracle import bordered_predictions
from ridgefold import CellOptions, KernelRidge, PartitionedKernelRidge, cross_val_path
from ridgefold.crossval import METHODS, Folds
from ridgefold.errors import (
    BudgetError,
    InvalidInputError,
    MethodGaveUpError,
    UndeterminedColumnsWarning,
)
from ridgefold.exact.leave_two_out import leave_two_out
from ridgefold.kernels import RBF, Columns, KernelGram
from ridgefold.metric import HeldOutError

N, D = 41, 9
rng = np.random.default_rng(8)
X = rng.standard_normal((N, D))
X[:, 1] = 20.0 + 3.0 * X[:, 1]
Y = np.stack([np.sin(X[:, 0]) + 0.3 * X[:, 1], X[:, 2] + np.cos(X[:, 3])], axis=1)
WEIGHTS = {
    "equal": None,
    "weighted": rng.uniform(0.3, 2.0, N),
    "zeros": np.where(np.arange(N) % 7 == 0, 0.0, rng.uniform(0.3, 2.0, N)),
}
FOLDS = {
    "3": 3,
    "loo": "loo",
    "9": KFold(9),
    "shuffled": KFold(4, shuffle=True, random_state=0),
    "splits": ShuffleSplit(3, test_size=0.3, random_state=1),
}
KERNEL, ALPHAS = RBF(2.0), [0.03, 1.0, 30.0]
K = KERNEL(X)
# The folds take turns, so that every method sees each of them with each number of columns.
CASES = [
    (count, bias, weights, list(FOLDS)[place % len(FOLDS)])
    for place, (count, bias, weights) in enumerate(
        itertools.product([0, 1, 3, 8], [False, True], WEIGHTS)
    )
]


def refits(path, count, bias, weights):
    F = np.hstack([np.ones((N, int(bias))), X[:, :count]])
    expected = np.empty_like(path.predictions)
    for k, run in enumerate(path.folds.runs):
        test = path.folds.test[k]
        train = np.setdiff1d(np.arange(N), test)
        for j, alpha in enumerate(ALPHAS):
            expected[j, run] = bordered_predictions(K, F, Y, alpha, train, test, weights)
    return expected


def held_out(method, count, bias, weights, cv):
    """The path of a method; None where it says that the problem does not suit it."""
    try:
        return cross_val_path(
            X,
            Y,
            sample_weight=weights,
            alpha=ALPHAS,
            kernel=KERNEL,
            fit_intercept=bias,
            fixed=list(range(count)),
            cv=FOLDS[cv],
            method=method,
        )
    except (InvalidInputError, MethodGaveUpError, BudgetError):
        return None


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("count", "bias", "weighted", "cv"), CASES)
def test_every_method_agrees_with_refitting(method, count, bias, weighted, cv):
    weights = WEIGHTS[weighted]
    path = held_out(method, count, bias, weights, cv)
    if path is None:
        assert method == "low_rank" or (cv == "loo" and not METHODS[method].exact)
        return
    expected = refits(path, count, bias, weights)
    heaviest = 1.0 if weights is None else weights.max()
    allowed = tolerance(heaviest * K, ALPHAS, expected, np.float64)
    if path.certificate is not None:
        allowed = max(allowed, float(path.certificate.max()))
    np.testing.assert_allclose(path.predictions, expected, rtol=0, atol=allowed)


@pytest.mark.parametrize("method", ["krylov", "preconditioned", "anchored"])
@pytest.mark.parametrize("count", [1, 8])
def test_certificates_hold_and_are_not_loose_with_unpenalised_columns(method, count):
    path = cross_val_path(
        X,
        Y,
        alpha=ALPHAS,
        kernel=KERNEL,
        fit_intercept=True,
        fixed=list(range(count)),
        cv=3,
        method=method,
    )
    expected = refits(path, count, True, None)
    for k, run in enumerate(path.folds.runs):
        off = np.abs(path.predictions[:, run] - expected[:, run]).max(axis=1)
        assert np.all(off <= path.certificate[:, k, :])
    assert path.certificate.max() <= 1e-5 * np.abs(Y).max()


@pytest.mark.parametrize(("count", "bias", "weighted", "cv"), CASES)
def test_a_low_rank_factor_agrees_with_refitting(count, bias, weighted, cv):
    def path_of(method):
        return cross_val_path(
            X,
            Y,
            sample_weight=WEIGHTS[weighted],
            alpha=ALPHAS,
            kernel=Columns(RBF(3.0), [0]),
            fit_intercept=bias,
            fixed=list(range(count)),
            cv=FOLDS[cv],
            method=method,
        )

    try:
        found = path_of("low_rank")
    except (InvalidInputError, MethodGaveUpError) as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:  # a fold that holds nearly all of a column
        assert count > 0
        assert "unpenalised column" in refusal
        return
    expected = path_of("refit").predictions
    off = np.abs(found.predictions - expected)
    assert off.max() <= max(float(found.certificate.max()), 1e-9 * np.abs(Y).max())
    assert off.max() <= 1e-7 * np.abs(Y).max()


def test_the_planner_takes_another_method_where_one_cannot():
    table = np.column_stack([X, np.arange(len(X)) == 3])
    with pytest.warns(UndeterminedColumnsWarning):
        path = cross_val_path(
            table, Y, alpha=ALPHAS, kernel=Columns(RBF(20.0), [0]), fixed=[0, X.shape[1]], cv=3
        )
    assert path.method != "low_rank"
    reasons = {each.method: each.reason for each in path.plan.rejected}
    assert "of an unpenalised column" in reasons["low_rank"]


# -- beside the methods ------------------------------------------------------------------

EVERY = list(itertools.product([0, 1, 3, 8], [False, True], WEIGHTS))


def unpenalised(rows, count, bias):
    return np.hstack([np.ones((len(rows), int(bias))), rows[:, :count]])


@pytest.mark.parametrize(("count", "bias", "weighted"), EVERY)
@pytest.mark.parametrize("cv", ["3", "loo"])
def test_the_error_that_scales_are_learned_by_is_that_of_refitting(count, bias, weighted, cv):
    weights = WEIGHTS[weighted]
    kept = np.arange(N) if weights is None else np.flatnonzero(weights > 0)
    w = None if weights is None else weights[kept]
    folds = [kept[[i]] for i in range(len(kept))] if cv == "loo" else np.array_split(kept, 3)
    F, squares = unpenalised(X, count, bias), 0.0
    for test in folds:
        train = np.setdiff1d(kept, test)
        found = bordered_predictions(K, F, Y, 0.3, train, test, weights)
        squares += float(np.sum((found - Y[test]) ** 2))
    places = None if cv == "loo" else [np.searchsorted(kept, test) for test in folds]
    criterion = HeldOutError(
        X[kept],
        Y[kept],
        folds=places,
        bias=bias,
        weights=w,
        columns=X[kept, :count] if count else None,
    )
    assert criterion.value(KERNEL, 0.3) == pytest.approx(squares / Y[kept].size, rel=1e-8)


@pytest.mark.parametrize(("count", "bias", "weighted"), EVERY)
def test_models_without_two_folds_are_refits(count, bias, weighted):
    weights, folds = WEIGHTS[weighted], Folds(N, tuple(np.array_split(np.arange(N), 5)))
    gram, F = KernelGram(KERNEL, X, fixed=tuple(range(count))), unpenalised(X, count, bias)
    groups = [np.array([k]) for k in range(5)]
    found = leave_two_out(gram, Y, np.full(2, 0.3), folds, groups, weights=weights, bias=bias)
    for g, k in itertools.permutations(range(5), 2):
        test = folds.test[k]
        train = np.setdiff1d(np.arange(N), np.concatenate([folds.test[g], test]))
        expected = bordered_predictions(K, F, Y, 0.3, train, test, weights)
        counted = np.ones(len(test), bool) if weights is None else weights[test] > 0
        np.testing.assert_allclose(found[g, test][counted], expected[counted], atol=1e-8)


@pytest.mark.parametrize(("count", "bias", "weighted"), EVERY)
@pytest.mark.parametrize("kind", ["average", "refined"])
def test_cells_that_are_averaged_or_refined_solve_bordered_systems(kind, count, bias, weighted):
    weights = WEIGHTS[weighted]
    settings = {"alpha": 0.3, "kernel": KERNEL, "fit_intercept": bias}
    settings |= {"fixed": list(range(count)), "n_partitions": 2, "random_state": 0}
    if kind == "average":
        model = PartitionedKernelRidge("random", combine="average", **settings)
    else:
        model = PartitionedKernelRidge(
            cells=CellOptions(refine="exact", tuning="shared"), **settings
        )
    model.fit(X, Y, weights)
    F, everything, at = unpenalised(X, count, bias), np.arange(N), model._cells.offsets
    expected = np.zeros_like(Y)
    for c, alpha in enumerate(model.alpha_):
        rows = model._cells.rows[at[c] : at[c + 1]]
        expected += bordered_predictions(K, F, Y, alpha, rows, everything, weights)
    np.testing.assert_allclose(model.predict(X), expected / len(model.alpha_), atol=1e-6)
    if kind == "refined":
        whole = KernelRidge(0.3, kernel=KERNEL, fit_intercept=bias, fixed=list(range(count)))
        np.testing.assert_allclose(model.predict(X), whole.fit(X, Y, weights).predict(X), atol=1e-6)

"""Bounds on errors are bounds: those that methods report at the end, and those on the way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgefold import KernelRidgeCV, cross_val_path
from ridgefold.crossval import METHODS, make_folds
from ridgefold.errors import MethodGaveUpError
from ridgefold.kernels import RBF, KernelGram, Laplacian, Matern, Polynomial

KERNELS = [RBF(0.3), RBF(2.0), RBF(20.0), Laplacian(1.0), Matern(1.0, nu=1.5), Polynomial(degree=2)]
CERTIFIED = [name for name, method in METHODS.items() if not method.exact]


def problem(seed: int, n: int, n_folds: int, kernel, *, weighted: bool):
    rng = np.random.default_rng(seed)
    gram = KernelGram(kernel, rng.standard_normal((n, 3)))
    y = rng.standard_normal((n, 2)) * 10.0 ** rng.integers(-3, 4)
    test = np.array_split(rng.permutation(n), n_folds)
    folds = make_folds([(np.setdiff1d(np.arange(n), rows), rows) for rows in test], n)
    weights = rng.uniform(0.2, 3.0, n) if weighted else None
    return gram, y, folds, weights


def exact(given, alphas, *, bias):
    gram, y, folds, weights = given
    refit = METHODS["refit"]
    return refit.held_out(refit.prepare(gram, folds, weights, bias), y, alphas).predictions


def by_fold(folds, errors):
    """The largest error of every fold: (a, folds, t)."""
    return np.stack([errors[:, run, :].max(axis=1) for run in folds.runs], axis=1)


@pytest.mark.parametrize("name", CERTIFIED)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(12, 70),
    n_folds=st.integers(2, 6),
    kernel=st.sampled_from(KERNELS),
    smallest=st.sampled_from([1e-6, 1e-4, 1e-2, 1.0]),
    bias=st.booleans(),
    weighted=st.booleans(),
)
def test_certificates_bound_the_true_error(name, *, bias, weighted, smallest, **shape):
    given = gram, y, folds, weights = problem(**shape, weighted=weighted)
    alphas = smallest * np.asarray([1.0, 30.0, 1000.0])
    method = METHODS[name]
    try:
        result = method.held_out(method.prepare(gram, folds, weights, bias), y, alphas)
    except MethodGaveUpError:
        return  # nothing is promised
    truth = exact(given, alphas, bias=bias)
    errors = by_fold(folds, np.abs(result.predictions - truth))
    assert np.all(errors <= result.certificate)


@pytest.mark.parametrize("name", CERTIFIED)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_ordinary_problems_are_solved_and_not_given_up(name, bias, weighted):
    given = gram, y, folds, weights = problem(5, 60, 4, RBF(20.0), weighted=weighted)
    alphas = np.logspace(-2, 1, 4)
    method = METHODS[name]
    result = method.held_out(method.prepare(gram, folds, weights, bias), y, alphas)
    truth = exact(given, alphas, bias=bias)
    np.testing.assert_allclose(result.predictions, truth, atol=1e-6 * np.abs(y).max())


@pytest.mark.parametrize(
    "name", ["low_rank", "preconditioned", "anchored", "krylov", "banded", "refit"]
)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_what_a_judge_is_told_is_true(name, bias, kernel):
    given = gram, y, folds, weights = problem(3, 60, 4, kernel, weighted=True)
    alphas = np.logspace(-4, 1, 6)
    truth = exact(given, alphas, bias=bias)
    asked = []

    def judge(fold, predictions, error):
        off = np.abs(predictions - truth[:, folds.runs[fold], :]).max(axis=1)
        allowance = 1e-7 * np.abs(y).max()
        assert np.all(off <= error + allowance)
        asked.append(fold)
        return np.ones(len(alphas), dtype=bool)

    method = METHODS[name]
    try:
        result = method.held_out(method.prepare(gram, folds, weights, bias), y, alphas, judge=judge)
    except MethodGaveUpError:
        return  # what was said before has been checked
    assert set(asked) == {0, 1, 2, 3}
    still_open = np.zeros(6, dtype=bool) if result.open is None else result.open
    assert np.all(result.kept != still_open)  # each is one of the two: none was dropped
    exactly = result.kept
    np.testing.assert_allclose(
        result.predictions[exactly], truth[exactly], atol=1e-6 * np.abs(y).max()
    )


@pytest.mark.parametrize(
    "name", ["low_rank", "preconditioned", "anchored", "krylov", "banded", "refit"]
)
def test_alphas_that_a_judge_drops_are_left_out(name):
    given = gram, y, folds, weights = problem(3, 60, 4, RBF(4.0), weighted=False)
    alphas = np.logspace(-4, 1, 6)
    wanted = np.arange(6) == 4
    method = METHODS[name]
    result = method.held_out(
        method.prepare(gram, folds, weights, False), y, alphas, judge=lambda *_: wanted
    )
    np.testing.assert_array_equal(result.kept, wanted)
    truth = exact(given, alphas, bias=False)
    np.testing.assert_allclose(result.predictions[4], truth[4], atol=1e-6 * np.abs(y).max())


@pytest.mark.parametrize("alpha", [1e206, 1e300])
def test_huge_ridges_give_the_mean_or_nothing(alpha):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 2)), rng.standard_normal(200)
    path = cross_val_path(X, y, alpha=[alpha])
    assert np.abs(path.predictions).max() < 1e-150


def test_huge_rows_have_huge_ridges_of_their_own():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 2)), rng.standard_normal(200)
    model = KernelRidgeCV(kernel="linear").fit(X * 1e110, y)
    plain = KernelRidgeCV(kernel="linear").fit(X, y)
    np.testing.assert_allclose(model.predict(X * 1e110), plain.predict(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("method", ["krylov", "preconditioned", "anchored"])
@pytest.mark.parametrize("alpha", [1e-20, 1e-13])
@pytest.mark.filterwarnings("ignore::ridgefold.errors.ConditionWarning")
def test_a_ridge_near_zero_is_no_excuse_for_few_digits(method, alpha):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 3)), rng.standard_normal(300)
    arguments = {"kernel": "laplacian", "gamma": 1.0, "alpha": [alpha, 1.0]}
    exact = cross_val_path(X, y, method="refit", **arguments).predictions
    try:
        found = cross_val_path(X, y, method=method, **arguments).predictions
    except MethodGaveUpError:
        return
    assert np.abs(found - exact).max() < 1e-4


def test_the_bound_of_low_rank_holds_where_rows_of_a_fold_are_small():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2)) * np.repeat([10.0, 1e-3], 60)[:, None]
    y = rng.standard_normal(120)
    folds = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
    arguments = {"kernel": "linear", "alpha": [1.0, 10.0], "cv": folds}
    exact = cross_val_path(X, y, method="refit", fit_intercept=True, **arguments)
    found = cross_val_path(X, y, method="low_rank", fit_intercept=True, **arguments)
    error = np.abs(found.predictions - exact.predictions).reshape(2, 2, 60).max(axis=2)
    assert np.all(error <= found.certificate[:, :, 0] + 1e-9)


def test_spaces_stay_orthogonal_to_the_bias_where_weights_are_far_apart():
    """Else residuals are 1e4 times what the recurrence of the space says."""
    rng = np.random.default_rng(0)
    n = 36
    gram = KernelGram(RBF(1.5), rng.standard_normal((n, 2)))
    y = rng.standard_normal((n, 2))
    tests = np.array_split(np.arange(n), 4)
    folds = make_folds([(np.setdiff1d(np.arange(n), rows), rows) for rows in tests], n)
    weights = rng.uniform(0.5, 2.0, n)
    weights[tests[0]] *= 2e8
    alphas = np.array([300.0, 3e3, 3e4])
    told = []

    def judge(fold, predictions, error):
        told.append(error)
        return np.ones(3, dtype=bool)

    method = METHODS["krylov"]
    method.held_out(method.prepare(gram, folds, weights, True), y, alphas, judge=judge)
    estimated, measured = told[-8:-4], told[-4:]
    for before, after in zip(estimated[1:], measured[1:], strict=True):
        assert np.all(after <= 20.0 * before)

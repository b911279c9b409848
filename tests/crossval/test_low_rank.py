"""A factor that leaves nothing of K but rounding errors is as good as K."""

import numpy as np
import pytest

from contracts.extended import kernel_matrix, ridge
from ridgefold import KernelRidgeCV, Search, cross_val_path
from ridgefold.errors import MethodGaveUpError
from ridgefold.kernels import RBF

EPS = np.finfo(np.float64).eps
WIDTHS = {1: 0.1, 2: 0.5, 3: 2.0}


def noisy(n, columns):
    rng = np.random.default_rng(columns)
    X = rng.uniform(size=(n, columns))
    return X, np.sin(9 * X[:, 0]) + np.abs(X[:, -1] - 0.5) + 0.5 * rng.standard_normal(n)


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", [4, "loo"])
def test_small_ridges_are_right_to_rounding(columns, bias, weighted, cv):
    X, y = noisy(200, columns)
    weights = np.random.default_rng(7).uniform(0.2, 2.0, 200) if weighted else None
    alphas = np.array([1e-6, 1e-5, 1e-3])
    found, plain = (
        cross_val_path(
            X,
            y,
            alpha=alphas,
            kernel=RBF(WIDTHS[columns]),
            cv=cv,
            fit_intercept=bias,
            sample_weight=weights,
            method=method,
        )
        for method in ("low_rank", "refit")
    )
    left = 32 * EPS * 200 * (1.0 if weights is None else weights.max())
    off = np.max(np.abs(found.predictions - plain.predictions), axis=(1, 2))
    assert np.all(off <= left / alphas * np.max(np.abs(y)))
    assert np.all(off <= found.certificate.max(axis=(1, 2)))
    assert found.certificate.max() > 1e-7 * np.max(np.abs(y))  # which alone would not be accepted


def test_ridges_that_rounding_swamps_are_left_to_others():
    X, y = noisy(300, 1)
    with pytest.raises(MethodGaveUpError, match="can only promise"):
        cross_val_path(X, y, alpha=[1e-8], kernel=RBF(0.05), cv=4, method="low_rank")
    path = cross_val_path(X, y, alpha=[1e-8], kernel=RBF(0.05), cv=4)
    assert path.method != "low_rank"


def test_a_search_on_a_noisy_line_is_done_by_factors_alone():
    X, y = noisy(1000, 1)
    model = KernelRidgeCV(kernel="rbf").fit(X, y)
    choosing = [step for step in model.run_record_.steps if step.name.startswith("choosing")]
    assert [step.method for step in choosing] == ["low_rank"]
    assert choosing[0].seconds < 30.0
    plain = KernelRidgeCV(kernel="rbf", search=Search(method="refit", race="full")).fit(X, y)
    assert model.best_params_ == plain.best_params_


def test_narrow_kernels_keep_to_what_exact_methods_keep_to():
    """Their entries are off by hundreds of eps, which pivots below that would blow up."""
    X, y = noisy(2000, 1)
    alphas = np.array([1e-4, 1e-3])
    found, plain = (
        cross_val_path(X, y, alpha=alphas, kernel=RBF(0.02), cv=2, method=method)
        for method in ("low_rank", "refit")
    )
    condition = np.linalg.norm(RBF(0.02)(X), 2) / alphas
    off = np.max(np.abs(found.predictions - plain.predictions), axis=(1, 2))
    assert np.all(off <= 10 * (2000 + condition) * EPS * np.max(np.abs(y)))


def exact_without(rows, X, y, weights, alphas, *, bias):
    """Predictions of some rows by the model of all others, in extended precision."""
    others = np.setdiff1d(np.arange(len(X)), rows)
    K = kernel_matrix(RBF(1.0), X, X[others])
    fit = ridge(K[others], y[others, None], weights[others], alphas, bias=bias)
    return fit(K[rows])[:, :, 0]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("heavy", [1e3, 1e9, 1e12, 1e17])
@pytest.mark.parametrize("folds", ["a fold", "a row"])
def test_certificates_hold_where_one_fold_has_nearly_all_the_weight(folds, heavy, bias):
    X, y = noisy(60, 1)
    tests = np.array_split(np.arange(60), 5 if folds == "a fold" else 60)
    weights = np.ones(60)
    weights[tests[2]] = heavy
    cv = [(np.setdiff1d(np.arange(60), rows), rows) for rows in tests]
    alphas = heavy * np.array([1e-2, 1.0])
    found = cross_val_path(
        X,
        y,
        alpha=alphas,
        kernel=RBF(1.0),
        cv=cv,
        fit_intercept=bias,
        sample_weight=weights,
        method="low_rank",
    )
    for k in (1, 2):
        wanted = exact_without(tests[k], X, y, weights, alphas, bias=bias)
        off = np.max(np.abs(found.predictions[:, tests[k], 0] - wanted), axis=1)
        assert np.all(off <= found.certificate[:, k, 0])
        assert np.all(off <= 1e-6)

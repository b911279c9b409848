"""Held-out predictions of every alpha, as a function."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold

from cases import rows, targets, tolerance
from ridgefold import cross_val_path
from ridgefold.crossval import METHODS
from ridgefold.errors import ConditionWarning, InvalidInputError
from ridgefold.kernels import RBF

X, Y = rows(41), targets(rows(41), 2)
ALPHAS = [0.03, 0.5, 4.0]
K = rbf_kernel(X, gamma=0.4)


def expected(alpha, y=Y, folds=5):
    parts = []
    for train, test in KFold(folds).split(X):
        A = K[np.ix_(train, train)] + alpha * np.eye(len(train))
        parts.append(K[np.ix_(test, train)] @ np.linalg.solve(A, y[train]))
    return np.concatenate(parts)


def test_a_path_is_a_table_in_notebooks():
    path = cross_val_path(X, Y[:, 0], gamma=0.4, alpha=ALPHAS)
    page = path._repr_html_()
    best = np.sqrt(path.mse.min())
    assert f'font-weight:bold"><td>{path.best_alpha:.4g}</td><td>{best:.4g}</td>' in page
    assert page.count("<tr>") + page.count("<tr ") >= 4
    assert path.method in page


def test_predictions_are_those_of_refits_for_every_alpha():
    path = cross_val_path(X, Y, gamma=0.4, alpha=ALPHAS)
    assert path.predictions.shape == (3, 41, 2)
    np.testing.assert_array_equal(path.test_rows, np.arange(41))
    np.testing.assert_array_equal(path.alphas, ALPHAS)
    np.testing.assert_array_equal(path.targets, Y)
    for j, alpha in enumerate(ALPHAS):
        wanted = expected(alpha)
        allowed = tolerance(K, alpha, wanted, np.float64)
        np.testing.assert_allclose(path.predictions[j], wanted, rtol=0, atol=allowed)


def test_errors_are_pooled_by_fold_and_by_target():
    path = cross_val_path(X, Y, gamma=0.4, alpha=ALPHAS)
    errors = np.stack([(expected(alpha) - Y) ** 2 for alpha in ALPHAS])
    np.testing.assert_allclose(path.mse, errors.mean(axis=(1, 2)), rtol=1e-10)
    np.testing.assert_allclose(path.target_mse, errors.mean(axis=1), rtol=1e-10)
    folds = [errors[:, test].mean(axis=(1, 2)) for _, test in KFold(5).split(X)]
    np.testing.assert_allclose(path.fold_mse, np.stack(folds, axis=1), rtol=1e-10)
    assert path.best_alpha == ALPHAS[int(np.argmin(errors.mean(axis=(1, 2))))]


def test_one_dimensional_targets_are_one_column():
    path = cross_val_path(X, Y[:, 0], gamma=0.4, alpha=ALPHAS)
    assert path.predictions.shape == (3, 41, 1)
    assert path.by_row(0.5).shape == (41, 1)


def test_by_row_averages_repeats_and_leaves_gaps():
    splits = [
        (np.arange(10, 41), np.arange(10)),
        (np.r_[0:5, 15:41], np.arange(5, 15)),
    ]
    path = cross_val_path(X, Y, gamma=0.4, alpha=ALPHAS, cv=splits)
    by_row = path.by_row(0.5)
    twice = (path.predictions[1, 5:10] + path.predictions[1, 10:15]) / 2
    np.testing.assert_allclose(by_row[5:10], twice, rtol=1e-14)
    np.testing.assert_array_equal(by_row[:5], path.predictions[1, :5])
    assert np.isnan(by_row[15:]).all()


@pytest.mark.parametrize(
    "method", ["refit", "inverse_blocks", "eigendecomposition", "block_recursive"]
)
def test_the_method_asked_for_is_used_and_named(method):
    path = cross_val_path(X, Y, gamma=0.4, alpha=ALPHAS, method=method, fit_intercept=True)
    assert path.method == path.plan.method == method
    assert path.warnings == ()
    peer = cross_val_path(X, Y, gamma=0.4, alpha=ALPHAS, method="refit", fit_intercept=True)
    allowed = tolerance(K, ALPHAS, Y, np.float64)
    np.testing.assert_allclose(path.predictions, peer.predictions, rtol=0, atol=allowed)


def test_auto_says_what_else_was_possible():
    path = cross_val_path(X, Y, gamma=0.4, alpha=ALPHAS)
    assert {rejection.method for rejection in path.plan.rejected} == set(METHODS) - {path.method}
    assert all(len(rejection.reason) > 5 for rejection in path.plan.rejected)


def test_alphas_come_from_the_data_if_none_are_given():
    path = cross_val_path(X, Y, gamma=0.4)
    largest = np.linalg.eigvalsh(K)[-1]
    assert path.alphas.min() < 1e-6 * largest
    assert path.alphas.max() >= largest
    by_matrix = cross_val_path(K, Y, kernel="precomputed")
    np.testing.assert_allclose(by_matrix.alphas, path.alphas, rtol=1e-12)


@pytest.mark.parametrize("method", ["inverse_blocks", "eigendecomposition"])
def test_an_ill_conditioned_alpha_is_warned_about_and_remembered(method):
    line = np.linspace(0, 1, 41)[:, None]
    with pytest.warns(ConditionWarning, match=r"ill-conditioned for 1 of 2 alphas") as caught:
        path = cross_val_path(line, Y, kernel=RBF(2.0), alpha=[1e-13, 1.0], method=method)
    assert len(caught) == 1
    assert path.warnings == (str(caught[0].message),)
    assert path.conditions[0] > 1e12


def test_refitting_warns_where_digits_are_lost():
    line = np.linspace(0, 1, 41)[:, None]
    with pytest.warns(ConditionWarning):
        cross_val_path(line, Y, kernel=RBF(2.0), alpha=[1e-13], method="refit")


def test_well_conditioned_alphas_bring_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = cross_val_path(X, Y, gamma=0.4, alpha=ALPHAS)
    assert path.warnings == ()


def test_weights_enter_the_fits():
    weights = np.random.default_rng(2).uniform(0.2, 2.0, 41)
    path = cross_val_path(X, Y, gamma=0.4, alpha=[0.5], sample_weight=weights)
    train, test = next(iter(KFold(5).split(X)))
    A = K[np.ix_(train, train)] + 0.5 * np.diag(1 / weights[train])
    wanted = K[np.ix_(test, train)] @ np.linalg.solve(A, Y[train])
    np.testing.assert_allclose(path.predictions[0, : len(test)], wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_tensors_in_tensors_out(dtype):
    tensor, y = torch.tensor(X, dtype=dtype), torch.tensor(Y, dtype=dtype)
    path = cross_val_path(tensor, y, gamma=0.4, alpha=ALPHAS)
    assert isinstance(path.predictions, torch.Tensor)
    assert path.predictions.dtype == dtype
    assert isinstance(path.mse, np.ndarray)
    for j, alpha in enumerate(ALPHAS):
        wanted = expected(alpha)
        np_dtype = np.float32 if dtype == torch.float32 else np.float64
        allowed = tolerance(K, alpha, wanted, np_dtype)
        np.testing.assert_allclose(path.predictions[j].numpy(), wanted, rtol=0, atol=allowed)


def test_verbose_shows_progress(capsys):
    cross_val_path(X, Y, gamma=0.4, alpha=ALPHAS, verbose=1)
    assert "100%" in capsys.readouterr().err


def test_only_alphas_of_the_path_have_predictions_by_row():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 2)), rng.standard_normal(40)
    path = cross_val_path(X, y, kernel="rbf", alpha=[0.1, 1.0], cv=4)
    assert path.by_row(1.0).shape == (40, 1)
    for alpha in (0.5, 0.0, -1.0, float("nan")):
        with pytest.raises(InvalidInputError, match=r"is not one of this path: take one of"):
            path.by_row(alpha)


@pytest.mark.parametrize(
    ("method", "looked"),
    [
        ("auto", True),
        ("krylov", True),
        ("preconditioned", True),
        ("eigendecomposition", False),
        ("inverse_blocks", False),
    ],
)
def test_data_are_looked_at_where_time_depends_on_them(method, looked):
    """Steps follow from the spectrum; the time of a decomposition does not."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    path = cross_val_path(X, X[:, 0], kernel=RBF(1.0), alpha=[1.0], method=method)
    assert bool(path.plan.problem.spectrum) is looked

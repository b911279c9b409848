"""The mean of the models of a cell's folds is one fit, of targets that are partly predictions."""

from __future__ import annotations

import numpy as np
import pytest

from cases import rows, targets, tolerance
from ridgefold.cells.fold_mean import mean_of_folds
from ridgefold.cells.local_fit import CellData, CellSystem, FitSettings
from ridgefold.kernels import RBF, Linear
from ridgefold.records import Grid

X = rows(40, 3, seed=1)
Y = targets(X, 2, seed=2)
ALPHA = 0.1


KERNEL = RBF(1.0)


def settings(folds, *, kernel=KERNEL, bias=True, device=None):
    return FitSettings(
        grid=Grid((RBF(9.0), kernel), np.array([ALPHA]), 0, 0, ordered=False),
        choose=True,
        bias=bias,
        held_out=True,
        clip=False,
        fallback=np.zeros(2),
        device=device,
        average_folds=folds,
    )


def fit_of(data, *, kernel=KERNEL, alpha=ALPHA, bias=True):
    return CellSystem(data, (RBF(9.0), kernel), bias=bias).fit(1, alpha, held_out=True)


def predictions(fit, *, kernel=KERNEL, known=X):
    return kernel(X, known) @ fit.dual_coef + fit.intercept


def training_rows(counted, folds):
    return [np.delete(counted, np.s_[k::folds]) for k in range(folds)]


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("folds", [2, 3, 7, 15])
@pytest.mark.parametrize("weights", [None, np.arange(40.0) % 4], ids=["equal", "zeros"])
def test_it_is_the_mean_of_fits_without_each_fold(weights, folds, device):
    if device is not None:
        pytest.importorskip("torch")
    data = CellData(X, Y, weights, None)
    fit = fit_of(data)
    mean = mean_of_folds(fit, data, settings(folds, device=device))
    counted = np.arange(40) if weights is None else np.flatnonzero(weights)
    trained = training_rows(counted, folds)
    refits = [predictions(fit_of(data.taken(some)), known=X[some]) for some in trained]
    expected = np.mean(refits, axis=0)
    off = np.abs(predictions(mean) - expected).max()
    change = np.abs(predictions(fit) - expected).max()
    assert off <= tolerance(KERNEL(X[counted]), ALPHA / 3, expected, np.float64) < 1e-3 * change
    assert isinstance(mean.dual_coef, np.ndarray)
    assert mean.residuals is fit.residuals
    assert (mean.kernel, mean.alpha) == (1, ALPHA)
    if weights is not None:
        assert not np.any(mean.dual_coef[weights == 0])


def test_targets_of_rows_without_weight_do_not_matter():
    weights = np.arange(40.0) % 4
    wild = np.where(weights[:, None] > 0, Y, 1e6)
    one, other = (
        mean_of_folds(fit_of(data), data, settings(3))
        for data in (CellData(X, y, weights, None) for y in (Y, wild))
    )
    np.testing.assert_array_equal(one.dual_coef, other.dual_coef)
    np.testing.assert_array_equal(one.intercept, other.intercept)


@pytest.mark.parametrize("folds", [None, 21])
def test_a_cell_with_too_few_rows_keeps_its_fit(folds):
    data = CellData(X, Y, None, None)
    fit = fit_of(data)
    assert mean_of_folds(fit, data, settings(folds)) is fit
    assert mean_of_folds(fit, data, settings(20)) is not fit
    few = CellData(X, Y, (np.arange(40) < 5).astype(float), None)
    fit = fit_of(few)
    assert mean_of_folds(fit, few, settings(3)) is fit


def test_a_system_without_a_factor_has_a_mean():
    """More rows than columns, and no ridge to speak of: means of plain least squares."""
    data, linear = CellData(X, Y, None, None), Linear()
    fit = fit_of(data, kernel=linear, alpha=1e-15, bias=False)
    mean = mean_of_folds(fit, data, settings(4, kernel=linear, bias=False))
    trained = training_rows(np.arange(40), 4)
    slopes = [np.linalg.lstsq(X[some], Y[some], rcond=None)[0] for some in trained]
    expected = X @ np.mean(slopes, axis=0)
    np.testing.assert_allclose(predictions(mean, kernel=linear), expected, rtol=0, atol=1e-9)

"""Prediction intervals are those of plain refits, and cover what they say on real data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit

import ridgefold
from cases import rows, targets
from ridgefold import Compute, KernelRidge, KernelRidgeCV, LSSVMRegressor, LSSVMRegressorCV
from ridgefold.errors import BudgetError, InvalidInputError
from ridgefold.exact.interval_ranks import interval_from_models
from ridgefold.kernels import RBF
from ridgefold.selection.held_out_predictions import shuffled_folds
from ridgefold.tables import load_bundled

X, X_NEW = rows(45, 3), rows(12, 3, seed=9)
Y = targets(X)
TWO = targets(X, 2)
WEIGHTS = np.random.default_rng(3).uniform(0.2, 3.0, 45)
OVER_DECADES = 10.0 ** np.random.default_rng(4).uniform(-20, 0, 45)
ON_ONE_ROW = np.where(np.arange(45) == 5, 1.0, 1e-10 * WEIGHTS)
SOME_ZERO = np.where(np.arange(45) % 7 == 0, 0.0, WEIGHTS)


def by_definition(model, y, weights, folds, coverage):
    """Barber et al.'s intervals from models that were refitted without each fold."""
    n_new, columns = len(X_NEW), y.reshape(len(y), -1).shape[1]
    low, high = [], []
    for test in folds:
        keep = np.setdiff1d(np.arange(len(y)), test)
        part = clone(model).set_params(intervals=None)
        part.fit(X[keep], y[keep], None if weights is None else weights[keep])
        new = part.predict(X_NEW).reshape(n_new, columns)
        counted = [i for i in test if weights is None or weights[i] > 0]
        errors = np.abs(y[counted] - part.predict(X)[counted]).reshape(len(counted), columns)
        low += [new - error for error in errors]
        high += [new + error for error in errors]
    n = len(low)
    below, above = int((1 - coverage) * (n + 1) + 1e-9), int(np.ceil(coverage * (n + 1) - 1e-9))
    lower = np.sort(np.stack(low), axis=0)[below - 1]
    upper = np.sort(np.stack(high), axis=0)[above - 1]
    return lower.reshape(n_new, *y.shape[1:]), upper.reshape(n_new, *y.shape[1:])


CASES = {
    "plain": (KernelRidge(0.1, kernel="rbf"), Y, None),
    "bias": (LSSVMRegressor(0.1), Y, None),
    "bias and weights": (LSSVMRegressor(0.1), Y, WEIGHTS),
    "weights": (KernelRidge(0.1, kernel="laplacian"), Y, WEIGHTS),
    "weights over 20 decades": (LSSVMRegressor(0.1), Y, OVER_DECADES),
    "nearly all weight on one row": (LSSVMRegressor(0.1), Y, ON_ONE_ROW),
    "rows of weight zero": (LSSVMRegressor(0.1), Y, SOME_ZERO),
    "two targets": (LSSVMRegressor(0.1, kernel=RBF(2.0) + 1), TWO, None),
    "two targets and weights": (LSSVMRegressor(0.1), TWO, WEIGHTS),
    "primal": (KernelRidge(0.1, fit_intercept=True, compute=Compute(solver="primal")), Y, None),
    "eigendecomposition": (
        LSSVMRegressor(0.1, compute=Compute(solver="eigendecomposition")),
        Y,
        None,
    ),
    "conjugate gradients": (
        LSSVMRegressor(0.1, compute=Compute(solver="conjugate_gradient", tol=1e-12)),
        Y,
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_jackknife_plus_is_that_of_refits_without_each_row(name):
    model, y, weights = CASES[name]
    model = clone(model).set_params(intervals="jackknife+").fit(X, y, weights)
    rows_left_out = [[i] for i in range(45)]
    for coverage in (0.5, 0.9):
        expected = by_definition(model, y, weights, rows_left_out, coverage)
        for ours, theirs in zip(model.predict_interval(X_NEW, coverage), expected, strict=True):
            assert ours.shape == model.predict(X_NEW).shape
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_cv_plus_is_that_of_refits_without_each_fold(name):
    model, y, weights = CASES[name]
    model = clone(model).set_params(intervals="cv+").fit(X, y, weights)
    expected = by_definition(model, y, weights, shuffled_folds(45, 10).test, 0.8)
    for ours, theirs in zip(model.predict_interval(X_NEW, 0.8), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)


@pytest.mark.filterwarnings("ignore::ridgefold.errors.ConditionWarning")
@pytest.mark.parametrize("bias", [True, False])
def test_jackknife_plus_of_a_singular_system_is_that_of_a_tiny_ridge(bias):
    settings = {"kernel": "linear", "fit_intercept": bias, "intervals": "jackknife+"}
    ends = [
        np.stack(KernelRidge(alpha).set_params(**settings).fit(X, Y).predict_interval(X_NEW, 0.8))
        for alpha in (1e-15, 1e-7)
    ]
    np.testing.assert_allclose(*ends, atol=1e-6)


def test_a_ridge_for_each_target_is_taken_by_cv_plus_alone():
    model = KernelRidge((0.1, 2.0), kernel="rbf", intervals="cv+").fit(X, TWO)
    lower, _ = model.predict_interval(X_NEW)
    for j, alpha in enumerate((0.1, 2.0)):
        alone = KernelRidge(alpha, kernel="rbf", intervals="cv+").fit(X, TWO[:, j])
        np.testing.assert_allclose(lower[:, j], alone.predict_interval(X_NEW)[0], rtol=1e-9)
    with pytest.raises(InvalidInputError, match="one alpha > 0"):
        KernelRidge((0.1, 2.0), intervals="jackknife+").fit(X, TWO)


@pytest.mark.parametrize("cls", [KernelRidgeCV, LSSVMRegressorCV])
@pytest.mark.parametrize("y", [Y, TWO], ids=["one target", "two targets"])
def test_cross_validated_models_use_their_own_folds(cls, y):
    model = cls([0.1, 1.0], kernel="rbf", gamma=[0.1, 0.5], cv=KFold(6)).fit(X, y)
    alone = LSSVMRegressor(
        model.alpha_, kernel=model.kernel_, fit_intercept=cls is not KernelRidgeCV
    )
    folds = [test for _, test in KFold(6).split(X)]
    expected = by_definition(alone, y, None, folds, 0.9)
    for ours, theirs in zip(model.predict_interval(X_NEW), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)
    assert model.intervals_.method == "cv+"
    assert model.intervals_.kept_numbers == 45 * 6 * (1 if y.ndim == 1 else 2)


def test_leave_one_out_keeps_a_matrix_only_when_asked():
    A, b = rows(60, 3), targets(rows(60, 3))
    model = LSSVMRegressorCV([0.1, 1.0], gamma=0.3, cv="loo").fit(A, b)
    with pytest.raises(InvalidInputError, match=r'intervals="jackknife\+" \(3,600 numbers\)'):
        model.predict_interval(X_NEW)
    model.set_params(intervals="jackknife+").fit(A, b)
    alone = LSSVMRegressor(model.alpha_, kernel=model.kernel_, intervals="jackknife+").fit(A, b)
    np.testing.assert_allclose(
        model.predict_interval(X_NEW), alone.predict_interval(X_NEW), rtol=1e-9
    )


def test_torch_tensors_give_torch_intervals():
    torch = pytest.importorskip("torch")

    A, b = torch.from_numpy(X), torch.from_numpy(Y)
    for method in ("cv+", "jackknife+"):
        model = LSSVMRegressor(0.1, intervals=method).fit(A, b)
        lower, upper = model.predict_interval(torch.from_numpy(X_NEW))
        assert isinstance(lower, torch.Tensor)
        expected = LSSVMRegressor(0.1, intervals=method).fit(X, Y).predict_interval(X_NEW)
        np.testing.assert_allclose(lower.numpy(), expected[0], rtol=1e-9)
        np.testing.assert_allclose(upper.numpy(), expected[1], rtol=1e-9)


def test_precomputed_kernels_have_intervals():
    by_matrix = KernelRidge(0.1, kernel="precomputed", intervals="cv+").fit(RBF()(X), Y)
    by_rows = KernelRidge(0.1, kernel=RBF(), intervals="cv+").fit(X, Y)
    np.testing.assert_allclose(
        by_matrix.predict_interval(RBF()(X_NEW, X)), by_rows.predict_interval(X_NEW), rtol=1e-9
    )


@pytest.mark.parametrize("method", ["cv+", "jackknife+"])
def test_many_rows_are_predicted_in_blocks(method, monkeypatch):
    model = LSSVMRegressor(0.1, intervals=method).fit(X, Y)
    whole = model.predict_interval(X_NEW)
    monkeypatch.setattr("ridgefold.estimators.regressor._BLOCK_BYTES", 8 * 5 * 46 * 5)
    np.testing.assert_allclose(model.predict_interval(X_NEW), whole, rtol=1e-12)


@pytest.mark.parametrize("method", ["cv+", "jackknife+"])
def test_intervals_are_saved_or_not(method, tmp_path):
    for model in (
        LSSVMRegressor(0.1, intervals=method).fit(X, TWO),
        LSSVMRegressorCV([0.1, 1.0], cv=3, intervals=method).fit(X, Y),
    ):
        model.save(tmp_path / "with")
        again = ridgefold.load(tmp_path / "with")
        np.testing.assert_allclose(
            again.predict_interval(X_NEW), model.predict_interval(X_NEW), rtol=1e-12
        )
        model.save(tmp_path / "single", dtype="float32")
        np.testing.assert_allclose(
            ridgefold.load(tmp_path / "single").predict_interval(X_NEW.astype(np.float32)),
            model.predict_interval(X_NEW),
            rtol=1e-3,
            atol=1e-3,
        )
        model.save(tmp_path / "without", intervals=False)
        assert (tmp_path / "without").stat().st_size < (tmp_path / "with").stat().st_size
        with pytest.raises(InvalidInputError, match="nothing was kept"):
            ridgefold.load(tmp_path / "without").predict_interval(X_NEW)


def test_order_statistics_are_those_of_the_definition():
    values, residuals = np.zeros((1, 9)), np.arange(1.0, 10.0)
    assert interval_from_models(values, residuals, 0.9) == (-9.0, 9.0)
    assert interval_from_models(values, residuals, 0.5) == (-5.0, 5.0)
    assert interval_from_models(values, residuals, 0.91) == (-np.inf, np.inf)
    assert interval_from_models(values, -residuals, 0.2) == (-2.0, 2.0)


def test_bad_requests_are_named():
    with pytest.raises(InvalidInputError, match="intervals must be"):
        KernelRidge(intervals="bootstrap").fit(X, Y)
    with pytest.raises(InvalidInputError, match="intervals must be"):
        KernelRidgeCV([1.0], intervals="bootstrap").fit(X, Y)
    with pytest.raises(InvalidInputError, match="holds every row out once"):
        KernelRidgeCV([1.0], intervals="cv+", cv=ShuffleSplit(3, random_state=0)).fit(X, Y)
    with pytest.raises(InvalidInputError, match="alpha > 0"):
        KernelRidge(0.0, kernel="rbf", intervals="cv+").fit(X, Y)
    with pytest.raises(BudgetError, match=r'intervals="cv\+"'):
        KernelRidge(0.1, kernel="linear", intervals="jackknife+", memory_budget="10kB").fit(X, Y)
    model = KernelRidge(0.1, intervals="cv+").fit(X, Y)
    for coverage in (0.0, 1.0, -1, 90, "0.9", True, None):
        with pytest.raises(InvalidInputError, match="coverage must lie"):
            model.predict_interval(X_NEW, coverage)
    with pytest.raises(InvalidInputError, match="compressed model"):
        KernelRidge(0.1, kernel="rbf", intervals="cv+").fit(X, Y).compress(5).predict_interval(X)


@pytest.mark.parametrize("method", ["cv+", "jackknife+"])
def test_nine_of_ten_outputs_of_a_power_plant_are_covered(method):
    data = load_bundled("ccpp")
    order = np.random.default_rng(0).permutation(len(data.y))
    train, test = order[:600], order[600:4600]
    A = (data.X - data.X[train].mean(axis=0)) / data.X[train].std(axis=0)
    model = LSSVMRegressor(0.1, gamma=0.3, intervals=method).fit(A[train], data.y[train])
    lower, upper = model.predict_interval(A[test], 0.9)
    covered = np.mean((lower <= data.y[test]) & (data.y[test] <= upper))
    assert 0.87 < covered < 0.94

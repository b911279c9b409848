"""Unpenalised columns: the models, their coefficients, and what is kept of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

from fixed_effects_oracle import (
    bordered_fit,
    bordered_predictions,
    generalised_least_squares,
)
from namespaces import LIBRARIES, to_numpy
from ridgefold import (
    Compute,
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMRegressorCV,
    Search,
    cross_val_path,
    load,
)
from ridgefold.errors import InvalidInputError, UndeterminedColumnsWarning
from ridgefold.kernels import RBF, Columns, Linear, Matern

N, D = 60, 9
rng = np.random.default_rng(3)
X = rng.standard_normal((N, D))
X[:, 1] = 20.0 + 3.0 * X[:, 1]  # far from zero, as years are
Y = np.stack([np.sin(X[:, 0]) + 0.3 * X[:, 1], X[:, 2] + np.cos(2 * X[:, 3])], axis=1)
Y += 0.1 * rng.standard_normal(Y.shape)
WEIGHTS = rng.uniform(0.3, 2.0, N)
ZEROS = np.where(np.arange(N) % 7 == 0, 0.0, WEIGHTS)
KERNEL = RBF(2.0)
NEW = rng.standard_normal((7, D)) + np.eye(D)[1] * 20.0


def columns(rows, count, bias):
    return np.hstack([np.ones((len(rows), int(bias))), rows[:, :count]])


@pytest.mark.parametrize("solver", ["cholesky", "eigendecomposition", "conjugate_gradient"])
@pytest.mark.parametrize("count", [1, 3, 8])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", [None, WEIGHTS, ZEROS], ids=["equal", "weighted", "zeros"])
def test_solvers_solve_the_bordered_system(solver, count, bias, weights):
    alpha = np.array([0.1, 2.0])
    model = KernelRidge(
        alpha,
        kernel=KERNEL,
        fit_intercept=bias,
        fixed=list(range(count)),
        compute=Compute(solver=solver, tol=1e-13),
    ).fit(X, Y, weights)
    kept = np.arange(N) if weights is None else np.flatnonzero(weights > 0)
    w = None if weights is None else weights[kept]
    for j in range(2):
        a, beta = bordered_fit(KERNEL(X[kept]), columns(X[kept], count, bias), Y[kept], alpha[j], w)
        np.testing.assert_allclose(model.dual_coef_[kept, j], a[:, j], atol=1e-8)
        np.testing.assert_allclose(model.fixed_coef_[:, j], beta[int(bias) :, j], atol=1e-8)
        expected = KERNEL(NEW, X[kept]) @ a + columns(NEW, count, bias) @ beta
        np.testing.assert_allclose(model.predict(NEW)[:, j], expected[:, j], atol=1e-8)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", [None, ZEROS], ids=["equal", "zeros"])
def test_the_primal_solver_agrees_with_the_dual_one(bias, weights):
    kernel = Columns(Linear(), [3, 4, 5])
    settings = {"kernel": kernel, "fit_intercept": bias, "fixed": [0, 1]}
    primal = KernelRidge(0.3, **settings, compute=Compute(solver="primal")).fit(X, Y, weights)
    dual = KernelRidge(0.3, **settings, compute=Compute(solver="cholesky")).fit(X, Y, weights)
    assert primal._model.primal_coef is not None
    np.testing.assert_allclose(primal.predict(NEW), dual.predict(NEW), atol=1e-9)
    np.testing.assert_allclose(primal.fixed_coef_, dual.fixed_coef_, atol=1e-9)
    np.testing.assert_allclose(primal.fixed_coef_std_, dual.fixed_coef_std_, rtol=1e-7)
    np.testing.assert_allclose(primal.dual_coef_, dual.dual_coef_, atol=1e-9)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_coefficients_and_standard_errors_are_those_of_the_mixed_model_equations(bias, weights):
    alpha = np.array([0.2, 3.0])
    model = KernelRidge(alpha, kernel=KERNEL, fit_intercept=bias, fixed=[0, 1, 4])
    model.fit(X, Y, weights)
    F = np.hstack([np.ones((N, int(bias))), X[:, [0, 1, 4]]])
    for j in range(2):
        beta, covariance = generalised_least_squares(KERNEL(X), F, Y[:, j], alpha[j], weights)
        np.testing.assert_allclose(model.fixed_coef_[:, j], beta[int(bias) :], rtol=1e-8)
        errors = np.sqrt(np.diagonal(covariance))[int(bias) :]
        np.testing.assert_allclose(model.fixed_coef_std_[:, j], errors, rtol=1e-8)


def test_universal_kriging_solves_its_textbook_equations():
    """Kriging weights with the unbiasedness conditions Fᵀλ = φ(x), solved for every new point."""
    places = rng.uniform(0, 10, (40, 2))
    values = 0.5 * places[:, 0] - places[:, 1] + np.sin(places).sum(axis=1)
    nugget, covariance = 0.05, Matern(3.0, nu=1.5)
    model = KernelRidge(nugget, kernel=covariance, fit_intercept=True, fixed="linear")
    model.fit(places, values)
    new = rng.uniform(0, 10, (9, 2))
    F, phi = (np.column_stack([np.ones(len(rows)), rows]) for rows in (places, new))
    matrix = np.zeros((43, 43))
    matrix[:40, :40] = covariance(places) + nugget * np.eye(40)
    matrix[:40, 40:], matrix[40:, :40] = F, F.T
    right = np.vstack([covariance(places, new), phi.T])
    kriged = np.linalg.solve(matrix, right)[:40].T @ values
    np.testing.assert_allclose(model.predict(new), kriged, rtol=1e-8)
    assert list(model.fixed_names_) == ["x0", "x1"]


def test_genomic_prediction_solves_hendersons_mixed_model_equations():
    markers = rng.integers(0, 3, (50, 200)).astype(float) - 1.0
    age = rng.uniform(1, 5, 50)
    y = 2.0 + 0.7 * age + markers[:, :5].sum(axis=1) + 0.3 * rng.standard_normal(50)
    table = np.column_stack([age, markers])
    ratio = 80.0  # of the residual variance to that of a marker
    model = KernelRidge(
        ratio,
        kernel=Columns(Linear(), list(range(1, 201))),
        fit_intercept=True,
        fixed=[0],
    ).fit(table, y)
    F = np.column_stack([np.ones(50), age])
    left = np.block([[F.T @ F, F.T @ markers], [markers.T @ F, markers.T @ markers]])
    left[2:, 2:] += ratio * np.eye(200)
    solution = np.linalg.solve(left, np.concatenate([F.T @ y, markers.T @ y]))
    assert model.intercept_ == pytest.approx(solution[0], rel=1e-8)
    np.testing.assert_allclose(model.fixed_coef_, solution[1:2], rtol=1e-8)
    np.testing.assert_allclose(model.predict(table), F @ solution[:2] + markers @ solution[2:])


def test_no_fixed_columns_are_no_change():
    plain = KernelRidge(0.3, kernel=KERNEL, fit_intercept=True).fit(X, Y)
    empty = KernelRidge(0.3, kernel=KERNEL, fit_intercept=True, fixed=[]).fit(X, Y)
    np.testing.assert_array_equal(plain.predict(NEW), empty.predict(NEW))
    assert not hasattr(empty, "fixed_coef_")


@pytest.mark.parametrize("how", ["names", "numbers", "from the end", "an array"])
def test_columns_are_named_or_numbered(how):
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(D)])
    fixed = {
        "names": ["c4", "c1"],
        "numbers": [4, 1],
        "from the end": [-5, -8],
        "an array": np.array([4, 1]),
    }[how]
    model = KernelRidge(0.3, kernel=KERNEL, fixed=fixed).fit(table, Y[:, 0])
    assert list(model.fixed_names_) == ["c4", "c1"]
    _, beta = bordered_fit(KERNEL(X), X[:, [4, 1]], Y[:, :1], 0.3)
    np.testing.assert_allclose(model.fixed_coef_, beta[:, 0], atol=1e-9)
    assert model.fixed_coef_.shape == model.fixed_coef_std_.shape == (2,)


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        ("c1", "one column is fixed="),
        (["c1"], "without names"),
        ([9], "from -9 to 8"),
        ([True], "names of columns or numbers"),
        ([1.5], "names of columns or numbers"),
        ([2, 2], "twice"),
        (3, "list of names or numbers"),
        (np.zeros((N, 2)), "Append its columns to X"),
        (pd.DataFrame({"f": np.zeros(N)}), "Append its columns to X"),
        (np.zeros(N), "Append its columns to X"),
        ([[0.0, 1.0], [1.0, 2.0]], "Append its columns to X"),
        (np.array([True, False]), "mask of 2 columns"),
    ],
)
def test_what_is_no_column_is_refused_by_its_value(fixed, words):
    with pytest.raises(InvalidInputError, match=words):
        KernelRidge(0.3, kernel=KERNEL, fixed=fixed).fit(X, Y)


def test_a_mask_has_one_value_a_column():
    masked = KernelRidge(0.3, kernel=KERNEL, fixed=np.arange(D) % 4 == 1).fit(X, Y)
    named = KernelRidge(0.3, kernel=KERNEL, fixed=[1, 5]).fit(X, Y)
    np.testing.assert_array_equal(masked.fixed_coef_, named.fixed_coef_)
    assert clone(masked).fit(X, Y).fixed_names_.tolist() == ["x1", "x5"]


def test_columns_that_are_appended_are_kept_out_of_the_kernel():
    """What an array of further columns would mean: f(x) = b + Fβ + Σ a k(x_i, x)."""
    F = np.column_stack([np.arange(N) % 3 == 1, np.arange(N) % 3 == 2]).astype(float)
    table = np.column_stack([X, F])
    model = KernelRidge(
        0.3, kernel=Columns(KERNEL, range(D)), fit_intercept=True, fixed=[D, D + 1]
    ).fit(table, Y)
    a, beta = bordered_fit(KERNEL(X), np.column_stack([np.ones(N), F]), Y, 0.3)
    np.testing.assert_allclose(model.fixed_coef_, beta[1:], atol=1e-9)
    expected = KERNEL(NEW, X) @ a + np.column_stack([np.ones(7), np.ones((7, 2))]) @ beta
    new = np.column_stack([NEW, np.ones((7, 2))])
    np.testing.assert_allclose(model.predict(new), expected, atol=1e-9)


def test_a_column_that_the_table_does_not_have_is_refused_with_those_it_has():
    table = pd.DataFrame(X[:, :2], columns=["a", "b"])
    with pytest.raises(InvalidInputError, match="its columns are a, b"):
        KernelRidge(0.3, fixed=["c"]).fit(table, Y)


def test_a_precomputed_kernel_has_no_columns_to_fix():
    with pytest.raises(InvalidInputError, match="X is the kernel matrix"):
        KernelRidge(0.3, kernel="precomputed", fixed=[0]).fit(KERNEL(X), Y)


@pytest.mark.parametrize("model", [KernelRidge(fixed="linear"), KernelRidgeCV(fixed="linear")])
def test_as_many_columns_as_rows_are_refused(model):
    with pytest.raises(InvalidInputError, match="without a penalty, but there are only"):
        model.fit(X[:D], Y[:D])


# -- columns that depend on each other ---------------------------------------------------


def dummies(rows=N, levels=4):
    codes = np.arange(rows) % levels
    return np.column_stack([np.eye(levels)[codes], X[:rows, :2]])


def test_columns_that_depend_on_each_other_give_the_same_function_with_a_warning():
    table = dummies()
    model = KernelRidge(0.3, kernel=RBF(1.0), fit_intercept=True, fixed=[0, 1, 2, 3])
    with pytest.warns(UndeterminedColumnsWarning, match="5 columns of rank 4"):
        model.fit(table, Y[:, 0])
    lean = KernelRidge(0.3, kernel=RBF(1.0), fit_intercept=True, fixed=[0, 1, 2])
    lean.fit(table, Y[:, 0])
    np.testing.assert_allclose(model.predict(table), lean.predict(table), atol=1e-9)
    # Of contrasts alike in size the smallest are those around their mean.
    assert model.fixed_coef_.sum() == pytest.approx(0.0, abs=1e-9)
    contrast = model.fixed_coef_[0] - model.fixed_coef_[3]
    assert contrast == pytest.approx(lean.fixed_coef_[0], abs=1e-9)
    assert np.all(np.isnan(model.fixed_coef_std_))


def test_a_column_that_is_constant_beside_a_bias_has_no_effect_and_others_keep_theirs():
    table = X.copy()
    table[:, 0] = 3.0
    with pytest.warns(UndeterminedColumnsWarning):
        model = KernelRidge(0.3, kernel=KERNEL, fit_intercept=True, fixed=[0, 1]).fit(table, Y)
    lean = KernelRidge(0.3, kernel=KERNEL, fit_intercept=True, fixed=[1]).fit(table, Y)
    np.testing.assert_array_equal(model.fixed_coef_[0], 0.0)
    assert np.all(np.isnan(model.fixed_coef_std_[0]))
    np.testing.assert_allclose(model.fixed_coef_[1], lean.fixed_coef_[0], rtol=1e-9)
    np.testing.assert_allclose(model.fixed_coef_std_[1], lean.fixed_coef_std_[0], rtol=1e-9)


@pytest.mark.parametrize("method", ["auto", "refit", "banded", "krylov", "block_recursive"])
def test_a_level_seen_only_in_one_fold_counts_nothing_there(method):
    """The rows of a level that no training row has are predicted as if its column were zero."""
    table = np.column_stack([(np.arange(N) < 5).astype(float), X[:, :2]])
    with pytest.warns(UndeterminedColumnsWarning, match="fold"):
        path = cross_val_path(
            table,
            Y[:, 0],
            alpha=[0.3, 1.0],
            kernel=RBF(1.0),
            fit_intercept=True,
            fixed=[0, 1],
            cv=12,
            method=method,
        )
    lean = table.copy()
    lean[:, 0] = 0.0
    K = RBF(1.0)(table)
    F = np.column_stack([np.ones(N), table[:, 1]])
    first = np.arange(5)
    for place, alpha in enumerate([0.3, 1.0]):
        expected = bordered_predictions(K, F, Y[:, :1], alpha, np.arange(5, N), first)
        np.testing.assert_allclose(path.predictions[place, :5], expected, atol=1e-7)


def test_shortcuts_that_a_lost_rank_would_ruin_say_so():
    table = np.column_stack([(np.arange(N) < 5).astype(float), X[:, :2]])
    settings = {"alpha": [0.3, 1.0], "fixed": [0, 1], "cv": 12, "method": "inverse_blocks"}
    with (
        pytest.warns(UndeterminedColumnsWarning),
        pytest.raises(InvalidInputError, match="of an unpenalised column"),
    ):
        cross_val_path(table, Y[:, 0], **settings)


# -- choosing, intervals, classes, files -------------------------------------------------


@pytest.mark.parametrize("weights", [None, ZEROS], ids=["equal", "zeros"])
def test_a_search_chooses_and_holds_out_with_the_columns(weights):
    model = KernelRidgeCV([0.1, 1.0], kernel=KERNEL, fit_intercept=True, fixed=[0, 1, 2], cv=5).fit(
        X, Y, weights
    )
    F = columns(X, 3, True)
    for fold in range(5):
        test = np.arange(12 * fold, 12 * fold + 12)
        train = np.setdiff1d(np.arange(N), test)
        expected = bordered_predictions(KERNEL(X), F, Y, model.alpha_, train, test, weights)
        np.testing.assert_allclose(model.held_out_predictions_[test], expected, atol=1e-9)
    kept = slice(None) if weights is None else weights > 0
    w = None if weights is None else weights[kept]
    _, beta = bordered_fit(KERNEL(X[kept]), F[kept], Y[kept], model.alpha_, w)
    np.testing.assert_allclose(model.fixed_coef_, beta[1:], atol=1e-9)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", ["cv+", "jackknife+"])
@pytest.mark.parametrize("weights", [None, ZEROS], ids=["equal", "zeros"])
def test_intervals_are_made_of_refits_without_the_rows(bias, kind, weights):
    """The models behind an interval, taken out of it one by one."""
    model = KernelRidge(0.5, kernel=KERNEL, fit_intercept=bias, fixed=[0, 1], intervals=kind).fit(
        X, Y, weights
    )
    kept = model.intervals_
    F, new = columns(X, 2, bias), columns(NEW, 2, bias)
    everything = np.vstack([X, NEW])
    K, both = KERNEL(everything), np.vstack([F, new])
    padded = np.vstack([Y, np.zeros((len(NEW), 2))])
    w = None if weights is None else np.concatenate([weights, np.zeros(len(NEW))])
    counted = np.arange(N) if weights is None else np.flatnonzero(weights > 0)
    values = model._predictor()(NEW, kept.model)
    fresh = np.arange(N, N + len(NEW))
    for place in (0, 3, 20, 40):
        row, group = counted[place], kept.groups[place]
        without = counted[kept.groups == group]
        train = np.setdiff1d(np.arange(N), without)
        expected = bordered_predictions(K, both, padded, 0.5, train, fresh, w)
        own = bordered_predictions(K, both, padded, 0.5, train, np.array([row]), w)
        np.testing.assert_allclose(kept.residuals[place], (Y[row] - own)[0], atol=1e-9)
        if kind == "cv+":
            found = values[:, 2 * group : 2 * group + 2]
        else:
            found = model.predict(NEW) - values[:, [group]] * kept.residuals[place][None, :]
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(0.3, kernel=KERNEL, fixed=["c1", "c4"], intervals="cv+"),
        KernelRidgeCV([0.1, 1.0], kernel=KERNEL, fixed="linear", fit_intercept=True),
        LSSVMRegressorCV([0.1, 1.0], fixed=[0], intervals="jackknife+"),
        LSSVMClassifier(0.3, fixed=[0, 1], probability=True),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_model_file_gives_the_same_model_back(model, tmp_path):
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(D)])
    targets = Y[:, 0] > Y[:, 0].mean() if "Classifier" in type(model).__name__ else Y[:, 0]
    model = clone(model).fit(table, targets)
    model.save(tmp_path / "model.rfm")
    again = load(tmp_path / "model.rfm")
    new = pd.DataFrame(NEW, columns=table.columns)
    np.testing.assert_allclose(model.predict(new), again.predict(new), rtol=1e-12)
    np.testing.assert_array_equal(model.fixed_coef_, again.fixed_coef_)
    np.testing.assert_array_equal(model.fixed_coef_std_, again.fixed_coef_std_)
    assert list(model.fixed_names_) == list(again.fixed_names_)
    if getattr(model, "intervals_", None) is not None:
        both = model.predict_interval(new), again.predict_interval(new)
        np.testing.assert_allclose(both[0], both[1], rtol=1e-12)


def test_averaged_models_of_the_folds_are_averaged_in_their_coefficients():
    settings = {"kernel": KERNEL, "fit_intercept": True, "fixed": [0, 1], "cv": 4}
    model = KernelRidgeCV(0.5, **settings, search=Search(average_folds=True)).fit(X, Y[:, :1])
    F = columns(X, 2, True)
    coefficients = []
    for fold in range(4):
        train = np.setdiff1d(np.arange(N), np.arange(15 * fold, 15 * fold + 15))
        _, beta = bordered_fit(KERNEL(X[train]), F[train], Y[train, :1], 0.5)
        coefficients.append(beta[1:, 0])
    np.testing.assert_allclose(model.fixed_coef_[:, 0], np.mean(coefficients, axis=0), atol=1e-9)
    _, covariance = generalised_least_squares(KERNEL(X), F, Y[:, 0], 0.5)
    np.testing.assert_allclose(
        model.fixed_coef_std_[:, 0], np.sqrt(np.diagonal(covariance))[1:], rtol=1e-8
    )


def test_slopes_hold_the_linear_effect():
    model = KernelRidge(0.3, kernel=KERNEL, fixed=[1, 3]).fit(X, Y)
    step = 1e-5 * np.eye(D)
    slopes = model.predict_gradient(NEW)
    for j in range(D):
        difference = (model.predict(NEW + step[j]) - model.predict(NEW - step[j])) / 2e-5
        np.testing.assert_allclose(slopes[:, j, :], difference, atol=1e-6)


def test_a_compressed_model_keeps_its_coefficients():
    model = KernelRidge(0.3, kernel=KERNEL, fit_intercept=True, fixed=[1]).fit(X, Y)
    small = model.compress(N)
    np.testing.assert_array_equal(small.fixed_coef_, model.fixed_coef_)
    np.testing.assert_allclose(small.predict(NEW), model.predict(NEW), atol=1e-5)


def test_sparse_rows_have_the_same_columns():
    table = np.where(np.abs(X) > 0.7, X, 0.0)
    dense = KernelRidge(0.3, kernel="linear", fixed=[1, 2]).fit(table, Y)
    sparse = KernelRidge(0.3, kernel="linear", fixed=[1, 2]).fit(scipy.sparse.csr_array(table), Y)
    np.testing.assert_allclose(
        sparse.predict(scipy.sparse.csr_array(NEW)), dense.predict(NEW), atol=1e-9
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_other_array_libraries_fit_the_same(library):
    convert = LIBRARIES[library]
    ours = KernelRidge(0.3, kernel=KERNEL, fit_intercept=True, fixed=[0, 1]).fit(X, Y)
    theirs = clone(ours).fit(convert(X), convert(Y))
    np.testing.assert_allclose(to_numpy(theirs.predict(convert(NEW))), ours.predict(NEW), atol=1e-9)
    np.testing.assert_allclose(to_numpy(theirs.fixed_coef_), ours.fixed_coef_, atol=1e-9)


def test_a_plan_shows_the_columns():
    model = KernelRidgeCV([0.1, 1.0], kernel=KERNEL, fixed=[0, 1]).fit(X, Y)
    assert model.cv_plan_.problem.fixed == 2
    assert "2 unpenalised columns" in str(model.explain())

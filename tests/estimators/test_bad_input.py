"""What cannot be used is named, with its value and a way out, and leaves the model as it was."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from cases import rows, targets
from ridgefold import Compute, KernelRidge, LSSVMClassifier, LSSVMRegressor
from ridgefold.errors import (
    BudgetError,
    InvalidInputError,
    KernelDomainError,
    NumericalError,
    RidgefoldError,
    UnsupportedInputError,
)

X, Y = rows(10, 3), targets(rows(10, 3))
SPARSE = scipy.sparse.csr_array(np.abs(X))


def with_value(value, dtype=float):
    A = X.astype(dtype)
    A[2, 1] = value
    return A


def weights_with(value):
    w = np.ones(10)
    w[4] = value
    return w


# name: (parameters, X, y, sample_weight, error, pattern of the message)
CASES = {
    "nan in X": ({}, with_value(np.nan), Y, None, InvalidInputError, "X contains NaN"),
    "inf in X": ({}, with_value(np.inf), Y, None, InvalidInputError, "X contains infinity"),
    "nan in y": ({}, X, with_value(np.nan)[:, 1], None, InvalidInputError, "y contains NaN"),
    "inf in y": ({}, X, with_value(-np.inf)[:, 1], None, InvalidInputError, "y contains infinity"),
    "no rows": ({}, X[:0], Y[:0], None, InvalidInputError, r"0 sample\(s\).*\n.*X must hold"),
    "no columns": ({}, X[:, :0], Y, None, InvalidInputError, r"0 feature\(s\).*\n.*X must hold"),
    "one dimension": ({}, X[:, 0], Y, None, InvalidInputError, r"(?s)got 1D array.*X must hold"),
    "three dimensions": ({}, X[None], Y, None, InvalidInputError, r"(?s)dim 3.*X must hold"),
    "a number": ({}, 3.0, Y, None, InvalidInputError, r"(?s)scalar array.*X must hold"),
    "complex X": ({}, X * 1j, Y, None, InvalidInputError, r"(?s)Complex data.*X must hold .*real"),
    "complex y": ({}, X, Y * 1j, None, InvalidInputError, r"Complex data.*y must be real.*y.real"),
    "text in X": (
        {},
        X.astype(str).astype(object) + "a",
        Y,
        None,
        InvalidInputError,
        "could not convert string.*\n.*encode text as numbers",
    ),
    "objects in X": (
        {},
        np.full((10, 3), {}, dtype=object),
        Y,
        None,
        UnsupportedInputError,
        "dict.*\n.*X must hold",
    ),
    "text in y": (
        {},
        X,
        ["a"] * 10,
        None,
        InvalidInputError,
        "could not convert string to float.*\n.*y must hold one finite real number",
    ),
    "y too short": ({}, X, Y[:-1], None, InvalidInputError, r"\[10, 9\]\n.*y must hold one"),
    "y missing": ({}, X, None, None, InvalidInputError, "requires y.*y is None"),
    "y of three dimensions": ({}, X, np.ones((10, 2, 2)), None, InvalidInputError, "y must hold"),
    "y sparse": ({}, X, SPARSE, None, UnsupportedInputError, r"y must not be sparse.*toarray"),
    "alpha negative": ({"alpha": -1.0}, X, Y, None, InvalidInputError, "alpha .*>= 0, got -1.0"),
    "alpha nan": ({"alpha": np.nan}, X, Y, None, InvalidInputError, "alpha .*finite.* got nan"),
    "alpha infinite": ({"alpha": np.inf}, X, Y, None, InvalidInputError, "alpha .*got inf"),
    "alpha text": ({"alpha": "big"}, X, Y, None, InvalidInputError, "alpha must .*got 'big'"),
    "alpha none": ({"alpha": None}, X, Y, None, InvalidInputError, "alpha must .*got None"),
    "alpha complex": ({"alpha": 1j}, X, Y, None, InvalidInputError, "alpha must .*got 1j"),
    "alpha of wrong length": (
        {"alpha": [1.0, 2.0]},
        X,
        Y,
        None,
        InvalidInputError,
        "alpha must be one number or one for each of the 1 targets, got 2",
    ),
    "unknown kernel": (
        {"kernel": "gaussian"},
        X,
        Y,
        None,
        InvalidInputError,
        "kernel must be one of .*rbf.*got 'gaussian'",
    ),
    "kernel of wrong type": ({"kernel": 7}, X, Y, None, InvalidInputError, "kernel must .*got 7"),
    "gamma negative": (
        {"kernel": "rbf", "gamma": -0.5},
        X,
        Y,
        None,
        InvalidInputError,
        "gamma must be a finite number >= 0, got -0.5",
    ),
    "degree text": (
        {"kernel": "poly", "degree": "three"},
        X,
        Y,
        None,
        InvalidInputError,
        "degree must be a finite number, got 'three'",
    ),
    "unknown solver": (
        {"compute__solver": "svd"},
        X,
        Y,
        None,
        InvalidInputError,
        "compute.solver must be one of .auto., .primal., .cholesky.*got 'svd'",
    ),
    "tol too large": (
        {"compute__tol": 2.0},
        X,
        Y,
        None,
        InvalidInputError,
        "compute.tol must lie .*got 2.0",
    ),
    "tol zero": (
        {"compute__tol": 0},
        X,
        Y,
        None,
        InvalidInputError,
        "compute.tol must lie .*got 0",
    ),
    "tol text": (
        {"compute__tol": "small"},
        X,
        Y,
        None,
        InvalidInputError,
        "compute.tol must lie .*got 'small'",
    ),
    "budget unreadable": (
        {"memory_budget": "lots"},
        X,
        Y,
        None,
        InvalidInputError,
        "memory_budget must be \"auto\".*got 'lots'",
    ),
    "budget too small": (
        {"memory_budget": 100, "kernel": "rbf"},
        X,
        Y,
        None,
        BudgetError,
        "no solver fits memory_budget=0.1 kB with 10 rows: cholesky needs .*raise memory_budget",
    ),
    "sobolev below zero": (
        {"kernel": "sobolev"},
        X,
        Y,
        None,
        KernelDomainError,
        r"Sobolev kernel is defined for values >= 0, but X holds -.*MinMaxScaler",
    ),
    "chi2 below zero": (
        {"kernel": "chi2"},
        X,
        Y,
        None,
        KernelDomainError,
        r"Chi2 kernel is defined for values >= 0.*X holds -.*shift or clip",
    ),
    "sobolev sparse": (
        {"kernel": "sobolev"},
        SPARSE,
        Y,
        None,
        UnsupportedInputError,
        r"Sobolev kernel cannot take sparse X: pass X.toarray\(\)",
    ),
    "chi2 sparse": (
        {"kernel": "chi2"},
        SPARSE,
        Y,
        None,
        UnsupportedInputError,
        r"Chi2 kernel cannot take sparse X: pass X.toarray\(\)",
    ),
    "precomputed sparse": (
        {"kernel": "precomputed"},
        scipy.sparse.eye_array(10, format="csr"),
        Y,
        None,
        UnsupportedInputError,
        r"X must not be sparse: pass X.toarray\(\)",
    ),
    "precomputed not square": (
        {"kernel": "precomputed"},
        X,
        Y,
        None,
        InvalidInputError,
        r"X must be the square kernel matrix.*got shape \(10, 3\)",
    ),
    "weights negative": ({}, X, Y, weights_with(-2.0), InvalidInputError, "sample_weight.*-2"),
    "weights zero": ({}, X, Y, np.zeros(10), InvalidInputError, "sample_weight"),
    "weights nan": ({}, X, Y, weights_with(np.nan), InvalidInputError, "sample_weight .*NaN"),
    "weights too few": ({}, X, Y, np.ones(9), InvalidInputError, r"sample_weight.*\(9,\)"),
    "weights text": ({}, X, Y, ["a"] * 10, InvalidInputError, "sample_weight must be a number or"),
    "huge values": ({}, X * 1e200, Y, None, NumericalError, "overflow.*scale the columns"),
    "huge values, rbf": (
        {"kernel": "rbf"},
        X * 1e200,
        Y,
        None,
        NumericalError,
        "overflow: scale the columns",
    ),
    "huge values, polynomial": (
        {"kernel": "poly", "compute__solver": "cholesky"},
        X * 1e200,
        Y,
        None,
        NumericalError,
        "overflow.*scale the columns",
    ),
    "huge targets": (
        {"kernel": "rbf", "alpha": 1e-3},
        np.zeros((10, 1)),
        np.arange(10) * 1e307,
        None,
        NumericalError,
        "NaN or infinite",
    ),
    "a power that is not real": (
        {"kernel": "poly", "degree": 0.5, "coef0": 0.0},
        X,
        Y,
        None,
        NumericalError,
        "NaN or infinite|diagonal entry nan",
    ),
    "callable that gives nan": (
        {"kernel": lambda x, y: float("nan")},
        X,
        Y,
        None,
        NumericalError,
        "nan|NaN",
    ),
}
REGRESSORS = [KernelRidge, LSSVMRegressor]


def fitted(cls):
    return cls(kernel="rbf").fit(X[:6], Y[:6])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("cls", REGRESSORS)
def test_bad_input_is_named_and_leaves_the_model_as_it_was(case, cls):
    parameters, A, y, weights, error, message = case
    parameters = {"kernel": "linear", **parameters}
    for model in (cls(), fitted(cls)):
        model.set_params(**parameters)
        before = dict(vars(model))
        with pytest.raises(error, match=message) as caught:
            model.fit(A, y, sample_weight=weights)
        assert isinstance(caught.value, RidgefoldError)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())


LABELS = np.array(["a", "b"] * 5)
CLASSIFIER_CASES = {
    "one class": (["a"] * 10, InvalidInputError, "at least two classes.*only one class: a"),
    "two columns": (np.ones((10, 2)), InvalidInputError, r"y must hold one label a row.*\(10, 2\)"),
    "numbers": (Y, InvalidInputError, "(?s)continuous.*y must hold one label"),
    "nan": ([np.nan] + [1.0] * 9, InvalidInputError, "(?s)NaN.*y must hold one label"),
    "mixed": (
        np.array([1, "a"] * 5, dtype=object),
        (InvalidInputError, UnsupportedInputError),
        "all of one type",
    ),
    "too few": (LABELS[:4], InvalidInputError, r"\[10, 4\]"),
}


@pytest.mark.parametrize(("y", "error", "message"), CLASSIFIER_CASES.values(), ids=CLASSIFIER_CASES)
def test_bad_labels_are_named_and_leave_the_classifier_as_it_was(y, error, message):
    for model in (LSSVMClassifier(), LSSVMClassifier().fit(X, LABELS)):
        before = dict(vars(model))
        with pytest.raises(error, match=message):
            model.fit(X, y)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize("cls", [KernelRidge, LSSVMRegressor, LSSVMClassifier])
def test_predicting_before_fitting_says_so(cls):
    for call in ("predict", "compress", "decision_function"):
        if hasattr(cls, call):
            with pytest.raises(NotFittedError, match=f"{cls.__name__} instance is not fitted"):
                getattr(cls(), call)(X if call != "compress" else 3)


PREDICT_CASES = {
    "other columns": (X[:, :2], InvalidInputError, "X has 2 features.*expecting 3"),
    "nan": (with_value(np.nan), InvalidInputError, "X contains NaN"),
    "one dimension": (X[0], InvalidInputError, "(?s)1D array.*X must hold"),
    "complex": (X * 1j, InvalidInputError, "(?s)Complex.*X must hold"),
    "no rows": (X[:0], InvalidInputError, "0 sample"),
}


@pytest.mark.parametrize(("A", "error", "message"), PREDICT_CASES.values(), ids=PREDICT_CASES)
def test_bad_rows_to_predict_are_named(A, error, message):
    for model in (fitted(KernelRidge), LSSVMClassifier().fit(X, LABELS)):
        before = dict(vars(model))
        with pytest.raises(error, match=message):
            model.predict(A)
        assert vars(model) == before


def test_rows_outside_the_domain_are_refused_when_predicting():
    model = KernelRidge(kernel="sobolev").fit(np.abs(X), Y)
    with pytest.raises(KernelDomainError, match="Sobolev"):
        model.predict(X)


def test_predictions_that_overflow_or_are_undefined_raise():
    with pytest.raises(NumericalError, match="predictions are NaN or infinite"):
        KernelRidge(kernel="poly", compute=Compute(solver="cholesky")).fit(X, Y).predict(X * 1e200)
    with pytest.raises(NumericalError, match="predictions are NaN or infinite"):
        KernelRidge(kernel="poly").fit(X, Y).predict(X * 1e200)
    real_power = KernelRidge(kernel="poly", degree=1.5, coef0=0.0).fit(np.abs(X), Y)
    with pytest.raises(NumericalError, match="predictions are NaN or infinite"):
        real_power.predict(-np.abs(X))
    with pytest.raises(NumericalError, match="overflow"):
        KernelRidge(kernel="rbf").fit(X, Y).predict(X * 1e200)


def test_precomputed_rows_need_a_column_for_each_training_row():
    model = KernelRidge(kernel="precomputed").fit(np.eye(10), Y)
    with pytest.raises(InvalidInputError, match=r"X has 4 features.*expecting 10"):
        model.predict(np.ones((2, 4)))
    with pytest.raises(UnsupportedInputError, match="must not be sparse"):
        model.predict(scipy.sparse.eye_array(10, format="csr"))


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "poly", "cosine", "matern"])
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
def test_tiny_values_are_fine(kernel, bias):
    model = KernelRidge(kernel=kernel, fit_intercept=bias).fit(X * 1e-200, Y)
    assert np.all(np.isfinite(model.predict(X * 1e-200)))


def test_huge_values_are_fine_where_the_kernel_does_not_square_them():
    for kernel in ("laplacian", "cosine"):
        model = KernelRidge(kernel=kernel).fit(X * 1e200, Y)
        assert np.all(np.isfinite(model.predict(X * 1e200)))


@pytest.mark.parametrize("n_centers", [0, -1, 1.5, "few"])
def test_number_of_centres_must_be_a_whole_positive_number(n_centers):
    with pytest.raises(InvalidInputError, match="n_centers must be a whole number >= 1, got"):
        fitted(KernelRidge).compress(n_centers)


@pytest.mark.parametrize("tol", [-1.0, np.nan, np.inf, "small"])
def test_tolerance_of_compression_must_be_a_number(tol):
    with pytest.raises(InvalidInputError, match="tol must be a finite number >= 0, got"):
        fitted(KernelRidge).compress(3, tol=tol)


def test_precomputed_kernels_cannot_be_compressed():
    with pytest.raises(InvalidInputError, match="precomputed"):
        KernelRidge(kernel="precomputed").fit(np.eye(10), Y).compress(3)

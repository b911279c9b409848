"""The same answers from every array library, layout and precision, in the kind that came in."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cases import rows, targets, tolerance
from namespaces import EVERYWHERE, LAYOUTS, to_numpy
from ridgefold import Compute, KernelRidge, LSSVMClassifier, LSSVMRegressor
from ridgefold.errors import InvalidInputError, UnsupportedInputError
from ridgefold.kernels import RBF, Laplacian, Linear, Matern, Polynomial, Sobolev

X, X_NEW = rows(30, 3, positive=True), rows(12, 3, seed=8, positive=True)
KERNELS = [Linear(), Polynomial(3), RBF(0.7), Laplacian(1.0), Matern(1.0), Sobolev(), RBF() + 1]
SOLVERS = ["cholesky", "eigendecomposition", "conjugate_gradient"]


def expected(kernel, bias, y, weights):
    model = KernelRidge(0.2, kernel=kernel, fit_intercept=bias, compute=Compute(solver="cholesky"))
    return model.fit(X, y, sample_weight=weights).predict(X_NEW)


@pytest.mark.parametrize("library", EVERYWHERE)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
def test_every_library_gives_the_same_predictions(library, dtype, bias):
    convert = EVERYWHERE[library]
    weights = np.random.default_rng(0).random(30)
    weights[3] = 0.0
    for kernel in KERNELS:
        primal = ["primal"] if isinstance(kernel, Linear | Polynomial) else []
        for solver in SOLVERS + primal:
            y = targets(X, 2)
            reference = expected(kernel, bias, y, weights)
            model = KernelRidge(
                0.2, kernel=kernel, fit_intercept=bias, compute=Compute(solver=solver)
            ).fit(
                convert(X.astype(dtype)),
                convert(y.astype(dtype)),
                sample_weight=convert(weights.astype(dtype)),
            )
            predicted = model.predict(convert(X_NEW.astype(dtype)))
            assert isinstance(predicted, type(convert(X)) if library not in LAYOUTS else np.ndarray)
            assert to_numpy(predicted).dtype == dtype
            bound = tolerance(kernel(X), 0.2, reference, dtype)
            if solver == "conjugate_gradient":
                # |f − f*| ≤ √k(x, x)·‖residual‖/(2√alpha), and the residual is below tol·‖y‖.
                tol = 1e-10 if dtype == np.float64 else 1e-3
                largest = np.sqrt(np.diag(kernel(X_NEW)).max())
                bound += largest * tol * np.linalg.norm(y) / np.sqrt(0.2)
            np.testing.assert_allclose(
                to_numpy(predicted), reference, rtol=0, atol=bound, err_msg=f"{kernel} {solver}"
            )


@pytest.mark.parametrize("library", EVERYWHERE)
def test_inputs_are_left_as_they_were(library):
    convert = EVERYWHERE[library]
    A, y, weights = convert(X), convert(targets(X)), convert(np.linspace(0, 1, 30))
    for solver in SOLVERS:
        LSSVMRegressor(0.1, compute=Compute(solver=solver)).fit(
            A, y, sample_weight=weights
        ).predict(A)
    K = convert(RBF()(X))
    KernelRidge(0.1, kernel="precomputed").fit(K, y).predict(K)
    np.testing.assert_array_equal(to_numpy(A), X)
    np.testing.assert_array_equal(to_numpy(y), targets(X))
    np.testing.assert_array_equal(to_numpy(weights), np.linspace(0, 1, 30))
    np.testing.assert_array_equal(to_numpy(K), RBF()(X))


@pytest.mark.parametrize("library", EVERYWHERE)
def test_classifiers_and_alpha_zero_run_everywhere(library):
    convert = EVERYWHERE[library]
    labels = (X[:, 0] > 0.5).astype(np.int64)
    model = LSSVMClassifier(0.05, kernel=RBF(0.7)).fit(convert(X), convert(labels))
    reference = LSSVMClassifier(0.05, kernel=RBF(0.7)).fit(X, labels)
    np.testing.assert_allclose(
        to_numpy(model.decision_function(convert(X_NEW))),
        reference.decision_function(X_NEW),
        atol=1e-11,
    )
    np.testing.assert_array_equal(to_numpy(model.predict(convert(X))), reference.predict(X))


@pytest.mark.parametrize("library", EVERYWHERE)
def test_compressed_models_stay_in_their_library(library):
    convert = EVERYWHERE[library]
    model = KernelRidge(0.1, kernel=RBF(0.7)).fit(convert(X), convert(targets(X, 2)))
    small = model.compress(8)
    difference = to_numpy(small.predict(convert(X_NEW))) - to_numpy(model.predict(convert(X_NEW)))
    assert np.all(np.abs(difference).max(axis=0) <= small.compression_bound_)
    assert small.X_fit_.shape == (8, 3)


def test_whole_number_targets_of_torch_are_taken_for_regression():
    A, y = torch.from_numpy(X), torch.arange(30)
    model = KernelRidge(0.1, kernel="rbf").fit(A, y)
    reference = KernelRidge(0.1, kernel="rbf").fit(X, np.arange(30.0)).predict(X)
    np.testing.assert_allclose(model.predict(A).numpy(), reference, rtol=1e-10)


def test_targets_in_numpy_are_taken_beside_rows_in_torch():
    A = torch.from_numpy(X)
    predicted = KernelRidge(0.1, kernel="rbf").fit(A, targets(X)).predict(A)
    assert isinstance(predicted, torch.Tensor)
    assert predicted.shape == (30,)


def test_float32_rows_decide_the_precision_of_float64_targets():
    model = KernelRidge(0.1, kernel="rbf").fit(X.astype(np.float32), targets(X))
    assert model.predict(X).dtype == np.float32


def test_libraries_do_not_mix_between_fit_and_predict():
    tensor = torch.from_numpy(X)
    numpy_model = KernelRidge(kernel="rbf").fit(X, targets(X))
    torch_model = KernelRidge(kernel="rbf").fit(tensor, targets(X))
    with pytest.raises(UnsupportedInputError, match=r"X is an array of torch.*fitted on .*numpy"):
        numpy_model.predict(tensor)
    with pytest.raises(UnsupportedInputError, match=r"X is an array of numpy.*fitted on .*torch"):
        torch_model.predict(X)
    with pytest.raises(UnsupportedInputError, match="y is an array of torch but X is not"):
        KernelRidge().fit(X, torch.ones(30))


NAN = torch.from_numpy(np.where(X > 0.9, np.nan, X))
GOOD = torch.from_numpy(X)


@pytest.mark.parametrize(
    ("A", "y", "weights", "error", "message"),
    [
        (NAN, targets(X), None, InvalidInputError, "X contains NaN or infinity"),
        (GOOD, torch.full((30,), torch.inf), None, InvalidInputError, "y contains NaN or inf"),
        (GOOD[0], targets(X), None, InvalidInputError, "X must have two dimensions"),
        (GOOD[:0], [], None, InvalidInputError, "at least one row"),
        (GOOD.to(torch.int64), targets(X), None, UnsupportedInputError, "X must be float32"),
        (GOOD.to(torch.complex128), targets(X), None, UnsupportedInputError, "X must be float32"),
        (GOOD, torch.ones(30) * 1j, None, InvalidInputError, "y must be real, got torch.complex"),
        (GOOD, ["a"] * 30, None, InvalidInputError, "y must hold one finite real number"),
        (GOOD, torch.ones(4), None, InvalidInputError, r"X has shape \(30, 3\), y \(4,\)"),
        (GOOD, targets(X), torch.ones(3), InvalidInputError, "sample_weight must hold 30"),
        (GOOD, targets(X), -torch.ones(30), InvalidInputError, "sample_weight must be >= 0"),
        (GOOD, targets(X), torch.zeros(30), InvalidInputError, "sample_weight is zero"),
    ],
)
def test_bad_tensors_are_named(A, y, weights, error, message):
    model = KernelRidge(kernel="rbf")
    with pytest.raises(error, match=message):
        model.fit(A, y, sample_weight=weights)
    assert vars(model) == vars(KernelRidge(kernel="rbf"))


def test_tensors_with_other_columns_are_refused():
    model = KernelRidge(kernel="rbf").fit(GOOD, targets(X))
    with pytest.raises(InvalidInputError, match="X has 2 features, but KernelRidge is expecting 3"):
        model.predict(GOOD[:, :2])

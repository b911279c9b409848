"""Every solver gives the same model, and the model is the solution of the written system."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ridgefold.solvers
from cases import bordered, rows, targets, tolerance
from ridgefold import Compute, KernelRidge, LSSVMRegressor
from ridgefold.errors import ConvergenceWarning, InvalidInputError, NumericalError
from ridgefold.kernels import RBF, Laplacian, Linear, Polynomial
from ridgefold.solvers import SOLVERS

X, X_NEW = rows(60, 3), rows(20, 3, seed=8)
WEIGHTS = np.random.default_rng(2).random(60) + 0.2
KERNELS = {
    "linear": Linear(),
    "polynomial": Polynomial(2, gamma=0.5),
    "linear plus constant": 2 * Linear() + 1,
    "rbf": RBF(1.5),
    "laplacian": Laplacian(2.0),
}
ALPHAS = {"one alpha": 0.2, "an alpha each": np.array([1.0, 0.05, 0.2])}


def solvers_for(kernel):
    finite = kernel.feature_dimension(3) is not None
    return [name for name in SOLVERS if finite or name != "primal"]


def expected_model(kernel, y, alpha, weights, bias):
    """Coefficients and predictions from the bordered, or plain, system as it is written."""
    K, ridges = kernel(X), np.broadcast_to(alpha, y.shape[1])
    w = np.ones(len(X)) if weights is None else weights
    solution = np.zeros((len(X) + 1, y.shape[1]))
    for j, ridge in enumerate(ridges):
        A = bordered(K, ridge, w)
        if bias:
            solution[:, j] = np.linalg.solve(A, np.append(0.0, y[:, j]))
        else:
            solution[1:, j] = np.linalg.solve(A[1:, 1:], y[:, j])
    return solution[1:], kernel(X_NEW, X) @ solution[1:] + solution[0]


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("alpha", ALPHAS.values(), ids=ALPHAS)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
def test_every_solver_solves_the_written_system(kernel, alpha, weights, bias):
    y = targets(X, 3)
    dual, predictions = expected_model(kernel, y, alpha, weights, bias)
    root = np.ones(60) if weights is None else np.sqrt(weights)
    bound = tolerance(kernel(X) * np.outer(root, root), alpha, predictions, np.float64)
    for solver in solvers_for(kernel):
        # Rounding alone leaves a few 1e-13 where ‖K‖/alpha is in the thousands.
        model = KernelRidge(
            alpha, kernel=kernel, fit_intercept=bias, compute=Compute(solver=solver, tol=1e-12)
        ).fit(X, y, sample_weight=weights)
        assert model.plan_.method == solver
        iterative = not SOLVERS[solver].exact
        slack = bound + (1e-11 if iterative else 0.0) * np.abs(predictions).max()
        np.testing.assert_allclose(
            model.predict(X_NEW), predictions, rtol=0, atol=slack, err_msg=solver
        )
        scale = np.abs(dual).max() / np.abs(predictions).max()
        np.testing.assert_allclose(
            model.dual_coef_, dual, rtol=0, atol=slack * max(scale, 1.0) * 10, err_msg=solver
        )
        if bias:
            np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0.0, atol=slack * 100)


@pytest.mark.parametrize("kernel", [n for n, k in KERNELS.items() if "l" in n])
def test_primal_is_chosen_by_itself_where_there_are_fewer_features_than_rows(kernel):
    kernel = KERNELS[kernel]
    finite = kernel.feature_dimension(3) is not None
    model = KernelRidge(0.2, kernel=kernel).fit(X, targets(X))
    assert (model.plan_.method == "primal") is finite
    few = KernelRidge(0.2, kernel=kernel).fit(X[:3], targets(X)[:3])
    assert few.plan_.method != "primal"


def test_primal_says_why_it_cannot_run():
    for kernel, alpha, reason in [
        ("rbf", 1.0, "infinite"),
        ("linear", 0.0, "alpha = 0"),
        ("precomputed", 1.0, "precomputed"),
    ]:
        A = X if kernel != "precomputed" else X @ X.T
        with pytest.raises(InvalidInputError, match=f'solver="primal" cannot be used: .*{reason}'):
            KernelRidge(alpha, kernel=kernel, compute=Compute(solver="primal")).fit(A, targets(X))


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
def test_certificate_is_the_true_residual(bias, weights):
    y, alpha, kernel = targets(X, 2), 1e-3, RBF(1.0)
    model = KernelRidge(
        alpha,
        kernel=kernel,
        fit_intercept=bias,
        compute=Compute(solver="conjugate_gradient", tol=1e-6),
    ).fit(X, y, sample_weight=weights)
    w = np.ones(60) if weights is None else weights
    left = (
        y - kernel(X) @ model.dual_coef_ - model.intercept_ - alpha * model.dual_coef_ / w[:, None]
    )
    residual = np.linalg.norm(left * np.sqrt(w)[:, None], axis=0)
    certificate = model._model.certificate
    np.testing.assert_allclose(certificate, residual, rtol=1e-3, atol=1e-13)
    assert np.all(certificate <= 1e-6 * np.linalg.norm(y * np.sqrt(w)[:, None], axis=0))


def test_certificate_bounds_the_error_of_every_prediction():
    y, alpha, kernel = targets(X), 1e-2, RBF(1.0)
    exact = (
        KernelRidge(alpha, kernel=kernel, compute=Compute(solver="cholesky"))
        .fit(X, y)
        .predict(X_NEW)
    )
    for tol in (1e-1, 1e-3, 1e-6):
        model = KernelRidge(
            alpha, kernel=kernel, compute=Compute(solver="conjugate_gradient", tol=tol)
        ).fit(X, y)
        bound = model._model.certificate[0] / (2 * np.sqrt(alpha))
        assert np.abs(model.predict(X_NEW) - exact).max() <= bound + 1e-13


def test_conjugate_gradients_warn_with_what_they_reached():
    with pytest.warns(ConvergenceWarning, match=r"relative residual of .* above tol=1.0e-15"):
        KernelRidge(
            1e-9, kernel=RBF(2.0), compute=Compute(solver="conjugate_gradient", tol=1e-15)
        ).fit(X, targets(X))


def test_conjugate_gradients_refuse_alpha_zero():
    with pytest.raises(InvalidInputError, match=r"conjugate_gradient.*alpha = 0"):
        KernelRidge(0, kernel="rbf", compute=Compute(solver="conjugate_gradient")).fit(
            X, targets(X)
        )


def test_conjugate_gradients_on_a_matrix_that_is_not_positive_definite_come_to_nothing():
    K = -np.diag(np.arange(1.0, 6.0))
    model = KernelRidge(0.5, kernel="precomputed", compute=Compute(solver="conjugate_gradient"))
    with pytest.raises(NumericalError, match=r"came to nothing.*larger alpha.*cholesky"):
        model.fit(K, np.ones(5))


@pytest.mark.parametrize("kernel", [RBF(1.0), RBF(5.0), Polynomial(3), 1e3 * Linear()])
@pytest.mark.parametrize("alpha", [1e-12, 1e-16])
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.filterwarnings("ignore::ridgefold.errors.ConvergenceWarning")
def test_conjugate_gradients_that_run_away_give_the_best_they_came_by_or_say_so(
    kernel, alpha, bias
):
    A = np.random.default_rng(1).uniform(-1, 1, (80, 1))
    y = np.sin(5 * A[:, 0]) + 0.1 * np.random.default_rng(2).standard_normal(80)
    model = KernelRidge(
        alpha, kernel=kernel, fit_intercept=bias, compute=Compute(solver="conjugate_gradient")
    )
    try:
        model.fit(A, y)
    except NumericalError:
        return
    left = y - kernel(A) @ model.dual_coef_ - model.intercept_ - alpha * model.dual_coef_
    assert np.linalg.norm(left) <= 0.5 * np.linalg.norm(y) * (1 + 1e-6)
    assert model._model.certificate[0] == pytest.approx(np.linalg.norm(left), rel=0.1)


def test_coefficients_sum_to_zero_where_targets_are_far_from_it():
    """Else the bias of conjugate gradients is off by what is missing, divided by alpha."""
    y, alpha = 1e5 + targets(X), 1e-7
    found, exact = (
        LSSVMRegressor(
            alpha, kernel=Laplacian(30.0), compute=Compute(solver=solver, tol=1e-12)
        ).fit(X, y)
        for solver in ("conjugate_gradient", "cholesky")
    )
    size = np.abs(found.dual_coef_).sum()
    assert abs(found.dual_coef_.sum()) <= 100 * np.finfo(float).eps * size
    bound = found._model.certificate[0] / np.sqrt(alpha)
    allowed = tolerance(Laplacian(30.0)(X), alpha, y, np.float64)
    assert np.abs(found.predict(X_NEW) - exact.predict(X_NEW)).max() <= bound + allowed


def test_zero_targets_give_the_zero_model():
    for solver in ("primal", "cholesky", "eigendecomposition", "conjugate_gradient"):
        model = LSSVMRegressor(kernel="linear", compute=Compute(solver=solver)).fit(X, np.zeros(60))
        np.testing.assert_array_equal(model.predict(X_NEW), 0.0)


def test_values_that_overflow_raise_in_every_solver():
    for solver in SOLVERS:
        with pytest.raises(NumericalError, match="scale the columns of X"):
            KernelRidge(1.0, compute=Compute(solver=solver)).fit(X * 1e200, targets(X))


def test_every_solver_file_is_registered():
    folder = Path(ridgefold.solvers.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "base"}
    assert files == set(SOLVERS)
    assert all(solver.name == name for name, solver in SOLVERS.items())

"""LAPACK's own test: ‖b − Ax‖/(‖A‖‖x‖ + ‖b‖) ≤ max(n, 10)·eps, at every size, condition, scale."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cases import bordered, residual_ratio, rows, symmetric_matrix
from ridgefold import Compute, KernelRidge
from ridgefold.errors import ConditionWarning

SIZES = [1, 2, 3, 5, 10, 50, 500]
SPECTRA = ["geometric", "one small", "one large"]
LIMITS = {
    np.float64: ([1e0, 1e4, 1e8, 1e12, 1e14], [1e-150, 1.0, 1e150]),
    # The same room above eps and below overflow as float64 has.
    np.float32: ([1e0, 1e2, 1e4, 1e5], [1e-15, 1.0, 1e15]),
}

pytestmark = pytest.mark.filterwarnings("ignore::ridgefold.errors.ConditionWarning")


def cases(dtype, n):
    conditions, scales = LIMITS[dtype]
    if n == 1:
        return product([1.0], scales, SPECTRA[:1])
    if n == 500:  # slow: the rest is in the full matrix
        return product(conditions[::2], scales[::2], ["one small"])
    return product(conditions, scales, SPECTRA)


def assert_small(A, x, b, *, n, dtype, case):
    ratio = residual_ratio(A, x, b) / (max(n, 10) * np.finfo(dtype).eps)
    assert ratio <= 1.0, f"{case}: {ratio:.2g} times the limit"


def check_dual(solver, dtype, n, case, *, bias):
    cond, scale, spectrum = case
    A = (symmetric_matrix(n, cond, spectrum, seed=n) * scale).astype(dtype)
    b = rows(n, 3, seed=n + 1).astype(dtype)
    model = KernelRidge(
        0, kernel="precomputed", fit_intercept=bias, compute=Compute(solver=solver)
    ).fit(A, b)
    if not bias:
        assert_small(A, model.dual_coef_, b, n=n, dtype=dtype, case=case)
        return
    unknowns = np.vstack([model.intercept_[None, :], model.dual_coef_])
    right = np.vstack([np.zeros((1, 3)), b])
    system = bordered(A.astype(np.float64), 0.0)
    assert_small(system, unknowns, right, n=n, dtype=dtype, case=case)


@pytest.mark.parametrize("solver", ["cholesky", "eigendecomposition"])
@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("n", SIZES)
def test_dual_solvers_leave_residuals_at_rounding_level(solver, dtype, bias, n):
    for case in cases(dtype, n):
        check_dual(solver, dtype, n, case, bias=bias)


@pytest.mark.full
@pytest.mark.parametrize("solver", ["cholesky", "eigendecomposition"])
@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("spectrum", SPECTRA)
def test_dual_solvers_leave_residuals_at_rounding_level_at_every_spectrum(
    solver, dtype, bias, spectrum
):
    for cond, scale in product(*LIMITS[dtype]):
        check_dual(solver, dtype, 500, (cond, scale, spectrum), bias=bias)


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("n", SIZES)
def test_primal_solver_leaves_residuals_at_rounding_level(dtype, bias, n):
    """A = XᵀX + alpha·I is n×n with a condition number that alpha sets."""
    m = n + 1 + n // 2
    for cond, scale, _ in cases(dtype, n):
        basis, _ = np.linalg.qr(rows(m, n, seed=n))
        root = np.sqrt(scale)
        X = (basis * np.logspace(0, -8, n) * root).astype(dtype)
        y = rows(m, 3, seed=n + 1).astype(dtype)
        alpha = scale / cond
        model = KernelRidge(alpha, fit_intercept=bias, compute=Compute(solver="primal")).fit(X, y)
        w, phi, t = model._model.primal_coef, X.astype(np.float64), y.astype(np.float64)
        if bias:
            phi, t = phi - phi.mean(axis=0), t - t.mean(axis=0)
        A = phi.T @ phi + alpha * np.eye(n)
        assert_small(A, w, phi.T @ t, n=n, dtype=dtype, case=(cond, scale))


def test_the_hardest_systems_are_warned_about():
    A = symmetric_matrix(50, 1e14)
    for solver in ("cholesky", "eigendecomposition"):
        with pytest.warns(ConditionWarning, match="condition number"):
            KernelRidge(0, kernel="precomputed", compute=Compute(solver=solver)).fit(A, rows(50, 1))

"""Solutions for comparisons are those of stable factorisations, to the digits that are promised."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold.linalg import numpy_namespace
from ridgefold.linalg.leave_one_out import leave_one_out
from ridgefold.linalg.quick import QuickSolver
from ridgefold.linalg.unpenalised import bias_only

FOUR_DIGITS = 1e-4


def problem(n=120, targets=2, weighted=False, bias=True, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    K = np.exp(-0.125 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    y = 1e4 + 50.0 * np.sin(X[:, :targets]) + rng.standard_normal((n, targets))
    roots = np.sqrt(rng.uniform(0.3, 2.0, n)) if weighted else None
    if roots is not None:
        K, y = K * roots[:, None] * roots[None, :], y * roots[:, None]
    space = None
    if bias:
        direction = np.ones(n) if roots is None else roots
        space = bias_only(numpy_namespace(), direction)
    return K, y, space, roots


def writer(K):
    def write(out):
        out[...] = K

    return write


def exact(K, y, alpha, space, roots):
    return leave_one_out(numpy_namespace(), writer(K), y, alpha, space=space, roots=roots)


@pytest.mark.parametrize("ratio", [1e2, 0.9e4, 1.1e4, 1e9, 0.9e11])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_residuals_are_those_of_a_stable_factorisation(ratio, bias, weighted):
    K, y, space, roots = problem(weighted=weighted, bias=bias)
    trace = float(np.trace(K))
    alpha = trace / ratio
    solver = QuickSolver(y, space, roots)
    found = solver.leave_one_out(writer(K), trace, alpha)
    wanted = exact(K, y, alpha, space, roots)
    squares = np.mean(wanted.residuals**2, axis=0)
    np.testing.assert_allclose(np.mean(found.residuals**2, axis=0), squares, rtol=FOUR_DIGITS)
    np.testing.assert_allclose(found.unpenalised, wanted.unpenalised, rtol=FOUR_DIGITS)


@pytest.mark.parametrize(("ratio", "bound"), [(3e5, 1e-2), (2.9e6, 5e-2), (3.1e6, 1e-6)])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_solutions_alone_have_fewer_digits_at_smaller_ridges(ratio, bound, bias, weighted):
    K, y, space, roots = problem(weighted=weighted, bias=bias)
    trace = float(np.trace(K))
    coefficients, unpenalised = QuickSolver(y, space, roots).solve(writer(K), trace, trace / ratio)
    wanted = exact(K, y, trace / ratio, space, roots)
    size = np.linalg.norm(wanted.coefficients)
    assert np.linalg.norm(coefficients - wanted.coefficients) <= bound * size
    np.testing.assert_allclose(unpenalised, wanted.unpenalised, rtol=bound)


def test_one_solver_serves_one_matrix_after_another():
    K, y, space, roots = problem()
    solver = QuickSolver(y, space, roots)
    for power, alpha in ((1.0, 0.1), (2.0, 0.5), (1.0, 1e-5), (1.0, 0.1)):
        found = solver.leave_one_out(writer(K**power), len(K), alpha)
        wanted = exact(K**power, y, alpha, space, roots)
        np.testing.assert_allclose(
            np.mean(found.residuals**2), np.mean(wanted.residuals**2), rtol=FOUR_DIGITS
        )


def test_nothing_is_told_where_digits_are_too_few():
    K, y, space, roots = problem()
    solver = QuickSolver(y, space, roots)
    for alpha in (0.0, 1e-14 * len(K)):
        assert solver.leave_one_out(writer(K), len(K), alpha) is None
        assert solver.solve(writer(K), len(K), alpha) is None
    for huge in (1e40, np.inf, np.nan):
        assert solver.leave_one_out(writer(huge * K), huge, huge) is None


def test_nothing_is_told_of_a_matrix_that_is_not_positive_definite():
    K, y, space, roots = problem()
    solver = QuickSolver(y, space, roots)
    for broken in (K - 0.9 * np.eye(len(K)), np.where(np.eye(len(K)) > 0, 1.0, np.nan)):
        assert solver.leave_one_out(writer(broken), len(K), 0.1) is None
        assert solver.solve(writer(broken), len(K), 0.1) is None


def test_single_precision_data_stay_in_single_precision():
    K, y, space, roots = problem()
    y = (y - 1e4).astype(np.float32)
    space = bias_only(numpy_namespace(), np.ones(len(y), dtype=np.float32))
    solver = QuickSolver(y, space, roots)
    found = solver.leave_one_out(writer(K), len(K), 0.1)
    assert {found.residuals.dtype, found.coefficients.dtype, found.unpenalised.dtype} == {y.dtype}
    assert solver.leave_one_out(writer(K), len(K), 1e-8) is None


def test_few_rows_and_other_libraries_have_no_quick_solver():
    _, y, space, roots = problem(n=20)
    assert QuickSolver.of(numpy_namespace(), y, space, roots) is not None
    assert (
        QuickSolver.of(numpy_namespace(), y[:15], bias_only(numpy_namespace(), np.ones(15)), roots)
        is None
    )
    torch = pytest.importorskip("torch")
    from ridgefold.linalg import namespace_of

    tensor = torch.from_numpy(y)
    assert QuickSolver.of(namespace_of(tensor), tensor, None, None) is None

"""The one core of unpenalised columns, and its backends: exact, quick, stacked, projected."""

from __future__ import annotations

import numpy as np
import pytest

from cases import rows, symmetric_matrix
from fixed_effects_oracle import bordered_fit, bordered_predictions
from namespaces import LIBRARIES, to_numpy
from ridgefold.linalg import namespace_of, numpy_namespace
from ridgefold.linalg.centring import centre_in_place
from ridgefold.linalg.leave_one_out import leave_one_out
from ridgefold.linalg.quick import QuickSolver
from ridgefold.linalg.ridge import solve_ridge
from ridgefold.linalg.stacked import StackedSystems, pad_diagonals, solve_stack
from ridgefold.linalg.unpenalised import take_off_inverse, unpenalised_space, without_penalty

CONVERTERS = {"numpy": np.array, **LIBRARIES}
N = 40
X = rows(N, 5)
COLUMNS = np.column_stack([X[:, 0], 100.0 + X[:, 1], 1e4 * X[:, 2]])
K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
Y = rows(N, 2, seed=1) + COLUMNS[:, :2]
WEIGHTS = np.random.default_rng(3).uniform(0.3, 2.0, N)
ALPHA = 0.2


def space_of(columns, bias, roots=None, convert=np.array):
    like = convert(np.zeros(1))
    return unpenalised_space(
        namespace_of(like),
        None if columns is None else convert(columns),
        None if roots is None else convert(roots),
        bias=bias,
        n_rows=N if columns is None else len(columns),
        like=like,
    )


def weighted(weights):
    """√w or None, K̃ and ỹ."""
    if weights is None:
        return None, K, Y
    roots = np.sqrt(weights)
    return roots, K * np.outer(roots, roots), Y * roots[:, None]


def with_ones(columns, bias):
    return np.column_stack([np.ones((len(columns), int(bias))), columns])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_a_basis_spans_the_columns_and_gives_their_coefficients_back(bias, weights):
    roots = None if weights is None else np.sqrt(weights)
    space = space_of(COLUMNS, bias, roots)
    F = with_ones(COLUMNS, bias)
    S = F if roots is None else F * roots[:, None]
    np.testing.assert_allclose(space.basis.T @ space.basis, np.eye(space.rank), atol=1e-13)
    np.testing.assert_allclose(space.project(S), 0.0, atol=1e-9)
    beta = rows(F.shape[1], 2, seed=4)
    found = space.coefficients(space.basis.T @ (S @ beta))
    np.testing.assert_allclose(found, beta, rtol=1e-9, atol=1e-9)


def test_dependent_columns_give_the_smallest_coefficients_in_units_of_their_spread():
    twice = np.column_stack([X[:, 0], 10.0 * X[:, 0], np.full(N, 7.0)])
    space = space_of(twice, bias=True)
    assert space.rank == 2
    target = (5.0 + 4.0 * X[:, 0])[:, None]
    found = space.coefficients(space.basis.T @ target)[:, 0]
    np.testing.assert_allclose(with_ones(twice, True) @ found, target[:, 0], atol=1e-10)
    np.testing.assert_allclose(found[1:], [2.0, 0.2, 0.0], atol=1e-10)


def test_neither_origin_nor_unit_of_a_column_matters_beside_a_bias():
    here = space_of(COLUMNS, bias=True)
    there = space_of(COLUMNS * [3.0, 0.1, 1e-6] + [1e3, -5.0, 2.0], bias=True)
    projections = [each.basis @ each.basis.T for each in (here, there)]
    np.testing.assert_allclose(*projections, atol=1e-10)


@pytest.mark.parametrize("library", CONVERTERS)
def test_the_inverse_without_a_penalty_is_the_block_of_the_bordered_inverse(library):
    convert = CONVERTERS[library]
    space = space_of(COLUMNS, bias=True, convert=convert)
    H = np.linalg.inv(K + ALPHA * np.eye(N))
    right = np.concatenate([np.eye(N), to_numpy(space.basis)], axis=1)
    xp = namespace_of(space.basis).xp
    C, _, diagonal = without_penalty(
        xp, convert(H @ right), space.basis, convert(np.diagonal(H).copy())
    )
    expected, _ = bordered_fit(K, with_ones(COLUMNS, True), np.eye(N), ALPHA)
    np.testing.assert_allclose(to_numpy(C), expected, atol=1e-9)
    np.testing.assert_allclose(to_numpy(diagonal), np.diagonal(expected), atol=1e-9)


@pytest.mark.parametrize("library", CONVERTERS)
@pytest.mark.parametrize("count", [0, 3])
def test_an_inverse_becomes_the_block_of_the_bordered_inverse_in_place(library, count):
    convert, F = CONVERTERS[library], with_ones(COLUMNS[:, :count], True)
    expected, coefficients = bordered_fit(K, F, Y, ALPHA)
    inverse = convert(np.linalg.inv(K + ALPHA * np.eye(N)))
    basis, y = convert(F), convert(Y)
    found = take_off_inverse(namespace_of(inverse), inverse, basis, y)
    np.testing.assert_allclose(to_numpy(inverse) @ Y, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(to_numpy(found), coefficients, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("library", CONVERTERS)
@pytest.mark.parametrize("n", [4, 150])
def test_a_projected_matrix_is_the_bordered_system(library, n):
    convert = CONVERTERS[library]
    matrix, y = symmetric_matrix(n, 10.0), rows(n, 2)
    F = np.column_stack([np.ones(n), rows(n, 2, seed=7)])
    space = space_of(F[:, 1:], bias=True, convert=convert)
    lower = convert(np.tril(matrix))
    centring = centre_in_place(namespace_of(lower), lower, space, 0.7)
    filled = np.tril(to_numpy(lower)) + np.tril(to_numpy(lower), -1).T
    projected = to_numpy(centring.project(convert(y)))
    solution = np.linalg.solve(filled + 0.3 * np.eye(n), projected)
    beta = to_numpy(centring.coefficients(convert(y), convert(solution)))
    a, b = bordered_fit(matrix, F, y, 0.3)
    np.testing.assert_allclose(solution, a, atol=1e-11)
    np.testing.assert_allclose(beta, b, atol=1e-11)
    inverse = convert(np.linalg.inv(filled + 0.3 * np.eye(n)))
    centring.take_off_all(inverse, 0.3)
    C, _ = bordered_fit(matrix, F, np.eye(n), 0.3)
    np.testing.assert_allclose(to_numpy(inverse), C, atol=1e-10)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_exact_and_quick_residuals_are_those_of_refits(bias, count, weights):
    columns = COLUMNS[:, :count]
    roots, matrix, right = weighted(weights)
    space = space_of(columns, bias, roots)

    def write(out):
        out[...] = matrix

    found = leave_one_out(numpy_namespace(), write, right, ALPHA, space=space, roots=roots)
    F = with_ones(columns, bias)
    for row in range(N):
        others = np.delete(np.arange(N), row)
        own = bordered_predictions(K, F, Y, ALPHA, others, np.array([row]), weights)
        np.testing.assert_allclose(found.residuals[row], (Y[row] - own)[0], rtol=1e-7, atol=1e-7)
    _, beta = bordered_fit(K, F, Y, ALPHA, weights)
    np.testing.assert_allclose(found.unpenalised, beta, rtol=1e-7, atol=1e-9)
    solved, coefficients = solve_ridge(numpy_namespace(), write, right, ALPHA, space)
    np.testing.assert_allclose(solved, found.coefficients, atol=1e-10)
    np.testing.assert_allclose(coefficients, beta, rtol=1e-7, atol=1e-9)
    quick = QuickSolver(right, space, roots).leave_one_out(write, float(np.trace(matrix)), ALPHA)
    squares = np.mean(found.residuals**2, axis=0)
    np.testing.assert_allclose(np.mean(quick.residuals**2, axis=0), squares, rtol=1e-3)
    np.testing.assert_allclose(quick.unpenalised, beta, rtol=1e-2, atol=1e-2)


def test_a_row_that_alone_keeps_up_the_rank_has_no_residual_and_others_keep_theirs():
    columns = (np.arange(N) == 6).astype(float)[:, None]

    def write(out):
        out[...] = K

    space = space_of(columns, bias=True)
    found = leave_one_out(numpy_namespace(), write, Y, ALPHA, space=space, roots=None)
    assert np.all(np.isnan(found.residuals[6]))
    others = np.delete(np.arange(N), 6)
    ones = np.ones((N, 1))
    for row in (0, 20):
        train = np.delete(others, np.flatnonzero(others == row))
        own = bordered_predictions(K, ones, Y, ALPHA, train, np.array([row]))
        np.testing.assert_allclose(found.residuals[row], (Y[row] - own)[0], atol=1e-9)


def test_a_row_with_nearly_all_of_a_column_keeps_its_digits():
    columns = np.where(np.arange(N) == 6, 1.0, 1e-5 * X[:, 3])[:, None]

    def write(out):
        out[...] = K

    space = space_of(columns, bias=False)
    found = leave_one_out(numpy_namespace(), write, Y, ALPHA, space=space, roots=None)
    others = np.delete(np.arange(N), 6)
    own = bordered_predictions(K, columns, Y, ALPHA, others, np.array([6]))
    np.testing.assert_allclose(found.residuals[6], (Y[6] - own)[0], rtol=1e-6)


@pytest.mark.parametrize("library", CONVERTERS)
def test_a_stack_takes_systems_with_different_ranks(library):
    convert = CONVERTERS[library]
    sizes, widest = [12, 9], 12
    systems = [
        (K[:n, :n], Y[:n], space_of(COLUMNS[:n, : 2 - k], True)) for k, n in enumerate(sizes)
    ]
    matrices, targets = np.zeros((2, widest, widest)), np.zeros((2, widest, 2))
    present, basis = np.zeros((2, widest)), np.zeros((2, widest, 3))
    transforms = np.zeros((2, 3, 3))
    for k, (matrix, y, space) in enumerate(systems):
        n, r = len(matrix), space.rank
        matrices[k, :n, :n], targets[k, :n], present[k, :n] = matrix, y, 1.0
        basis[k, :n, :r] = space.basis
        transforms[k, : space.n_columns, :r] = space.transform
    found = StackedSystems(
        targets=convert(targets),
        present=convert(present),
        basis=convert(basis),
        transforms=convert(transforms),
        roots=None,
        counts=np.array(sizes),
    )
    stack = convert(matrices)
    namespace = namespace_of(stack)
    pad_diagonals(namespace, stack, found)
    solved = solve_stack(namespace, stack, convert(np.full(2, ALPHA)), found, held_out=True)
    for k, (matrix, y, space) in enumerate(systems):

        def write(out, matrix=matrix):
            out[...] = matrix

        alone = leave_one_out(numpy_namespace(), write, y, ALPHA, space=space, roots=None)
        n, q = len(matrix), space.n_columns
        np.testing.assert_allclose(to_numpy(solved.residuals)[k, :n], alone.residuals, rtol=1e-8)
        np.testing.assert_allclose(
            to_numpy(solved.unpenalised)[k, :q], alone.unpenalised, rtol=1e-8, atol=1e-9
        )

"""One fallback for every singular system, and honest warnings."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import bordered, condition, rows, symmetric_matrix
from namespaces import LIBRARIES, to_numpy
from ridgefold.errors import ConditionWarning, NumericalError, SingularSystemWarning
from ridgefold.linalg import namespace_of, numpy_namespace
from ridgefold.linalg.centring import centre_in_place, multiply_symmetric
from ridgefold.linalg.pivoted_cholesky import pivoted_cholesky
from ridgefold.linalg.symmetric import (
    CholeskyFactor,
    SpectralFactor,
    expected_digits,
    factorise,
    factorise_spectrally,
)
from ridgefold.linalg.unpenalised import bias_only

CONVERTERS = {"numpy": np.array, **LIBRARIES}


def factor_of(matrix, convert=np.array):
    array = convert(matrix)

    def refill(storage):
        storage[...] = convert(matrix)

    return factorise(namespace_of(array), array, refill)


@pytest.mark.parametrize("convert", CONVERTERS.values(), ids=CONVERTERS)
def test_regular_matrices_get_a_cholesky_factor(convert):
    matrix = symmetric_matrix(30, 1e6)
    factor = factor_of(matrix, convert)
    assert isinstance(factor, CholeskyFactor)
    b = rows(30, 2)
    bound = 1e-9 * np.abs(np.linalg.solve(matrix, b)).max()
    np.testing.assert_allclose(
        to_numpy(factor.solve(convert(b))), np.linalg.solve(matrix, b), rtol=0, atol=bound
    )
    np.testing.assert_allclose(
        to_numpy(factor.solve(convert(b[:, 0].copy()))),
        np.linalg.solve(matrix, b)[:, 0],
        rtol=0,
        atol=bound,
    )


@pytest.mark.parametrize("convert", CONVERTERS.values(), ids=CONVERTERS)
def test_singular_matrices_get_the_solution_of_least_norm(convert):
    half = rows(30, 7)
    matrix, b = half @ half.T, rows(30, 2, seed=9)
    factor = factor_of(matrix, convert)
    assert isinstance(factor, SpectralFactor)
    expected = np.linalg.pinv(matrix, rcond=1e-12, hermitian=True) @ b
    np.testing.assert_allclose(to_numpy(factor.solve(convert(b))), expected, atol=1e-12)
    with pytest.warns(SingularSystemWarning, match="the matrix is singular"):
        factor.warn_if_ill_conditioned("the matrix")


def test_zero_matrix_solves_to_zero():
    factor = factor_of(np.zeros((3, 3)))
    np.testing.assert_array_equal(factor.solve(np.ones((3, 1))), np.zeros((3, 1)))
    assert factor.condition() == np.inf


@pytest.mark.parametrize("cond", [1e0, 1e4, 1e8, 1e12])
@pytest.mark.parametrize("n", [1, 2, 40, 600])
def test_estimated_condition_is_near_the_true_one(n, cond):
    matrix = symmetric_matrix(n, cond) if n > 1 else np.ones((1, 1))
    true = condition(matrix)
    assert 0.2 * true <= factor_of(matrix).condition() <= 1.1 * true
    spectral = factorise_spectrally(numpy_namespace(), matrix.copy())
    assert 0.9 * true <= spectral.condition() <= 1.1 * true


@pytest.mark.parametrize("convert", CONVERTERS.values(), ids=CONVERTERS)
def test_ill_conditioned_matrices_are_named_with_condition_and_digits(convert):
    for factor in (
        factor_of(symmetric_matrix(20, 1e14), convert),
        factorise_spectrally(namespace_of(convert(np.eye(2))), convert(symmetric_matrix(20, 1e14))),
    ):
        with pytest.warns(ConditionWarning, match="the matrix is ill-conditioned") as caught:
            factor.warn_if_ill_conditioned("the matrix")
        text = str(caught[0].message)
        assert not isinstance(caught[0].message, SingularSystemWarning)
        named = float(re.search(r"condition number about (\S+)\)", text)[1])
        assert 1e13 < named < 2e14
        assert re.search(r"expect about [012] correct digits", text)


@pytest.mark.filterwarnings("error")
def test_well_conditioned_matrices_are_not_warned_about():
    factor = factor_of(symmetric_matrix(20, 1e10))
    factor.warn_if_ill_conditioned("the matrix")
    assert isinstance(factor, CholeskyFactor)


def test_indefinite_matrices_are_solved_and_named():
    matrix = np.diag([3.0, 2.0, -1.0])
    factor = factor_of(matrix)
    np.testing.assert_allclose(factor.solve(np.ones(3)), [1 / 3, 1 / 2, -1.0], rtol=1e-14)
    with pytest.warns(SingularSystemWarning, match=r"not positive definite .*-1.0e\+00"):
        factor.warn_if_ill_conditioned("the matrix")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [(0, 0), (2, 1)])
def test_values_that_are_not_finite_raise(value, place):
    matrix = np.eye(3)
    matrix[place] = value
    with pytest.raises(NumericalError, match="scale the columns of X"):
        factor_of(matrix)


@pytest.mark.parametrize(
    ("cond", "eps", "digits"),
    [(1.0, 2.2e-16, 15), (1e10, 2.2e-16, 5), (1e20, 2.2e-16, 0), (np.inf, 2.2e-16, 0)],
)
def test_digits_follow_from_the_condition(cond, eps, digits):
    assert expected_digits(cond, eps) == digits


@pytest.mark.parametrize("convert", CONVERTERS.values(), ids=CONVERTERS)
@pytest.mark.parametrize("n", [1, 3, 150])
@pytest.mark.parametrize("weighted", [False, True])
def test_centring_is_the_bordered_system(convert, n, weighted):
    K, y, alpha = symmetric_matrix(n, 10.0) if n > 1 else np.ones((1, 1)), rows(n, 2), 0.3
    weights = np.random.default_rng(1).random(n) + 0.5 if weighted else np.ones(n)
    root = np.sqrt(weights)
    lower = convert(np.tril(K * np.outer(root, root)))
    namespace = namespace_of(lower)
    centring = centre_in_place(namespace, lower, bias_only(namespace, convert(root)), 0.7)
    filled = np.tril(to_numpy(lower)) + np.tril(to_numpy(lower), -1).T
    right = convert(y * root[:, None])
    solution = np.linalg.solve(filled + alpha * np.eye(n), to_numpy(centring.project(right)))
    bias = to_numpy(centring.coefficients(right, convert(solution)))[0]
    expected = np.linalg.solve(bordered(K, alpha, weights), np.vstack([np.zeros((1, 2)), y]))
    np.testing.assert_allclose(solution * root[:, None], expected[1:], atol=1e-12)
    np.testing.assert_allclose(bias, expected[0], atol=1e-12)


def test_symmetric_product_reads_the_lower_triangle_only():
    K, v = symmetric_matrix(1100, 1e2), rows(1100, 1)[:, 0]
    garbled = np.tril(K) + np.triu(np.full_like(K, np.nan), 1)
    product = multiply_symmetric(numpy_namespace(), garbled, v)
    np.testing.assert_allclose(product, K @ v, atol=1e-13)


@given(n=st.integers(1, 20), width=st.integers(1, 20), seed=st.integers(0, 50))
def test_pivoted_cholesky_leaves_a_positive_remainder_that_it_measures(n, width, seed):
    half = rows(n, width, seed)
    K = half @ half.T
    partial = pivoted_cholesky(
        numpy_namespace(), lambda i: K[:, i].copy(), np.diag(K).copy(), rank=max(1, n // 2)
    )
    E = K - partial.factor @ partial.factor.T
    size = np.trace(K)
    assert np.linalg.eigvalsh(E).min() >= -1e-13 * size
    assert partial.trace == pytest.approx(np.trace(E), abs=1e-13 * size)
    np.testing.assert_allclose(E[partial.pivots], 0.0, atol=1e-13 * size)
    lower = partial.lower_at_pivots()
    at_pivots = K[np.ix_(partial.pivots, partial.pivots)]
    np.testing.assert_allclose(np.tril(lower) @ np.tril(lower).T, at_pivots, atol=1e-13 * size)


def test_pivoted_cholesky_stops_at_the_rank_of_the_matrix():
    half = rows(30, 4)
    K = half @ half.T
    partial = pivoted_cholesky(numpy_namespace(), lambda i: K[:, i], np.diag(K), rank=30)
    assert len(partial.pivots) == 4

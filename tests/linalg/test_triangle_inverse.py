"""A triangle inverted by halves is the one that LAPACK inverts."""

from __future__ import annotations

import numpy as np
import pytest

from cases import symmetric_matrix
from ridgefold.linalg import numpy_namespace
from ridgefold.linalg.blas_pointers import pointers_for
from ridgefold.linalg.triangle_inverse import (
    FASTER_BY_HALVES,
    SMALL,
    inverse_of_factor_in_place,
    invert_triangle_in_place,
    squares_of_columns,
)

SIZES = [1, 2, SMALL, SMALL + 1, FASTER_BY_HALVES.start, 301]


def triangle(n, dtype):
    """A Cholesky factor with nonsense above its diagonal."""
    matrix = np.linalg.cholesky(symmetric_matrix(n, 10.0))
    matrix[np.triu_indices(n, 1)] = np.nan
    return matrix.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
def test_the_product_with_the_triangle_is_one_and_the_other_triangle_is_left_alone(n, dtype):
    lower = triangle(n, dtype)
    inverse = lower.copy()
    invert_triangle_in_place(inverse, pointers_for(inverse.dtype))
    assert np.isnan(inverse[np.triu_indices(n, 1)]).all()
    product = np.tril(inverse).astype(np.float64) @ np.tril(lower)
    assert np.abs(product - np.eye(n)).max() <= 10 * max(n, 10) * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
def test_the_diagonal_of_the_inverse_is_the_sum_of_squares_of_columns(n, dtype):
    factor = triangle(n, dtype)
    whole = np.linalg.inv(np.tril(factor).astype(np.float64) @ np.tril(factor).T)
    by_halves = numpy_namespace().inverse_diagonal_from_cholesky_in_place(factor.copy())
    assert by_halves.dtype == dtype
    bound = 100 * np.finfo(dtype).eps * np.abs(whole).max()
    np.testing.assert_allclose(by_halves, np.diag(whole), rtol=0, atol=bound)
    inverse = factor.copy()
    numpy_namespace().inverse_from_cholesky_in_place(inverse)
    np.testing.assert_allclose(np.tril(inverse), np.tril(whole), rtol=0, atol=bound)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
def test_the_inverse_of_a_factor_straight_from_the_matrix(n, dtype):
    matrix = symmetric_matrix(n, 10.0).astype(dtype)
    matrix[np.triu_indices(n, 1)] = np.nan
    expected = np.linalg.inv(np.linalg.cholesky(np.tril(matrix).astype(np.float64)))
    inverse = matrix.copy()
    inverse_of_factor_in_place(inverse, pointers_for(inverse.dtype))
    assert np.isnan(inverse[np.triu_indices(n, 1)]).all()
    bound = 100 * np.finfo(dtype).eps * np.abs(expected).max()
    np.testing.assert_allclose(np.tril(inverse), expected, rtol=0, atol=bound)


def test_calls_that_were_recorded_are_made_again_on_what_is_there_then():
    storage = np.eye(150)
    calls = pointers_for(storage.dtype).recorder()
    inverse_of_factor_in_place(storage, calls)
    assert np.array_equal(storage, np.eye(150))  # nothing is done yet
    for seed_size in (10.0, 1e3):
        matrix = symmetric_matrix(150, seed_size)
        storage[...] = matrix
        assert calls.play()
        expected = np.linalg.inv(np.linalg.cholesky(matrix))
        np.testing.assert_allclose(np.tril(storage), expected, rtol=0, atol=1e-10)
    storage[...] = -np.eye(150)
    assert not calls.play()


def test_a_slice_that_is_not_contiguous_is_inverted_by_lapack():
    factor = triangle(40, np.float64)
    wide = np.full((40, 50), np.nan)
    wide[:, :40] = factor
    expected = numpy_namespace().inverse_diagonal_from_cholesky_in_place(factor)
    found = numpy_namespace().inverse_diagonal_from_cholesky_in_place(wide[:, :40])
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_columns_are_summed_over_the_lower_triangle_alone():
    lower = np.tril(np.arange(1.0, 700.0**2 + 1).reshape(700, 700))
    expected = np.sum(lower**2, axis=0)
    lower[np.triu_indices(700, 1)] = np.nan
    np.testing.assert_allclose(squares_of_columns(lower), expected, rtol=1e-13)

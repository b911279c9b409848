"""Every array library offers the same routines."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import torch

from cases import rows, symmetric_matrix
from namespaces import LIBRARIES, to_numpy
from ridgefold.linalg import namespace_of, numpy_namespace
from ridgefold.linalg.blocks import row_blocks
from ridgefold.linalg.namespace import is_foreign_array

CONVERTERS = {"numpy": np.array, **LIBRARIES}
A = symmetric_matrix(13, 1e3, seed=4)
B = rows(13, 2, seed=5)


@pytest.fixture(params=CONVERTERS)
def convert(request):
    return CONVERTERS[request.param]


@pytest.fixture(params=[np.float64, np.float32])
def dtype(request):
    return request.param


def lower_only(convert, dtype):
    """The matrix with nonsense above its diagonal, which no routine may read."""
    return convert((np.tril(A) + 99.0 * np.triu(np.ones_like(A), 1)).astype(dtype))


def close(actual, expected, dtype, condition=1.0):
    actual = to_numpy(actual)
    assert actual.dtype == dtype
    bound = 20 * condition * np.finfo(dtype).eps * np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=bound)


def test_cholesky_reads_and_writes_the_lower_triangle(convert, dtype):
    matrix = lower_only(convert, dtype)
    namespace = namespace_of(matrix)
    assert namespace.cholesky_in_place(matrix)
    close(np.tril(to_numpy(matrix)), np.linalg.cholesky(A), dtype)
    right = convert(B.astype(dtype))
    expected = np.linalg.solve(A, B)
    close(namespace.solve_cholesky(matrix, right), expected, dtype, 1e3)
    half = namespace.solve_triangular(matrix, right)
    close(half, scipy.linalg.solve_triangular(np.linalg.cholesky(A), B, lower=True), dtype, 1e3)
    close(namespace.solve_triangular(matrix, half, transposed=True), expected, dtype, 1e3)
    diagonal = namespace.inverse_diagonal_from_cholesky_in_place(namespace.copy(matrix))
    close(diagonal, np.diag(np.linalg.inv(A)), dtype, 1e3)
    namespace.inverse_from_cholesky_in_place(matrix)
    close(np.tril(to_numpy(matrix)), np.tril(np.linalg.inv(A)), dtype, 1e3)


def test_a_matrix_without_cholesky_factor_is_recognised(convert):
    matrix = convert(A - 0.5 * np.eye(13))
    assert not namespace_of(matrix).cholesky_in_place(matrix)


def test_eigenvectors_are_of_the_lower_triangle(convert, dtype):
    matrix = lower_only(convert, dtype)
    values, vectors = namespace_of(matrix).eigh_in_place(matrix)
    close(values, np.linalg.eigvalsh(A), dtype)
    vectors = to_numpy(vectors).astype(np.float64)
    rebuilt = (vectors * to_numpy(values)) @ vectors.T
    np.testing.assert_allclose(rebuilt, A, atol=50 * np.finfo(dtype).eps)


def test_upper_triangle_is_filled_from_the_lower(convert, dtype):
    matrix = lower_only(convert, dtype)
    namespace_of(matrix).fill_upper_in_place(matrix)
    close(matrix, A, dtype)


def test_diagonals_are_read_added_to_and_set(convert, dtype):
    matrix = convert(A.astype(dtype))
    namespace = namespace_of(matrix)
    before = namespace.diagonal(matrix)
    namespace.add_to_diagonal_in_place(matrix, 2.0)
    close(before, np.diag(A), dtype)
    close(matrix, A + 2 * np.eye(13), dtype)
    namespace.set_diagonal_in_place(matrix, convert(np.arange(13).astype(dtype)))
    close(matrix, A - np.diag(np.diag(A)) + np.diag(np.arange(13)), dtype)
    namespace.set_diagonal_in_place(matrix, 3.0)
    close(namespace.diagonal(matrix), np.full(13, 3.0), dtype)


def test_diagonal_of_a_view_is_changed_in_place():
    whole = np.zeros((8, 8))
    numpy_namespace().add_to_diagonal_in_place(whole[::2, ::2], 1.0)
    np.testing.assert_array_equal(np.diag(whole), [1, 0, 1, 0, 1, 0, 1, 0])


def test_element_wise_work_is_in_place(convert, dtype):
    start = rows(5, 4, seed=2).astype(dtype)
    for name, expected in {
        "exp": np.exp,
        "tanh": np.tanh,
        "sqrt": np.sqrt,
        "maximum": lambda a: np.maximum(a, 0.3),
        "minimum": lambda a: np.minimum(a, 0.3),
    }.items():
        values = np.abs(start) if name == "sqrt" else start
        array = convert(values)
        arguments = (0.3,) if name.endswith("imum") else ()
        getattr(namespace_of(array), f"{name}_in_place")(array, *arguments)
        close(array, expected(values), dtype)


def test_products_and_distances(convert, dtype):
    left, right = rows(6, 3).astype(dtype), rows(4, 3, seed=8).astype(dtype)
    a, b = convert(left), convert(right)
    namespace = namespace_of(a)
    out = namespace.empty((6, 4), a)
    namespace.multiply_transposed(a, b, out)
    close(out, left @ right.T, dtype)
    namespace.manhattan_distances(a, b, out)
    close(out, np.abs(left[:, None] - right[None]).sum(axis=2), dtype)
    close(np.tril(to_numpy(namespace.gram_of_rows(a))), np.tril(left @ left.T), dtype)
    sums = namespace.ones((6, 6), a)
    namespace.add_gram_of_rows_in_place(sums, a)
    close(np.tril(to_numpy(sums)), np.tril(left @ left.T + 1.0), dtype)
    close(namespace.squares_of_rows(a), np.sum(left * left, axis=1), dtype)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_gram_matrix_is_added_in_storage_of_either_order(order):
    a, out = rows(5, 9)[:, 1:8], np.ones((5, 5), order=order)
    numpy_namespace().add_gram_of_rows_in_place(out, a)
    np.testing.assert_allclose(np.tril(out), np.tril(a @ a.T + 1.0), rtol=1e-13)
    wider = np.ones((5, 5), order=order)
    numpy_namespace().add_gram_of_rows_in_place(wider, a.astype(np.float32))
    np.testing.assert_allclose(np.tril(wider), np.tril(a @ a.T + 1.0), rtol=1e-5)


def test_sparse_products_are_written_dense():
    left, right = scipy.sparse.csr_array(np.eye(3)), rows(2, 3)
    out = np.empty((3, 2))
    numpy_namespace().multiply_transposed(left, right, out)
    np.testing.assert_array_equal(out, right.T)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_norms_neither_overflow_nor_vanish(convert, scale):
    vector = convert(np.array([3.0, 4.0]) * scale)
    assert namespace_of(vector).norm(vector) == pytest.approx(5.0 * scale)


def test_norm_of_nothing_is_zero():
    assert numpy_namespace().norm(np.zeros(3)) == numpy_namespace().norm(np.empty((0, 2))) == 0.0


def test_rows_are_taken_by_slice_or_index(convert):
    array = convert(B)
    namespace = namespace_of(array)
    np.testing.assert_array_equal(to_numpy(namespace.take_rows(array, slice(2, 5))), B[2:5])
    some = np.array([7, 0, 7])
    np.testing.assert_array_equal(to_numpy(namespace.take_rows(array, some)), B[some])


def test_blocked_torch_cholesky_is_the_plain_one(monkeypatch):
    from ridgefold.linalg import torch_routines

    monkeypatch.setattr(torch_routines, "_PANEL", 4)
    matrix = LIBRARIES["torch"](np.tril(A))
    assert namespace_of(matrix).cholesky_in_place(matrix)
    np.testing.assert_allclose(np.tril(matrix.numpy()), np.linalg.cholesky(A), atol=1e-13)
    matrix = LIBRARIES["torch"](np.tril(A))
    namespace_of(matrix).fill_upper_in_place(matrix)
    np.testing.assert_array_equal(matrix.numpy(), A)


def test_sequences_and_sparse_matrices_count_as_numpy():
    assert namespace_of([1.0], scipy.sparse.eye_array(2), np.ones(2)) is numpy_namespace()
    assert not is_foreign_array([1.0])
    assert not is_foreign_array(np.ones(2))
    assert is_foreign_array(torch.ones(2))
    assert namespace_of(np.ones(2), torch.ones(2)).name == "torch"


@pytest.mark.parametrize(("n", "limit"), [(0, 10), (1, 1), (10, 1), (10, 25), (10, 1e9)])
def test_row_blocks_cover_every_row_once_within_the_limit(n, limit):
    blocks = list(row_blocks(n, 8, limit))
    assert [i for block in blocks for i in range(n)[block]] == list(range(n))
    assert all((b.stop - b.start) * 8 <= limit or b.stop - b.start == 1 for b in blocks)

"""The band is the matrix in another basis, whoever multiplies."""

from __future__ import annotations

import numpy as np
import pytest

from cases import condition, rows, symmetric_matrix
from namespaces import LIBRARIES, to_numpy
from ridgefold.linalg import householder, namespace_of
from ridgefold.linalg.banded import bandwidth_for, factorise_band, reduce_to_band
from ridgefold.linalg.blas_pointers import pointers_for

CONVERTERS = {"numpy": np.array, **LIBRARIES}
SHAPES = [(1, 1), (2, 1), (3, 1), (7, 3), (33, 16), (34, 16), (40, 64), (97, 16)]
"""(rows, bandwidth): last panels that are full, short, one row high, or not there at all."""


@pytest.fixture(params=["pointers", "plain"], autouse=True)
def _blas(request, monkeypatch):
    """Everything holds with and without BLAS by pointer."""
    if request.param == "plain":
        monkeypatch.setattr(householder, "pointers_for", lambda dtype: None)


def lower_only(matrix):
    """The matrix with nonsense above the diagonal, where nothing may look."""
    return np.where(np.tri(len(matrix), dtype=bool), matrix, np.nan).astype(matrix.dtype)


def dense(band):
    n, width = band.shape
    out = np.zeros((n, n), dtype=band.dtype)
    for d in range(min(width, n)):
        out += np.diag(band[: n - d, d], -d)
        if d:
            out += np.diag(band[: n - d, d], d)
    return out


@pytest.mark.parametrize(("n", "b"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("convert", CONVERTERS.values(), ids=CONVERTERS)
def test_basis_times_band_is_the_matrix(convert, dtype, n, b):
    matrix = symmetric_matrix(n, 1e3).astype(dtype)
    array = convert(lower_only(matrix))
    reduction = reduce_to_band(namespace_of(array), array, b)
    few = 20 * np.finfo(dtype).eps * np.sqrt(n)
    x = rows(n, 2).astype(dtype)
    there = reduction.to_band(convert(x))
    np.testing.assert_allclose(to_numpy(reduction.from_band(there)), x, rtol=0, atol=10 * few)
    q = to_numpy(reduction.basis_in_place())
    np.testing.assert_allclose(q.T @ q, np.eye(n), rtol=0, atol=few)
    np.testing.assert_allclose(q @ dense(reduction.band) @ q.T, matrix, rtol=0, atol=few)
    np.testing.assert_allclose(q.T @ x, to_numpy(there), rtol=0, atol=10 * few)


@pytest.mark.parametrize(("n", "b"), SHAPES)
@pytest.mark.parametrize("convert", CONVERTERS.values(), ids=CONVERTERS)
def test_rows_divided_by_the_factor_give_the_inverse(convert, n, b):
    matrix = symmetric_matrix(n, 1e3)
    array = convert(lower_only(matrix))
    namespace = namespace_of(array)
    reduction = reduce_to_band(namespace, array, b)
    factor = factorise_band(reduction.band, 0.1)
    assert factor is not None
    q = reduction.basis_in_place()
    z = np.concatenate([to_numpy(z) for _, z in factor.divide_rows(namespace, q)], axis=1)
    inverse = np.linalg.inv(matrix + 0.1 * np.eye(n))
    np.testing.assert_allclose(z @ z.T, inverse, rtol=0, atol=1e-12)
    x = rows(n, 2)
    np.testing.assert_allclose(
        to_numpy(q) @ factor.solve(to_numpy(q).T @ x), inverse @ x, rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(
        to_numpy(q) @ factor.solve_transposed(z.T @ x), inverse @ x, rtol=0, atol=1e-12
    )


def test_a_zero_matrix_and_a_band_need_no_reflection():
    namespace = namespace_of(np.zeros(1))
    zero = reduce_to_band(namespace, np.zeros((20, 20)), 3)
    np.testing.assert_array_equal(zero.band, 0.0)
    np.testing.assert_allclose(zero.from_band(rows(20, 1)), rows(20, 1))
    ready = np.diag(np.arange(1.0, 21.0))
    np.testing.assert_allclose(dense(reduce_to_band(namespace, ready.copy(), 3).band), ready)


@pytest.mark.parametrize("alpha", [0.0, -0.5])
def test_singular_and_indefinite_bands_have_no_factor(alpha):
    half = rows(30, 7)
    array = half @ half.T
    reduction = reduce_to_band(namespace_of(array), array, bandwidth_for(30))
    assert factorise_band(reduction.band, alpha) is None


@pytest.mark.parametrize("cond", [1e11, 1e13])
def test_conditions_that_matter_are_known(cond):
    matrix = symmetric_matrix(50, cond)
    reduction = reduce_to_band(namespace_of(matrix), matrix.copy(), 6)
    factor = factorise_band(reduction.band, 0.0)
    assert factor is not None
    assert factor.known_condition() == pytest.approx(condition(matrix), rel=0.5)
    well = factorise_band(reduction.band, 1.0)
    assert well is not None
    assert np.isnan(well.known_condition())


def test_pointers_refuse_what_blas_cannot_take():
    assert pointers_for(np.dtype(np.int64)) is None
    pointers = pointers_for(np.dtype(np.float64))
    if pointers is None:
        pytest.skip("this SciPy publishes no BLAS pointers")
    square, panel = np.eye(6), np.ones((6, 2), order="F")
    with pytest.raises(ValueError, match="strides"):
        pointers.multiply_symmetric(square[::-1], panel, panel.copy(order="F"))
    with pytest.raises(ValueError, match="float32"):
        pointers.subtract_rank_2k(square, panel, panel.astype(np.float32, order="F"))
    out = np.ones((3, 6))[:, ::2]
    with pytest.raises(ValueError, match="strides"):
        pointers.subtract_product(out, np.eye(3), np.eye(3))

"""NumPy arrays: BLAS and LAPACK called so that nothing is copied.

SciPy's wrappers copy anything that is not Fortran-contiguous. The library's
symmetric matrices are C-contiguous with the lower triangle filled, so `a.T` is the
Fortran-contiguous matrix with the *upper* triangle filled, and LAPACK can overwrite it.
"""

from __future__ import annotations

from typing import Any

import array_api_compat.numpy as xp
import numpy as np
import scipy.sparse
from scipy.linalg import LinAlgError, blas, eigh, lapack

from ridgefold.errors import NumericalError
from ridgefold.linalg.blas_pointers import BlasPointers, pointers_for
from ridgefold.linalg.blocks import CACHE_BYTES, row_blocks
from ridgefold.linalg.namespace import Array, Namespace
from ridgefold.linalg.tiled_cholesky import WORTH_IT, tiled_cholesky_in_place
from ridgefold.linalg.triangle_inverse import (
    FASTER_BY_HALVES,
    invert_triangle_in_place,
    squares_of_columns,
)

_NARROWEST_PANEL = 128
"""Columns of a panel, at least: products with narrower ones run slower than a copy would cost."""
_CANCELS = 1e3
"""Rows this many length scales from zero leave a rounding error of 1e-13 in a distance, so that
columns with larger values are summed from differences."""
_WIDE = 32
"""With this many right-hand sides or more, a triangular solve from the right is the faster one."""


def _routine(module: Any, name: str, a: np.ndarray) -> Any:
    prefix = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}[a.dtype]
    return getattr(module, prefix + name)


def _triangle_pointers(factor: np.ndarray) -> BlasPointers | None:
    """What inverts a triangle in its own storage; None where that cannot be done by halves."""
    return pointers_for(factor.dtype) if factor.flags.c_contiguous else None


def _in_rows(a: np.ndarray) -> bool:
    """Whether every row is contiguous and ends before the next one."""
    return a.strides[1] == a.itemsize and a.strides[0] >= a.itemsize * a.shape[1]


def _from_the_right(factor: np.ndarray, b: np.ndarray) -> bool:
    """Whether a triangular solve is done on `b` transposed."""
    return b.shape[1] >= _WIDE and bool(np.all(np.diagonal(factor) != 0.0))


class NumpyNamespace(Namespace):
    name = "numpy"
    xp = xp
    gains_by_halves = True

    def to_numpy(self, a: Array) -> np.ndarray:
        return np.asarray(a)

    def squares_of_rows(self, a: Array) -> Array:
        return np.einsum("ij,ij->i", a, a)

    def diagonal(self, a: Array) -> Array:
        return np.diagonal(a).copy()

    def add_to_diagonal_in_place(self, a: Array, values: Array | float) -> None:
        np.einsum("ii->i", a)[...] += values

    def set_diagonal_in_place(self, a: Array, values: Array | float) -> None:
        rows = np.arange(min(a.shape))
        a[rows, rows] = values

    def fill_upper_in_place(self, a: Array) -> None:
        n, step = a.shape[0], 128
        above = np.triu(np.ones((min(n, step), min(n, step)), dtype=bool), k=1)
        for start in range(0, n, step):
            stop = min(start + step, n)
            a[start:stop, stop:] = a[stop:, start:stop].T
            corner = a[start:stop, start:stop]
            side = stop - start
            np.copyto(corner, corner.T.copy(), where=above[:side, :side])

    def exp_in_place(self, a: Array) -> None:
        np.exp(a, out=a)

    def sqrt_in_place(self, a: Array) -> None:
        np.sqrt(a, out=a)

    def tanh_in_place(self, a: Array) -> None:
        np.tanh(a, out=a)

    def maximum_in_place(self, a: Array, low: float) -> None:
        np.maximum(a, low, out=a)

    def minimum_in_place(self, a: Array, high: float) -> None:
        np.minimum(a, high, out=a)

    def multiply_transposed(self, a: Array, b: Array, out: Array) -> None:
        if scipy.sparse.issparse(a) or scipy.sparse.issparse(b):
            product = a @ b.T
            out[...] = product.toarray() if scipy.sparse.issparse(product) else product
        elif a.dtype == b.dtype == out.dtype:
            np.matmul(a, b.T, out=out)
        else:
            out[...] = a @ b.T

    def manhattan_distances(self, a: Array, b: Array, out: Array) -> None:
        from scipy.spatial.distance import cdist

        out[...] = cdist(a, b, "cityblock")

    def contract_manhattan(self, weights: Array, a: Array, b: Array) -> Array:
        # There is no product form, but with |a − b| = 2·max(a, b) − a − b two passes a column over
        # a block that stays in the cache will do. Where values are large, that cancels.
        columns_a, columns_b = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
        cancels = np.max(np.abs(columns_a), axis=1, initial=0.0) > _CANCELS
        out = -(columns_a @ weights.sum(axis=1) + columns_b @ weights.sum(axis=0))
        out[cancels] = 0.0
        for rows in row_blocks(a.shape[0], b.shape[0] * a.itemsize, CACHE_BYTES // 4):
            block = np.ascontiguousarray(weights[rows])
            larger = np.empty_like(block)
            for k, (left, right) in enumerate(zip(columns_a, columns_b, strict=True)):
                if cancels[k]:
                    np.subtract(left[rows, None], right[None, :], out=larger)
                    out[k] += np.vdot(block, np.abs(larger, out=larger))
                    continue
                np.maximum(left[rows, None], right[None, :], out=larger)
                out[k] += 2.0 * np.vdot(block, larger)
        return out

    def add_gram_of_rows_in_place(self, lower: Array, a: Array) -> None:
        pointers = pointers_for(a.dtype) if lower.dtype == a.dtype else None
        if pointers is None or not (_in_rows(lower) and _in_rows(a)):
            super().add_gram_of_rows_in_place(lower, a)
        else:
            pointers.add_gram_of_rows(lower, a)

    def gram_of_rows(self, a: Array) -> Array:
        # syrk reads a C-contiguous `a` as its transpose without a copy, and fills the
        # upper triangle of a Fortran-ordered result: the lower one of its transpose.
        syrk = _routine(blas, "syrk", a)
        if a.flags.f_contiguous:
            return syrk(1.0, a, trans=0, lower=0).T
        return syrk(1.0, np.ascontiguousarray(a).T, trans=1, lower=0).T

    def weighted_gram_of_rows(self, a: Array, weights: Array) -> Array:
        if np.any(weights < 0):
            return super().weighted_gram_of_rows(a, weights)
        # Scaled columns go from the cache into syrk: a scaled copy of `a` would cost a third of
        # the product, as memory is slow beside arithmetic.
        syrk, roots = _routine(blas, "syrk", a), np.sqrt(weights)
        m, n = a.shape
        by_column = a.strides[0] < a.strides[1]
        gram = np.zeros((m, m), dtype=a.dtype, order="F")
        width = min(n, max(_NARROWEST_PANEL, CACHE_BYTES // (m * a.itemsize)))
        storage = np.empty(m * width, dtype=a.dtype)
        for columns in row_blocks(n, 1, width):
            count = columns.stop - columns.start
            panel = storage[: m * count].reshape((m, count), order="F" if by_column else "C")
            np.multiply(a[:, columns], roots[None, columns], out=panel)
            gram = syrk(
                1.0,
                panel if by_column else panel.T,
                beta=1.0,
                c=gram,
                trans=0 if by_column else 1,
                lower=0,
                overwrite_c=1,
            )
        return gram.T

    def cholesky_in_place(self, a: Array) -> bool:
        if a.shape[0] in WORTH_IT and a.flags.c_contiguous and (pointers := pointers_for(a.dtype)):
            return tiled_cholesky_in_place(a, pointers)
        potrf = _routine(lapack, "potrf", a)
        factor, info = potrf(a.T, lower=0, overwrite_a=1, clean=0)
        if not np.shares_memory(factor, a):
            a[...] = factor.T
        return bool(info == 0)

    def solve_triangular(self, factor: Array, b: Array, *, transposed: bool = False) -> Array:
        # `factor.T` is upper triangular, U = Lᵀ: Lx = b is Uᵀx = b, or xᵀU = bᵀ.
        if _from_the_right(factor, b):
            solution = np.array(b, order="C")
            trsm = _routine(blas, "trsm", factor)
            trsm(1.0, factor.T, solution.T, side=1, trans_a=int(transposed), overwrite_b=1)
            return solution
        trtrs = _routine(lapack, "trtrs", factor)
        solution, info = trtrs(factor.T, b, lower=0, trans=0 if transposed else 1)
        if info != 0:
            solution[...] = np.nan
        return solution

    def solve_triangular_in_place(self, factor: Array, b: Array) -> None:
        if b.flags.c_contiguous and b.dtype == factor.dtype and _from_the_right(factor, b):
            _routine(blas, "trsm", factor)(1.0, factor.T, b.T, side=1, overwrite_b=1)
        else:
            super().solve_triangular_in_place(factor, b)

    def solve_cholesky(self, factor: Array, b: Array) -> Array:
        if b.shape[1] == 1:  # two matrix-vector solves are twice as fast as one with matrices
            trsv = _routine(blas, "trsv", factor)
            forward = trsv(factor.T, b[:, 0], lower=0, trans=1)
            return trsv(factor.T, forward, lower=0, trans=0, overwrite_x=1)[:, None]
        potrs = _routine(lapack, "potrs", factor)
        return potrs(factor.T, b, lower=0)[0]

    def inverse_from_cholesky_in_place(self, factor: Array) -> None:
        pointers = _triangle_pointers(factor)
        if pointers is not None and factor.shape[0] in FASTER_BY_HALVES:
            invert_triangle_in_place(factor, pointers)
            lauum = _routine(lapack, "lauum", factor)
            lauum(factor.T, lower=0, overwrite_c=1)
            return
        potri = _routine(lapack, "potri", factor)
        inverse, _ = potri(factor.T, lower=0, overwrite_c=1)
        if not np.shares_memory(inverse, factor):
            factor[...] = inverse.T

    def inverse_diagonal_from_cholesky_in_place(self, factor: Array) -> Array:
        pointers = _triangle_pointers(factor)
        if pointers is None:
            return super().inverse_diagonal_from_cholesky_in_place(factor)
        invert_triangle_in_place(factor, pointers)
        return squares_of_columns(factor)

    def eigh_in_place(self, a: Array) -> tuple[Array, Array]:
        if a.shape[0] == 1:  # older SciPy asks LAPACK for too little work space here
            return a[0].copy(), np.ones_like(a)
        # In float32, divide and conquer leaves more than twice the rounding error of the other.
        driver = "evr" if a.dtype == np.float32 else "evd"
        try:
            values, vectors = eigh(
                a.T, lower=False, overwrite_a=True, check_finite=False, driver=driver
            )
        except LinAlgError as error:
            raise NumericalError(
                f"no eigendecomposition of a matrix of {a.shape[0]} rows ({error}): its values are "
                "too large or not finite; scale the columns of X"
            ) from None
        return values, vectors

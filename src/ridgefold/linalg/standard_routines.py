"""Any array library that follows the array API standard, with its `linalg` extension.

Slower than the NumPy and torch routines (nothing can be written in place), but it
shows that the mathematics uses only what the standard promises.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgefold.linalg.namespace import Array, Namespace, numpy_namespace

BLOCK = 64
"""Rows of a triangle that are solved at once: more would waste a general solver's work."""


class StandardNamespace(Namespace):
    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.name = xp.__name__

    def to_numpy(self, a: Array) -> np.ndarray:
        try:
            return np.from_dlpack(a)
        except BufferError:  # NumPy before 2.1 cannot hand out arrays that are read-only
            return np.from_dlpack(self.xp.asarray(a, copy=True))

    def add_to_diagonal_in_place(self, a: Array, values: Array | float) -> None:
        self.set_diagonal_in_place(a, self.xp.linalg.diagonal(a) + values)

    def set_diagonal_in_place(self, a: Array, values: Array | float) -> None:
        # The standard has no view of a diagonal. No arithmetic with the old values: a triangle
        # beside it may never have been written.
        n_rows, n_columns = a.shape
        values = self.ones(min(a.shape), a) * values
        values = values[:, None] if n_rows <= n_columns else values[None, :]
        diagonal = self.xp.eye(n_rows, n_columns, dtype=a.dtype) == 1.0
        a[...] = self.xp.where(diagonal, values, a)

    def fill_upper_in_place(self, a: Array) -> None:
        a[...] = self.xp.tril(a) + self.xp.tril(a, k=-1).T

    def exp_in_place(self, a: Array) -> None:
        a[...] = self.xp.exp(a)

    def sqrt_in_place(self, a: Array) -> None:
        a[...] = self.xp.sqrt(a)

    def tanh_in_place(self, a: Array) -> None:
        a[...] = self.xp.tanh(a)

    def maximum_in_place(self, a: Array, low: float) -> None:
        a[...] = self.xp.maximum(a, self.xp.full_like(a, low))

    def minimum_in_place(self, a: Array, high: float) -> None:
        a[...] = self.xp.minimum(a, self.xp.full_like(a, high))

    def multiply_transposed(self, a: Array, b: Array, out: Array) -> None:
        out[...] = self.astype(a @ b.T, out.dtype)

    def manhattan_distances(self, a: Array, b: Array, out: Array) -> None:
        total = self.zeros(tuple(out.shape), a)
        for k in range(a.shape[1]):
            total += self.xp.abs(a[:, k][:, None] - b[:, k][None, :])
        out[...] = self.astype(total, out.dtype)

    def gram_of_rows(self, a: Array) -> Array:
        return a @ a.T

    def cholesky_in_place(self, a: Array) -> bool:
        self.fill_upper_in_place(a)
        try:
            factor = self.xp.linalg.cholesky(a)
        except Exception as error:
            if "LinAlgError" in type(error).__name__:  # each library raises its own class
                return False
            raise
        a[...] = factor
        return self.all_finite(factor)

    def solve_triangular(self, factor: Array, b: Array, *, transposed: bool = False) -> Array:
        n, out = factor.shape[0], self.copy(b)
        starts = range(0, n, BLOCK)
        for start in reversed(starts) if transposed else starts:
            stop = min(start + BLOCK, n)
            rows, block = slice(start, stop), self.xp.tril(factor[start:stop, start:stop])
            if transposed:
                right = out[rows, :] - factor[stop:, rows].T @ out[stop:, :]
                out[rows, :] = self._back_substitute(block.T, right)
            else:
                right = out[rows, :] - factor[rows, :start] @ out[:start, :]
                out[rows, :] = self.xp.flip(
                    self._back_substitute(self.xp.flip(block), self.xp.flip(right, axis=0)), axis=0
                )
        return out

    def _back_substitute(self, upper: Array, b: Array) -> Array:
        # The standard has only a general solver, which exchanges rows and with them loses the
        # accuracy of triangular systems. Below the diagonal of an upper triangle it finds
        # nothing to exchange or eliminate, and substitutes back.
        return self.xp.linalg.solve(upper, b)

    def inverse_from_cholesky_in_place(self, factor: Array) -> None:
        n = factor.shape[0]
        half = self.solve_triangular(factor, self.xp.eye(n, dtype=factor.dtype))
        factor[...] = half.T @ half

    def eigh_in_place(self, a: Array) -> tuple[Array, Array]:
        # The standard's own reduces the lower triangle from its top, where the few large
        # eigenvalues of a kernel matrix then stand: it loses four times as much as LAPACK does
        # when told to start from the other end.
        values, vectors = numpy_namespace().eigh_in_place(np.array(self.to_numpy(a)))
        return self.asarray(values, a), self.asarray(vectors, a)

"""Any array library that follows the array API standard, with its `linalg` extension.

Slower than the NumPy and torch routines (nothing can be written in place), but it
shows that the mathematics uses only what the standard promises.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgefold.linalg.namespace import Array, Namespace


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
        # One at a time: the standard has no view of a diagonal, and the triangle above it
        # may never have been written.
        count = min(a.shape)
        for i, value in enumerate(self.ones(count, a) * values):
            a[i, i] = value

    def _lower(self, a: Array) -> Array:
        return self.xp.tril(a)

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
        out[...] = 0.0
        for k in range(a.shape[1]):
            out += self.xp.abs(a[:, k][:, None] - b[:, k][None, :])

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
        # By substitution: a general solver exchanges rows, and loses the accuracy that
        # triangular systems have however ill-conditioned they are.
        n, out = factor.shape[0], self.copy(b)
        for i in reversed(range(n)) if transposed else range(n):
            row, done = (
                (factor[i + 1 :, i], out[i + 1 :, :]) if transposed else (factor[i, :i], out[:i, :])
            )
            out[i, :] = (out[i, :] - row @ done) / factor[i, i]
        return out

    def inverse_from_cholesky_in_place(self, factor: Array) -> None:
        n = factor.shape[0]
        half = self.solve_triangular(factor, self.xp.eye(n, dtype=factor.dtype))
        factor[...] = half.T @ half

    def eigh_in_place(self, a: Array) -> tuple[Array, Array]:
        self.fill_upper_in_place(a)
        values, vectors = self.xp.linalg.eigh(a)
        return values, vectors

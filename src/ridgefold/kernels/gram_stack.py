"""Gram matrices of many small sets of rows at once, padded to one size.

Kernels of Euclidean distances are functions of one product of rows, which is computed for the
whole stack together, as in `kernels.distances`: every set is shifted to its own middle, and the
product is in float64. Manhattan distances are summed column by column, for the whole stack, too.
Other kernels are written set by set into the stack. What stands in rows and columns that pad is
left open.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ridgefold.kernels.base import Kernel
from ridgefold.kernels.distances import ROUNDING, DistanceKernel, EuclideanKernel
from ridgefold.kernels.gram import KernelGram
from ridgefold.kernels.stationary import Laplacian
from ridgefold.kernels.width_table import OF_EXPONENTS, differ_in_width, half_squares
from ridgefold.linalg import Array, Namespace, namespace_of


class GramStack:
    """K of the same sets of rows for each of several kernels.

    Parameters
    ----------
    kernels : sequence of Kernel
    X : array of shape (b, m, d)
        Rows that pad are zero.
    counts : array of shape (b,)
        Rows of each set.
    """

    def __init__(self, kernels: Sequence[Kernel], X: Array, counts: np.ndarray) -> None:
        self.kernels, self.counts, self._X = tuple(kernels), counts, X
        self.namespace: Namespace = namespace_of(X)
        for kernel in self.kernels:
            kernel.check(self.namespace, X[0, :, :])
        self._shared: Array | None = None
        """−‖x − x'‖²/2, or −Σ|x_j − x'_j|, if all kernels are functions of it."""
        if len(self.kernels) > 1 and differ_in_width(self.kernels, self.namespace.itemsize(X)):
            euclidean = isinstance(self.kernels[0], EuclideanKernel)
            shared = (
                _half_squares(self.namespace, half_squares(self.kernels), X, X, counts)
                if euclidean
                else _lengths(self.namespace, X, X)
            )
            self._shared = self.namespace.astype(shared, X.dtype)

    def matrices(self, kernel: int, sets: np.ndarray) -> Array:
        """K of the numbered sets for one kernel, shape (len(sets), m, m); lower triangles."""
        chosen, namespace = self.kernels[kernel], self.namespace
        if not isinstance(chosen, OF_EXPONENTS):
            return self._one_by_one(chosen, sets)
        if self._shared is not None:
            assert isinstance(chosen.length_scale, float)
            factor = chosen.length_scale**-chosen.width_power
            exponents = namespace.take_rows(self._shared, sets) * factor
        else:
            X = namespace.take_rows(self._X, sets)
            exponents = _exponents(namespace, chosen, X, X, self.counts[sets])
        chosen.of_exponent(namespace, exponents)
        _set_diagonals_to_one(namespace, exponents)
        return namespace.astype(exponents, self._X.dtype)

    def _one_by_one(self, kernel: Kernel, sets: np.ndarray) -> Array:
        b, m = len(sets), self._X.shape[1]
        out = self.namespace.zeros((b, m, m), self._X)
        for k, position in enumerate(sets.tolist()):
            n = int(self.counts[position])
            KernelGram(kernel, self._X[position, :n, :]).write_lower(out[k, :n, :n])
        return out


def across_stack(kernel: Kernel, new: Array, X: Array, counts: np.ndarray) -> Array:
    """k between new rows (b, q, d) and rows X (b, m, d), of which `counts` are there: (b, q, m)."""
    namespace = namespace_of(X)
    if isinstance(kernel, OF_EXPONENTS):
        kernel.check(namespace, X[0, :, :])
        values = _exponents(namespace, kernel, new, X, counts)
        kernel.of_exponent(namespace, values)
        return namespace.astype(values, X.dtype)
    out = namespace.zeros((X.shape[0], new.shape[1], X.shape[1]), X)
    for k, n in enumerate(counts.tolist()):
        KernelGram(kernel, new[k, :, :], X[k, :n, :]).write_block(_ALL, _ALL, out[k, :, :n])
    return out


_ALL = slice(None)


def _exponents(
    namespace: Namespace,
    kernel: EuclideanKernel | Laplacian,
    new: Array,
    X: Array,
    counts: np.ndarray,
) -> Array:
    """−‖z − z'‖²/2, or −Σ|z_j − z'_j|, with z = x/ℓ, in float64.

    For rough kernels squares are zero where they are within rounding of it.
    """
    if isinstance(kernel, EuclideanKernel):
        return _half_squares(namespace, kernel, new, X, counts)
    left = _scaled(namespace, kernel, new)
    right = left if new is X else _scaled(namespace, kernel, X)
    kernel.require_finite(namespace, left)
    kernel.require_finite(namespace, right)
    return _lengths(namespace, left, right)


def _scaled(namespace: Namespace, kernel: DistanceKernel, X: Array) -> Array:
    """x/ℓ for every row of a stack, in float64."""
    rows = namespace.xp.reshape(namespace.astype(X, namespace.double()), (-1, X.shape[2]))
    return namespace.xp.reshape(kernel.scaled(namespace, rows, None), tuple(X.shape))


def _half_squares(
    namespace: Namespace, kernel: EuclideanKernel, new: Array, X: Array, counts: np.ndarray
) -> Array:
    """−‖z − z'‖²/2 between the rows of `new` and those of X, by one product for the stack.

    Sets with rows that are far from their middle are computed one by one.
    """
    xp = namespace.xp
    right = _scaled(namespace, kernel, X)
    origin = (xp.sum(right, axis=1) / namespace.asarray(counts, right)[:, None])[:, None, :]
    left = right if new is X else _scaled(namespace, kernel, new)
    right = _with_norms(namespace, right - origin)
    left = right if new is X else _with_norms(namespace, left - origin)
    d = X.shape[2]
    exchanged = namespace.copy(right)
    exchanged[:, :, d], exchanged[:, :, d + 1] = right[:, :, d + 1], right[:, :, d]
    out = left @ xp.matrix_transpose(exchanged)
    if kernel.rough:
        # Every pair by its own norms, as in `distances`.
        sums = left[:, :, d + 1][:, :, None] + right[:, :, d + 1][:, None, :]
        limit = ROUNDING * namespace.eps(out) * sums
        out = xp.where(out > limit, xp.zeros_like(out), out)
    else:
        namespace.minimum_in_place(out, 0.0)
    there = np.arange(X.shape[1])[None, :] < counts[:, None]
    halves = namespace.to_numpy(right[:, :, d + 1])
    for k in np.flatnonzero(np.any(there & (halves < -kernel.far), axis=1)).tolist():
        n = int(counts[k])
        rows = X[k, :n, :]
        if new is X:
            out[k, :n, :n] = kernel.exponents(namespace, rows, rows)
        else:
            out[k, :, :n] = kernel.exponents(namespace, new[k, :, :], rows)
    return out


def _lengths(namespace: Namespace, new: Array, X: Array) -> Array:
    """−Σ|x_j − x'_j| between the rows of `new` and those of X."""
    left, right = (namespace.astype(rows, namespace.double()) for rows in (new, X))
    out = namespace.zeros((X.shape[0], new.shape[1], X.shape[1]), left)
    for j in range(X.shape[2]):
        out -= namespace.xp.abs(left[:, :, j][:, :, None] - right[:, :, j][:, None, :])
    return out


def _with_norms(namespace: Namespace, z: Array) -> Array:
    """Rows as (z, 1, −‖z‖²/2)."""
    b, m, d = z.shape
    rows = namespace.empty((b, m, d + 2), z)
    rows[:, :, :d] = z
    rows[:, :, d] = 1.0
    rows[:, :, d + 1] = -0.5 * namespace.xp.sum(z * z, axis=2)
    EuclideanKernel.require_finite(namespace, rows[:, :, d + 1])
    return rows


def _set_diagonals_to_one(namespace: Namespace, matrices: Array) -> None:
    """k(x, x) of a kernel of distances, which rounding leaves a little off."""
    m = matrices.shape[1]
    namespace.xp.reshape(matrices, (matrices.shape[0], m * m))[:, :: m + 1] = 1.0

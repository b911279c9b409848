"""A Cholesky factorisation whose small part is made in single precision.

The rows that matter most come first (the pivots of a partial Cholesky factorisation). With those
eliminated in double precision,

    A + σI = [L₁₁  0 ] [L₁₁ᵀ L₂₁ᵀ]
             [L₂₁  L₂₂] [0     L₂₂ᵀ],     L₂₂L₂₂ᵀ = S = A₂₂ + σI − L₂₁L₂₁ᵀ,

what remains in S is small where the spectrum of A falls, and rounding S to float32 changes A by
about eps₃₂·‖S‖ instead of eps₃₂·‖A‖: far less than σ for the σ of interest. So nearly all of the
work runs at twice the speed in half the memory. Solves are not exact to double precision; who
needs that corrects them by residuals.
"""

from __future__ import annotations

from collections.abc import Callable

from ridgefold.linalg.blocks import row_blocks
from ridgefold.linalg.namespace import Array, Namespace

CopyBlock = Callable[[slice, slice], Array]
"""(rows, columns) -> that block of A as a new array."""

_ROWS_AT_A_TIME = 512
_SOLID = 4.0
"""S in single precision changes A by less than σ/_SOLID."""


class GradedCholesky:
    """Solves with A + σI, of which the first `n_first` rows are eliminated in full precision.

    With `single`, the others are in single precision if that is good enough.
    """

    def __init__(
        self,
        namespace: Namespace,
        copy_block: CopyBlock,
        n: int,
        n_first: int,
        sigma: float,
        *,
        single: bool,
    ) -> None:
        self._namespace, self._first, self.n = namespace, n_first, n
        top = copy_block(slice(0, n_first), slice(0, n_first))
        namespace.add_to_diagonal_in_place(top, sigma)
        self.success = namespace.cholesky_in_place(top)
        if not self.success:
            return
        self._top = top
        across = copy_block(slice(0, n_first), slice(n_first, n))
        self._below = namespace.solve_triangular(top, across)
        """L₂₁ᵀ, of shape (first, rest)."""
        if single:
            self._rest, bound = self._remainder(copy_block, sigma, namespace.xp.float32)
            solid = 2.0**-23 * bound * _SOLID <= sigma
            if solid and namespace.cholesky_in_place(self._rest):
                return
        self._rest, _ = self._remainder(copy_block, sigma, top.dtype)
        self.success = namespace.cholesky_in_place(self._rest)

    def _remainder(self, copy_block: CopyBlock, sigma: float, dtype: object) -> tuple[Array, float]:
        """The lower triangle of S, and about the largest sum of a row of it."""
        namespace, xp, first = self._namespace, self._namespace.xp, self._first
        rest = self.n - first
        storage = namespace.empty((rest, rest), self._below, dtype)
        sums = namespace.zeros(rest, self._below)
        for down in row_blocks(rest, 1, _ROWS_AT_A_TIME):
            left = slice(0, down.stop)
            part = copy_block(
                slice(first + down.start, first + down.stop), slice(first, first + down.stop)
            )
            if first:
                part -= self._below[:, down].T @ self._below[:, left]
            storage[down, left] = namespace.astype(part, dtype)
            if dtype != self._below.dtype:
                size = xp.abs(part)
                sums[left] += xp.sum(size, axis=0)
                sums[down] += xp.sum(size, axis=1)
        namespace.add_to_diagonal_in_place(storage, sigma)
        return storage, float(xp.max(sums)) if rest else 0.0

    def solve(self, b: Array) -> Array:
        """(A + σI)⁻¹b for the columns of b."""
        namespace, first = self._namespace, self._first
        if first == 0:
            return namespace.solve_cholesky(self._rest, b)
        top = namespace.solve_triangular(self._top, b[:first, :])
        low = b[first:, :] - self._below.T @ top
        low = namespace.astype(low, self._rest.dtype)
        low = namespace.astype(namespace.solve_cholesky(self._rest, low), b.dtype)
        top = namespace.solve_triangular(self._top, top - self._below @ low, transposed=True)
        return namespace.xp.concat([top, low], axis=0)

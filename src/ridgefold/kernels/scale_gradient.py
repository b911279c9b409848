"""A Gram matrix together with its derivatives in all length scales."""

from __future__ import annotations

from typing import Any

from ridgefold.errors import UnsupportedInputError
from ridgefold.kernels.base import Kernel, Rows
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.kernels.middle import middle_of
from ridgefold.linalg import Array, namespace_of

_PANEL = 128
"""Rows worked on at once: at this height what is derived from a panel stays in the cache."""


class DifferentiableGram:
    """K of one kernel after the other on the same rows, and contractions of its derivatives.

    The derivatives ∂K/∂log ℓ_j of all d columns would take n × n × d numbers. What a gradient
    needs of them is Σ_ab M_ab ∂K_ab/∂log ℓ_j for one symmetric M, and that is a product of an
    n × n matrix with the rows (for Manhattan distances a loop over blocks): O(n²d) for all j.

    Only lower triangles are computed. The storage is used again by the next kernel. Distances and
    values are computed in float64 and may be kept in float32.
    """

    def __init__(self, X: Array) -> None:
        self.namespace = namespace_of(X)
        self._X = self.namespace.astype(X, self.namespace.double())
        self._origin = middle_of(self.namespace, self._X)
        self._values: Array | None = None
        self._slopes: Array | None = None
        self._kernel: DistanceKernel | None = None
        self._rows: Rows | None = None

    def evaluate(self, kernel: Kernel, dtype: Any = None) -> Array:
        """K with only its lower triangle filled, in float64 or `dtype`; the caller may overwrite
        it.
        """
        if not isinstance(kernel, DistanceKernel):
            raise UnsupportedInputError(
                f"length scales can be learned for kernels of distances (RBF, Matern, Laplacian, "
                f"RationalQuadratic), got {kernel!r}"
            )
        kernel.check(self.namespace, self._X)
        rows = kernel.prepare(self.namespace, self._X, self._origin)
        values, slopes = self._storage(dtype or self._X.dtype)
        for start, stop in self._panels():
            panel, left = slice(start, stop), slice(0, stop)
            out = values[panel, left], slopes[panel, left]
            work = out
            if values.dtype != self._X.dtype:
                work = tuple(self.namespace.empty(each.shape, self._X) for each in out)
            kernel.write_with_slope(
                self.namespace,
                rows.take(self.namespace, panel),
                rows.take(self.namespace, left),
                *work,
            )
            if work is not out:
                for kept, computed in zip(out, work, strict=True):
                    kept[...] = self.namespace.astype(computed, kept.dtype)
        self.namespace.set_diagonal_in_place(values, 1.0)
        self._kernel, self._rows = kernel, rows
        return values

    def _storage(self, dtype: Any) -> tuple[Array, Array]:
        """Room for values and slopes."""
        if self._values is None or self._slopes is None or self._values.dtype != dtype:
            n = int(self._X.shape[0])
            self._values, self._slopes = None, None  # before the new ones are there
            self._values = self.namespace.zeros((n, n), self._X, dtype)
            self._slopes = self.namespace.zeros((n, n), self._X, dtype)
        return self._values, self._slopes

    def contract(self, matrix: Array | None, left: Array, right: Array) -> Array:
        """Σ_ab M_ab ∂K_ab/∂log ℓ_j for all j, of the kernel that was evaluated last.

        M = `matrix` + left rightᵀ is symmetric; of `matrix` only the lower triangle is read.
        """
        assert self._kernel is not None
        assert self._rows is not None
        assert self._slopes is not None
        total = self.namespace.zeros(self._X.shape[1], self._X)
        side = min(_PANEL, int(self._X.shape[0]))
        square = self.namespace.ones((side, side), self._slopes)
        left_of_diagonal = self.namespace.xp.tril(square, k=-1)
        for start, stop in self._panels():
            panel, below = slice(start, stop), slice(0, stop)
            weights = left[panel, :] @ right[below, :].T
            if matrix is not None:
                weights += matrix[panel, below]
            weights *= self._slopes[panel, below]
            # The diagonal has no derivative; entries right of it are counted from the left.
            weights[:, start:stop] *= left_of_diagonal[: stop - start, : stop - start]
            total += self._kernel.contract(
                self.namespace,
                self._rows.take(self.namespace, panel),
                self._rows.take(self.namespace, below),
                self.namespace.astype(weights, self._X.dtype),
            )
        return 2.0 * total

    def _panels(self) -> list[tuple[int, int]]:
        n = int(self._X.shape[0])
        return [(start, min(start + _PANEL, n)) for start in range(0, n, _PANEL)]

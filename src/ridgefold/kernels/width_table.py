"""Gram matrices of one set of rows for several kernels; distances are computed once.

Kernels that differ only in one length scale see the same distances: what depends on the rows
(one product, n²d operations) is shared, and each width costs one pass over the matrix.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ridgefold.kernels.base import Kernel
from ridgefold.kernels.distances import FAR, EuclideanKernel
from ridgefold.kernels.gram import KernelGram
from ridgefold.kernels.stationary import Laplacian
from ridgefold.linalg import Array, Namespace, namespace_of

_ROWS_AT_ONCE = 64
"""Rows worked on at once: the block stays in the cache, and little of it lies above the diagonal,
where nothing is needed."""
_SMALLEST_WIDTH = {4: 1e-15, 8: 1e-150}
"""Widths below this, or above its inverse, do not share distances: squares of distances in such
units underflow or overflow before they are divided by the width's. By the bytes of a number."""


class WidthTable:
    """K of the same rows for each of a sequence of kernels."""

    def __init__(self, kernels: Sequence[Kernel], X: Array) -> None:
        self.kernels = tuple(kernels)
        self.namespace: Namespace = namespace_of(X)
        self._X = X
        self._exponents: dict[Any, Array] = {}
        """−‖x − x'‖²/2, or −Σ|x_j − x'_j|, by type, computed in that of the rows; empty if some
        kernel is no function of it."""
        first = self.kernels[0]
        if len(self.kernels) > 1 and differ_in_width(self.kernels, self.namespace.itemsize(X)):
            euclidean = isinstance(first, EuclideanKernel)
            plain = half_squares(self.kernels) if euclidean else _Lengths()
            self._exponents[X.dtype] = KernelGram(plain, X).full()

    def write_lower(self, index: int, out: Array) -> None:
        """Write the lower triangle (or more) of K for one kernel.

        Distances are computed in the precision of the rows, and rounded if `out` has a lower one.
        """
        kernel, namespace = self.kernels[index], self.namespace
        if not self._exponents:
            KernelGram(kernel, self._X).write_lower(out)
            return
        assert isinstance(kernel, OF_EXPONENTS)
        assert isinstance(kernel.length_scale, float)
        exponents, n = self._exponents_for(out), out.shape[0]
        factor = kernel.length_scale**-kernel.width_power
        step = _ROWS_AT_ONCE if namespace.gains_by_halves else n
        for start in range(0, n, step):
            stop = min(start + step, n)
            block = out[start:stop, :stop]
            namespace.xp.multiply(exponents[start:stop, :stop], factor, out=block)
            kernel.of_exponent(namespace, block)
        namespace.set_diagonal_in_place(out, kernel.diagonal(namespace, self._X))

    def _exponents_for(self, out: Array) -> Array:
        """The shared exponents in the precision of `out`, if no digits are lost by that."""
        known = self._exponents
        if out.dtype not in known:
            if not differ_in_width(self.kernels, self.namespace.itemsize(out)):
                return known[self._X.dtype]
            known[out.dtype] = self.namespace.astype(known[self._X.dtype], out.dtype)
        return known[out.dtype]


OF_EXPONENTS = (EuclideanKernel, Laplacian)
"""Kernels of one number for every pair of rows, which is divided by a power of the width."""


def differ_in_width(kernels: tuple[Kernel, ...], itemsize: int) -> bool:
    """Whether one matrix of distances, in numbers of so many bytes, serves all of them."""
    first, smallest = kernels[0], _SMALLEST_WIDTH[itemsize]
    if not isinstance(first, OF_EXPONENTS):
        return False
    # Asked for every cell: copies of all kernels with one width would take as long as a score.
    others = [field.name for field in dataclasses.fields(first) if field.name != "length_scale"]
    return all(
        type(kernel) is type(first)
        and isinstance(kernel.length_scale, float)
        and smallest < kernel.length_scale < 1.0 / smallest
        and all(getattr(kernel, name) == getattr(first, name) for name in others)
        for kernel in kernels
    )


def half_squares(kernels: Sequence[Any]) -> EuclideanKernel:
    """−‖x − x'‖²/2, with the digits that the narrowest of these kernels needs."""
    return _HalfSquares(narrowest=min(kernel.length_scale for kernel in kernels))


@dataclasses.dataclass(frozen=True)
class _HalfSquares(EuclideanKernel):
    """−‖x − x'‖²/2 itself."""

    narrowest: float = 1.0
    """The smallest of the widths that the half squares will be divided by."""

    @property
    def far(self) -> float:
        return FAR * self.narrowest**2

    def of_exponent(self, namespace: Namespace, exponent: Array) -> None:
        """Leave it as it is."""

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return namespace.zeros(X.shape[0], X)


@dataclasses.dataclass(frozen=True)
class _Lengths(Laplacian):
    """−Σ|x_j − x'_j| itself."""

    def of_exponent(self, namespace: Namespace, exponent: Array) -> None:
        """Leave it as it is."""

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return namespace.zeros(X.shape[0], X)

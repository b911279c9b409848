"""Gram matrices of one set of rows for several kernels; distances are computed once.

Kernels that differ only in one length scale see the same distances: what depends on the rows
(one product, n²d operations) is shared, and each width costs one pass over the matrix.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ridgefold.kernels.base import Kernel
from ridgefold.kernels.distances import EuclideanKernel
from ridgefold.kernels.gram import KernelGram
from ridgefold.linalg import Array, Namespace, namespace_of

_SMALLEST_WIDTH = {4: 1e-15, 8: 1e-150}
"""By the bytes of a number: below it, and above its inverse, squares of distances lose their digits
before they are divided by that of the width."""


class WidthTable:
    """K of the same rows for each of a sequence of kernels."""

    def __init__(self, kernels: Sequence[Kernel], X: Array) -> None:
        self.kernels = tuple(kernels)
        self.namespace: Namespace = namespace_of(X)
        self._X = X
        self._halves: Array | None = None
        """−‖x − x'‖²/2, if all kernels are functions of it."""
        first = self.kernels[0]
        if len(self.kernels) > 1 and differ_in_width(self.kernels, self.namespace.itemsize(X)):
            assert isinstance(first, EuclideanKernel)
            self._halves = KernelGram(_HalfSquares(), X).full()

    def write_lower(self, index: int, out: Array) -> None:
        """Write the lower triangle (or more) of K for one kernel."""
        kernel = self.kernels[index]
        if self._halves is None:
            KernelGram(kernel, self._X).write_lower(out)
            return
        assert isinstance(kernel, EuclideanKernel)
        assert isinstance(kernel.length_scale, float)
        self.namespace.xp.multiply(self._halves, kernel.length_scale**-2.0, out=out)
        kernel.of_exponent(self.namespace, out)
        self.namespace.set_diagonal_in_place(out, kernel.diagonal(self.namespace, self._X))


def differ_in_width(kernels: Sequence[Kernel], itemsize: int) -> bool:
    """Whether one matrix of distances, in numbers of so many bytes, serves all of them."""
    first, smallest = kernels[0], _SMALLEST_WIDTH[itemsize]
    return all(
        isinstance(kernel, EuclideanKernel)
        and isinstance(kernel.length_scale, float)
        and smallest < kernel.length_scale < 1.0 / smallest
        and type(kernel) is type(first)
        and dataclasses.replace(kernel, length_scale=1.0)
        == dataclasses.replace(first, length_scale=1.0)
        for kernel in kernels
    )


@dataclasses.dataclass(frozen=True)
class _HalfSquares(EuclideanKernel):
    """−‖x − x'‖²/2 itself."""

    def of_exponent(self, namespace: Namespace, exponent: Array) -> None:
        """Leave it as it is."""

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return namespace.zeros(X.shape[0], X)

"""A kernel on transformed columns: k(T(x), T(x')).

As a part of the kernel, a transform needs no place in models, files or predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ridgefold.errors import InvalidInputError
from ridgefold.kernels.base import Kernel, Rows, positive
from ridgefold.kernels.derived import DerivedKernel
from ridgefold.kernels.slope_terms import SlopeTerm
from ridgefold.linalg import Array, Namespace
from ridgefold.records import Quantile, SignedLog, Standardise, Warp


def warp(namespace: Namespace, function: Warp, x: Array) -> Array:
    """A function of one column at every entry of x."""
    xp = namespace.xp
    if isinstance(function, Standardise):
        return (x - function.centre) / function.spread
    if isinstance(function, SignedLog):
        u = (x - function.centre) / function.unit
        return xp.sign(u) * xp.log1p(xp.abs(u)) / function.spread
    knots, values = (namespace.asarray(v, x) for v in (function.knots, function.values))
    inside = xp.minimum(xp.maximum(x, knots[0]), knots[-1])
    right = xp.searchsorted(knots[1:-1], inside, side="right") + 1
    x0, x1 = xp.take(knots, right - 1, axis=0), xp.take(knots, right, axis=0)
    y0, y1 = xp.take(values, right - 1, axis=0), xp.take(values, right, axis=0)
    return y0 + (y1 - y0) * ((inside - x0) / (x1 - x0))


def slope_of_warp(namespace: Namespace, function: Warp, x: Array) -> Array:
    """The derivative of `warp` at every entry of x; at a knot, that of the piece to its right."""
    xp = namespace.xp
    if isinstance(function, Standardise):
        return xp.full_like(x, 1.0 / function.spread)
    if isinstance(function, SignedLog):
        u = (x - function.centre) / function.unit
        return 1.0 / ((1.0 + xp.abs(u)) * (function.unit * function.spread))
    knots, values = (namespace.asarray(v, x) for v in (function.knots, function.values))
    slopes = (values[1:] - values[:-1]) / (knots[1:] - knots[:-1])
    between = xp.minimum(xp.maximum(x, knots[0]), knots[-1])
    piece = xp.searchsorted(knots[1:-1], between, side="right")
    inside = (x >= knots[0]) & (x < knots[-1])
    return xp.where(inside, xp.take(slopes, piece, axis=0), xp.zeros_like(x))


def _check(function: Any) -> None:
    if isinstance(function, Standardise):
        positive("spread", function.spread)
    elif isinstance(function, SignedLog):
        positive("unit", function.unit)
        positive("spread", function.spread)
    elif not isinstance(function, Quantile):
        raise InvalidInputError(
            "columns must hold a Standardise, SignedLog or Quantile for each column, got "
            f"{function!r}"
        )
    elif len(function.knots) != len(function.values) or len(function.knots) < 2:
        raise InvalidInputError(
            "a quantile transform needs as many values as knots, at least two, got "
            f"{len(function.knots)} knots and {len(function.values)} values"
        )
    elif any(b <= a for a, b in pairwise(function.knots)):
        raise InvalidInputError("the knots of a quantile transform must increase")


@dataclass(frozen=True)
class Warped(DerivedKernel):
    """A kernel on columns that were transformed one by one.

    Parameters
    ----------
    kernel : Kernel
    columns : sequence of Warp
        One a column: `Standardise`, `SignedLog` or `Quantile`.
    """

    kernel: Kernel
    columns: tuple[Warp, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "columns", tuple(self.columns))
        for function in self.columns:
            _check(function)

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return False  # zeros would not stay zero

    def check(self, namespace: Namespace, X: Array) -> None:
        super().check(namespace, X)
        if len(self.columns) != X.shape[1]:
            raise InvalidInputError(
                f"the kernel transforms {len(self.columns)} columns but X has {X.shape[1]}"
            )
        self.kernel.check(namespace, self.transform(namespace, X))

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        """By the chain rule, in the units of the columns as they are given."""
        steps = self.steps(namespace, X)
        seen = self.transform(namespace, X)
        for term in self.kernel.slope_terms(namespace, seen, left, right):
            yield term.scaled(left=steps)

    def mixed_terms(
        self, namespace: Namespace, X: Array, Z: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        ours, theirs = self.steps(namespace, X), self.steps(namespace, Z)
        x, z = self.transform(namespace, X), self.transform(namespace, Z)
        for term in self.kernel.mixed_terms(namespace, x, z, left, right):
            yield term.scaled(left=ours, right=theirs)

    def transform(self, namespace: Namespace, X: Array) -> Array:
        """The transformed rows."""
        return self._every_column(namespace, X, warp)

    def steps(self, namespace: Namespace, X: Array) -> Array:
        """The slopes of the transforms at every entry of X."""
        return self._every_column(namespace, X, slope_of_warp)

    def _every_column(
        self,
        namespace: Namespace,
        X: Array,
        function: Callable[[Namespace, Warp, Array], Array],
    ) -> Array:
        out = namespace.empty(X.shape, X)
        for j, column in enumerate(self.columns):
            out[:, j] = function(namespace, column, X[:, j])
        return out

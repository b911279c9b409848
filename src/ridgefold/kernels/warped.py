"""A kernel on transformed columns: k(T(x), T(x')).

As a part of the kernel, a transform needs no place in models, files or predictions.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ridgefold.errors import InvalidInputError
from ridgefold.kernels.base import Kernel, positive
from ridgefold.kernels.derived import DerivedKernel
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

    def transform(self, namespace: Namespace, X: Array) -> Array:
        """The transformed rows."""
        out = namespace.empty(X.shape, X)
        for j, function in enumerate(self.columns):
            out[:, j] = warp(namespace, function, X[:, j])
        return out

"""A kernel on transformed columns: k(T(x), T(x')).

As a part of the kernel, a transform needs no place in models, files or predictions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from ridgefold.errors import InvalidInputError
from ridgefold.kernels.base import Kernel, Rows, positive
from ridgefold.linalg import Array, Namespace


class Warp(ABC):
    """A monotone function of one column."""

    @abstractmethod
    def __call__(self, namespace: Namespace, x: Array) -> Array:
        """The function at every entry of x."""


@dataclass(frozen=True)
class Standardise(Warp):
    """(x − centre)/spread."""

    centre: float = 0.0
    spread: float = 1.0

    def __post_init__(self) -> None:
        positive("spread", self.spread)

    def __call__(self, namespace: Namespace, x: Array) -> Array:
        return (x - self.centre) / self.spread


@dataclass(frozen=True)
class SignedLog(Warp):
    """sign(u)·log(1 + |u|)/spread with u = (x − centre)/unit: heavy tails on both sides."""

    centre: float = 0.0
    unit: float = 1.0
    spread: float = 1.0

    def __post_init__(self) -> None:
        positive("unit", self.unit)
        positive("spread", self.spread)

    def __call__(self, namespace: Namespace, x: Array) -> Array:
        xp = namespace.xp
        u = (x - self.centre) / self.unit
        return xp.sign(u) * xp.log1p(xp.abs(u)) / self.spread


@dataclass(frozen=True)
class Quantile(Warp):
    """Piecewise linear through (knots, values), constant beyond the ends."""

    knots: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.knots) != len(self.values) or len(self.knots) < 2:
            raise InvalidInputError(
                f"a quantile transform needs as many values as knots, at least two, got "
                f"{len(self.knots)} knots and {len(self.values)} values"
            )
        if any(b <= a for a, b in zip(self.knots, self.knots[1:], strict=False)):
            raise InvalidInputError("the knots of a quantile transform must increase")

    def __call__(self, namespace: Namespace, x: Array) -> Array:
        xp = namespace.xp
        knots, values = (namespace.asarray(v, x) for v in (self.knots, self.values))
        inside = xp.minimum(xp.maximum(x, knots[0]), knots[-1])
        right = xp.searchsorted(knots[1:-1], inside, side="right") + 1
        x0, x1 = xp.take(knots, right - 1, axis=0), xp.take(knots, right, axis=0)
        y0, y1 = xp.take(values, right - 1, axis=0), xp.take(values, right, axis=0)
        return y0 + (y1 - y0) * ((inside - x0) / (x1 - x0))


@dataclass(frozen=True)
class Warped(Kernel):
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
        if not isinstance(self.kernel, Kernel):
            raise InvalidInputError(f"kernel must be a kernel, got {self.kernel!r}")
        object.__setattr__(self, "columns", tuple(self.columns))
        wrong = [c for c in self.columns if not isinstance(c, Warp)]
        if wrong:
            raise InvalidInputError(f"columns must hold one transform a column, got {wrong[0]!r}")

    @property
    def takes_negative_values(self) -> bool:  # type: ignore[override]
        return self.kernel.takes_negative_values

    @property
    def semidefinite(self) -> bool:  # type: ignore[override]
        return self.kernel.semidefinite

    def check(self, namespace: Namespace, X: Array) -> None:
        super().check(namespace, X)
        if len(self.columns) != X.shape[1]:
            raise InvalidInputError(
                f"the kernel transforms {len(self.columns)} columns but X has {X.shape[1]}"
            )
        self.kernel.check(namespace, X)

    def transform(self, namespace: Namespace, X: Array) -> Array:
        """The transformed rows."""
        out = namespace.empty(X.shape, X)
        for j, column in enumerate(self.columns):
            out[:, j] = column(namespace, X[:, j])
        return out

    def prepare(self, namespace: Namespace, X: Array, origin: Array | None) -> Rows:
        moved = None if origin is None else self.transform(namespace, origin[None, :])[0, :]
        return self.kernel.prepare(namespace, self.transform(namespace, X), moved)

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        self.kernel.write_block(namespace, left, right, out)

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return self.kernel.diagonal(namespace, self.transform(namespace, X))

    def feature_dimension(self, n_columns: int) -> int | None:
        return self.kernel.feature_dimension(n_columns)

    def features(self, namespace: Namespace, X: Array) -> Array:
        return self.kernel.features(namespace, self.transform(namespace, X))

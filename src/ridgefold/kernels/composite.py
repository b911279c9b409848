"""Sums, products and multiples of kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.kernels.base import Kernel, Rows
from ridgefold.kernels.derived import DerivedKernel
from ridgefold.kernels.dot_product import MOST_FEATURES, Constant
from ridgefold.kernels.slope_terms import SlopeTerm, products_of_terms
from ridgefold.linalg import Array, Namespace


def as_kernel(value: Kernel | float) -> Kernel:
    """A kernel as it is; a number as the constant kernel of that value."""
    return value if isinstance(value, Kernel) else Constant(value)


@dataclass(frozen=True)
class _Pair(Kernel):
    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        for name, operand in (("left", self.left), ("right", self.right)):
            if not isinstance(operand, Kernel):
                raise InvalidInputError(f"{name} must be a kernel, got {operand!r}")

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return self.left.accepts_sparse and self.right.accepts_sparse

    @property
    def takes_negative_values(self) -> bool:  # type: ignore[override]
        return self.left.takes_negative_values and self.right.takes_negative_values

    @property
    def semidefinite(self) -> bool:  # type: ignore[override]
        return self.left.semidefinite and self.right.semidefinite

    @property
    def evaluation(self) -> str:  # type: ignore[override]
        return self.left.evaluation if self.right.evaluation == "dot" else self.right.evaluation

    def columns_used(self, n_columns: int) -> int:
        both = self.left.columns_used(n_columns) + self.right.columns_used(n_columns)
        return min(n_columns, both)

    def check(self, namespace: Namespace, X: Array) -> None:
        self.left.check(namespace, X)
        self.right.check(namespace, X)

    def prepare(self, namespace: Namespace, X: Array, origin: Array | None) -> Rows:
        return Rows(
            (),
            (self.left.prepare(namespace, X, origin), self.right.prepare(namespace, X, origin)),
        )

    def _write_both(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> Array:
        """Write the left kernel into `out` and return the right one."""
        self.left.write_block(namespace, left.parts[0], right.parts[0], out)
        other = namespace.empty(out.shape, out)
        self.right.write_block(namespace, left.parts[1], right.parts[1], other)
        return other

    def _each(self, left: Rows, right: Rows) -> Iterator[tuple[Kernel, Rows, Rows]]:
        """Both kernels with the rows that were prepared for them."""
        yield from zip((self.left, self.right), left.parts, right.parts, strict=True)


@dataclass(frozen=True)
class Sum(_Pair):
    """k₁ + k₂, which `+` makes of two kernels.

    Parameters
    ----------
    left, right : Kernel
        k₁ and k₂.

    Examples
    --------
    >>> from ridgefold.kernels import RBF
    >>> RBF(0.5) + 1
    RBF(length_scale=0.5) + Constant(value=1.0)
    """

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        out += self._write_both(namespace, left, right, out)

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        for kernel, a, b in self._each(left, right):
            yield from kernel.slope_terms(namespace, X, a, b)

    def mixed_terms(
        self, namespace: Namespace, X: Array, Z: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        for kernel, a, b in self._each(left, right):
            yield from kernel.mixed_terms(namespace, X, Z, a, b)

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return self.left.diagonal(namespace, X) + self.right.diagonal(namespace, X)

    def feature_dimension(self, n_columns: int) -> int | None:
        left, right = (k.feature_dimension(n_columns) for k in (self.left, self.right))
        return None if left is None or right is None else min(MOST_FEATURES, left + right)

    def features(self, namespace: Namespace, X: Array) -> Array:
        return namespace.xp.concat(
            [self.left.features(namespace, X), self.right.features(namespace, X)], axis=1
        )

    def __repr__(self) -> str:
        return f"{self.left!r} + {self.right!r}"


@dataclass(frozen=True)
class Product(_Pair):
    """k₁ · k₂, which `*` makes of two kernels.

    Parameters
    ----------
    left, right : Kernel
        k₁ and k₂.
    """

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        out *= self._write_both(namespace, left, right, out)

    def _values(self, namespace: Namespace, left: Rows, right: Rows) -> tuple[Array, Array]:
        """Blocks of both kernels."""
        shape = (len(left), len(right))
        first = namespace.empty(shape, _any_array(left), namespace.double())
        return first, self._write_both(namespace, left, right, first)

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        """k₂∂k₁ + k₁∂k₂."""
        for (kernel, a, b), other in zip(
            self._each(left, right), reversed(self._values(namespace, left, right)), strict=True
        ):
            for term in kernel.slope_terms(namespace, X, a, b):
                yield term.times(other)

    def mixed_terms(
        self, namespace: Namespace, X: Array, Z: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        """k₂∂∂'k₁ + k₁∂∂'k₂ + ∂k₁∂'k₂ + ∂'k₁∂k₂."""
        both = list(self._each(left, right))
        for (kernel, a, b), other in zip(
            both, reversed(self._values(namespace, left, right)), strict=True
        ):
            for term in kernel.mixed_terms(namespace, X, Z, a, b):
                yield term.times(other)
        for (kernel, a, b), (other_kernel, c, d) in (both, both[::-1]):
            of_left = list(kernel.slope_terms(namespace, X, a, b))
            of_right = (t.turned() for t in other_kernel.slope_terms(namespace, Z, d, c))
            yield from products_of_terms(of_left, of_right, int(X.shape[1]))

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return self.left.diagonal(namespace, X) * self.right.diagonal(namespace, X)

    def feature_dimension(self, n_columns: int) -> int | None:
        left, right = (k.feature_dimension(n_columns) for k in (self.left, self.right))
        return None if left is None or right is None else min(MOST_FEATURES, left * right)

    def features(self, namespace: Namespace, X: Array) -> Array:
        left, right = self.left.features(namespace, X), self.right.features(namespace, X)
        pairs = left[:, :, None] * right[:, None, :]
        return namespace.xp.reshape(pairs, (X.shape[0], left.shape[1] * right.shape[1]))

    def __repr__(self) -> str:
        factors = [f"({k!r})" if isinstance(k, Sum) else repr(k) for k in (self.left, self.right)]
        return " * ".join(factors)


def _any_array(rows: Rows) -> Array:
    return rows.arrays[0] if rows.arrays else _any_array(rows.parts[0])


@dataclass(frozen=True)
class Scaled(DerivedKernel):
    """factor · k, which `*` makes of a number and a kernel.

    Parameters
    ----------
    factor : float
        A number > 0.
    kernel : Kernel
        k.
    """

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "factor", Constant(self.factor).value)

    def transform(self, namespace: Namespace, X: Array) -> Array:
        return X

    def check(self, namespace: Namespace, X: Array) -> None:
        self.kernel.check(namespace, X)

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        super().write_block(namespace, left, right, out)
        out *= self.factor

    def write_lower(self, namespace: Namespace, rows: Rows, out: Array) -> None:
        super().write_lower(namespace, rows, out)
        # Entries above the triangle may hold anything, and are scaled too.
        with np.errstate(over="ignore", invalid="ignore"):
            out *= self.factor

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        for term in self.kernel.slope_terms(namespace, X, left, right):
            yield term.times(self.factor)

    def mixed_terms(
        self, namespace: Namespace, X: Array, Z: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        for term in self.kernel.mixed_terms(namespace, X, Z, left, right):
            yield term.times(self.factor)

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return super().diagonal(namespace, X) * self.factor

    def features(self, namespace: Namespace, X: Array) -> Array:
        return super().features(namespace, X) * math.sqrt(self.factor)

    def __repr__(self) -> str:
        inner = f"({self.kernel!r})" if isinstance(self.kernel, Sum) else repr(self.kernel)
        return f"{self.factor!r} * {inner}"

"""Kernels made from one other kernel: a multiple of it, or the kernel of transformed rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from ridgefold.errors import InvalidInputError
from ridgefold.kernels.base import Kernel, Rows
from ridgefold.linalg import Array, Namespace


class DerivedKernel(Kernel):
    """The kernel k(T(x), T(x')) for another kernel k; a subclass says what T does to rows."""

    kernel: Kernel

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise InvalidInputError(f"kernel must be a kernel, got {self.kernel!r}")

    @abstractmethod
    def transform(self, namespace: Namespace, X: Array) -> Array:
        """T of every row."""

    def columns_seen(self, n_columns: int) -> int:
        """How many columns T gives for so many columns of X."""
        return n_columns

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return self.kernel.accepts_sparse

    @property
    def takes_negative_values(self) -> bool:  # type: ignore[override]
        return self.kernel.takes_negative_values

    @property
    def semidefinite(self) -> bool:  # type: ignore[override]
        return self.kernel.semidefinite

    @property
    def evaluation(self) -> str:  # type: ignore[override]
        return self.kernel.evaluation

    def prepare(self, namespace: Namespace, X: Array, origin: Array | None) -> Rows:
        moved = None if origin is None else self.transform(namespace, origin[None, :])[0, :]
        return self.kernel.prepare(namespace, self.transform(namespace, X), moved)

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        self.kernel.write_block(namespace, left, right, out)

    def gains_by_halves(self, namespace: Namespace, rows: Rows) -> bool:
        return self.kernel.takes_halves(namespace, rows)

    def write_lower(self, namespace: Namespace, rows: Rows, out: Array) -> None:
        self.kernel.write_lower(namespace, rows, out)

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return self.kernel.diagonal(namespace, self.transform(namespace, X))

    def columns_used(self, n_columns: int) -> int:
        return self.kernel.columns_used(self.columns_seen(n_columns))

    def feature_dimension(self, n_columns: int) -> int | None:
        return self.kernel.feature_dimension(self.columns_seen(n_columns))

    def features(self, namespace: Namespace, X: Array) -> Array:
        return self.kernel.features(namespace, self.transform(namespace, X))


def with_core(kernel: Kernel, change: Callable[[Any], Kernel]) -> Kernel:
    """The kernel with what it computes on transformed rows changed, and the same transforms."""
    if not isinstance(kernel, DerivedKernel):
        return change(kernel)
    changed: Kernel = replace(cast(Any, kernel), kernel=with_core(kernel.kernel, change))
    return changed

"""A kernel that sees some columns only: k(x_S, x'_S).

Products of such kernels give every group of columns a kernel of its own; a learned metric leaves
out by it the columns that say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ridgefold.errors import InvalidInputError
from ridgefold.kernels.base import Kernel, Rows
from ridgefold.kernels.derived import DerivedKernel
from ridgefold.kernels.slope_terms import SlopeTerm
from ridgefold.linalg import Array, Namespace


@dataclass(frozen=True)
class Columns(DerivedKernel):
    """A kernel on some of the columns.

    Parameters
    ----------
    kernel : Kernel
    columns : sequence of int
        The columns that it sees, counted from 0.

    Examples
    --------
    Two measurements and a code, whose kernels are multiplied:

    >>> from ridgefold.kernels import RBF, Categorical, Columns
    >>> kernel = Columns(RBF(2.0), [0, 1]) * Columns(Categorical(0.5), [2])
    >>> kernel([[0.0, 0.0, 1.0], [2.0, 0.0, 1.0], [0.0, 0.0, 2.0]]).round(4).tolist()
    [[1.0, 0.6065, 0.1353], [0.6065, 1.0, 0.0821], [0.1353, 0.0821, 1.0]]
    """

    kernel: Kernel
    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "columns", _column_numbers(self.columns))

    def check(self, namespace: Namespace, X: Array) -> None:
        super().check(namespace, X)
        if max(self.columns) >= X.shape[1]:
            raise InvalidInputError(
                f"the kernel sees column {max(self.columns)} (counted from 0), but X has "
                f"{X.shape[1]} columns"
            )
        self.kernel.check(namespace, self.transform(namespace, X))

    def transform(self, namespace: Namespace, X: Array) -> Array:
        """The columns that the kernel sees."""
        numbers = np.asarray(self.columns)
        if scipy.sparse.issparse(X):
            return X[:, numbers]
        return namespace.xp.take(X, namespace.indices(numbers, X), axis=1)

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        seen = self.transform(namespace, X)
        for term in self.kernel.slope_terms(namespace, seen, left, right):
            yield self._of_all_columns(term)

    def mixed_terms(
        self, namespace: Namespace, X: Array, Z: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        x, z = self.transform(namespace, X), self.transform(namespace, Z)
        for term in self.kernel.mixed_terms(namespace, x, z, left, right):
            yield self._of_all_columns(term)

    def _of_all_columns(self, term: SlopeTerm) -> SlopeTerm:
        return term.within(np.asarray(self.columns))

    def columns_seen(self, n_columns: int) -> int:
        return len(self.columns)


def _column_numbers(columns: Any) -> tuple[int, ...]:
    numbers = tuple(columns) if np.ndim(columns) == 1 else ()
    whole = all(
        isinstance(j, (int, np.integer)) and not isinstance(j, bool) and j >= 0 for j in numbers
    )
    if not numbers or not whole or len(set(numbers)) != len(numbers):
        raise InvalidInputError(
            f"columns must be different whole numbers >= 0, at least one, got {columns!r}"
        )
    return tuple(int(j) for j in numbers)

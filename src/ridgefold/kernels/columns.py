"""A kernel that sees some columns only: k(x_S, x'_S).

Products of such kernels give every group of columns a kernel of its own; a learned metric leaves
out by it the columns that say nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ridgefold.errors import InvalidInputError
from ridgefold.kernels.base import Kernel, Rows
from ridgefold.linalg import Array, Namespace


@dataclass(frozen=True)
class Columns(Kernel):
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
        if not isinstance(self.kernel, Kernel):
            raise InvalidInputError(f"kernel must be a kernel, got {self.kernel!r}")
        object.__setattr__(self, "columns", _column_numbers(self.columns))

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

    def check(self, namespace: Namespace, X: Array) -> None:
        super().check(namespace, X)
        if max(self.columns) >= X.shape[1]:
            raise InvalidInputError(
                f"the kernel sees column {max(self.columns)} (counted from 0), but X has "
                f"{X.shape[1]} columns"
            )
        self.kernel.check(namespace, self.select(namespace, X))

    def select(self, namespace: Namespace, X: Array) -> Array:
        """The columns that the kernel sees."""
        numbers = np.asarray(self.columns)
        if scipy.sparse.issparse(X):
            return X[:, numbers]
        return namespace.xp.take(X, namespace.indices(numbers, X), axis=1)

    def prepare(self, namespace: Namespace, X: Array, origin: Array | None) -> Rows:
        moved = None
        if origin is not None:
            moved = namespace.take_rows(origin, np.asarray(self.columns))
        return self.kernel.prepare(namespace, self.select(namespace, X), moved)

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        self.kernel.write_block(namespace, left, right, out)

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return self.kernel.diagonal(namespace, self.select(namespace, X))

    def columns_used(self, n_columns: int) -> int:
        return self.kernel.columns_used(len(self.columns))

    def feature_dimension(self, n_columns: int) -> int | None:
        return self.kernel.feature_dimension(len(self.columns))

    def features(self, namespace: Namespace, X: Array) -> Array:
        return self.kernel.features(namespace, self.select(namespace, X))


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

"""A kernel of distances between rows that a linear map has turned: k(Dx, Dx').

With directions that mix columns, a function that changes along a few sums of columns is a function
of few coordinates, which length scales of single columns cannot say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.kernels.base import Rows
from ridgefold.kernels.derived import DerivedKernel
from ridgefold.kernels.distances import EuclideanKernel
from ridgefold.kernels.slope_terms import SlopeTerm
from ridgefold.linalg import Array, Namespace


@dataclass(frozen=True)
class Rotated(DerivedKernel):
    """A kernel of Euclidean distances, in directions other than those of the columns.

    Parameters
    ----------
    kernel : RBF, Matern or RationalQuadratic
        On the coordinates of a row: one number a direction.
    directions : sequence of sequences of float
        One a coordinate, each with one number a column; the coordinate is their product with a row.

    Examples
    --------
    Only the sum of the two columns counts, and the second row has the sum of the first:

    >>> from ridgefold.kernels import RBF, Rotated
    >>> Rotated(RBF(), [[1.0, 1.0]])([[0.0, 2.0], [2.0, 0.0], [1.0, 2.0]]).round(4)[0].tolist()
    [1.0, 1.0, 0.6065]
    """

    kernel: EuclideanKernel
    directions: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, EuclideanKernel):
            raise InvalidInputError(
                "kernel must be one of Euclidean distances (RBF, Matern, RationalQuadratic), got "
                f"{self.kernel!r}"
            )
        object.__setattr__(self, "directions", _as_directions(self.directions))

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return False  # coordinates fill every entry

    @property
    def column_scales(self) -> np.ndarray:
        """The length scale of every column while the others stay: infinite where none counts."""
        along = np.asarray(self.directions) / np.reshape(self.kernel.length_scale, (-1, 1))
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / np.sqrt(np.sum(along**2, axis=0)))

    def columns_seen(self, n_columns: int) -> int:
        return len(self.directions)

    def check(self, namespace: Namespace, X: Array) -> None:
        super().check(namespace, X)
        if len(self.directions[0]) != X.shape[1]:
            raise InvalidInputError(
                f"the directions of the kernel have {len(self.directions[0])} columns but X has "
                f"{X.shape[1]}"
            )
        self.kernel.check(namespace, self.transform(namespace, X[:1, ...]))

    def transform(self, namespace: Namespace, X: Array) -> Array:
        """The coordinates of the rows, in float64: their differences are what counts."""
        return namespace.astype(X, namespace.double()) @ self._map(namespace, X).T

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        """By the chain rule, from slopes along the directions."""
        every = self._map(namespace, left.arrays[0])
        for term in self.kernel.slope_terms(namespace, X, left, right):
            own = every if term.columns is None else every[term.columns, :]
            if term.left is None and term.right is None:  # one direction by itself
                yield SlopeTerm(term.pairs, left=own)
            else:
                yield replace(
                    term,
                    left=None if term.left is None else term.left @ own,
                    right=None if term.right is None else term.right @ own,
                    columns=None,
                )

    def mixed_terms(
        self, namespace: Namespace, X: Array, Z: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        yield from self.kernel.mixed_terms_along(
            namespace, left, right, self._map(namespace, left.arrays[0])
        )

    def _map(self, namespace: Namespace, like: Array) -> Array:
        return namespace.asarray(np.asarray(self.directions), like, namespace.double())


def _as_directions(directions: Any) -> tuple[tuple[float, ...], ...]:
    try:
        values = np.asarray(directions, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 2 or values.size == 0 or not np.all(np.isfinite(values)):
        raise InvalidInputError(
            "directions must be finite numbers, one row a direction and one column a column of X, "
            f"got {directions!r}"
        )
    return tuple(map(tuple, values.tolist()))

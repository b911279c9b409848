"""The first-order Sobolev kernel of Zhang, Duchi and Wainwright's simulation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ridgefold.errors import KernelDomainError
from ridgefold.kernels.base import Kernel, Rows
from ridgefold.kernels.slope_terms import SlopeTerm
from ridgefold.linalg import Array, Namespace


@dataclass(frozen=True)
class Sobolev(Kernel):
    """∏_j (1 + min(x_j, x'_j)) for x ≥ 0: functions with a square-integrable derivative."""

    takes_negative_values = False

    def check(self, namespace: Namespace, X: Array) -> None:
        super().check(namespace, X)
        lowest = float(namespace.xp.min(X))
        if lowest < 0.0:
            raise KernelDomainError(
                "Negative values in data: the Sobolev kernel is defined for values >= 0, "
                f"but X holds {lowest:.6g}: "
                "scale the columns to [0, 1] (sklearn.preprocessing.MinMaxScaler(clip=True))"
            )

    def prepare(self, namespace: Namespace, X: Array, origin: Array | None) -> Rows:
        return Rows((X,))

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        a, b = left.arrays[0], right.arrays[0]
        for j in range(a.shape[1]):
            factor = namespace.xp.minimum(a[:, j][:, None], b[:, j][None, :])
            factor += 1.0
            if j == 0:
                out[...] = factor
            else:
                out *= factor

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        """∏ over the other columns, where x_j < x'_j; half of it where they are equal."""
        a, b = left.arrays[0], right.arrays[0]
        values = namespace.empty((a.shape[0], b.shape[0]), a)
        self.write_block(namespace, left, right, values)
        for j in range(a.shape[1]):
            x, y = a[:, j][:, None], b[:, j][None, :]
            below = 0.5 * (1.0 + namespace.xp.sign(y - x))
            yield SlopeTerm(
                values * below / (1.0 + namespace.xp.minimum(x, y)), columns=np.asarray([j])
            )

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return namespace.xp.prod(X + 1.0, axis=1)

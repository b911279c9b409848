"""A kernel of categories: it counts the columns in which two rows differ."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import InitVar, dataclass

import numpy as np

from ridgefold.kernels.base import Rows
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.kernels.slope_terms import SlopeTerm
from ridgefold.linalg import Array, Namespace


@dataclass(frozen=True)
class Categorical(DistanceKernel):
    """exp(−Σ[x_j ≠ x'_j]/ℓ_j): a factor e^(−1/ℓ_j) for every column in which two rows differ.

    Columns hold codes, of which only equality counts. The kernel is the product of one kernel a
    column, 1 where two codes are the same and ρ = e^(−1/ℓ) where not; each is positive
    semi-definite, as 0 ≤ ρ ≤ 1 (it is (1 − ρ)[x = x'] + ρ).

    Parameters
    ----------
    length_scale : float or sequence of float, default=1
        ℓ: one for all columns, or one a column; the larger, the less it matters that two codes
        differ.
    gamma : float, optional
        Taken instead of `length_scale`: 1/ℓ.

    Examples
    --------
    >>> from ridgefold.kernels import Categorical
    >>> Categorical((1.0, 0.5))([[3.0, 1.0], [3.0, 2.0], [4.0, 2.0]]).round(4).tolist()
    [[1.0, 0.1353, 0.0498], [0.1353, 1.0, 0.3679], [0.0498, 0.3679, 1.0]]
    """

    evaluation = "manhattan"

    length_scale: float | tuple[float, ...] = 1.0
    gamma: InitVar[float | None] = None

    @staticmethod
    def length_scale_of(gamma: float) -> float:
        return math.inf if gamma == 0.0 else 1.0 / gamma

    def prepare(self, namespace: Namespace, X: Array, origin: Array | None) -> Rows:
        """Codes as they are: whatever is done to them might make two of them equal."""
        return Rows((X,))

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        a, b = left.arrays[0], right.arrays[0]
        scales = np.broadcast_to(np.asarray(self.length_scale, dtype=np.float64), a.shape[1])
        out[...] = 0.0
        for j, scale in enumerate(scales.tolist()):
            differ = a[:, j][:, None] != b[:, j][None, :]
            out -= namespace.astype(differ, out.dtype) / scale
        namespace.exp_in_place(out)

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        """NaN: codes have differences and no slopes, but other columns beside them may."""
        pairs = namespace.empty((len(left), len(right)), left.arrays[0])
        pairs[...] = math.nan
        yield SlopeTerm(pairs)

    def mixed_terms(
        self, namespace: Namespace, X: Array, Z: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        """NaN, as `slope_terms`."""
        yield from self.slope_terms(namespace, X, left, right)

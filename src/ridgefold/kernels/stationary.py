"""Kernels of the distance between two rows: RBF, Matérn, rational quadratic, Laplacian."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import InitVar, dataclass

import numpy as np
import scipy.sparse

from ridgefold.errors import InvalidInputError, NumericalError
from ridgefold.kernels.base import Rows, positive
from ridgefold.kernels.distances import DistanceKernel, EuclideanKernel
from ridgefold.kernels.slope_terms import SlopeTerm
from ridgefold.linalg import Array, Namespace

_SHORTEST = 1e-8
"""Distances below this, about the root of eps, are rounding errors."""


@dataclass(frozen=True)
class RBF(EuclideanKernel):
    """exp(−‖(x − x')/ℓ‖²/2), the Gaussian kernel; gamma = 1/(2ℓ²).

    Parameters
    ----------
    length_scale : float or sequence of float, default=1
        ℓ: one for all columns, or one a column.
    gamma : float, optional
        scikit-learn's parameter, taken instead of `length_scale`: 1/(2ℓ²).

    Examples
    --------
    >>> from ridgefold.kernels import RBF
    >>> RBF(2.0)([[0.0], [2.0]]).round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.0]]
    """

    def of_exponent(self, namespace: Namespace, exponent: Array) -> None:
        namespace.exp_in_place(exponent)

    def slope_of_exponent(self, namespace: Namespace, exponent: Array, slope: Array) -> None:
        namespace.exp_in_place(exponent)
        slope[...] = exponent

    def bend_of_exponent(self, namespace: Namespace, exponent: Array) -> Array:
        return namespace.xp.exp(exponent)


@dataclass(frozen=True)
class Matern(EuclideanKernel):
    """Matérn kernel of smoothness ν = 1/2, 3/2 or 5/2.

    With r = √(2ν)‖(x − x')/ℓ‖: e⁻ʳ, (1 + r)e⁻ʳ, (1 + r + r²/3)e⁻ʳ
    (Rasmussen & Williams 2006, eq. 4.17).

    Parameters
    ----------
    length_scale : float or sequence of float, default=1
        ℓ: one for all columns, or one a column.
    gamma : float, optional
        scikit-learn's parameter, taken instead of `length_scale`: 1/(2ℓ²).
    nu : {0.5, 1.5, 2.5}, default=1.5
        ν: the smaller, the rougher the functions.
    """

    nu: float = 1.5

    def __post_init__(self, gamma: float | None) -> None:
        super().__post_init__(gamma)
        if self.nu not in (0.5, 1.5, 2.5):
            raise InvalidInputError(f"nu must be 0.5, 1.5 or 2.5, got {self.nu!r}")

    @property
    def rough(self) -> bool:
        return self.nu == 0.5

    def of_exponent(self, namespace: Namespace, exponent: Array) -> None:
        exponent *= -4.0 * self.nu
        if self.nu == 0.5:
            namespace.sqrt_in_place(exponent)
            factor = None
        elif self.nu == 1.5:
            namespace.sqrt_in_place(exponent)
            factor = exponent + 1.0
        else:
            factor = exponent / 3.0
            namespace.sqrt_in_place(exponent)
            factor += exponent
            factor += 1.0
        exponent *= -1.0
        namespace.exp_in_place(exponent)
        if factor is not None:
            exponent *= factor

    def slope_of_exponent(self, namespace: Namespace, exponent: Array, slope: Array) -> None:
        """−2φ' is e⁻ʳ/r, 3e⁻ʳ or (5/3)(1 + r)e⁻ʳ.

        Where rows meet, e⁻ʳ/r is infinite but its product with (z_j − z'_j)² ≤ r² is zero; a
        bound on 1/r keeps the rounding errors of that product small.
        """
        exponent *= -4.0 * self.nu
        if self.nu == 0.5:
            namespace.sqrt_in_place(exponent)
            slope[...] = exponent
            namespace.maximum_in_place(slope, _SHORTEST)
            exponent *= -1.0
            namespace.exp_in_place(exponent)
            slope **= -1.0
            slope *= exponent
            return
        if self.nu == 1.5:
            namespace.sqrt_in_place(exponent)
            slope[...] = exponent
            slope *= -1.0
            namespace.exp_in_place(slope)
            exponent += 1.0
            exponent *= slope
            slope *= 3.0
            return
        slope[...] = exponent
        namespace.sqrt_in_place(slope)
        decay = -slope
        namespace.exp_in_place(decay)
        slope += 1.0
        slope *= decay
        decay *= 1.0 / 3.0
        exponent *= decay
        exponent += slope
        slope *= 5.0 / 3.0

    def bend_of_exponent(self, namespace: Namespace, exponent: Array) -> Array:
        """4φ'' is 9e⁻ʳ/r or (25/3)e⁻ʳ; its product with (z_j − z'_j)² is zero where rows meet."""
        if self.nu == 0.5:
            return super().bend_of_exponent(namespace, exponent)
        xp = namespace.xp
        r = xp.sqrt(exponent * (-4.0 * self.nu))
        if self.nu == 2.5:
            return xp.exp(-r) * (25.0 / 3.0)
        apart = r > _SHORTEST
        return xp.where(apart, 9.0 * xp.exp(-r) / xp.where(apart, r, xp.ones_like(r)), 0.0)


@dataclass(frozen=True)
class RationalQuadratic(EuclideanKernel):
    """(1 + ‖(x − x')/ℓ‖²/(2a))⁻ᵃ with shape a: a mixture of RBF kernels of many widths.

    Parameters
    ----------
    length_scale : float or sequence of float, default=1
        ℓ: one for all columns, or one a column.
    gamma : float, optional
        scikit-learn's parameter, taken instead of `length_scale`: 1/(2ℓ²).
    shape : float, default=1
        a: the smaller, the more widths are mixed.
    """

    shape: float = 1.0

    def __post_init__(self, gamma: float | None) -> None:
        super().__post_init__(gamma)
        object.__setattr__(self, "shape", positive("shape", self.shape))

    def of_exponent(self, namespace: Namespace, exponent: Array) -> None:
        exponent /= -self.shape
        exponent += 1.0
        exponent **= -self.shape

    def slope_of_exponent(self, namespace: Namespace, exponent: Array, slope: Array) -> None:
        """With u = 1 − exponent/a: u⁻ᵃ and u⁻ᵃ⁻¹."""
        exponent *= -1.0 / self.shape
        exponent += 1.0
        slope[...] = exponent
        slope **= -1.0
        if self.shape == 1.0:
            exponent[...] = slope
        else:
            exponent **= -self.shape
        slope *= exponent

    def bend_of_exponent(self, namespace: Namespace, exponent: Array) -> Array:
        """With u = 1 − exponent/a: (a + 1)/a·u⁻ᵃ⁻²."""
        u = 1.0 - exponent / self.shape
        return (self.shape + 1.0) / self.shape * u ** (-self.shape - 2.0)


@dataclass(frozen=True)
class Laplacian(DistanceKernel):
    """exp(−Σ|x_j − x'_j|/ℓ_j); gamma = 1/ℓ as in scikit-learn.

    Parameters
    ----------
    length_scale : float or sequence of float, default=1
        ℓ: one for all columns, or one a column.
    gamma : float, optional
        scikit-learn's parameter, taken instead of `length_scale`: 1/ℓ.
    """

    evaluation = "manhattan"
    width_power = 1.0

    accepts_sparse = True
    length_scale: float | tuple[float, ...] = 1.0
    gamma: InitVar[float | None] = None

    @staticmethod
    def length_scale_of(gamma: float) -> float:
        return math.inf if gamma == 0.0 else 1.0 / gamma

    def prepare(self, namespace: Namespace, X: Array, origin: Array | None) -> Rows:
        """x/ℓ in float64, not shifted by the origin: subtracting a far origin would lose digits."""
        double = X if scipy.sparse.issparse(X) else namespace.astype(X, namespace.double())
        z = self.scaled(namespace, double, None)
        self.require_finite(namespace, z.data if scipy.sparse.issparse(z) else z)
        return Rows((z,))

    @staticmethod
    def require_finite(namespace: Namespace, values: Array) -> None:
        if not namespace.all_finite(values):
            raise NumericalError(
                "the rows of X divided by length_scale overflow: scale the columns of X, "
                "or use a larger length_scale"
            )

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        a, b = left.arrays[0], right.arrays[0]
        if scipy.sparse.issparse(a):
            from ridgefold.kernels.pairwise import sparse_manhattan

            out[...] = sparse_manhattan(a, b)
        else:
            namespace.manhattan_distances(a, b, out)
        out *= -1.0
        self.of_exponent(namespace, out)

    def of_exponent(self, namespace: Namespace, exponent: Array) -> None:
        """Turn −Σ|z_j − z'_j| into values of the kernel, in place."""
        namespace.exp_in_place(exponent)

    def write_with_slope(
        self, namespace: Namespace, left: Rows, right: Rows, out: Array, slope: Array
    ) -> None:
        self.write_block(namespace, left, right, out)
        slope[...] = out

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        """−k·sign(z_j − z'_j)/ℓ_j, one column after the other."""
        a, b = left.arrays[0], right.arrays[0]
        values = namespace.empty((a.shape[0], b.shape[0]), a)
        self.write_block(namespace, left, right, values)
        scales = np.broadcast_to(np.asarray(self.length_scale, dtype=np.float64), a.shape[1])
        for j, scale in enumerate(scales.tolist()):
            sign = namespace.xp.sign(b[:, j][None, :] - a[:, j][:, None])
            yield SlopeTerm(values * sign * (1.0 / scale), columns=np.asarray([j]))

    def contract(self, namespace: Namespace, left: Rows, right: Rows, weights: Array) -> Array:
        return namespace.contract_manhattan(weights, left.arrays[0], right.arrays[0])

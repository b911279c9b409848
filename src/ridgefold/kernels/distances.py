"""Length scales, and distances between scaled rows in place."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import InitVar, dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ridgefold.errors import (
    InvalidInputError,
    NoSlopeError,
    NumericalError,
    UnsupportedInputError,
)
from ridgefold.kernels.base import Kernel, Rows, positive
from ridgefold.kernels.middle import middle_of
from ridgefold.kernels.slope_terms import SlopeTerm
from ridgefold.linalg import Array, Namespace
from ridgefold.linalg.blocks import row_blocks

LengthScale = float | tuple[float, ...]

ROUNDING = 16.0
"""Rough kernels take −‖z − z'‖²/2 for zero below this many units of eps·max(‖z‖²/2)."""
FAR = 1e4
"""Rows with ‖z‖²/2 above this are far from the origin: nearer ones leave an error of 1e-11 at
most."""
_CANCELLED = 2.0**-10
"""Half squares below this share of the norms of the two rows have lost three digits to them."""
_STRIP = 64
"""Rows of a triangle that are worked on at once: few, because of the square beside the diagonal
half the entries are not needed."""
_WIDE = 64
"""Columns from which on computing one triangle alone pays: it saves half of the product, and costs
a pass for the norms, which are otherwise a part of it."""


def as_length_scale(value: Any) -> LengthScale:
    """One positive number, or one a column as a tuple (so that kernels stay hashable)."""
    if np.ndim(value) == 0:
        return positive("length_scale", value)
    scales = tuple(positive("length_scale", v) for v in np.asarray(value).ravel().tolist())
    if not scales:
        raise InvalidInputError("length_scale must hold at least one number, got an empty sequence")
    return scales


def as_gamma(gamma: Any) -> float:
    number = np.ndim(gamma) == 0 and isinstance(gamma, (int, float, np.number))
    if not number or isinstance(gamma, bool) or not 0.0 <= gamma < math.inf:
        raise InvalidInputError(f"gamma must be a finite number >= 0, got {gamma!r}")
    return float(gamma)


@dataclass(frozen=True)
class DistanceKernel(Kernel):
    """A kernel of (x − x')/ℓ, with one length scale or one a column.

    Parameters
    ----------
    length_scale : float or sequence of float
    gamma : float, optional
        scikit-learn's parameter, taken instead of `length_scale`.
    """

    length_scale: LengthScale = 1.0
    gamma: InitVar[float | None] = None

    def __post_init__(self, gamma: float | None) -> None:
        value: Any = self.length_scale
        if gamma is not None:
            if self.length_scale != 1.0:
                raise InvalidInputError(
                    f"give either length_scale or gamma, got length_scale={self.length_scale!r} "
                    f"and gamma={gamma!r}"
                )
            value = self.length_scale_of(as_gamma(gamma))
        scale = math.inf if value is math.inf else as_length_scale(value)
        object.__setattr__(self, "length_scale", scale)

    @staticmethod
    def length_scale_of(gamma: float) -> float:
        """The length scale that scikit-learn's gamma stands for: exp(−γd²) = exp(−d²/2ℓ²)."""
        return math.inf if gamma == 0.0 else math.sqrt(0.5 / gamma)

    def check(self, namespace: Namespace, X: Array) -> None:
        super().check(namespace, X)
        if isinstance(self.length_scale, tuple) and len(self.length_scale) != X.shape[1]:
            raise InvalidInputError(
                f"length_scale has {len(self.length_scale)} entries but X has {X.shape[1]} "
                "columns: give one number, or one for each column"
            )

    def scaled(self, namespace: Namespace, X: Array, origin: Array | None) -> Array:
        """(X − origin)/ℓ; sparse rows are not shifted, which would fill them."""
        if scipy.sparse.issparse(X):
            inverse = 1.0 / np.broadcast_to(self.length_scale, X.shape[1]).astype(X.dtype)
            return (X @ scipy.sparse.diags_array(inverse, dtype=X.dtype)).tocsr()
        scale: Any = self.length_scale
        if isinstance(scale, tuple):
            scale = namespace.asarray(scale, X)[None, :]
        if origin is None:
            return X / scale
        shifted = X - origin[None, :]
        shifted /= scale
        return shifted

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return _ones_for_rows(namespace, X)

    # -- derivatives in the length scales --------------------------------------------------

    def write_with_slope(
        self, namespace: Namespace, left: Rows, right: Rows, out: Array, slope: Array
    ) -> None:
        """Write k into `out` and s into `slope`, where ∂k/∂log ℓ_j = s·q_j.

        q_j is the part of column j in the distance: (z_j − z'_j)² for kernels of Euclidean
        distances, |z_j − z'_j| for those of Manhattan distances. Rows are dense.
        """
        raise self._not_differentiable()

    def contract(self, namespace: Namespace, left: Rows, right: Rows, weights: Array) -> Array:
        """Σ_ab W_ab q_j(z_a, z_b) for every column j together."""
        raise self._not_differentiable()

    def _not_differentiable(self) -> UnsupportedInputError:
        return UnsupportedInputError(
            f"the length scales of a {type(self).__name__} kernel cannot be learned, as it does "
            "not define its slope: use RBF, Matern, Laplacian or RationalQuadratic"
        )


def _ones_for_rows(namespace: Namespace, X: Array) -> Array:
    if scipy.sparse.issparse(X):
        return np.ones(X.shape[0], dtype=X.dtype)
    return namespace.ones(X.shape[0], X)


@dataclass(frozen=True)
class EuclideanKernel(DistanceKernel):
    """A kernel of ‖(x − x')/ℓ‖₂, computed by one matrix product.

    Rows are kept as (z, 1, −‖z‖²/2). The product of such a row with another whose last two
    entries are exchanged is zᵀz' − ‖z‖²/2 − ‖z'‖²/2 = −‖z − z'‖²/2: no passes over the
    block to add the norms. The sum cancels; rows shifted to the middle of the training rows,
    and float64 for float32 rows, keep the loss at the level of the rows' own rounding.

    Far from that middle they do not: where a fill value of 1e9 stands for "unknown", the norms of
    rows that hold it are 1e18. So where rows are farther than `FAR`, x is kept beside z, and pairs
    of such rows whose distance is small beside their norms are computed again from x − x'.
    """

    evaluation = "euclidean"
    width_power = 2.0
    """The exponent is divided by this power of the length scale."""

    accepts_sparse = True

    def prepare(self, namespace: Namespace, X: Array, origin: Array | None) -> Rows:
        if scipy.sparse.issparse(X):
            z = self.scaled(namespace, X, origin).astype(np.float64)
            halves = -0.5 * np.asarray(z.multiply(z).sum(axis=1)).reshape(-1, 1)
            rows = scipy.sparse.hstack([z, np.ones_like(halves), halves], format="csr")
        else:
            n, d = X.shape
            rows = namespace.empty((n, d + 2), X, namespace.double())
            rows[:, d] = 1.0
            for stretch in row_blocks(n, 8.0 * d, namespace.tile_bytes(X) // 4):
                block = namespace.astype(X[stretch, :], namespace.double())
                rows[stretch, :d] = self.scaled(namespace, block, origin)
                rows[stretch, d + 1] = -0.5 * namespace.squares_of_rows(rows[stretch, :d])
            halves = rows[:, d + 1]
        lowest = float(namespace.xp.min(halves)) if X.shape[0] > 0 else 0.0
        if not math.isfinite(lowest):
            self.require_finite(namespace, halves)
        return Rows((rows, X) if lowest < -self.far else (rows,))

    @property
    def far(self) -> float:
        """Rows with a ‖z‖²/2 above this are compared by differences."""
        return FAR

    def exponents(self, namespace: Namespace, new: Array, X: Array) -> Array:
        """−‖z − z'‖²/2 between the rows of `new` and those of X, in float64."""
        origin = middle_of(namespace, X)
        right = self.prepare(namespace, X, origin)
        left = right if new is X else self.prepare(namespace, new, origin)
        out = namespace.empty((len(left), len(right)), X, namespace.double())
        self._write_exponents(namespace, left, right, out)
        return out

    @staticmethod
    def require_finite(namespace: Namespace, norms: Array) -> None:
        if not namespace.all_finite(norms):
            raise NumericalError(
                "squared distances between the rows of X overflow: scale the columns of X "
                "(sklearn.preprocessing.StandardScaler) or use a larger length_scale"
            )

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        double = namespace.double()
        work = out if out.dtype == double else namespace.empty(out.shape, out, double)
        self._write_exponents(namespace, left, right, work)
        self.of_exponent(namespace, work)
        if work is not out:
            out[...] = namespace.astype(work, out.dtype)

    def gains_by_halves(self, namespace: Namespace, rows: Rows) -> bool:
        a = rows.arrays[0]
        wide = a.shape[1] - 2 >= _WIDE
        return wide and namespace.gains_by_halves and not scipy.sparse.issparse(a)

    def write_lower(self, namespace: Namespace, rows: Rows, out: Array) -> None:
        a = rows.arrays[0]
        norms, d = a[:, -1], a.shape[1] - 2
        double = namespace.double()
        work = out if out.dtype == double else namespace.empty(out.shape, out, double)
        strips = [(strip, slice(0, strip.stop)) for strip in row_blocks(len(rows), 1, _STRIP)]
        for strip, left in strips:
            namespace.xp.add(norms[strip, None], norms[None, left], out=work[strip, left])
        namespace.add_gram_of_rows_in_place(work, a[:, :d])
        for strip, left in strips:
            block = work[strip, left]
            self._clear_rounding(namespace, norms[strip], norms[left], block)
            self._take_differences(
                namespace, rows.take(namespace, strip), rows.take(namespace, left), block
            )
            self.of_exponent(namespace, block)
            if work is not out:
                out[strip, left] = namespace.astype(block, out.dtype)

    @property
    def rough(self) -> bool:
        """True if the kernel depends on the root of small distances, and on their rounding."""
        return False

    def _write_exponents(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        """Write −‖z − z'‖²/2, cleared of rounding."""
        a, b = left.arrays[0], right.arrays[0]
        namespace.multiply_transposed(a, _exchange_last_two(namespace, b), out)
        if scipy.sparse.issparse(a):
            namespace.minimum_in_place(out, 0.0)
        else:
            self._clear_rounding(namespace, a[:, -1], b[:, -1], out)
        self._take_differences(namespace, left, right, out)

    def _clear_rounding(self, namespace: Namespace, left: Array, right: Array, out: Array) -> None:
        """Set −‖z − z'‖²/2 to zero where rounding made it positive.

        For rough kernels also where it is within rounding of zero.

        The root of a rounding error is 1e-8: without this, equal rows would differ, and by how
        much would depend on the block that they stand in. `left` and `right` hold −‖z‖²/2.
        """
        if not self.rough or 0 in out.shape:
            namespace.minimum_in_place(out, 0.0)
            return
        # Every pair by its own norms: a far row must not move others.
        limit = ROUNDING * namespace.eps(out) * (left[:, None] + right[None, :])
        out[out > limit] = 0.0

    def _take_differences(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        """Compute −‖z − z'‖²/2 from differences for pairs of far rows whose norms cancelled.

        Which pairs these are depends on the two rows, not on the block that they stand in.
        """
        if len(left.arrays) == 1 or len(right.arrays) == 1:
            return
        down, across = (self._limits(namespace, rows) for rows in (left, right))
        if down is None or across is None:
            return
        close = out > down[:, None] + across[None, :]
        first, second = namespace.xp.nonzero(close)
        values = namespace.empty(first.shape, out)
        X, Y = left.arrays[1], right.arrays[1]
        for pairs in row_blocks(first.shape[0], 24.0 * X.shape[1], namespace.tile_bytes(out)):
            values[pairs] = self._of_pairs(namespace, X, Y, first[pairs], second[pairs])
        out[close] = values

    def _limits(self, namespace: Namespace, rows: Array) -> Array | None:
        """A limit for every row: a half square above the sum of its two rows' limits is imprecise.

        The limit is infinite for rows that are not far; None if no row is far.
        """
        a = rows.arrays[0]
        halves = a[:, [-1]].toarray().ravel() if scipy.sparse.issparse(a) else a[:, -1]
        if halves.shape[0] == 0 or not float(namespace.xp.min(halves)) < -self.far:
            return None
        never = namespace.xp.full_like(halves, math.inf)
        return namespace.xp.where(halves < -self.far, _CANCELLED * halves, never)

    def _of_pairs(
        self, namespace: Namespace, X: Array, Y: Array, first: Array, second: Array
    ) -> Array:
        """−‖(x − y)/ℓ‖²/2 of the named rows x of X and y of Y, pair by pair."""
        if scipy.sparse.issparse(X):
            sparse = self.scaled(namespace, X.astype(np.float64)[first] - Y[second], None)
            return -0.5 * np.asarray(sparse.multiply(sparse).sum(axis=1)).ravel()
        x, y = (
            namespace.astype(namespace.xp.take(rows, chosen, axis=0), namespace.double())
            for rows, chosen in ((X, first), (Y, second))
        )
        return -0.5 * namespace.squares_of_rows(self.scaled(namespace, x - y, None))

    @abstractmethod
    def of_exponent(self, namespace: Namespace, exponent: Array) -> None:
        """Overwrite −‖z − z'‖²/2 by the kernel's values."""

    def slope_of_exponent(self, namespace: Namespace, exponent: Array, slope: Array) -> None:
        """Overwrite −‖z − z'‖²/2 by φ and `slope` by −2φ', for the kernel φ(‖z − z'‖²)."""
        raise self._not_differentiable()

    def write_with_slope(
        self, namespace: Namespace, left: Rows, right: Rows, out: Array, slope: Array
    ) -> None:
        self._write_exponents(namespace, left, right, out)
        self.slope_of_exponent(namespace, out, slope)

    def contract(self, namespace: Namespace, left: Rows, right: Rows, weights: Array) -> Array:
        """With (z − z')² = z² + z'² − 2zz', one product with the rows serves all columns.

        Columns in which rows are far are summed from differences.
        """
        a, b = left.arrays[0], right.arrays[0]
        d = a.shape[1] - 2
        sums = weights @ b[:, : d + 1]  # Σ_b W_ab (z_b, 1)
        down = namespace.ones(a.shape[0], a) @ weights
        z = a[:, :d]
        total = (sums[:, d] @ (z * z) + down @ (b[:, :d] * b[:, :d])) - 2.0 * namespace.xp.sum(
            z * sums[:, :d], axis=0
        )
        if len(left.arrays) > 1 and len(right.arrays) > 1:
            largest = namespace.to_numpy(namespace.xp.max(z * z, axis=0))
            scales = np.broadcast_to(self.length_scale, d)
            for j in np.flatnonzero(largest > 2.0 * self.far).tolist():
                x, y = (rows.arrays[1][:, j] for rows in (left, right))
                difference = (x[:, None] - y[None, :]) / float(scales[j])
                total[j] = namespace.xp.sum(weights * difference * difference)
        return total

    # -- derivatives in the columns of the rows -------------------------------------------

    def bend_of_exponent(self, namespace: Namespace, exponent: Array) -> Array:
        """4φ'' at −‖z − z'‖²/2, for the kernel φ(‖z − z'‖²)."""
        raise NoSlopeError(
            f"functions of a {self!r} kernel have no slopes with a variance, or it does not state "
            "it: use RBF, Matern with nu=1.5 or 2.5, or RationalQuadratic"
        )

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        """2φ'(z_j − z'_j)/ℓ_j: two products for all columns; by differences in far columns."""
        exponents = self._exponents(namespace, left, right)
        slope = self._slopes(namespace, exponents)
        z, other, inverse = self._units(namespace, left, right)
        far = self._far_columns(namespace, left, right)
        if len(far) == 0:
            yield SlopeTerm(slope, left=-z * inverse)
            yield SlopeTerm(slope, right=other * inverse)
            return
        near = np.setdiff1d(np.arange(z.shape[1]), far)
        if len(near):
            yield SlopeTerm(slope, left=(-z * inverse)[:, near], columns=near)
            yield SlopeTerm(slope, right=(other * inverse)[:, near], columns=near)
        for j in far.tolist():
            x, y = left.arrays[1][:, j], right.arrays[1][:, j]
            steps = (y[None, :] - x[:, None]) * (inverse[0, j] * inverse[0, j])
            yield SlopeTerm(slope * steps, columns=np.asarray([j]))

    def mixed_terms(
        self, namespace: Namespace, X: Array, Z: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        yield from self.mixed_terms_along(namespace, left, right, None)

    def mixed_terms_along(
        self, namespace: Namespace, left: Rows, right: Rows, directions: Array | None
    ) -> Iterator[SlopeTerm]:
        """−(2φ' + 4φ''(z_j − z'_j)²)/ℓ_j², or the same in columns that give x by `directions` (one
        row a coordinate)."""
        exponents = self._exponents(namespace, left, right)
        bend = self.bend_of_exponent(namespace, exponents)
        slope = self._slopes(namespace, exponents)
        z, other, inverse = self._units(namespace, left, right)
        z, other, squares = z * inverse, other * inverse, inverse * inverse
        if directions is not None:
            z, other, squares = z @ directions, other @ directions, squares @ directions**2
        yield SlopeTerm(slope, left=squares)
        yield SlopeTerm(-bend, left=z * z)
        yield SlopeTerm(-bend, right=other * other)
        yield SlopeTerm(2.0 * bend, left=z, right=other)

    def _exponents(self, namespace: Namespace, left: Rows, right: Rows) -> Array:
        out = namespace.empty((len(left), len(right)), left.arrays[0], namespace.double())
        self._write_exponents(namespace, left, right, out)
        return out

    def _slopes(self, namespace: Namespace, exponents: Array) -> Array:
        """−2φ', zero where the rows of a rough kernel meet; overwrites the exponents."""
        if type(self).slope_of_exponent is EuclideanKernel.slope_of_exponent:
            raise NoSlopeError(
                f"the {type(self).__name__} kernel does not state its slope (slope_of_exponent): "
                "use RBF, Matern or RationalQuadratic"
            )
        slope = namespace.empty(exponents.shape, exponents)
        meeting = exponents == 0.0 if self.rough else None
        self.slope_of_exponent(namespace, exponents, slope)
        if meeting is not None:
            slope[meeting] = 0.0
        return slope

    def _units(self, namespace: Namespace, left: Rows, right: Rows) -> tuple[Array, Array, Array]:
        """z of both sets of rows, and 1/ℓ as one row."""
        a, b = left.arrays[0], right.arrays[0]
        d = a.shape[1] - 2
        inverse = 1.0 / np.broadcast_to(np.asarray(self.length_scale, dtype=np.float64), d)
        return a[:, :d], b[:, :d], namespace.asarray(inverse.copy(), a)[None, :]

    def _far_columns(self, namespace: Namespace, left: Rows, right: Rows) -> np.ndarray:
        """Columns in which differences of z would have lost digits."""
        if len(left.arrays) == 1 or len(right.arrays) == 1:
            return np.empty(0, dtype=int)
        z, other, _ = self._units(namespace, left, right)
        largest = [namespace.to_numpy(namespace.xp.max(r * r, axis=0)) for r in (z, other)]
        return np.flatnonzero(np.minimum(*largest) > 2.0 * self.far)


def _exchange_last_two(namespace: Namespace, rows: Array) -> Array:
    n = rows.shape[1]
    if scipy.sparse.issparse(rows):
        return rows[:, [*range(n - 2), n - 1, n - 2]]
    exchanged = namespace.copy(rows)
    exchanged[:, n - 2] = rows[:, n - 1]
    exchanged[:, n - 1] = rows[:, n - 2]
    return exchanged

"""Factorise a symmetric matrix in place, with one fallback for every caller.

A Cholesky factorisation is tried first. Where there is none (a singular or indefinite
matrix: alpha = 0, repeated rows, a kernel that is not positive definite) the
eigendecomposition gives the solution of least norm, whatever path led here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from ridgefold.errors import ConditionWarning, NumericalError, SingularSystemWarning
from ridgefold.linalg.blocks import ROWS_AT_ONCE
from ridgefold.linalg.namespace import Array, Namespace
from ridgefold.notices import warn

DIGITS_WORTH_HAVING = 3
"""A solution that is expected to have fewer correct digits than this comes with a warning."""
POWER_STEPS = 12
"""Power steps for an extreme eigenvalue: counting digits needs no more than its magnitude."""
_POWER_GAIN = 1.02
"""An eigenvalue that grows by less than this factor in a step is known well enough."""
_SMALL = 512
"""A float32 matrix of no more rows is decomposed in float64: that costs next to nothing, and the
rounding errors of an eigendecomposition are several times those of a factorisation."""


def rounding_level(n: int, eps: float) -> float:
    """Pivots and eigenvalues below this share of the largest one are rounding error.

    Rounding errors of a factorisation grow like √n (Higham & Mary 2019), not like the n of
    the worst-case bounds: a cut at n·eps would throw away eigenvalues that are right.
    """
    return max(10.0, math.sqrt(n)) * eps


class Factor(ABC):
    """A factorised symmetric matrix: solve as often as you like."""

    namespace: Namespace

    @abstractmethod
    def solve(self, b: Array) -> Array:
        """A⁻¹b (the solution of least norm if A is singular); `b` is a vector or a matrix."""

    @abstractmethod
    def multiply(self, b: Array) -> Array:
        """A b for a matrix b."""

    @abstractmethod
    def half_solve(self, b: Array) -> Array:
        """W with WᵀJW = bᵀA⁻¹b for a matrix b, where J = diag(`signs`)."""

    @abstractmethod
    def signs(self) -> Array | None:
        """Signs of A's eigenvalues, in the order of the rows of `half_solve`; None if all +."""

    @abstractmethod
    def inverse_in_place(self) -> Array:
        """A⁻¹ (lower triangle), in the factor's own storage where that is possible."""

    @abstractmethod
    def inverse_diagonal_in_place(self) -> Array:
        """The diagonal of A⁻¹; the factor's own storage is used where that is possible."""

    @abstractmethod
    def condition(self) -> float:
        """Estimated 2-norm condition number; infinite for a singular matrix."""

    @abstractmethod
    def known_condition(self) -> float:
        """The condition number where it may matter; NaN where a cheap look shows it is fine."""

    @abstractmethod
    def warn_if_ill_conditioned(self, what: str) -> None:
        """Warn when the condition number leaves too few digits."""


def expected_digits(condition: float, eps: float) -> int:
    """Decimal digits a solution can be trusted to at a condition number."""
    if not math.isfinite(condition):
        return 0
    return max(0, math.floor(-math.log10(eps * max(condition, 1.0))))


def _warn_ill_conditioned(what: str, condition: float, digits: int) -> None:
    warn(
        f"{what} is ill-conditioned (condition number about {condition:.1e}): "
        f"expect about {digits} correct digits in the coefficients. "
        "A larger alpha, or float64 instead of float32, gives more.",
        ConditionWarning,
    )


def _multiply_by_factor(namespace: Namespace, lower: Array, v: Array) -> Array:
    """L Lᵀ v, a block of rows at a time: the upper triangle of the storage is not zero."""
    n, out = lower.shape[0], namespace.zeros(v.shape, v)
    blocks = [(start, min(start + ROWS_AT_ONCE, n)) for start in range(0, n, ROWS_AT_ONCE)]
    inner = namespace.zeros(v.shape, v)
    for start, stop in blocks:
        corner = namespace.xp.tril(lower[start:stop, start:stop])
        inner[start:stop, :] += corner.T @ v[start:stop, :]
        inner[:start, :] += lower[start:stop, :start].T @ v[start:stop, :]
    for start, stop in blocks:
        corner = namespace.xp.tril(lower[start:stop, start:stop])
        out[start:stop, :] = (
            lower[start:stop, :start] @ inner[:start, :] + corner @ inner[start:stop, :]
        )
    return out


@dataclass(frozen=True)
class CholeskyFactor(Factor):
    """Lower-triangular L with A = L Lᵀ, in the storage that held A."""

    namespace: Namespace
    lower: Array

    def solve(self, b: Array) -> Array:
        if b.ndim == 1:
            return self.namespace.solve_cholesky(self.lower, b[:, None])[:, 0]
        return self.namespace.solve_cholesky(self.lower, b)

    def multiply(self, b: Array) -> Array:
        return _multiply_by_factor(self.namespace, self.lower, b)

    def half_solve(self, b: Array) -> Array:
        return self.namespace.solve_triangular(self.lower, b)

    def signs(self) -> Array | None:
        return None

    def inverse_in_place(self) -> Array:
        self.namespace.inverse_from_cholesky_in_place(self.lower)
        return self.lower

    def inverse_diagonal_in_place(self) -> Array:
        return self.namespace.inverse_diagonal_from_cholesky_in_place(self.lower)

    def cheap_condition(self) -> float:
        """Ratio of extreme pivots times n²: hardly ever too low, and costs n operations.

        λmax ≤ trace is about n times the largest squared pivot, and the smallest one may be
        n times λmin.
        """
        pivots = self.namespace.diagonal(self.lower)
        xp = self.namespace.xp
        ratio = float(xp.max(pivots)) / float(xp.min(pivots))
        return float(pivots.shape[0] ** 2 * ratio * ratio)

    def condition(self) -> float:
        """Extreme eigenvalues of L Lᵀ by a few power steps with L and with L⁻¹."""
        return self._extreme_eigenvalue(inverse=False) * self._extreme_eigenvalue(inverse=True)

    def _extreme_eigenvalue(self, *, inverse: bool) -> float:
        n, namespace = self.lower.shape[0], self.namespace
        vector = namespace.asarray([1.0 + ((7 * i) % 11) / 11 for i in range(n)], self.lower)
        vector = vector[:, None] / namespace.norm(vector)
        value = 0.0
        for _ in range(POWER_STEPS):
            if inverse:
                vector = namespace.solve_cholesky(self.lower, vector)
            else:
                vector = _multiply_by_factor(namespace, self.lower, vector)
            previous, value = value, namespace.norm(vector)
            if not 0.0 < value < math.inf:
                return math.inf
            if value <= _POWER_GAIN * previous:
                break
            vector = vector / value
        return value

    def known_condition(self) -> float:
        eps = self.namespace.eps(self.lower)
        if expected_digits(self.cheap_condition(), eps) >= DIGITS_WORTH_HAVING:
            return math.nan
        return self.condition()

    def warn_if_ill_conditioned(self, what: str) -> None:
        eps, condition = self.namespace.eps(self.lower), self.known_condition()
        if math.isnan(condition):
            return
        digits = expected_digits(condition, eps)
        if digits < DIGITS_WORTH_HAVING:
            _warn_ill_conditioned(what, condition, digits)


@dataclass(frozen=True)
class SpectralFactor(Factor):
    """Eigenvalues and eigenvectors; eigenvalues that are rounding error count as zero."""

    namespace: Namespace
    values: Array
    vectors: Array
    scale: float = 0.0
    """Size of the numbers that the matrix was computed from, where they were larger than it."""

    @property
    def largest(self) -> float:
        return float(self.namespace.xp.max(self.namespace.xp.abs(self.values)))

    def rounding(self) -> float:
        """Eigenvalues up to this size are rounding error."""
        level = rounding_level(self.values.shape[0], self.namespace.eps(self.values))
        return level * max(self.largest, self.scale)

    def kept(self) -> Array:
        """Which eigenvalues are more than rounding error."""
        return self.namespace.xp.abs(self.values) > self.rounding()

    def inverse_values(self) -> Array:
        xp, kept = self.namespace.xp, self.kept()
        return xp.where(kept, 1.0 / xp.where(kept, self.values, xp.ones_like(self.values)), 0.0)

    def regular(self, alpha: float, *, semidefinite: bool = False) -> SpectralFactor:
        """The factor of K + αI with the eigenvalues that are α but for rounding error raised.

        Where α itself is below rounding error, `inverse_values` is that of the pseudo-inverse:
        right for a solution, which is then the one of least norm, but not for the inverse as
        such, which is large (1/α) exactly where the pseudo-inverse is zero. Raised to the size
        of rounding error, no more than that is added to the matrix, and it is regular.

        Where K is known to be positive semi-definite, an eigenvalue below α shows by how much
        it lies there how large rounding errors are: after several eliminations, they are more
        than a single factorisation leaves.
        """
        xp, level = self.namespace.xp, self.rounding()
        if not 0.0 < alpha <= level:
            return self
        if semidefinite:
            level = max(level, alpha - float(xp.min(self.values)))
        rounded = xp.abs(self.values - alpha) <= level
        values = xp.where(rounded, xp.full_like(self.values, level), self.values)
        return _RegularFactor(self.namespace, values, self.vectors, self.scale)

    def solve(self, b: Array) -> Array:
        columns = b[:, None] if b.ndim == 1 else b
        solution = self.vectors @ (self.inverse_values()[:, None] * (self.vectors.T @ columns))
        return solution[:, 0] if b.ndim == 1 else solution

    def multiply(self, b: Array) -> Array:
        return self.vectors @ (self.values[:, None] * (self.vectors.T @ b))

    def half_solve(self, b: Array) -> Array:
        xp = self.namespace.xp
        return xp.sqrt(xp.abs(self.inverse_values()))[:, None] * (self.vectors.T @ b)

    def signs(self) -> Array | None:
        xp, inverse = self.namespace.xp, self.inverse_values()
        return xp.sign(inverse) if bool(xp.any(inverse < 0.0)) else None

    def inverse_in_place(self) -> Array:
        return (self.vectors * self.inverse_values()[None, :]) @ self.vectors.T

    def inverse_diagonal_in_place(self) -> Array:
        return (self.vectors * self.vectors) @ self.inverse_values()

    def condition(self) -> float:
        smallest = float(self.namespace.xp.min(self.namespace.xp.abs(self.values)))
        return self.largest / smallest if smallest > 0.0 else math.inf

    def known_condition(self) -> float:
        return self.condition()

    def warn_if_ill_conditioned(self, what: str) -> None:
        eps, condition = self.namespace.eps(self.values), self.condition()
        digits = expected_digits(condition, eps)
        lowest = float(self.namespace.xp.min(self.values))
        if not bool(self.namespace.xp.all(self.kept())):
            nature = "singular to working precision"
        elif lowest < 0.0:
            nature = f"not positive definite (smallest eigenvalue {lowest:.1e})"
        else:
            if digits < DIGITS_WORTH_HAVING:
                _warn_ill_conditioned(what, condition, digits)
            return
        warn(
            f"{what} is {nature}; condition number {condition:.1e}. The solution of least norm "
            f"is used: expect about {digits} correct digits in the coefficients. A larger alpha, "
            "or dropping repeated rows, makes the solution unique.",
            SingularSystemWarning,
        )


class _RegularFactor(SpectralFactor):
    """Every eigenvalue counts: those that were rounding error have been replaced."""

    def kept(self) -> Array:
        return self.namespace.xp.abs(self.values) > 0.0


def factorise(
    namespace: Namespace,
    matrix: Array,
    refill: Callable[[Array], object],
    scale: float = 0.0,
) -> CholeskyFactor | SpectralFactor:
    """Factorise a symmetric matrix (lower triangle) in its own storage.

    Parameters
    ----------
    matrix : array of shape (n, n)
        Overwritten.
    refill : callable
        Writes the matrix into the storage again: the fallback needs it once more, and
        keeping a copy for a rare event would double the memory of every fit.
    scale : float
        Size of the numbers that the matrix was computed from (by elimination, say), if that
        may be larger than the matrix itself: rounding error is relative to it.
    """
    factor = factorise_by_cholesky(namespace, matrix, scale)
    if factor is not None:
        return factor
    refill(matrix)
    return factorise_spectrally(namespace, matrix, scale)


def factorise_by_cholesky(
    namespace: Namespace, matrix: Array, scale: float = 0.0
) -> CholeskyFactor | None:
    """The Cholesky factor in the matrix's own storage; None where rounding error would be in it."""
    largest = float(namespace.xp.max(namespace.diagonal(matrix)))
    if not math.isfinite(largest):
        raise NumericalError(
            f"the kernel matrix has a diagonal entry {largest}: its values overflow; "
            "scale the columns of X, or lower the degree or gamma of the kernel"
        )
    if namespace.cholesky_in_place(matrix):
        pivots = namespace.diagonal(matrix)
        smallest = float(namespace.xp.min(pivots)) ** 2
        level = rounding_level(matrix.shape[0], namespace.eps(matrix))
        if smallest > level * max(largest, scale):
            return CholeskyFactor(namespace, matrix)
    return None


def _lower_is_finite(namespace: Namespace, matrix: Array) -> bool:
    """Whether the lower triangle is finite, looked at in strips instead of in a copy."""
    for start in range(0, matrix.shape[0], ROWS_AT_ONCE):
        rows = slice(start, min(start + ROWS_AT_ONCE, matrix.shape[0]))
        if not namespace.all_finite(matrix[rows, :start]):
            return False
        if not namespace.all_finite(namespace.xp.tril(matrix[rows, rows])):
            return False
    return True


def factorise_spectrally(namespace: Namespace, matrix: Array, scale: float = 0.0) -> SpectralFactor:
    """Eigendecomposition of a symmetric matrix (lower triangle), in its own storage."""
    # LAPACK may loop for ever on NaN or infinity.
    if not _lower_is_finite(namespace, matrix):
        raise NumericalError(
            "the kernel matrix holds NaN or infinite entries: its values overflow; "
            "scale the columns of X, or lower the degree or gamma of the kernel"
        )
    if namespace.itemsize(matrix) < 8 and matrix.shape[0] <= _SMALL:
        wide = namespace.eigh_in_place(namespace.astype(matrix, namespace.xp.float64))
        values, vectors = (namespace.astype(array, matrix.dtype) for array in wide)
    else:
        values, vectors = namespace.eigh_in_place(matrix)
    return SpectralFactor(namespace, values, vectors, scale)

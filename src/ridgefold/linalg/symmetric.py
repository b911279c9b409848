"""Factorise a symmetric matrix in place, with one fallback for every caller.

A Cholesky factorisation is tried first. Where there is none (a singular or indefinite
matrix: alpha = 0, repeated rows, a kernel that is not positive definite) the
eigendecomposition gives the solution of least norm, whatever path led here.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from ridgefold.errors import ConditionWarning, NumericalError, SingularSystemWarning
from ridgefold.linalg.namespace import Array, Namespace

# A pivot this many eps below the largest diagonal entry is rounding error.
_PIVOT_FLOOR = 10.0
# Fewer expected digits than this are worth a warning.
_DIGITS_WORTH_HAVING = 3
_POWER_STEPS = 12
_STEP = 512


class Factor(ABC):
    """A factorised symmetric matrix: solve as often as you like."""

    namespace: Namespace

    @abstractmethod
    def solve(self, b: Array) -> Array:
        """A⁻¹b (the solution of least norm if A is singular); `b` is a vector or a matrix."""

    @abstractmethod
    def condition(self) -> float:
        """Estimated 2-norm condition number; infinite for a singular matrix."""

    @abstractmethod
    def warn_if_ill_conditioned(self, what: str) -> None:
        """Warn when the condition number leaves too few digits."""


def expected_digits(condition: float, eps: float) -> int:
    """Decimal digits a solution can be trusted to at a condition number."""
    if not math.isfinite(condition):
        return 0
    return max(0, math.floor(-math.log10(eps * max(condition, 1.0))))


def _multiply_by_factor(namespace: Namespace, lower: Array, v: Array) -> Array:
    """L Lᵀ v, a block of rows at a time: the upper triangle of the storage is not zero."""
    n, out = lower.shape[0], namespace.zeros(v.shape, v)
    blocks = [(start, min(start + _STEP, n)) for start in range(0, n, _STEP)]
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

    def cheap_condition(self) -> float:
        """Ratio of extreme pivots times n: an estimate that costs n operations."""
        pivots = self.namespace.diagonal(self.lower)
        xp = self.namespace.xp
        ratio = float(xp.max(pivots)) / float(xp.min(pivots))
        return float(pivots.shape[0] * ratio * ratio)

    def condition(self) -> float:
        """Extreme eigenvalues of L Lᵀ by a few power steps with L and with L⁻¹."""
        return self._extreme_eigenvalue(inverse=False) * self._extreme_eigenvalue(inverse=True)

    def _extreme_eigenvalue(self, *, inverse: bool) -> float:
        n, namespace = self.lower.shape[0], self.namespace
        vector = namespace.asarray([1.0 + ((7 * i) % 11) / 11 for i in range(n)], self.lower)
        vector = vector[:, None] / namespace.norm(vector)
        value = 0.0
        for _ in range(_POWER_STEPS):
            if inverse:
                vector = namespace.solve_cholesky(self.lower, vector)
            else:
                vector = _multiply_by_factor(namespace, self.lower, vector)
            value = namespace.norm(vector)
            if not 0.0 < value < math.inf:
                return math.inf
            vector = vector / value
        return value

    def warn_if_ill_conditioned(self, what: str) -> None:
        eps = self.namespace.eps(self.lower)
        if expected_digits(self.cheap_condition(), eps) >= _DIGITS_WORTH_HAVING:
            return
        condition = self.condition()
        digits = expected_digits(condition, eps)
        if digits < _DIGITS_WORTH_HAVING:
            warnings.warn(
                f"{what} is ill-conditioned (condition number about {condition:.1e}): "
                f"expect about {digits} correct digits in the coefficients. "
                "A larger alpha, or float64 instead of float32, gives more.",
                ConditionWarning,
                stacklevel=2,
            )


@dataclass(frozen=True)
class SpectralFactor(Factor):
    """Eigenvalues and eigenvectors; eigenvalues that are rounding error count as zero."""

    namespace: Namespace
    values: Array
    vectors: Array

    @property
    def largest(self) -> float:
        return float(self.namespace.xp.max(self.namespace.xp.abs(self.values)))

    def inverse_values(self) -> Array:
        xp = self.namespace.xp
        cut = self.values.shape[0] * self.namespace.eps(self.values) * self.largest
        kept = xp.abs(self.values) > cut
        return xp.where(kept, 1.0 / xp.where(kept, self.values, xp.ones_like(self.values)), 0.0)

    def solve(self, b: Array) -> Array:
        columns = b[:, None] if b.ndim == 1 else b
        solution = self.vectors @ (self.inverse_values()[:, None] * (self.vectors.T @ columns))
        return solution[:, 0] if b.ndim == 1 else solution

    def condition(self) -> float:
        smallest = float(self.namespace.xp.min(self.namespace.xp.abs(self.values)))
        return self.largest / smallest if smallest > 0.0 else math.inf

    def warn_if_ill_conditioned(self, what: str) -> None:
        eps, condition = self.namespace.eps(self.values), self.condition()
        digits = expected_digits(condition, eps)
        lowest = float(self.namespace.xp.min(self.values))
        if lowest < -1e3 * eps * self.largest:
            nature = f"not positive definite (smallest eigenvalue {lowest:.1e})"
        elif digits < _DIGITS_WORTH_HAVING:
            nature = "singular to working precision"
        else:
            return
        warnings.warn(
            f"{what} is {nature}; condition number {condition:.1e}. The solution of least norm "
            f"is used: expect about {digits} correct digits in the coefficients. A larger alpha, "
            "or dropping repeated rows, makes the solution unique.",
            SingularSystemWarning,
            stacklevel=2,
        )


def factorise(
    namespace: Namespace, matrix: Array, refill: Callable[[Array], object]
) -> CholeskyFactor | SpectralFactor:
    """Factorise a symmetric matrix (lower triangle) in its own storage.

    Parameters
    ----------
    matrix : array of shape (n, n)
        Overwritten.
    refill : callable
        Writes the matrix into the storage again: the fallback needs it once more, and
        keeping a copy for a rare event would double the memory of every fit.
    """
    largest = float(namespace.xp.max(namespace.diagonal(matrix)))
    if not math.isfinite(largest):
        raise NumericalError(
            f"the kernel matrix has a diagonal entry {largest}: its values overflow; "
            "scale the columns of X, or lower the degree or gamma of the kernel"
        )
    if namespace.cholesky_in_place(matrix):
        pivots = namespace.diagonal(matrix)
        smallest = float(namespace.xp.min(pivots)) ** 2
        if smallest > _PIVOT_FLOOR * namespace.eps(matrix) * largest:
            return CholeskyFactor(namespace, matrix)
    refill(matrix)
    return factorise_spectrally(namespace, matrix)


def factorise_spectrally(namespace: Namespace, matrix: Array) -> SpectralFactor:
    """Eigendecomposition of a symmetric matrix (lower triangle), in its own storage."""
    # LAPACK may loop for ever on NaN or infinity.
    if not namespace.all_finite(namespace.xp.tril(matrix)):
        raise NumericalError(
            "the kernel matrix holds NaN or infinite entries: its values overflow; "
            "scale the columns of X, or lower the degree or gamma of the kernel"
        )
    values, vectors = namespace.eigh_in_place(matrix)
    return SpectralFactor(namespace, values, vectors)

"""Ridge systems for comparisons: one after another, to four digits and no more.

The inverse of the Cholesky factor is built by halves straight from the matrix
(`triangle_inverse.inverse_of_factor_in_place`), in calls of BLAS that are prepared once, and in
single precision where that will do. That takes 0.4 times as long as a factor and its inverse in
double precision, and 0.7 times in double; but the inverse of one half is used to find the other,
which loses digits: about √(λ₁/α) times rounding. Models are fitted by stable factorisations.

With tr K/α, which is no less than λ₁/α, up to 10⁴ mean squares of leave-one-out residuals are right
to 10⁻⁴ in single precision, and up to 10¹¹ in double. The distances behind a matrix in single
precision are computed in double and then rounded: their errors would count ten times as much as
those of the factorisation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import blas

from ridgefold.linalg.blas_pointers import RecordedCalls, pointers_for
from ridgefold.linalg.leave_one_out import LeaveOneOut
from ridgefold.linalg.namespace import Array, Namespace
from ridgefold.linalg.triangle_inverse import inverse_of_factor_in_place, squares_of_columns
from ridgefold.linalg.unpenalised import Unpenalised, leverages, without_penalty

_FOR_RESIDUALS = {np.float32: 1e4, np.float64: 1e11}
"""The largest tr K/α, by precision, at which mean squares of residuals are right to four digits."""
_FOR_SOLUTIONS = {np.float32: 3e6, np.float64: 1e11}
"""The largest tr K/α, by precision, at which coefficients are right to five percent."""
_SMALLEST_TRACE, _LARGEST_TRACE = 1e-30, 1e30
"""Matrices with a trace outside these limits underflow or overflow in single precision."""
_FEWEST_ROWS = 16
"""Smaller systems are left to the stable routines: there is next to nothing to save."""
_LARGE, _FEW_COLUMNS = 512, 4
"""From so many rows on, and up to so many columns, triangles are multiplied with one vector after
the other, which takes a fifth to a half of the time of products with all of them."""

Write = Callable[[np.ndarray], object]
"""Writes the lower triangle of K̃ into the array it is given, rounded if need be."""


class QuickSolver:
    """(K̃ + αI)ã + Sβ = ỹ with NumPy, for one K̃ and α after another.

    Methods give None where digits would be too few, or K̃ + αI is not positive definite.

    Parameters
    ----------
    targets : array of shape (n, t)
        ỹ.
    space : Unpenalised, optional
        That of the unpenalised columns S, if there are any.
    roots : array of shape (n,), optional
        √w.
    """

    def __init__(
        self, targets: np.ndarray, space: Unpenalised | None, roots: np.ndarray | None
    ) -> None:
        self._given = targets, space, roots
        self._systems: dict[Any, _System] = {}

    @staticmethod
    def of(
        namespace: Namespace, targets: Array, space: Unpenalised | None, roots: Array | None
    ) -> QuickSolver | None:
        """One for these rows; None if they are few, or of another library than NumPy.

        Nor if one of them has nearly all of an unpenalised column, as of the weight beside a bias:
        its residual is then a ratio of differences.
        """
        if namespace.name != "numpy" or len(targets) < _FEWEST_ROWS:
            return None
        if space is not None and leverages(namespace, space).max() > 1.0 - _LEAST_SHARE:
            return None
        if any(pointers_for(np.dtype(kind)) is None for kind in _FOR_RESIDUALS):
            return None
        return QuickSolver(targets, space, roots)

    def leave_one_out(self, write: Write, trace: float, alpha: float) -> LeaveOneOut | None:
        """The solution with its leave-one-out residuals; `trace` is that of K̃."""
        system = self._system(trace, alpha, _FOR_RESIDUALS)
        return None if system is None else system.leave_one_out(write, alpha)

    def solve(self, write: Write, trace: float, alpha: float) -> tuple[Array, Array] | None:
        """The solution alone, ã and β, roughly."""
        system = self._system(trace, alpha, _FOR_SOLUTIONS)
        return None if system is None else system.solve(write, alpha)

    def _system(self, trace: float, alpha: float, limits: dict[Any, float]) -> _System | None:
        """In the lowest precision that will do."""
        if not _SMALLEST_TRACE < trace < _LARGEST_TRACE:
            return None
        for kind, largest in limits.items():
            if trace <= largest * alpha:
                if np.dtype(kind).itemsize > self._given[0].itemsize:
                    return None
                if kind not in self._systems:
                    self._systems[kind] = _System(kind, *self._given)
                return self._systems[kind]
        return None


_LEAST_SHARE = 1e-2
"""Digits of a row are lost by the share of an unpenalised column (of all weight, beside a bias)
that the others have: in single precision two of seven, which leaves more than four."""

_MASK_STEP = 512
"""Masks are made for sizes rounded up to a multiple of this, so that cells of like sizes share one
that is kept."""


def _above_the_diagonal(n: int) -> np.ndarray:
    return _above(-(-n // _MASK_STEP) * _MASK_STEP)[:n, :n]


@functools.lru_cache(maxsize=4)
def _above(n: int) -> np.ndarray:
    """True above the diagonal; the mask of a smaller matrix is a corner of this one."""
    return ~np.tri(n, dtype=bool)


class _System:
    """Storage and calls of one precision."""

    def __init__(
        self,
        kind: Any,
        targets: np.ndarray,
        space: Unpenalised | None,
        roots: np.ndarray | None,
    ) -> None:
        pointers = pointers_for(np.dtype(kind))
        assert pointers is not None
        self._pointers, self._roots, self._dtype = pointers, roots, targets.dtype
        self._space = space
        self._offset: np.ndarray | None = None
        right = np.asarray(targets, dtype=np.float64)
        if space is not None:  # what the columns take up needs no digits: they are for the rest
            self._offset = space.basis.T @ right
            right = right - space.basis @ self._offset
        largest = float(np.max(np.abs(right), initial=0.0))
        self._scale = largest if 0.0 < largest < np.inf else 1.0
        parts = [right / self._scale]
        self._basis = None
        if space is not None:
            self._basis = space.basis.astype(kind)
            parts.append(self._basis)
        self._right = np.asfortranarray(np.concatenate(parts, axis=1), dtype=kind)
        self._storage = np.zeros((len(targets), len(targets)), dtype=kind)
        self._inversion: RecordedCalls | None = None
        prefix = "s" if kind is np.float32 else "d"
        self._divide = getattr(blas, prefix + "trsm")
        self._multiply = getattr(blas, prefix + "trmv")

    def leave_one_out(self, write: Write, alpha: float) -> LeaveOneOut | None:
        storage = self._storage
        if self._inversion is None:
            self._inversion = self._pointers.recorder()
            inverse_of_factor_in_place(storage, self._inversion)
        self._fill(write, alpha)
        if not self._inversion.play():
            return None
        solved, diagonal = self._of_inverse(storage)
        coefficients, coordinates = solved, None
        if self._basis is not None:
            coefficients, coordinates, remaining = without_penalty(
                np, solved, self._basis, diagonal
            )
            assert remaining is not None
            diagonal = remaining
        residuals = self._scale * (coefficients / diagonal[:, None]).astype(np.float64)
        if self._roots is not None:
            residuals /= self._roots[:, None]
        if not np.all(np.isfinite(residuals)):
            return None
        given = self._as_given(coefficients, coordinates)
        return LeaveOneOut(*given, residuals.astype(self._dtype))

    def _of_inverse(self, lower: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """H times what is on the right, and the diagonal of H = L⁻ᵀL⁻¹, with L⁻¹ at hand."""
        right = self._right
        if len(lower) < _LARGE or right.shape[1] > _FEW_COLUMNS:
            np.copyto(lower, 0.0, where=_above_the_diagonal(len(lower)))
            return lower.T @ (lower @ right), np.einsum("ij,ij->j", lower, lower)
        # BLAS sees the transpose.
        columns = (self._multiply(lower.T, column, trans=1) for column in right.T)
        solved = np.stack([self._multiply(lower.T, column) for column in columns], axis=1)
        return solved, squares_of_columns(lower)

    def solve(self, write: Write, alpha: float) -> tuple[np.ndarray, np.ndarray] | None:
        self._fill(write, alpha)
        if not self._pointers.cholesky(self._storage):
            return None
        solved = self._right
        for transposed in (1, 0):
            solved = self._divide(1.0, self._storage.T, solved, trans_a=transposed)
        coefficients, coordinates = solved, None
        if self._basis is not None:
            coefficients, coordinates, _ = without_penalty(np, solved, self._basis)
        if not np.all(np.isfinite(coefficients)):
            return None
        return self._as_given(coefficients, coordinates)

    def _fill(self, write: Write, alpha: float) -> None:
        write(self._storage)
        np.einsum("ii->i", self._storage)[...] += self._storage.dtype.type(alpha)

    def _as_given(
        self, coefficients: np.ndarray, coordinates: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """ã and β in the units and the type of the targets."""
        given = (self._scale * coefficients.astype(np.float64)).astype(self._dtype)
        if self._space is None or self._offset is None or coordinates is None:
            return given, np.zeros((0, given.shape[1]), dtype=self._dtype)
        whole = self._offset + self._scale * coordinates.astype(np.float64)
        return given, self._space.coefficients(whole).astype(self._dtype)

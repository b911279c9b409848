"""A symmetric matrix as a band, and the shifted systems of that band.

A = Q B Qᵀ with B of bandwidth b, by blocked Householder reflections: each takes b columns
below the band to a triangle. Unlike a reduction to tridiagonal form, half of which is
matrix-vector products, almost all of its 4/3·n³ operations are matrix products. Q stays as
reflectors in the storage of A. Then (A + αI)⁻¹y = Q(B + αI)⁻¹Qᵀy takes n·b² operations for
every α.

Dongarra, Hammarling, Sorensen 1989; Bischof, Lang, Sun 2000 (the SBR toolbox, first stage).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from scipy.linalg import blas, lapack

from ridgefold.linalg.householder import (
    Reflector,
    reflect_panel_in_place,
    unit_lower,
)
from ridgefold.linalg.namespace import Array, Namespace
from ridgefold.linalg.symmetric import DIGITS_WORTH_HAVING, POWER_STEPS, expected_digits

BANDWIDTH = 96
"""Wide enough that the reduction runs at the speed of matrix products, and narrow enough that the
n·b² operations of every α stay small beside it."""
NARROW_BANDWIDTH = 48
"""The bandwidth for use with `divide_rows`, whose work for every α grows with the bandwidth."""
_ROUNDING = 10.0
"""Pivots below this many eps of the largest diagonal entry are rounding error. That entry is close
to the largest eigenvalue, so the level is lower than that of a dense factor."""


def bandwidth_for(n: int, most: int = BANDWIDTH) -> int:
    """The bandwidth for a matrix of n rows: at most an eighth of it, so that there is a band."""
    return max(1, min(most, n // 8))


@dataclass(frozen=True)
class BandReduction:
    """A = Q B Qᵀ."""

    namespace: Namespace
    band: np.ndarray
    """B by columns: band[j, d] = B[j + d, j], shape (n, b + 1); always NumPy."""
    storage: Array
    """What held A: V of every reflector stands below the band."""
    triangles: tuple[Array, ...]
    """T of every reflector."""

    @property
    def bandwidth(self) -> int:
        return int(self.band.shape[1]) - 1

    def _reflector(self, index: int) -> Reflector:
        b, t = self.bandwidth, self.triangles[index]
        start = index * b
        panel = self.storage[start + b :, start : start + t.shape[0]]
        return Reflector(self.namespace, unit_lower(self.namespace, panel), t)

    def to_band(self, x: Array) -> Array:
        """Qᵀx."""
        out = self.namespace.copy(x)
        for index in range(len(self.triangles)):
            rows = out[(index + 1) * self.bandwidth :, :]
            self._reflector(index).apply_in_place(rows, transposed=True)
        return out

    def from_band(self, x: Array) -> Array:
        """Q x."""
        out = self.namespace.copy(x)
        for index in reversed(range(len(self.triangles))):
            self._reflector(index).apply_in_place(out[(index + 1) * self.bandwidth :, :])
        return out

    def basis_in_place(self) -> Array:
        """Q as a matrix, in the storage of the reflectors, which are lost.

        Reflectors are applied to the identity from the last to the first. H of the panel at
        column j touches rows and columns from j + b only, to the right of its own V.
        """
        b, q = self.bandwidth, self.storage
        last = len(self.triangles) * b
        q[last:, last:] = 0.0
        self.namespace.add_to_diagonal_in_place(q[last:, last:], 1.0)
        for index in reversed(range(len(self.triangles))):
            start = (index + 1) * b
            reflector = self._reflector(index)
            reflector.apply_in_place(q[start:, start:])
            # The next reflector starts b rows further up, on the identity.
            up = start - b
            q[up:start, up:] = 0.0
            q[start:, up:start] = 0.0
            self.namespace.add_to_diagonal_in_place(q[up:start, up:start], 1.0)
        return q


def reduce_to_band(namespace: Namespace, lower: Array, bandwidth: int) -> BandReduction:
    """Reduce a symmetric matrix (lower triangle) in its own storage."""
    n, b = lower.shape[0], bandwidth
    triangles = []
    # The last row alone below a panel is in the band already.
    for start in range(0, n - b - 1, b):
        below = start + b
        reflector = reflect_panel_in_place(namespace, lower[below:, start:below])
        reflector.transform_in_place(lower[below:, below:])
        triangles.append(reflector.t)
    return BandReduction(namespace, _band(namespace, lower, b), lower, tuple(triangles))


def _band(namespace: Namespace, lower: Array, b: int) -> np.ndarray:
    """Copy the band out of a matrix that holds other things below it."""
    n = lower.shape[0]
    column_panels = []
    for start in range(0, n, b):
        stop, end = min(start + b, n), min(start + 2 * b, n)
        values = namespace.to_numpy(lower[start:end, start:stop])
        columns = np.zeros((2 * b, b), dtype=values.dtype)
        columns[: end - start, : stop - start] = values
        column_panels.append(_along_columns(columns)[: stop - start, :].copy())
    return np.concatenate(column_panels)


def _along_columns(columns: np.ndarray) -> np.ndarray:
    """The view v[c, d] = columns[c + d, c], d ≤ b, of a C-contiguous 2b×b matrix."""
    b, size = columns.shape[1], columns.itemsize
    return as_strided(columns, (b, b + 1), ((b + 1) * size, b * size))


@dataclass(frozen=True)
class BandFactor:
    """B + αI = L Lᵀ with L in the storage scheme of the band."""

    lower: np.ndarray

    def _routine(self, module: Any, name: str) -> Any:
        return getattr(module, {"float32": "s", "float64": "d"}[self.lower.dtype.name] + name)

    def solve(self, y: np.ndarray) -> np.ndarray:
        """(B + αI)⁻¹y for a matrix y."""
        solution, _ = self._routine(lapack, "pbtrs")(self.lower.T, y, lower=1)
        return np.asarray(solution)

    def solve_transposed(self, y: np.ndarray) -> np.ndarray:
        """L⁻ᵀy for a matrix y."""
        solution, _ = self._routine(lapack, "tbtrs")(self.lower.T, y, uplo="L", trans="T")
        return np.asarray(solution)

    def known_condition(self) -> float:
        """The condition number where it may matter; NaN where a cheap look shows it is fine."""
        n, pivots = len(self.lower), self.lower[:, 0]
        eps = float(np.finfo(self.lower.dtype).eps)
        cheap = n**2 * (float(pivots.max()) / float(pivots.min())) ** 2
        if expected_digits(cheap, eps) >= DIGITS_WORTH_HAVING:
            return math.nan
        multiply = self._routine(blas, "tbmv")
        b = self.lower.shape[1] - 1
        vector = 1.0 + (np.arange(n) * 7 % 11) / 11
        large = small = (vector / np.linalg.norm(vector)).astype(self.lower.dtype)
        for _ in range(POWER_STEPS):
            large = large / np.linalg.norm(large)
            large = multiply(
                b, self.lower.T, multiply(b, self.lower.T, large, lower=1, trans=1), lower=1
            )
            small = self.solve((small / np.linalg.norm(small))[:, None])[:, 0]
        return float(np.linalg.norm(large)) * float(np.linalg.norm(small))

    def divide_rows(self, namespace: Namespace, rows: Array) -> Iterator[tuple[slice, Array]]:
        """Z = rows·L⁻ᵀ, b columns at a time: which columns, and what they are.

        With L in blocks of b, L_jj lower and E_j = L_{j,j−1} upper triangular,

            Z_j = (rows_j − Z_{j−1}E_jᵀ)L_jj⁻ᵀ = [Z_{j−1} rows_j][−M_jE_j  M_j]ᵀ,  M_j = L_jj⁻¹.

        A product with the small inverses runs several times as fast as a triangular solve,
        and their condition number is no more than the root of that of B + αI.
        """
        n, b = self.lower.shape[0], self.lower.shape[1] - 1
        pair = namespace.zeros((rows.shape[0], 2 * b), rows)
        for start, step in zip(range(0, n, b), self._steps, strict=True):
            size = step.shape[0]
            pair[:, b : b + size] = rows[:, start : start + size]
            block = pair[:, : b + size] @ namespace.asarray(step, rows).T
            yield slice(start, start + size), block
            pair[:, :size] = block

    @cached_property
    def _steps(self) -> tuple[np.ndarray, ...]:
        """[−M_jE_j  M_j] for every block of b columns."""
        n, b = self.lower.shape[0], self.lower.shape[1] - 1
        invert = self._routine(lapack, "trtri")
        steps = []
        beside = np.zeros((b, b), dtype=self.lower.dtype)
        for start in range(0, n, b):
            columns = self.lower[start : start + b, :]
            size = len(columns)
            # L_jj above E_{j+1}
            block = np.zeros((2 * b, b), dtype=self.lower.dtype)
            _along_columns(block)[:size, :] = columns
            inverse, _ = invert(block[:size, :size], lower=1)
            steps.append(np.concatenate([-(inverse @ beside[:size, :]), inverse], axis=1))
            beside = block[b:, :]
        return tuple(steps)


def factorise_band(band: np.ndarray, alpha: float) -> BandFactor | None:
    """Cholesky factor of B + αI; None if that is singular to working precision."""
    shifted = band.copy()
    shifted[:, 0] += alpha
    largest = float(shifted[:, 0].max())
    prefix = {"float32": "s", "float64": "d"}[band.dtype.name]
    factor, info = getattr(lapack, prefix + "pbtrf")(shifted.T, lower=1, overwrite_ab=1)
    if info != 0:
        return None
    lower = factor.T
    smallest = float(lower[:, 0].min()) ** 2
    if not smallest > _ROUNDING * float(np.finfo(lower.dtype).eps) * largest:
        return None
    return BandFactor(lower)

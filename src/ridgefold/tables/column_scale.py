"""Mean and spread of a column of numbers, block by block, in which a few far values do not count.

Blocks are put together by the formulas of Chan, Golub and LeVeque (1983): with n, m and S the
count, mean and sum of squared deviations of each of two parts, δ = m₂ − m₁,

    m = m₁ + δ·n₂/(n₁ + n₂),    S = S₁ + S₂ + δ²·n₁n₂/(n₁ + n₂).

A value is far if it lies more than 100 standard deviations *of the others* from their mean. One
such value would set the unit of the column: with 1e200 among numbers near 1, all others become
the same. So the least and largest values are held back, at most ten at either end and at most a
twentieth of all; those that are far are left out of mean and spread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_HELD = 10
"""Values held back at either end: more of them are no mistakes, but part of the data."""
_HELD_SHARE = 20
"""One value in so many may be held back at either end, or one of a small table."""
_FAR = 100.0
"""Standard deviations. Chebyshev: in no distribution does one value in 10,000 lie beyond them."""
_FEWEST = 5
"""With fewer values, none can be called far from the others."""
_SAFE = 2.0**300
"""Deviations of this size, in the unit that is used, have squares whose sums stay finite."""


class _Moments:
    """Count, mean and squared deviations, in a unit (a power of two) that lets none overflow."""

    def __init__(self) -> None:
        self.count, self._unit, self._mean, self._squares = 0, 0.0, 0.0, 0.0

    def add(self, values: np.ndarray) -> None:
        if len(values) == 0:
            return
        top = float(np.max(np.abs(values)))
        if top > 0.0 and (self._unit == 0.0 or top / self._unit > _SAFE):
            self._change_unit(float(2.0 ** min(1023, np.frexp(top)[1])))
        scaled = values / (self._unit or 1.0)
        total, mean = self.count + len(scaled), float(scaled.mean())
        change = mean - self._mean
        self._squares += float(np.sum((scaled - mean) ** 2))
        self._squares += change**2 * self.count * len(scaled) / total
        self._mean += change * len(scaled) / total
        self.count = total

    def _change_unit(self, unit: float) -> None:
        ratio = self._unit / unit
        self._mean *= ratio
        self._squares *= ratio**2
        self._unit = unit

    @property
    def mean(self) -> float:
        return self._mean * (self._unit or 1.0)

    def spread(self, more_rows: int = 0) -> float:
        """The standard deviation; `more_rows` stand at the mean."""
        return float(np.sqrt(self._squares / (self.count + more_rows))) * (self._unit or 1.0)


@dataclass(frozen=True)
class ColumnScale:
    """Where the numbers of a column lie, and which of them did not count."""

    mean: float
    spread: float
    """0 if it is rounding error."""
    far: tuple[float, ...]


class ColumnValues:
    """The numbers of a column so far."""

    def __init__(self) -> None:
        self.count = 0
        self._inner = _Moments()
        self._low = self._high = np.empty(0)

    def add(self, values: np.ndarray) -> None:
        """Look at more numbers, none of which is missing."""
        self.count += len(values)
        pool = np.concatenate([self._low, self._high, values])
        if len(pool) > 2 * _HELD:
            pool.partition((_HELD - 1, len(pool) - _HELD))
        self._low, inner, self._high = _ends(pool, _HELD)
        self._inner.add(inner)

    def scale(self, missing_rows: int = 0) -> ColumnScale:
        """Mean and spread; `missing_rows` count as rows that stand at the mean."""
        held = np.sort(np.concatenate([self._low, self._high]))
        at_most = min(_HELD, max(1, self.count // _HELD_SHARE)) if self.count >= _FEWEST else 0
        low, inner, high = _ends(held, at_most)
        self._inner.add(inner)
        ends = np.concatenate([low, high])
        far = self._far(ends)
        self._inner.add(ends[~far])
        self._low, self._high = ends[far], np.empty(0)
        mean = self._inner.mean
        spread = _usable(mean, self._inner.spread(missing_rows))
        return ColumnScale(mean, spread, tuple(ends[far].tolist()))

    def _far(self, values: np.ndarray) -> np.ndarray:
        if self._inner.count == 0:
            return np.zeros(len(values), dtype=bool)
        mean = self._inner.mean
        spread = _usable(mean, self._inner.spread())
        with np.errstate(over="ignore"):
            return (np.abs(values - mean) / _FAR > spread) & (spread > 0.0)


def _ends(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values at either end of partitioned ones, at most so many, and those between them."""
    lower = min(count, len(values))
    upper = max(lower, len(values) - count)
    return values[:lower].copy(), values[lower:upper], values[upper:].copy()


def _usable(mean: float, spread: float) -> float:
    """As scikit-learn does: a spread that is rounding error is none."""
    return spread if spread > 10 * np.finfo(np.float64).eps * abs(mean) else 0.0

"""A cheap look at the data that tells how hard they are."""

from __future__ import annotations

import math

import numpy as np

from ridgefold.kernels import Gram

_FIRST_SAMPLE, _LARGER_SAMPLE = 96, 256
"""Rows of the two samples: their eigenvalues take a millisecond, and ten."""
_FIRST_SHARE, _LARGER_SHARE = 1 / 12, 1 / 6
"""Samples have at most these shares of the rows."""
_NUMERICAL_RANK = 1e-12
"""Eigenvalues below this share of the largest one are rounding."""
_FEWEST_ROWS = 150
"""With fewer rows no method takes so long that a look at the data would pay."""
_PIVOTS, _MOST_PIVOTS, _PIVOTS_A_ROUND = 128, 256, 32
"""Columns of the look at a factor: it takes so many, of many rows more, and notes every 32nd."""
_PIVOTED_SHARE, _MOST_PIVOTED_SHARE = 1 / 16, 1 / 8
"""Of the rows, the columns that are looked at, and of few rows the most."""
_PIVOTED_NUMBERS = 4_000_000
"""The look at pivoted columns keeps no more than this, and is left out where too few fit."""
_FEWEST_PIVOTS = 64
"""Where fewer columns may be kept, the look is left out."""


def probe_spectrum(gram: Gram) -> tuple[float, ...]:
    """The eigenvalues of K as a few rows show them: the largest, falling, and last the smallest.

    A sample of m of n rows has eigenvalues μ. Those that come from rows being alike grow with the
    number of rows, and a floor that comes from every row being like itself does not:

        λ_i ≈ (n/m)(μ_i − μ_m) + floor.

    Rows get closer as they get more, and the floor sinks: it is carried on from two samples to n
    rows by a power law. Where the spectrum of the first sample falls to nothing the second is not
    drawn. Costs m² kernel values and m³ work, one millisecond to ten.
    """
    n = gram.shape[0]
    if n < _FEWEST_ROWS:
        return ()
    first = _of_sample(gram, min(_FIRST_SAMPLE, int(_FIRST_SHARE * n)))
    if first is None or _falls_to_nothing(first):
        return () if first is None else tuple((first * (n / len(first))).tolist())
    larger = _of_sample(gram, min(_LARGER_SAMPLE, int(_LARGER_SHARE * n)))
    if larger is None:
        return ()
    m = len(larger)
    tiny = _NUMERICAL_RANK * larger[0]
    lowest, before = max(larger[-1], tiny), max(first[-1], tiny)
    slope = min(0.0, math.log(lowest / before) / math.log(m / len(first)))
    floor = lowest * (n / m) ** slope
    return tuple(((n / m) * np.maximum(larger - lowest, 0.0) + floor).tolist())


def probe_remainders(gram: Gram, spectrum: tuple[float, ...]) -> tuple[tuple[int, float], ...]:
    """What the first pivoted columns leave of the trace of K, as (columns, trace).

    Unlike a sample, a trace sees every row: few that are far from all others are not missed. Where
    the spectrum falls to nothing it is not looked for.
    """
    n = gram.shape[0]
    if not spectrum:
        return ()
    if _falls_to_nothing(np.asarray(spectrum)):
        return ((len(spectrum), 0.0),)
    if n * _FEWEST_PIVOTS > _PIVOTED_NUMBERS:
        return ()
    most = max(_PIVOTS, int(_PIVOTED_SHARE * n))
    most = min(most, _MOST_PIVOTS, int(_MOST_PIVOTED_SHARE * n), _PIVOTED_NUMBERS // n)
    partial = gram.partial_cholesky()
    seen: list[tuple[int, float]] = []
    while partial.rank < most and partial.trace > partial.rounding:
        if partial.grow(min(_PIVOTS_A_ROUND, most - partial.rank)) == 0:
            break
        seen.append((partial.rank, partial.trace))
    return tuple(seen) if all(math.isfinite(trace) for _, trace in seen) else ()


def _falls_to_nothing(values: np.ndarray) -> bool:
    return bool(values[3 * len(values) // 4] <= _NUMERICAL_RANK * values[0])


def _of_sample(gram: Gram, sample: int) -> np.ndarray | None:
    """Eigenvalues of a principal submatrix, falling; None if it is not finite."""
    rows = np.random.default_rng(0).choice(gram.shape[0], sample, replace=False)
    matrix = gram.namespace.to_numpy(gram.block(rows, rows)).astype(np.float64)
    if not np.all(np.isfinite(matrix)):
        return None
    return np.asarray(np.maximum(np.linalg.eigvalsh(matrix)[::-1], 0.0))

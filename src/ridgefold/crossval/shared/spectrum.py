"""What a look at the spectrum says of methods whose work depends on it."""

from __future__ import annotations

import math

import numpy as np

from ridgefold.records import Problem

_REACHABLE = 0.5
"""Eigenvalues of a sample are too small towards their end."""
_OVERHEAD = 1.2
"""Steps that Lanczos takes in practice, as a multiple of the bound's."""
_PIVOTED_OVERHEAD = 1.5
"""The same behind a preconditioner of pivots, which are not quite the first eigenvectors."""


_TRACES_AN_EIGENVALUE = 15.0
"""What a factor leaves has a trace of at least so many times its largest eigenvalue: measured 12 to
28 with smooth kernels."""
_SEEN_OVERHEAD = 0.75
"""Steps in practice in parts of the bound that follows from a trace, which takes the worst case."""
_LARGEST_OVER_ALPHA, _SINGLE_OVER_ALPHA = 1e6, 2e5
"""The largest λ₁/α at which rounding errors of a matrix of low rank do no harm, in float64 and in
float32. Solved with polynomial and wide RBF kernels: 6e5 and 1e6, but not 1.1e6 and 1e7, and 5e6
only on processors that round products before they add them; in float32 6e4 and 1e5, but not 5e5
and 7e5. Where the spectrum falls slowly, 1e8 is no trouble."""


def pivots_an_eigenvalue(problem: Problem) -> float:
    """Columns of a pivoted Cholesky factor that do what one eigenvector would.

    Measured 1.1 to 1.3 in one dimension, 1.6 to 2.5 in two to six.
    """
    return 1.3 if problem.n_columns == 1 else 2.0


def rank_above(problem: Problem, threshold: float) -> float | None:
    """How many eigenvalues of K exceed a threshold; None if nothing is known of them.

    Beyond what the sample shows, they are taken to go on falling as those of smooth kernels in d
    dimensions do, log λ_i linear in i^(1/d); many dimensions look like four.
    """
    values = np.asarray(problem.spectrum)
    if len(values) == 0:
        return None
    known = int(_REACHABLE * len(values))
    if values[known - 1] <= threshold:
        return float(np.sum(values > threshold))
    slope = _slope(problem, values, known)
    if slope <= 0.0:
        return float(problem.n_rows)
    d = _dimensions(problem)
    root = known ** (1 / d) + math.log(values[known - 1] / threshold) / slope
    return float(min(float(problem.n_rows), root**d))


def _eigenvalue_at(problem: Problem, rank: int) -> float:
    """The eigenvalue of this rank, by the same law where the sample does not show it well."""
    values = np.asarray(problem.spectrum)
    known = max(1, int(_REACHABLE * len(values)))
    if rank <= known:
        return float(values[max(0, rank - 1)])
    d = _dimensions(problem)
    beyond = rank ** (1 / d) - known ** (1 / d)
    carried = float(values[known - 1]) * math.exp(-_slope(problem, values, known) * beyond)
    return max(carried, float(values[-1]))


def traces_beyond(problem: Problem, ranks: np.ndarray) -> np.ndarray | None:
    """The trace that pivoted factors of so many columns will leave; None if nothing is known.

    Its logarithm falls about linearly with √columns: on four data sets and widths from a quarter to
    twice the median the slope from 100 to 800 columns changes by a third at most, mostly upwards.
    """
    if not problem.remainders:
        return None
    last, trace = problem.remainders[-1]
    if trace == 0.0:
        return np.where(ranks >= last, 0.0, problem.n_rows)
    first, before = problem.remainders[(len(problem.remainders) - 1) // 2]
    slope = math.log(before / trace) / (math.sqrt(last) - math.sqrt(first)) if last > first else 0.0
    return np.asarray(trace * np.exp(-slope * (np.sqrt(ranks) - math.sqrt(last))))


def _dimensions(problem: Problem) -> int:
    return min(max(problem.n_columns, 1), 4)


def _slope(problem: Problem, values: np.ndarray, known: int) -> float:
    """How fast −log λ_i rises with i^(1/d), over the last half of what is known well."""
    d, start = _dimensions(problem), known // 2
    fall = math.log(max(values[start], 1e-300) / max(values[known - 1], 1e-300))
    return float(fall / (known ** (1 / d) - start ** (1 / d)))


def lanczos_steps(problem: Problem, alpha: float, tolerance: float) -> float | None:
    """Steps until (K + αI)x = b is solved to a relative tolerance; None if nothing is known.

    r steps take care of the r largest eigenvalues, and the condition number of the rest bounds
    what the others need; r is chosen best among those that the sample shows well.
    """
    values = np.asarray(problem.spectrum)
    if len(values) == 0:
        return None
    known = max(1, int(_REACHABLE * len(values)))
    rest = np.append(values[1 : known + 1], values[-1])[:known]
    condition = (rest + alpha) / (values[-1] + alpha)
    needed = np.arange(1, known + 1) + 0.5 * np.sqrt(condition) * math.log(2.0 / tolerance)
    steps = _OVERHEAD * float(needed.min())
    ranks = np.unique(np.geomspace(16, max(32, problem.n_rows // 2), 40).astype(int))
    traces = traces_beyond(problem, ranks)
    if traces is not None:
        # A sample may miss what a factor of all rows sees.
        taken = ranks / pivots_an_eigenvalue(problem)
        largest = np.minimum(traces / _traces_an_eigenvalue(values, taken, known), values[0])
        rest = 1.0 + largest / (values[-1] + alpha)
        seen = taken + 0.5 * np.sqrt(rest) * math.log(2.0 / tolerance)
        steps = max(steps, _SEEN_OVERHEAD * float(seen.min()))
    return min(float(problem.n_rows), steps)


def _traces_an_eigenvalue(values: np.ndarray, ranks: np.ndarray, known: int) -> np.ndarray:
    """The trace beyond these ranks as a multiple of the eigenvalue there.

    Where many eigenvalues are about the same (rough kernels, many columns) it is larger than
    elsewhere; a sample tells half of it.
    """
    places = np.minimum(ranks.astype(int), known - 1)
    tails = np.cumsum(values[::-1])[::-1]
    multiples = tails[places] / np.maximum(values[places], 1e-300)
    return np.asarray(np.maximum(_TRACES_AN_EIGENVALUE, 0.5 * multiples))


def lost_in_rounding(problem: Problem) -> bool:
    """Whether K is of low rank, and what rounding leaves beyond it too much for the smallest α.

    A search that drops ridge values asks for fewer digits.
    """
    if not problem.spectrum or problem.judged:
        return False
    single = problem.itemsize == 4
    largest, least = problem.spectrum[0], problem.spectrum[-1]
    low_rank = least <= float(np.finfo(np.float32 if single else np.float64).eps) * largest
    limit = _SINGLE_OVER_ALPHA if single else _LARGEST_OVER_ALPHA
    return low_rank and largest > limit * problem.smallest_alpha


def preconditioned_steps(
    problem: Problem, rank: int, alpha: float, tolerance: float
) -> float | None:
    """Steps of conjugate gradients behind a pivoted factor of so many columns.

    What the factor leaves is taken to have eigenvalues up to λ_r, so that with
    κ = (λ_r + α)/(λ_n + α) the error falls by (√κ + 1)/(√κ − 1) in every step.
    """
    if len(problem.spectrum) == 0:
        return None
    rest = _eigenvalue_at(problem, rank)
    root = math.sqrt((rest + alpha) / (problem.spectrum[-1] + alpha))
    if root <= 1.0 + tolerance:
        return 1.0
    fall = math.log((root + 1.0) / (root - 1.0))
    return min(float(problem.n_rows), 1.0 + _PIVOTED_OVERHEAD * math.log(2.0 / tolerance) / fall)

"""What a look at the spectrum says of methods whose work depends on it."""

from __future__ import annotations

import math

import numpy as np

from ridgefold.records import Problem

_REACHABLE = 0.5
"""Eigenvalues of a sample are too small towards their end."""
_OVERHEAD = 1.2
"""Steps that Lanczos takes in practice, as a multiple of the bound's."""


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
    start = known // 2
    fall = math.log(max(values[start], 1e-300) / max(values[known - 1], 1e-300))
    if fall <= 0.0:
        return float(problem.n_rows)
    d = min(max(problem.n_columns, 1), 4)
    left = math.log(values[known - 1] / threshold)
    root = known ** (1 / d) + left * (known ** (1 / d) - start ** (1 / d)) / fall
    return float(min(float(problem.n_rows), root**d))


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
    return min(float(problem.n_rows), _OVERHEAD * float(needed.min()))


def preconditioned_steps(
    problem: Problem, rank: int, alpha: float, tolerance: float
) -> float | None:
    """Steps of conjugate gradients once the `rank` largest eigenvalues have been taken care of."""
    values = np.asarray(problem.spectrum)
    if len(values) == 0:
        return None
    known = max(1, int(_REACHABLE * len(values)))
    rest = float(values[min(rank, known) - 1]) if rank > 0 else float(values[0])
    condition = (rest + alpha) / (float(values[-1]) + alpha)
    needed = _OVERHEAD * 0.5 * math.sqrt(condition) * math.log(2.0 / tolerance)
    return min(float(problem.n_rows), needed)

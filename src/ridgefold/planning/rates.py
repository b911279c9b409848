"""How fast a machine does each kind of work."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from ridgefold.records import Cost, Problem

Points = tuple[tuple[float, float], ...]
"""(size of the matrices, operations a second), sizes rising."""


@dataclass(frozen=True)
class Rates:
    """Operations a second by kind of work, at a few sizes of matrices."""

    by_kind: Mapping[str, Points]

    def at(self, kind: str, size: float) -> float:
        """The rate at a size: between measured sizes on a line in logarithms, constant beyond."""
        points = self.by_kind[kind]
        for (low, slow), (high, fast) in pairwise(points):
            if size < high:
                share = max(0.0, math.log(max(size, 1.0) / low) / math.log(high / low))
                return float(slow * (fast / slow) ** share)
        return points[-1][1]


DEFAULT_RATES = Rates(
    {
        "product": ((200, 3.0e10), (1200, 5.0e10)),
        "cholesky": ((200, 8.0e9), (1200, 3.0e10)),
        "inverse": ((200, 1.0e10), (1200, 3.5e10)),
        "eigendecomposition": ((200, 1.6e10), (1200, 5.0e10)),
        "band_reduction": ((200, 8.0e9), (1200, 3.0e10)),
        "band_cholesky": ((200, 5.0e9), (1200, 8.0e9)),
        "exp": ((200, 1.6e8), (1200, 2.2e8)),
        "manhattan": ((200, 4.0e8), (1200, 5.0e8)),
        "memory": ((200, 2.0e10), (1200, 1.0e10)),
        "calls": ((200, 1.0e4),),
    }
)
"""One ordinary core with OpenBLAS: for choosing, their ratios matter more than their size."""

_SINGLE_PRECISION = 0.55
"""Time of float32 work as a share of that of float64 work."""


def seconds(cost: Cost, problem: Problem, rates: Rates = DEFAULT_RATES) -> float:
    """Predicted time of a cost."""
    total = 0.0
    for kind, work in cost.flops.items():
        if kind == "kernel":
            total += work * _seconds_of_one_value(problem, rates, cost.size)
        else:
            total += work / rates.at(kind, cost.size)
    return total if problem.itemsize > 4 else _SINGLE_PRECISION * total


def _seconds_of_one_value(problem: Problem, rates: Rates, size: float) -> float:
    """Time of one kernel value, in a block of many."""
    columns = max(problem.n_columns, 1)
    inner_product = 2.0 * columns / rates.at("product", size)
    transcendental = 1.0 / rates.at("exp", size)
    by_kernel = {
        "euclidean": inner_product + transcendental,
        "manhattan": columns / rates.at("manhattan", size) + transcendental,
        "dot": inner_product + 0.3 * transcendental,
        "given": 2.0 * problem.itemsize / rates.at("memory", size),
    }
    return by_kernel.get(problem.kernel, 4.0 * (inner_product + transcendental))

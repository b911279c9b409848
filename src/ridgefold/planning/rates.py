"""How fast a machine, or a device in it, does each kind of work."""

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
    """Operations a second by kind of work, at a few sizes of matrices, in float64."""

    by_kind: Mapping[str, Points]
    single_precision: float = 0.55
    """Time of float32 work as a share of that of float64 work."""

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
        "cholesky": ((200, 8.0e9), (1200, 3.0e10), (2400, 4.0e10)),
        "inverse": ((200, 1.0e10), (1200, 3.5e10), (2400, 4.7e10)),
        "eigendecomposition": ((200, 1.6e10), (1200, 5.0e10), (2400, 5.5e10)),
        "band_reduction": ((200, 8.0e9), (1200, 3.0e10), (2400, 3.5e10)),
        "band_cholesky": ((200, 5.0e9), (1200, 8.0e9)),
        "exp": ((200, 1.6e8), (1200, 2.2e8)),
        "manhattan": ((200, 4.0e8), (1200, 5.0e8)),
        "memory": ((200, 2.0e10), (1200, 1.0e10)),
        "calls": ((200, 1.0e4),),
    }
)
"""One ordinary core with OpenBLAS: for choosing, their ratios matter more than their size."""

H200_RATES = Rates(
    {
        "product": ((1000, 3.1e13), (4000, 5.7e13), (10_000, 6.1e13)),
        "cholesky": ((1000, 6.9e11), (4000, 6.6e12), (10_000, 2.0e13), (20_000, 2.9e13)),
        "inverse": ((1000, 5.0e11), (4000, 6.0e12), (10_000, 1.1e13), (20_000, 1.45e13)),
        "eigendecomposition": ((1000, 8.1e11), (4000, 5.6e12), (10_000, 9.8e12), (20_000, 1.25e13)),
        "band_reduction": ((1000, 4.3e10), (4000, 2.9e11), (10_000, 7.6e11)),
        "band_cholesky": ((1000, 8.8e9), (10_000, 6.7e9)),
        "exp": ((1000, 7.7e9), (4000, 5.9e10), (10_000, 8.6e10)),
        "manhattan": ((1000, 6.5e9), (10_000, 6.1e9)),
        "memory": ((1000, 2.6e11), (4000, 2.1e12), (10_000, 3.65e12), (20_000, 3.8e12)),
        "calls": ((50, 1.9e3),),
    },
    single_precision=1.2,
)
"""One NVIDIA H200, float64, for devices that have not been measured.

Up to 10,000 rows as `calibrate` measured it. At 20,000 an eigendecomposition takes as long as 22
products, a Cholesky factorisation as 0.35 and an inverse, that factorisation included, as 1.75; a
pass over a matrix of 53,500 rows takes 6 ms. On a processor an eigendecomposition takes about five
products: where products are this cheap, methods that do more of them and no eigendecomposition win.
"""


def seconds(cost: Cost, problem: Problem, rates: Rates = DEFAULT_RATES) -> float:
    """Predicted time of a cost."""
    total = 0.0
    for kind, work in cost.flops.items():
        if kind == "kernel":
            total += work * _seconds_of_one_value(problem, rates, cost.size)
        else:
            total += work / rates.at(kind, cost.size)
    return total if problem.itemsize > 4 else rates.single_precision * total


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

"""How fast a machine does each kind of work."""

from __future__ import annotations

from collections.abc import Mapping

from ridgefold.records import Cost

DEFAULT_RATES: Mapping[str, float] = {
    "product": 5e10,
    "cholesky": 3.5e10,
    "inverse": 5e10,
    "eigendecomposition": 5.5e10,
    "band_reduction": 3.1e10,
    "band_cholesky": 8e9,
    "kernel": 3e9,
    "memory": 6e9,
}
"""Operations a second of one ordinary core; only their ratios decide a choice."""


def seconds(cost: Cost, rates: Mapping[str, float] = DEFAULT_RATES) -> float:
    return sum(work / rates[kind] for kind, work in cost.flops.items())

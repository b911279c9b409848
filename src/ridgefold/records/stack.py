"""Who is in a stack of kernels, and with what weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.records.kinds import Limit


@dataclass(frozen=True)
class StackMember:
    """One kernel that a stack was made from."""

    kernel: Any
    family: str
    origin: str
    """Where its scales come from: "grid" (of widths), or what `MetricCandidate.origin` says."""
    alpha: np.ndarray
    """Its ridge for every target, shape (t,)."""
    weight: np.ndarray
    """What its predictions are multiplied by for every target, shape (t,)."""
    held_out_error: Limit
    """Mean squared held-out error of the member alone (for classes, of its decision values as
    predictions of −1 and 1)."""


@dataclass(frozen=True)
class Stack:
    """A weighted sum of kernel models, f(x) = Σ_m w_m f_m(x) + b."""

    members: tuple[StackMember, ...]
    """Those with a weight, the heaviest first; if none has any, the best by itself."""
    left_out: tuple[StackMember, ...]
    """Those that were tried and have no weight."""
    offset: np.ndarray
    """b for every target, shape (t,)."""
    log_odds: bool
    """True if the sum is a log-odds, as it is for classes."""

"""What a method costs, from shapes alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Floating-point operations by kind of work, and the bytes alive at the worst moment."""

    flops: Mapping[str, float]
    """Kinds: product, cholesky, eigendecomposition, kernel (evaluations), memory (bytes moved)."""
    peak_bytes: float

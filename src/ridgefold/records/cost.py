"""What a method costs, from shapes alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ridgefold.records.kinds import Amount


@dataclass(frozen=True)
class Cost:
    """Work by kind, and the bytes alive at the worst moment."""

    flops: Mapping[str, Amount]
    """Floating-point operations of kind product, cholesky, inverse, eigendecomposition (9n³ is
    one), band_reduction, band_cholesky; besides, kernel (values of the kernel), memory (bytes
    moved) and calls (steps that cost time however small they are)."""
    peak_bytes: Amount
    size: Amount = 1000.0
    """Rows of the matrices that most of the work is done on: small ones are slower."""

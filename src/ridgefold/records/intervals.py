"""What prediction intervals are made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from ridgefold.records.kinds import OneOf
from ridgefold.records.model import FittedModel


@dataclass(frozen=True)
class Intervals:
    """Models without some of the rows, and how far off they were at those rows."""

    method: Annotated[str, OneOf(("cv+", "jackknife+"))]
    """"cv+": `model` has one function for each fold and target, fold by fold. "jackknife+": one
    for each row, the change of f(x) with that row's target."""
    model: FittedModel = field(repr=False)
    residuals: Any = field(repr=False)
    """Residuals y − ŷ by the model that did not see the row, shape (m, n_targets)."""
    groups: Any = field(repr=False)
    """For each residual, the fold (or the row) that was left out, shape (m,)."""
    widening: np.ndarray | None = None
    """A factor for the residuals of every target, where the kernel was learned from these very
    rows and residuals are too small for that; None for no factor."""

    @property
    def kept_numbers(self) -> int:
        """How many numbers are kept for intervals alone."""
        return int(self.model.dual_coef.shape[0]) * int(self.model.dual_coef.shape[1])

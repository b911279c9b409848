"""How predictions move with a column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class EffectCurve:
    """The mean prediction of some rows with one value of a column in all of them, value by value.

    (The partial dependence of Friedman 2001.) Where columns go together, some of these rows are
    like none that was seen.
    """

    name: str
    positions: np.ndarray
    """The values, in the units of the column; of categories 0, 1, 2, …"""
    levels: tuple[str, ...] | None
    """The names of the categories; None for numbers."""
    means: np.ndarray
    """The mean prediction, of classifiers that of the probability (or the decision value)."""
    standard_errors: np.ndarray | None
    """What the means are uncertain by, from the models without a fold each (delete-a-group
    jackknife); None where there are no such models."""
    quantity: str
    """What the means are of, in words."""

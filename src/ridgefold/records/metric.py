"""What was learned about the metric and the shape of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ridgefold.records.kinds import Count, Limit, Positive


@dataclass(frozen=True)
class LearningStep:
    """One step of a descent in length scales and alpha."""

    family: str
    rows: Count
    error: Limit
    """Held-out error inside the criterion."""
    outside_error: Limit
    """Error on rows outside the criterion."""
    seconds: Limit = field(compare=False)
    """After how many seconds of learning."""


@dataclass(frozen=True)
class LearnedMetric:
    """A kernel with learned length scales, and how they were found."""

    kernel: Any
    """The kernel on rows as they were given: a kernel of distances, within `Warped` if columns were
    transformed, within `Columns` if columns were left out, within `Rotated` if it is one of
    directions that mix columns."""
    alpha: Positive
    """The ridge that belongs to the kernel on the rows it was learned from."""
    family: str
    length_scales: np.ndarray
    """One a column, after its transform; infinite for those that were left out. Of a kernel on
    directions, that of the column while the others stay."""
    relevance: np.ndarray
    """The share of every column in the mean (squared, for Euclidean families) distance between
    two rows; they add up to one."""
    transforms: tuple[str, ...] | None
    """The name of every column's transform; None if there are none."""
    isotropic: bool
    """True if learned scales were not better on rows outside the criterion, or not asked for:
    then the scales differ by the columns' spreads alone."""
    error: Limit
    """Held-out error inside the criterion."""
    outside_error: Limit
    """Mean squared error on rows outside the criterion; inside it, where there are too few rows."""
    isotropic_error: Limit
    """`outside_error` of the best isotropic kernel of the family."""
    families: Mapping[str, Limit]
    """Every family that was tried, and its error over all rows of the last stage it reached."""
    rows: Count
    """Number of rows inside the criterion."""
    history: tuple[LearningStep, ...]


@dataclass(frozen=True)
class MetricCandidate:
    """One of several kernels that a metric was looked for in, with the ridge that belongs to it."""

    kernel: Any
    """On rows as they were given, as in `LearnedMetric`."""
    alpha: Positive
    family: str
    transforms: tuple[str, ...] | None
    """The name of every column's transform; None if there are none."""
    origin: str
    """Where its scales come from: "isotropic" (one width in units of the columns' spreads),
    "slopes" (of a first fit along every column), "descended" (by the gradient) or "rotated" (by the
    gradient, in directions that mix columns)."""
    error: Limit
    """Mean squared held-out error over the rows inside the criterion and those outside it."""
    rows: Count
    """Number of rows inside the criterion that this error is of."""
    seconds: float
    """Processor time that the candidate took."""

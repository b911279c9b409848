"""How widely the columns of a sample spread, and whether scales can be learned from it."""

from __future__ import annotations

import numpy as np

from ridgefold.errors import NumericalError
from ridgefold.metric.sample import Sample

_LARGEST_SCALE = 1e6
"""Scale of a column that never varies, in units of its value."""


def can_learn(sample: Sample) -> bool:
    """Whether there are rows to check scales on, several scales, and targets that vary."""
    several = len(np.unique(sample.scale_of)) > 1
    return int(sample.outside_X.shape[0]) > 0 and several and _varies(sample)


def _varies(sample: Sample) -> bool:
    """Whether there is anything in the targets to learn from."""
    y = np.asarray(sample.namespace.to_numpy(sample.y))
    return bool(np.max(np.abs(y - y.mean(axis=0))) > 1e-12 * max(1e-300, float(np.max(np.abs(y)))))


def column_spreads(sample: Sample) -> np.ndarray:
    """Standard deviation of every column; a huge number for columns that never vary.

    So a constant column gets a scale that makes it irrelevant, whatever new rows hold in it. A
    group counts as one column, whose variance is the sum of theirs: that of the columns of 0 and 1
    of a category is the chance that two rows differ in it, halved.
    """
    spread, middle = _spreads_and_means(sample)
    if not np.all(np.isfinite(spread)):
        raise NumericalError(
            f"the spread of column {int(np.argmin(np.isfinite(spread)))} of X overflows, so no "
            "scale can be learned for it: scale the columns of X"
        )
    size = np.maximum(np.abs(middle), 1.0)
    if len(np.unique(sample.scale_of)) < len(spread):
        spread, size = (
            np.sqrt(np.bincount(sample.scale_of, weights=each**2))[sample.scale_of]
            for each in (spread, size)
        )
    return np.asarray(np.where(spread > 1e-12 * size, spread, _LARGEST_SCALE * size))


def shares_of_variance(sample: Sample, spread: np.ndarray) -> np.ndarray:
    """The share of every column in the variance of its group: one for columns by themselves,
    nothing for those that never vary."""
    return np.asarray((_spreads_and_means(sample)[0] / spread) ** 2)


def _spreads_and_means(sample: Sample) -> tuple[np.ndarray, np.ndarray]:
    X = np.asarray(sample.namespace.to_numpy(sample.X))
    middle = sample.shares @ X
    with np.errstate(over="ignore"):
        return np.sqrt(sample.shares @ (X - middle) ** 2), middle

"""One family on its way through the stages: few rows first, then more."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ridgefold.errors import InvalidInputError, NumericalError
from ridgefold.kernels import Laplacian
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.learning.descent import Descent, Point, descend
from ridgefold.learning.sample import Sample
from ridgefold.records import LearningStep

ISOTROPIC_STEPS = 15
_LATER_ISOTROPIC_STEPS = 6
_LARGEST_SCALE = 1e6
"""Scale of a column that never varies, in units of its value."""


class Contestant:
    """A family's best isotropic kernel, its best learned scales, and the steps that led there.

    `learn` is False for a family that only competes with isotropic kernels.
    """

    def __init__(self, name: str, family: DistanceKernel, sample: Sample, *, learn: bool) -> None:
        self.name, self.family = name, family
        self.spread = column_spreads(sample)
        """Of a column's group, where it has one."""
        self.history: list[LearningStep] = []
        several = len(np.unique(sample.scale_of)) > 1
        self._learn = learn and int(sample.outside_X.shape[0]) > 0 and several
        self._learn = self._learn and _varies(sample)
        self.learned: Descent | None = None
        self.isotropic: Descent

    def start(self, sample: Sample, max_steps: int) -> None:
        """An isotropic kernel first, then two starts of the scales."""
        self.isotropic = self._isotropic(sample)
        if not self._learn:
            return
        starts = (self.isotropic.point, by_column(sample, self.isotropic.point))
        found = [each for s in starts if (each := self._descend(sample, s, max_steps))]
        self.learned = min(found, key=lambda each: each.outside_error, default=None)

    def advance(self, sample: Sample, max_steps: int) -> None:
        """Go on from the best point so far with more rows."""
        if self.learned is not None:
            self.learned = self._descend(sample, self.learned.point, max_steps) or self.learned
        else:
            self.advance_isotropic(sample)

    def advance_isotropic(self, sample: Sample) -> None:
        self.isotropic = (
            self._descend(sample, self.isotropic.point, _LATER_ISOTROPIC_STEPS, tied=True)
            or self.isotropic
        )

    @property
    def best(self) -> Descent:
        """Learned scales if they are clearly better than isotropic ones on the outside rows."""
        if self.learned is None or not clearly_better(
            self.learned.outside_residuals, self.isotropic.outside_residuals
        ):
            return self.isotropic
        return self.learned

    @property
    def leading(self) -> Descent:
        """The one with the smaller error over all rows, before the two meet on equal terms."""
        found = [self.isotropic] if self.learned is None else [self.learned, self.isotropic]
        return min(found, key=lambda each: each.pooled_error)

    def _descend(
        self, sample: Sample, start: Point, max_steps: int, *, tied: bool = False
    ) -> Descent | None:
        found = descend(
            sample,
            self.family,
            self.spread,
            start,
            name=self.name,
            tied=tied,
            max_steps=max_steps,
        )
        self.history += [] if found is None else found.steps
        return found

    def _isotropic(self, sample: Sample) -> Descent:
        """The best common scale, from starts around the typical distance between rows."""
        d = int(sample.X.shape[1])
        typical = math.log(len(np.unique(sample.scale_of)))
        typical *= 1.0 if isinstance(self.family, Laplacian) else 0.5
        starts = [Point(np.full(d, typical + shift), math.log(0.1)) for shift in (0.0, 1.5)]
        found = [
            each for s in starts if (each := self._descend(sample, s, ISOTROPIC_STEPS, tied=True))
        ]
        if not found:
            raise InvalidInputError(
                "no isotropic kernel has a finite held-out error on these rows: check that X "
                "and y are finite and of moderate size, and that y is not constant"
            )
        return min(found, key=lambda each: each.outside_error)


def _varies(sample: Sample) -> bool:
    """Whether there is anything in the targets to learn from."""
    y = np.asarray(sample.namespace.to_numpy(sample.y))
    return bool(np.max(np.abs(y - y.mean(axis=0))) > 1e-12 * max(1e-300, float(np.max(np.abs(y)))))


def clearly_better(candidate: np.ndarray, reference: np.ndarray) -> bool:
    """Whether squared residuals are smaller by more than a standard error of their difference.

    The candidate was stopped where these very rows liked it best; one standard error is what
    that may have been worth.
    """
    gain = reference - candidate
    return bool(gain.mean() > gain.std() / math.sqrt(len(gain)))


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


def by_column(sample: Sample, isotropic: Point) -> Point:
    """A start that trusts every column by what it says of the targets on its own.

    The share of variance that the means of y in ten bins of a column explain, less what chance
    gives, moves the column's scale by up to a factor of four either way. For a group the best of
    its columns speaks.
    """
    X = np.asarray(sample.namespace.to_numpy(sample.X))
    y = np.asarray(sample.namespace.to_numpy(sample.y))
    shares = np.full(X.shape[1], 1e-3)
    for j, group in enumerate(sample.scale_of):
        found = _explained(X[:, j], y, sample.shares, sample.distinct)
        shares[group] = max(shares[group], found)
    shares = shares[sample.scale_of]
    move = -0.5 * np.log(shares / np.exp(np.mean(np.log(shares))))
    move = np.clip(move, -math.log(4.0), math.log(4.0))
    return replace(isotropic, log_scales=isotropic.log_scales + move)


def _explained(
    x: np.ndarray, y: np.ndarray, shares: np.ndarray, distinct: int, bins: int = 10
) -> float:
    """Share of the variance of y that is explained by its means in bins of x."""
    values, which = np.unique(x, return_inverse=True)
    counts = np.bincount(which.ravel(), weights=shares)
    ranks = np.cumsum(counts) - 0.5 * counts
    which = np.minimum((ranks * bins).astype(int), bins - 1)[which.ravel()]
    centred = y - shares @ y
    total = float(np.sum(shares @ centred**2))
    if total == 0.0 or len(values) < 2:
        return 0.0
    weight = np.bincount(which, weights=shares, minlength=bins)
    used = weight > 0
    sums = [np.bincount(which, weights=shares * c, minlength=bins) for c in centred.T]
    explained = float(sum(np.sum(s[used] ** 2 / weight[used]) for s in sums)) / total
    return explained - (int(used.sum()) - 1) / distinct

"""One family on its way through the stages: few rows first, then more."""

from __future__ import annotations

import math

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.kernels import Laplacian, Matern
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.metric.descent import Descent, Point, descend
from ridgefold.metric.sample import Sample
from ridgefold.metric.slope_start import NO_FINITE_ERROR, START_OUTSIDE, START_ROWS, Start
from ridgefold.records import LearningStep

_TIED_STEPS = 4
"""Steps in width and ridge alone: from a start that another family found, few are needed."""

_STEEPEST = 1.5
"""Errors that fell faster than by this power of the rows do not go on to do so."""
_LEAST_LOG_ALPHA = math.log(0.1)
"""From much smaller ridge values descents of smooth families ended in poor local minima."""


class Contestant:
    """A family on some transform of the columns: its best isotropic kernel, its best learned
    scales, and the steps that led there.
    """

    def __init__(self, name: str, family: DistanceKernel, start: Start) -> None:
        self.name, self.family = name, family
        self.kin, self.start = kin_of(family), start
        self.sample, self.transforms, self.spread = start.sample, start.transforms, start.spread
        self.history: list[LearningStep] = []
        self._seen = START_ROWS, START_OUTSIDE
        """Rows inside and outside that scales were learned from last."""
        self._by_rows: dict[int, float] = {}
        """The error after every stage."""
        part = self.sample.first(START_ROWS, START_OUTSIDE)
        shift = 0.0
        if isinstance(family, Laplacian):
            # A sum of d distances is about √d times their Euclidean length.
            shift = 0.5 * math.log(len(np.unique(part.scale_of)))
        isotropic = self._descend(part, _shifted(start.isotropic.point, shift), tied=True)
        if isotropic is None:
            raise InvalidInputError(NO_FINITE_ERROR)
        self.isotropic: Descent = isotropic
        self.slopes: Descent | None = None
        self._learns = start.slopes is not None
        if start.slopes is not None:
            self.slopes = self._descend(part, _shifted(start.slopes.point, shift), tied=True)
        self.learned = self.slopes

    def advance(self, rows: int, outside: int, max_steps: int) -> None:
        """Go on from the best point so far with more rows, every scale by itself."""
        self._seen = rows, outside
        part = self.sample.first(rows, outside)
        if not self._learns:
            self.isotropic = self._descend(part, self.isotropic.point, tied=True) or self.isotropic
        else:
            before = self.learned or self.isotropic
            self.learned = self._descend(part, before.point, max_steps=max_steps) or self.learned
        self._by_rows[rows] = self.leading.pooled_error

    def expected_error(self, rows: int) -> float:
        """What the error will be on more rows, if it goes on falling as between two stages.

        Smooth kernels fall back on few rows and gain more from others.
        """
        if len(self._by_rows) < 2:
            return self.leading.pooled_error
        (few, before), (more, now) = sorted(self._by_rows.items())[-2:]
        if not before > now > 0:
            return now
        power = min(math.log(before / now) / math.log(more / few), _STEEPEST)
        return float(now * (more / max(rows, more)) ** power)

    def descend_from_both(self, max_steps: int) -> None:
        """Every scale by itself, on the rows of the start: from slopes, and from a common scale.

        Slopes of few rows may call a column flat that counts, and from a long scale there is no
        gradient that leads back.
        """
        if not self._learns:
            return
        part = self.sample.first(START_ROWS, START_OUTSIDE)
        points = [self.isotropic.point]
        points += [self.learned.point] if self.learned is not None else []
        tried = [each for p in points if (each := self._descend(part, p, max_steps=max_steps))]
        self.learned = min(tried, key=lambda each: each.pooled_error, default=self.learned)

    def take_over(self, relative: Contestant, rows: int, outside: int) -> None:
        """Go on from where a relative has got to, if that is better: width and ridge alone move.

        What a column is worth is much the same to all kernels of like smoothness.
        """
        if relative.learned is None:
            return
        self._seen = rows, outside
        part = self.sample.first(rows, outside)
        found = self._descend(part, relative.learned.point, tied=True)
        self.learned = found or self.learned

    def look_at_isotropic(self) -> None:
        """The error of the isotropic kernel on the rows that the learned scales have seen."""
        if self.learned is None:
            return
        part = self.sample.first(*self._seen)
        seen = self.isotropic.rows, len(self.isotropic.outside_residuals)
        if seen != (len(part), _number_outside(part)):
            found = self._descend(part, self.isotropic.point, max_steps=0, tied=True)
            self.isotropic = found or self.isotropic

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

    @property
    def most_rows(self) -> int:
        """On how many rows it was tried last."""
        return max(each.rows for each in (self.isotropic, self.learned) if each is not None)

    def _descend(
        self, sample: Sample, start: Point, *, max_steps: int = _TIED_STEPS, tied: bool = False
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


def kin_of(family: DistanceKernel) -> str:
    """Families that may have the same scales: of one kind of distance, and of like smoothness."""
    if isinstance(family, Laplacian):
        return "manhattan"
    return "rough" if isinstance(family, Matern) and family.rough else "smooth"


def _number_outside(sample: Sample) -> int:
    """Different rows outside the criterion."""
    return int(sample.outside_groups.max()) + 1 if len(sample.outside_groups) else 0


def _shifted(point: Point, shift: float) -> Point:
    """Where another family starts: smoother ones need more ridge than the first fit had."""
    return Point(point.log_scales + shift, max(point.log_alpha, _LEAST_LOG_ALPHA))


def clearly_better(candidate: np.ndarray, reference: np.ndarray) -> bool:
    """Whether squared residuals are smaller by more than a standard error of their difference.

    The candidate was stopped where these very rows liked it best; one standard error is what
    that may have been worth.
    """
    gain = reference - candidate
    return bool(gain.mean() > gain.std() / math.sqrt(len(gain)))

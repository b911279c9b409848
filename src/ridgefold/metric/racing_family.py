"""One family of kernels in the race for the best metric: few rows first, then more."""

from __future__ import annotations

import math
from copy import copy

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.kernels import Laplacian, Matern
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.metric.descent import Descent, Point, clearly_better, descend
from ridgefold.metric.sample import Sample
from ridgefold.metric.slope_start import (
    NO_FINITE_ERROR,
    START_OUTSIDE,
    START_ROWS,
    Start,
)
from ridgefold.records import LearningStep

_TIED_STEPS = 4
"""Steps in width and ridge alone, which are few as another family has found the start."""

_STEEPEST = 1.5
"""Errors are expected to fall no faster than by this power of the number of rows."""
_LEAST_LOG_ALPHA = math.log(0.1)
"""Descents start from at least this ridge: from much smaller ones, those of smooth families ended
in poor local minima."""


class RacingFamily:
    """A family of kernels on one transform of the columns, and how far it has got in the race:
    its best isotropic kernel, its best learned scales, and the steps that led there.
    """

    def __init__(self, name: str, family: DistanceKernel, start: Start) -> None:
        self.name, self.family = name, family
        self.kind, self.start = kind_of_family(family), start
        self.sample, self.transforms, self.spread = start.sample, start.transforms, start.spread
        self.history: list[LearningStep] = []
        self._seen = START_ROWS, START_OUTSIDE
        """How many rows inside and outside the criterion the last stage had."""
        self._by_rows: dict[int, float] = {}
        """The error after every stage, by its number of rows."""
        rows_seen = self.sample.first(START_ROWS, START_OUTSIDE)
        shift = 0.0
        if isinstance(family, Laplacian):
            # A sum of d distances is about √d times their Euclidean length.
            shift = 0.5 * math.log(len(np.unique(rows_seen.scale_of)))
        isotropic = self._descend(rows_seen, _shifted(start.isotropic.point, shift), tied=True)
        if isotropic is None:
            raise InvalidInputError(NO_FINITE_ERROR)
        self.isotropic: Descent = isotropic
        self.slopes: Descent | None = None
        self._learns = start.slopes is not None
        if start.slopes is not None:
            self.slopes = self._descend(rows_seen, _shifted(start.slopes.point, shift), tied=True)
        self.learned = self.slopes
        self.unrotated = self
        """The same family on the columns themselves, where this one is on directions."""

    def rotated(self, start: Start, point: Point, rows: int, outside: int) -> RacingFamily:
        """The family on coordinates along directions, from `point` in width and ridge alone."""
        other = copy(self)
        other.start, other.sample, other.spread = start, start.sample, start.spread
        other.unrotated, other.slopes, other.history, other._by_rows = self, None, [], {}
        other._seen = rows, outside
        rows_seen = start.sample.first(rows, outside)
        other.learned = other._descend(rows_seen, _shifted(point, 0.0), tied=True)
        return other

    def advance(self, rows: int, outside: int, max_steps: int) -> None:
        """Go on from the best point so far with more rows, every scale by itself."""
        self._seen = rows, outside
        rows_seen = self.sample.first(rows, outside)
        if not self._learns:
            self.isotropic = (
                self._descend(rows_seen, self.isotropic.point, tied=True) or self.isotropic
            )
        else:
            before = self.learned or self.isotropic
            self.learned = (
                self._descend(rows_seen, before.point, max_steps=max_steps) or self.learned
            )
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
        """Learn every scale by itself on the rows of the start; keep the better of two descents.

        One begins with the scales of the slopes, the other with one common scale. The slopes of
        few rows may call a column flat that matters, and no gradient leads back from a long scale.
        """
        if not self._learns:
            return
        rows_seen = self.sample.first(START_ROWS, START_OUTSIDE)
        points = [self.isotropic.point]
        points += [self.learned.point] if self.learned is not None else []
        tried = [each for p in points if (each := self._descend(rows_seen, p, max_steps=max_steps))]
        self.learned = min(tried, key=lambda each: each.pooled_error, default=self.learned)

    def taking_over(self, relative: RacingFamily, rows: int, outside: int) -> RacingFamily:
        """This family with the scales that another one of the same kind has found; a family of its
        own where these are scales of directions.

        Only width and ridge are adapted: the ratios of the scales are much the same for all
        kernels of like smoothness.
        """
        if relative.learned is None:
            return self
        if relative.is_rotated:
            return self.rotated(relative.start, relative.learned.point, rows, outside)
        self._seen = rows, outside
        rows_seen = self.sample.first(rows, outside)
        self.learned = self._descend(rows_seen, relative.learned.point, tied=True) or self.learned
        return self

    def look_at_isotropic(self) -> None:
        """Fit the isotropic kernel to the rows of the learned scales, so that they compare."""
        if self.learned is None:
            return
        if self.is_rotated:
            self.unrotated.look_at_isotropic()
        rows_seen = self.unrotated.sample.first(*self._seen)
        seen = self.isotropic.rows, len(self.isotropic.outside_residuals)
        if seen != (len(rows_seen), _number_outside(rows_seen)):
            again = self.unrotated._descend(rows_seen, self.isotropic.point, max_steps=0, tied=True)
            self.isotropic = again or self.isotropic

    @property
    def best(self) -> Descent:
        """Learned scales if they are clearly better than isotropic ones on the outside rows.

        Directions were better than learned scales of columns: it is enough if those are.
        """
        learned, isotropic = self.learned, self.isotropic
        if learned is None:
            return isotropic
        if clearly_better(learned.outside_residuals, isotropic.outside_residuals):
            return learned
        straight = self.unrotated
        return learned if self.is_rotated and straight.best is straight.learned else isotropic

    @property
    def leading(self) -> Descent:
        """The isotropic or the learned kernel, whichever has the smaller error over all its rows.

        The two may have seen different rows; `best` compares them on the same ones.
        """
        fits = [self.isotropic] if self.learned is None else [self.learned, self.isotropic]
        return min(fits, key=lambda each: each.pooled_error)

    @property
    def is_rotated(self) -> bool:
        """Whether its learned scales are those of directions that mix columns."""
        return self.unrotated is not self

    @property
    def learned_by(self) -> str:
        """Where its learned scales come from, as candidates say it."""
        return "rotated" if self.is_rotated else "descended"

    def directions_of(self, descent: Descent) -> np.ndarray | None:
        """The directions that the kernel of a descent has scales for; None if these are columns."""
        return None if descent is self.isotropic else self.start.directions

    @property
    def most_rows(self) -> int:
        """The largest number of rows that it was fitted to."""
        return max(each.rows for each in (self.isotropic, self.learned) if each is not None)

    def _descend(
        self, sample: Sample, start: Point, *, max_steps: int = _TIED_STEPS, tied: bool = False
    ) -> Descent | None:
        descent = descend(
            sample,
            self.family,
            self.spread,
            start,
            name=self.name,
            tied=tied,
            max_steps=max_steps,
        )
        self.history += [] if descent is None else descent.steps
        return descent


def kind_of_family(family: DistanceKernel) -> str:
    """The kind of a family: families of one kind of distance and like smoothness share scales."""
    if isinstance(family, Laplacian):
        return "manhattan"
    return "rough" if isinstance(family, Matern) and family.rough else "smooth"


def _number_outside(sample: Sample) -> int:
    """The number of different rows outside the criterion."""
    return int(sample.outside_groups.max()) + 1 if len(sample.outside_groups) else 0


def _shifted(point: Point, shift: float) -> Point:
    """Where another family starts: smoother ones need more ridge than the first fit had."""
    return Point(point.log_scales + shift, max(point.log_alpha, _LEAST_LOG_ALPHA))

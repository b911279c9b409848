"""One descent of the held-out error in log length scales and log alpha.

What is minimised is log E + p, E the exact held-out error and p a penalty that asks for a reason
before a column counts: p = (1/n) Σ_j log(1 + (s_j/ℓ_j)²) with the column's spread s_j. Chance
lowers log E by the order of 1/n for every scale that may move, so this is what a scale must earn.

Bounds keep L-BFGS-B away from singular matrices. After every step the model is tried on rows
outside the criterion; the best step there is what a descent returns, and it stops when
`patience` steps in a row were no better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from ridgefold.kernels import KernelGram
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.metric.criterion import Evaluation, HeldOutError
from ridgefold.metric.families import with_scales
from ridgefold.metric.sample import Sample
from ridgefold.metric.time_limit import TimeLimit
from ridgefold.records import LearningStep

SCALE_BOUNDS = (0.03, 1e3)
"""Length scales, in units of the column's spread."""
ALPHA_BOUNDS = (1e-3, 1e3)
"""With rough kernels only alpha·ℓ is determined once ℓ is large; a larger alpha, and with it a
smaller ℓ, keeps matrices well-conditioned at no loss."""
_SINGULAR = 1e3
"""Value given to parameters without a Cholesky factor: the line search turns back."""
_NO_ERROR = 1e-26
"""Errors below this, with the largest target one, are rounding: nothing is left to gain."""
_PROGRESS = 1e-4
"""A step is better if it lowers the error by this share."""


@dataclass(frozen=True)
class Point:
    """Where a descent stands: log(ℓ_j/s_j) for every column, and log alpha."""

    log_scales: np.ndarray
    log_alpha: float


@dataclass(frozen=True)
class Descent:
    """The best point of a descent on the outside rows, and the way there."""

    point: Point
    kernel: DistanceKernel
    alpha: float
    error: float
    outside_error: float
    outside_residuals: np.ndarray
    """Squared residuals of the outside rows, mean over targets, added up over rows that are the
    same, so scaled that their mean is the error; empty without such rows."""
    steps: tuple[LearningStep, ...]
    distinct: int
    """Rows inside the criterion that differ from each other."""

    @property
    def rows(self) -> int:
        """Rows inside the criterion."""
        return self.steps[-1].rows

    @property
    def pooled_error(self) -> float:
        """Mean over the different rows inside the criterion and those outside it."""
        inside, outside = self.distinct, len(self.outside_residuals)
        return (inside * self.error + outside * self.outside_error) / (inside + outside)


class _Stopped(Exception):
    """No progress on the outside rows any more, or no time for another evaluation."""


class _Objective:
    """log E + p as a function of what L-BFGS-B moves, with a memory of the last evaluation."""

    def __init__(
        self,
        criterion: HeldOutError,
        family: DistanceKernel,
        spread: np.ndarray,
        *,
        rows: int,
        floor: float,
        scale_of: np.ndarray,
        tied: bool,
        look_at_clock: Callable[[], None],
        limit: TimeLimit,
        start: Point,
    ) -> None:
        self._criterion, self._family, self._spread, self._tied = criterion, family, spread, tied
        self._look_at_clock, self._limit = look_at_clock, limit
        self._rows, self._floor, self._scale_of = rows, floor, scale_of
        self._offsets: np.ndarray = np.zeros(len(spread))
        """What every log scale keeps beside the values that move."""
        if tied:
            self._offsets = start.log_scales - start.log_scales.mean()
        self.last: tuple[np.ndarray, DistanceKernel, Evaluation] | None = None
        self._answer: tuple[float, np.ndarray] = (math.nan, np.empty(0))
        """Value and gradient where it was evaluated last."""

    def pack(self, point: Point) -> np.ndarray:
        return np.append(self._mean_by_scale(point.log_scales), point.log_alpha)

    def unpack(self, values: np.ndarray) -> Point:
        return Point(values[:-1][self._scale_of] + self._offsets, float(values[-1]))

    def _mean_by_scale(self, of_columns: np.ndarray) -> np.ndarray:
        return np.asarray(self._by_scale(of_columns) / self._by_scale(np.ones(len(of_columns))))

    def _by_scale(self, of_columns: np.ndarray) -> np.ndarray:
        """Sums over the columns that share a scale."""
        return np.bincount(self._scale_of, weights=of_columns)

    def __call__(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        self._look_at_clock()
        if self.last is not None and np.array_equal(self.last[0], values):
            return self._answer[0], self._answer[1].copy()  # descents begin where they looked
        count = int(self._criterion.rows.shape[0])
        if self.last is not None and not self._limit.has_time_for(count):
            raise _Stopped
        point = self.unpack(values)
        kernel = with_scales(self._family, np.exp(point.log_scales) * self._spread)
        with self._limit.measured(count):
            found = self._criterion.value_and_gradient(kernel, math.exp(point.log_alpha))
        if found is None:
            return _SINGULAR, np.zeros_like(values)
        self.last = (values.copy(), kernel, found)
        relevance = np.exp(-2.0 * values[:-1])
        error = max(found.error, self._floor)
        value = math.log(error)
        by_scale = self._by_scale(found.scale_gradient / error)
        if not self._tied:
            value += float(np.sum(np.log1p(relevance))) / self._rows
            by_scale = by_scale - 2.0 * relevance / (1.0 + relevance) / self._rows
        self._answer = value, np.append(by_scale, found.alpha_gradient / error)
        return self._answer[0], self._answer[1].copy()

    def at(self, values: np.ndarray) -> tuple[DistanceKernel, Evaluation] | None:
        """The kernel and evaluation of these values, from memory if they were the last."""
        if self.last is None or not np.array_equal(self.last[0], values):
            self(values)
        if self.last is None or not np.array_equal(self.last[0], values):
            return None
        return self.last[1], self.last[2]


def descend(
    sample: Sample,
    family: DistanceKernel,
    spread: np.ndarray,
    start: Point,
    *,
    name: str = "",
    tied: bool = False,
    max_steps: int = 40,
    patience: int = 8,
) -> Descent | None:
    """Follow the gradient from `start`; None if not even that has a Cholesky factor.

    Without steps it is what `start` comes to. `tied` moves all scales together: the ratios between
    them stay those of `start`.
    """
    criterion = HeldOutError(
        sample.X,
        sample.y,
        folds=sample.folds,
        bias=sample.bias,
        weights=sample.weights,
        score_weights=sample.weights,
        columns=sample.columns,
        single=True,
    )
    objective = _Objective(
        criterion,
        family,
        spread,
        rows=sample.distinct,
        floor=_NO_ERROR,
        scale_of=np.zeros_like(sample.scale_of) if tied else sample.scale_of,
        tied=tied,
        look_at_clock=sample.look_at_clock,
        limit=sample.limit,
        start=start,
    )
    steps: list[LearningStep] = []
    best: Descent | None = None
    without_progress = 0

    def look(values: np.ndarray) -> None:
        nonlocal best, without_progress
        at = objective.at(values)
        if at is None:
            return
        kernel, evaluation = at
        residuals = _outside_residuals(sample, criterion, kernel, evaluation)
        outside = float(residuals.mean()) if len(residuals) else evaluation.error
        steps.append(
            LearningStep(name, len(sample), evaluation.error, outside, sample.limit.elapsed)
        )
        if best is not None and outside >= best.outside_error * (1.0 - _PROGRESS):
            without_progress += 1
            if without_progress >= patience or sample.limit.spent:
                raise _Stopped
            return
        without_progress = 0
        point = objective.unpack(values)
        best = Descent(
            point,
            kernel,
            math.exp(point.log_alpha),
            evaluation.error,
            outside,
            residuals,
            (),
            sample.distinct,
        )
        if sample.limit.spent:
            raise _Stopped

    first = objective.pack(start)
    low, high = np.log(SCALE_BOUNDS)
    bounds = [(low, high)] * (len(first) - 1) + [tuple(np.log(ALPHA_BOUNDS))]
    first = np.clip(first, *np.asarray(bounds).T)
    try:
        look(first)
        if max_steps == 0:
            raise _Stopped
        minimize(
            objective,
            first,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=look,
            options={"maxiter": max_steps, "maxcor": 20, "ftol": 1e-6, "gtol": 1e-5},
        )
    except _Stopped:
        pass
    if best is None:
        return None
    return Descent(
        best.point, best.kernel, best.alpha, best.error, best.outside_error,
        best.outside_residuals, tuple(steps), sample.distinct,
    )  # fmt: skip


def _outside_residuals(
    sample: Sample, criterion: HeldOutError, kernel: DistanceKernel, model: Evaluation
) -> np.ndarray:
    if int(sample.outside_X.shape[0]) == 0:
        return np.empty(0)
    gram = KernelGram(kernel, sample.outside_X, criterion.rows)
    errors = gram.matmat(model.coefficients) + model.intercept[None, :] - sample.outside_y
    if sample.outside_columns is not None:
        errors = errors + sample.outside_columns @ model.fixed_coef
    squares = sample.namespace.to_numpy(errors * errors).mean(axis=1)
    sums = np.bincount(sample.outside_groups, weights=squares * sample.outside_weights)
    return np.asarray(sums * (len(sums) / sample.outside_weights.sum()))


def clearly_better(candidate: np.ndarray, reference: np.ndarray) -> bool:
    """Whether squared residuals are smaller by more than a standard error of their difference.

    The candidate was stopped where these very rows liked it best; one standard error is what
    that may have been worth.
    """
    gain = reference - candidate
    return bool(gain.mean() > gain.std() / math.sqrt(len(gain)))

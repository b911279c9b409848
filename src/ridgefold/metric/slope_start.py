"""Where learned scales start: from how steep a first fit is along every column.

A smooth kernel with one common scale is fitted to a few hundred rows. In coordinates z = x/ℓ its
slopes have the mean outer product G = mean ∇f∇fᵀ, and a column along which f is steep deserves a
shorter scale: ℓ_j ← ℓ_j/√G_jj, all of them multiplied so that mean distances stay. A turn costs one
factorisation and O(n²d), no gradient of an error; the error of the turns decides which is kept
(after Radhakrishnan, Beaglehole, Pandit and Belkin, Science 383, 2024: "average gradient outer
product", here of its diagonal).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.kernels import Matern
from ridgefold.metric.criterion import HeldOutError
from ridgefold.metric.descent import SCALE_BOUNDS, Descent, Point, descend
from ridgefold.metric.sample import Sample
from ridgefold.metric.spreads import can_learn, column_spreads
from ridgefold.metric.transforms import Transforms, transformed

START_ROWS, START_OUTSIDE = 400, 500
"""Rows inside and outside the criterion that a start is found on."""
FAMILY = Matern(nu=1.5)
"""Smooth enough to have slopes everywhere, rough enough to follow most functions."""
_TURNS = 2
"""More turns seldom lower the error: the third repeats the second."""
_STEPS = 4
"""Steps in width and ridge after every turn."""
LEAST_SLOPE = 0.05
"""A column along which f is flat counts as this share of the steepest one: a few hundred rows do
not tell that it says nothing, and descents have to find back."""


NO_FINITE_ERROR = (
    "no isotropic kernel has a finite held-out error on these rows: check that X and y are "
    "finite and of moderate size, and that y is not constant"
)


@dataclass(frozen=True)
class Start:
    """Rows whose columns are in some transform, and where kernels start on them."""

    sample: Sample
    transforms: Transforms | None
    spread: np.ndarray
    """Of every column (of its group, where it has one)."""
    isotropic: Descent
    slopes: Descent | None
    """None where nothing is to be learned, or nothing can be."""
    directions: np.ndarray | None = None
    """Where the columns of the sample are coordinates along directions: one a column of this, with
    one number a transformed column."""

    @property
    def best(self) -> Descent:
        """The one with the smaller error."""
        if self.slopes is None or self.isotropic.pooled_error <= self.slopes.pooled_error:
            return self.isotropic
        return self.slopes


def start_on(
    sample: Sample, transforms: Transforms | None, *, learn: bool, near: Start | None = None
) -> Start:
    """Fit a smooth kernel to the first rows, and turn its scales by its slopes.

    `near` is a start on the same rows with other transforms: its width is close.
    """
    columns = sample if transforms is None else transformed(sample, transforms.warps)
    part, spread = columns.first(START_ROWS, START_OUTSIDE), column_spreads(columns)
    isotropic = _isotropic(part, spread, None if near is None else near.isotropic.point)
    slopes = _by_slopes(part, spread, isotropic) if learn and can_learn(sample) else None
    return Start(columns, transforms, spread, isotropic, slopes)


def _isotropic(sample: Sample, spread: np.ndarray, near: Point | None) -> Descent:
    """The best common scale and ridge, from two widths around the typical distance of rows."""
    if near is not None and (found := fitted_width(sample, spread, near)) is not None:
        return found
    typical = 0.5 * math.log(len(np.unique(sample.scale_of)))
    points = [Point(np.full(len(spread), typical + s), math.log(0.1)) for s in (0.0, 1.5)]
    fits = [each for p in points if (each := fitted_width(sample, spread, p))]
    if not fits:
        raise InvalidInputError(NO_FINITE_ERROR)
    return min(fits, key=lambda each: each.pooled_error)


def _by_slopes(sample: Sample, spread: np.ndarray, isotropic: Descent) -> Descent | None:
    """The best of a few turns; None if not even the first can be computed."""
    turns: list[Descent] = []
    last = isotropic
    while len(turns) < _TURNS and not (turns and sample.limit.spent):
        point = _turned(sample, last)
        fit = None if point is None else fitted_width(sample, spread, point)
        if fit is None:
            break
        turns.append(fit)
        last = fit
    return min(turns, key=lambda each: each.pooled_error, default=None)


def fitted_width(sample: Sample, spread: np.ndarray, point: Point) -> Descent | None:
    """Width and ridge by the held-out error, the ratios of the scales as they are."""
    return descend(sample, FAMILY, spread, point, name="slopes", tied=True, max_steps=_STEPS)


def _turned(sample: Sample, fit: Descent) -> Point | None:
    """The scales that the slopes of a fit ask for; None where it has no factor or is flat."""
    outer = mean_outer_product(sample, fit)
    if outer is None or not 0.0 < float(outer.max()) < math.inf:
        return None
    slopes = np.sqrt(np.diag(outer))
    # Columns of a group share their scale, and the steepest of them speaks for all.
    of_group = np.zeros(int(sample.scale_of.max()) + 1)
    np.maximum.at(of_group, sample.scale_of, slopes)
    slopes = of_group[sample.scale_of]
    slopes = np.maximum(slopes, LEAST_SLOPE * float(slopes.max()))
    moved = fit.point.log_scales - np.log(slopes)
    before, after = (np.mean(np.exp(-2.0 * each)) for each in (fit.point.log_scales, moved))
    moved += 0.5 * math.log(after / before)
    return replace(fit.point, log_scales=np.clip(moved, *np.log(SCALE_BOUNDS)))


def mean_outer_product(sample: Sample, fit: Descent) -> np.ndarray | None:
    """G = mean ∇f∇fᵀ over rows and targets, in the coordinates z = x/ℓ of a fit of `FAMILY`.

    Of Matérn 3/2, k = (1 + √3 r)exp(−√3 r), the slope is ∇k(z, z') = −3·exp(−√3 r)(z − z').
    """
    criterion = HeldOutError(
        sample.X,
        sample.y,
        folds=sample.folds,
        bias=sample.bias,
        weights=sample.weights,
        columns=sample.columns,
    )
    model = criterion.model(fit.kernel, fit.alpha)
    if model is None:
        return None
    X = np.asarray(sample.namespace.to_numpy(criterion.rows))
    coefficients = np.asarray(sample.namespace.to_numpy(model.coefficients))
    z = (X - X.mean(axis=0)) / np.asarray(fit.kernel.length_scale)
    halves = 0.5 * np.sum(z * z, axis=1)
    decay = np.exp(-np.sqrt(6.0 * np.maximum(halves[:, None] + halves[None, :] - z @ z.T, 0.0)))
    shares = sample.shares[criterion.order][:, None]
    total = np.zeros((z.shape[1], z.shape[1]))
    for a in coefficients.T:
        weighted = decay * a
        gradient = 3.0 * (weighted @ z - z * weighted.sum(axis=1)[:, None])
        total += gradient.T @ (shares * gradient)
    return np.asarray(total / coefficients.shape[1])

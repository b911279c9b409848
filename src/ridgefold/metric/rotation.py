"""Directions that mix columns, found from how a fit slopes along them.

Learned scales say in which columns a function changes; where it changes along sums and differences
of columns, no scales of columns can say so. In the coordinates z = x/ℓ of a fit with learned scales
let G = mean ∇f∇fᵀ = V diag(g) Vᵀ, with slopes of all pairs of columns. Then z ← diag(g^¼) Vᵀz is a
turn: distances are those of √G, multiplied so that their mean stays. A turn costs one factorisation
and O(n²d); turns are repeated as long as they lower the held-out error (after Radhakrishnan,
Beaglehole, Pandit and Belkin, Science 383, 2024).

Directions have d² numbers, and are found with the targets of the rows inside the criterion. So the
rows outside must gain by them, too.
"""

from __future__ import annotations

import math

import numpy as np

from ridgefold.metric.descent import Descent, Point
from ridgefold.metric.sample import Sample
from ridgefold.metric.slope_start import (
    LEAST_SLOPE,
    Start,
    fitted_width,
    mean_outer_product,
)
from ridgefold.metric.spreads import column_spreads

_ROWS_A_COLUMN = 30
"""With fewer rows for every column, directions fit the noise of the rows that they are found with:
on pol (26 columns, 700 rows) held-out errors came out 14% too small, on elevators (18) not."""
_TURNS = 4
_GAIN = 0.04
"""Directions are kept if they lower the error by this share. They lowered it by 26% on kin8nm and
8% on pol, where predictions of new rows gained by them, and by at most 2% on ccpp, cpusmall and
california, where these gained nothing."""


def rotated_start(start: Start, learned: Descent, rows: int, outside: int) -> Start | None:
    """The rows in coordinates along directions, found from learned scales of Euclidean distances.

    None where they are not worth it.
    """
    part = start.sample.first(rows, outside)
    n_columns = len(start.spread)
    if n_columns < 2 or part.distinct < _ROWS_A_COLUMN * n_columns:
        return None
    directions = np.diag(1.0 / np.asarray(learned.kernel.length_scale))
    first = best = _fit(part, directions, math.log(0.1))
    found = directions
    for _ in range(_TURNS):
        if best is None or part.limit.spent:
            break
        turned = _turned(part, found, best)
        fit = None if turned is None else _fit(part, turned, best.point.log_alpha)
        if turned is None or fit is None or fit.pooled_error >= best.pooled_error:
            break
        found, best = turned, fit
    if first is None or best is None or not _is_worth_it(best, first):
        return None
    digits = np.asarray([[float(f"{each:.5e}") for each in row] for row in found])
    rotated = in_directions(start.sample, digits)
    spread = column_spreads(rotated)
    point = Point(np.log(np.asarray(best.kernel.length_scale) / spread), best.point.log_alpha)
    fit = fitted_width(rotated.first(rows, outside), spread, point)
    if fit is None:
        return None
    return Start(rotated, start.transforms, spread, start.isotropic, fit, digits)


def in_directions(sample: Sample, directions: np.ndarray) -> Sample:
    """The sample with coordinates along directions, each with a scale of its own, as columns."""
    by = sample.namespace.asarray(directions, sample.X)
    return sample.with_columns(
        sample.X @ by, sample.outside_X @ by, scale_of=np.arange(directions.shape[1])
    )


def _fit(sample: Sample, directions: np.ndarray, log_alpha: float) -> Descent | None:
    """Width and ridge on coordinates whose ratios stay as they are."""
    count = directions.shape[1]
    point = Point(np.zeros(count), log_alpha)
    return fitted_width(in_directions(sample, directions), np.ones(count), point)


def _turned(sample: Sample, directions: np.ndarray, fit: Descent) -> np.ndarray | None:
    """The directions that the slopes of a fit ask for; None where it has no factor or is flat."""
    rows = in_directions(sample, directions)
    outer = mean_outer_product(rows, fit)
    if outer is None or not 0.0 < float(outer.max()) < math.inf:
        return None
    steepness, axes = np.linalg.eigh(outer)
    steepness = np.maximum(steepness, LEAST_SLOPE**2 * steepness[-1])
    # Which way an axis points means nothing: the same way on every machine.
    axes = axes * np.sign(axes[np.argmax(np.abs(axes), axis=0), np.arange(len(axes))])
    turned = (directions / np.asarray(fit.kernel.length_scale)) @ (axes * steepness**0.25)
    X = np.asarray(sample.namespace.to_numpy(sample.X))
    lengths = [
        float(np.sum(sample.shares @ (Z - sample.shares @ Z) ** 2))
        for Z in (X @ (directions / np.asarray(fit.kernel.length_scale)), X @ turned)
    ]
    return np.asarray(turned * math.sqrt(lengths[0] / lengths[1])) if lengths[1] > 0 else None


def _is_worth_it(turned: Descent, straight: Descent) -> bool:
    less = turned.pooled_error < (1.0 - _GAIN) * straight.pooled_error
    return less and turned.outside_error < straight.outside_error

"""Learn one length scale a column for one family of kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.kernels import Laplacian
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.learning.descent import Descent, Point, Step, descend
from ridgefold.learning.families import family_of
from ridgefold.learning.sample import Sample, draw_sample
from ridgefold.linalg import Array, namespace_of

MAX_ROWS = 2000
"""Rows that a metric is learned from by default: a step costs about n³ operations."""
_STAGES = ((500, 40), (1000, 20), (math.inf, 15))
"""Rows and most steps of every stage: most of the way is gone where steps are cheap."""
_ISOTROPIC_STEPS = 15
_LARGEST_SCALE = 1e6
"""Scale of a column that never varies, in its own units or those of its value."""


@dataclass(frozen=True)
class LearnedMetric:
    """A kernel with learned length scales, and how they were found."""

    kernel: DistanceKernel
    """With one length scale a column."""
    alpha: float
    """The ridge that belongs to it on the rows it was learned from."""
    isotropic: bool
    """True if learned scales were not better on rows outside the criterion: then the scales
    differ by the columns' spreads alone."""
    error: float
    """Held-out error inside the criterion."""
    outside_error: float
    """Mean squared error on rows outside it (inside, where there are too few rows)."""
    isotropic_error: float
    """The same for the best isotropic kernel of the family."""
    rows: int
    """Number of rows inside the criterion."""
    history: tuple[Step, ...]


def learn_metric(
    X: Array,
    y: Array,
    family: Any = "matern12",
    *,
    weights: Array | None = None,
    bias: bool = True,
    folds: Sequence[np.ndarray] | int | None = None,
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
) -> LearnedMetric:
    """One length scale a column by the gradient of the exact held-out error.

    Parameters
    ----------
    X : array of shape (n, d)
        NumPy or torch; dense.
    y : array of shape (n,) or (n, t)
    family : str or kernel
        A name of `FAMILIES`, or a kernel of distances whose scales are replaced.
    weights : array of shape (n,), optional
    bias : bool, default=True
    folds : None, int or sequence of index arrays
        Leave-one-out, a number of random folds, or disjoint test sets.
    max_rows : int
        The metric is learned on a random subset of at most this many rows; up to 2,000 others
        are kept outside to stop early and to decide against an isotropic kernel.
    random_state : int

    Returns
    -------
    LearnedMetric
    """
    namespace = namespace_of(X)
    if X.ndim != 2 or y.shape[0] != X.shape[0]:
        raise InvalidInputError(
            f"X must have two dimensions and y one entry a row, got shapes {tuple(X.shape)} and "
            f"{tuple(y.shape)}"
        )
    if isinstance(max_rows, bool) or not isinstance(max_rows, (int, np.integer)) or max_rows < 2:
        raise InvalidInputError(f"max_rows must be a whole number >= 2, got {max_rows!r}")
    if isinstance(folds, int) and folds < 2:
        raise InvalidInputError(f"folds must be at least 2, got {folds}")
    targets = y[:, None] if y.ndim == 1 else y
    sample = draw_sample(
        X,
        namespace.asarray(targets, X),
        weights,
        folds,
        max_rows=int(max_rows),
        bias=bias,
        random=np.random.default_rng(random_state),
    )
    return learn_from(sample, family)


def learn_from(sample: Sample, family: Any) -> LearnedMetric:
    """The stages: an isotropic kernel, two starts on few rows, then the better on more rows."""
    name = family if isinstance(family, str) else type(family).__name__
    shape = family_of(family)
    spread = column_spreads(sample)
    first = sample.first(int(_STAGES[0][0]))
    isotropic = _isotropic(first, shape, spread, name)
    history = list(isotropic.steps)
    if int(sample.outside_X.shape[0]) == 0 or sample.X.shape[1] == 1:
        return _as_metric(isotropic, isotropic, sample, history)
    descents = []
    for start in (isotropic.point, by_column(first, isotropic.point)):
        found = descend(first, shape, spread, start, name=name, max_steps=_STAGES[0][1])
        if found is not None:
            descents.append(found)
            history += found.steps
    best = min(descents, key=lambda each: each.outside_error, default=isotropic)
    for size, steps in _STAGES[1:]:
        if len(first) == len(sample):
            break
        first = sample.first(int(min(size, len(sample))))
        best = descend(first, shape, spread, best.point, name=name, max_steps=steps) or best
        history += best.steps
        isotropic = (
            descend(first, shape, spread, isotropic.point, name=name, tied=True, max_steps=6)
            or isotropic
        )
    return _as_metric(best, isotropic, sample, history)


def _as_metric(
    best: Descent, isotropic: Descent, sample: Sample, history: list[Step]
) -> LearnedMetric:
    learned = best is not isotropic and clearly_better(
        best.outside_residuals, isotropic.outside_residuals
    )
    chosen = best if learned else isotropic
    return LearnedMetric(
        chosen.kernel,
        chosen.alpha,
        not learned,
        chosen.error,
        chosen.outside_error,
        isotropic.outside_error,
        len(sample),
        tuple(history),
    )


def clearly_better(candidate: np.ndarray, reference: np.ndarray) -> bool:
    """Whether squared residuals are smaller by more than a standard error of their difference.

    The candidate was stopped where these very rows liked it best; one standard error is what
    that may have been worth.
    """
    gain = reference - candidate
    return bool(gain.mean() > gain.std() / math.sqrt(len(gain)))


def column_spreads(sample: Sample) -> np.ndarray:
    """Standard deviation of every column; a huge number for columns that never vary.

    So a constant column gets a scale that makes it irrelevant, whatever new rows hold in it.
    """
    X = np.asarray(sample.namespace.to_numpy(sample.X))
    middle, spread = X.mean(axis=0), X.std(axis=0)
    size = np.maximum(np.abs(middle), 1.0)
    return np.asarray(np.where(spread > 1e-12 * size, spread, _LARGEST_SCALE * size))


def _isotropic(sample: Sample, family: DistanceKernel, spread: np.ndarray, name: str) -> Descent:
    """The best common scale, from starts around the typical distance between rows."""
    d = int(sample.X.shape[1])
    typical = math.log(d) if isinstance(family, Laplacian) else 0.5 * math.log(d)
    found = []
    for shift in (0.0, 1.5):
        start = Point(np.full(d, typical + shift), math.log(0.1))
        one = descend(
            sample, family, spread, start, name=name, tied=True, max_steps=_ISOTROPIC_STEPS
        )
        if one is not None:
            found.append(one)
    if not found:
        raise InvalidInputError(
            "no isotropic kernel has a finite held-out error on these rows: check that X and y "
            "are finite and of moderate size"
        )
    best = min(found, key=lambda one: one.outside_error)
    return replace(best, steps=tuple(step for one in found for step in one.steps))


def by_column(sample: Sample, isotropic: Point) -> Point:
    """A start that trusts every column by what it says of the targets on its own.

    The share of variance that the means of y in ten bins of a column explain, less what chance
    gives, moves the column's scale by up to a factor of four either way.
    """
    X = np.asarray(sample.namespace.to_numpy(sample.X))
    y = np.asarray(sample.namespace.to_numpy(sample.y))
    shares = np.asarray([_explained(X[:, j], y) for j in range(X.shape[1])])
    shares = np.maximum(shares, 1e-3)
    move = -0.5 * np.log(shares / np.exp(np.mean(np.log(shares))))
    return Point(
        isotropic.log_scales + np.clip(move, -math.log(4), math.log(4)), isotropic.log_alpha
    )


def _explained(x: np.ndarray, y: np.ndarray, bins: int = 10) -> float:
    edges = np.unique(np.quantile(x, np.linspace(0, 1, bins + 1)[1:-1]))
    which = np.searchsorted(edges, x, side="right")
    counts = np.bincount(which, minlength=len(edges) + 1)
    total = float(np.sum((y - y.mean(axis=0)) ** 2))
    if total == 0.0:
        return 0.0
    explained = 0.0
    for column in (y - y.mean(axis=0)).T:
        sums = np.bincount(which, weights=column, minlength=len(edges) + 1)
        explained += float(np.sum(sums[counts > 0] ** 2 / counts[counts > 0]))
    return explained / total - len(edges) / len(x)

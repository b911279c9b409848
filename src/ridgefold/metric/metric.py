"""Learn the metric and the shape of a kernel: scales, family and transforms of columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.kernels import Columns, Kernel, Laplacian
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.kernels.warped import Warped
from ridgefold.linalg import Array, namespace_of
from ridgefold.metric.contestant import Contestant
from ridgefold.metric.families import FAMILIES, family_of, with_scales
from ridgefold.metric.groups import scales_of_columns
from ridgefold.metric.leaving_out import columns_to_keep
from ridgefold.metric.sample import MOST_OUTSIDE, Sample, draw_sample
from ridgefold.metric.slope_start import START_OUTSIDE, START_ROWS, Start, start_on
from ridgefold.metric.spreads import shares_of_variance
from ridgefold.metric.transforms import (
    TRANSFORMS,
    Transforms,
    column_by_column,
    fitted_transforms,
)
from ridgefold.records import LearnedMetric

AUTO = "auto"
MAX_ROWS = 2000
"""Rows that a metric is learned from by default: a step costs about n³ operations."""


@dataclass(frozen=True)
class _Stage:
    """A part of the race: on how many rows, how many steps, and who takes part."""

    rows: float
    outside: float
    steps: int
    most: int
    """How many go on, the best of those still in the race."""
    margin: float
    """How many times the least error theirs may be."""

    def steps_on(self, rows: float, scales: int) -> int:
        """More steps where there are fewer rows, which are cheap, and where more scales move."""
        several = min(2.0, max(1.0, math.sqrt(scales / _FEW_SCALES)))
        return min(_MOST_STEPS, round(self.steps * several * min(self.rows, MAX_ROWS) / rows))


_FIRST_STEPS = 12
"""Steps from each start, on the rows of the start."""
_MOST_STEPS = 40
"""More steps hardly lowered an error outside the criterion any further."""
_FEW_SCALES = 8
"""So many need no more steps than the stages name; on pol, 26 columns, twelve were too few."""
_STAGES = (
    _Stage(700, 500, 12, 5, math.inf),
    _Stage(1200, 1000, 8, 3, 1.3),
    _Stage(math.inf, math.inf, 6, 2, 1.05),
)
"""Most of the way is gone on few rows, where steps are cheap."""
_ROUGH = ("laplacian", "matern12")
"""Families that need more rows than others to show what they can do: two places of the first stage
are kept for them. On ccpp the Laplacian is fifth of six on 500 rows and first on 2,000."""
_MARGIN = 0.005
"""A transform of all columns must lower the error by this share to replace an earlier one."""


def learn_metric(
    X: Array,
    y: Array,
    family: Any = "matern12",
    *,
    learn_scales: bool = True,
    preprocess: str | None = None,
    weights: Array | None = None,
    bias: bool = True,
    folds: Sequence[np.ndarray] | int | None = 5,
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
    scale_groups: Any = None,
    leave_out: bool = True,
    look_at_clock: Callable[[], None] | None = None,
) -> LearnedMetric:
    """One length scale a column by the gradient of the exact held-out error.

    Parameters
    ----------
    X : array of shape (n, d)
        NumPy or torch; dense.
    y : array of shape (n,) or (n, t)
    family : str, kernel or list of them
        A name of `FAMILIES`, a kernel of distances whose scales are replaced, "auto" for the
        best of all families, or a list to choose from.
    learn_scales : bool, default=True
        False: one scale for all columns (in units of their spreads).
    preprocess : None, "standardise", "quantile", "signed_log" or "auto"
        Transform of all columns, or the best one for every column.
    weights : array of shape (n,), optional
    bias : bool, default=True
    folds : None, int or sequence of index arrays, default=5
        Leave-one-out, a number of random folds, or disjoint test sets.
    max_rows : int
        The metric is learned on a random subset of at most this many rows; up to 2,000 others
        are kept outside to stop early and to decide against an isotropic kernel.
    random_state : int
    scale_groups : sequence of sequences of int, optional
        Columns that share one length scale, as the columns of 0 and 1 of one category do. They
        count as one column and are not transformed. With the Laplacian and RBF families each
        category then is one factor of a product of kernels.
    leave_out : bool, default=True
        Leave columns out of the kernel whose learned scales are so large that predictions of the
        rows outside change by at most 3% of their error without them.
    look_at_clock : callable, optional
        Called before every evaluation; what it raises ends the descent.

    Returns
    -------
    LearnedMetric
    """
    contestants = contest(
        X,
        y,
        family,
        learn_scales=learn_scales,
        preprocess=preprocess,
        weights=weights,
        bias=bias,
        folds=folds,
        max_rows=max_rows,
        random_state=random_state,
        scale_groups=scale_groups,
        look_at_clock=look_at_clock,
    )
    return _as_metric(contestants, leave_out=leave_out)


def contest(
    X: Array,
    y: Array,
    family: Any,
    *,
    learn_scales: bool,
    preprocess: str | None,
    weights: Array | None,
    bias: bool,
    folds: Sequence[np.ndarray] | int | None,
    max_rows: int,
    random_state: int,
    scale_groups: Any,
    look_at_clock: Callable[[], None] | None,
) -> list[Contestant]:
    """Every family on every transform that took part, the best first."""
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
    if preprocess is not None and preprocess != AUTO and preprocess not in TRANSFORMS:
        raise InvalidInputError(
            f"metric.transforms must be None, {AUTO!r} or one of {', '.join(TRANSFORMS)}, got "
            f"{preprocess!r}"
        )
    contenders = families_of(family)
    targets = y[:, None] if y.ndim == 1 else y
    sample = draw_sample(
        X,
        namespace.asarray(targets, X),
        weights,
        folds,
        max_rows=int(max_rows),
        bias=bias,
        random=np.random.default_rng(random_state),
        scale_of=scales_of_columns(scale_groups, int(X.shape[1])),
    )
    if look_at_clock is not None:
        sample = replace(sample, look_at_clock=look_at_clock)
    starts = _starts(sample, preprocess, learn=learn_scales)
    return _race(starts, contenders)


def _starts(sample: Sample, preprocess: str | None, *, learn: bool) -> list[Start]:
    """The columns in every transform that is worth a race.

    "auto": the transform of all columns with the least error on few rows, then column by column
    what lowers it further; and standardised columns beside them, as few rows may mislead.
    """
    if preprocess is None:
        return [start_on(sample, None, learn=learn)]
    fitted = fitted_transforms(sample)
    if preprocess != AUTO:
        return [start_on(sample, fitted[preprocess], learn=learn)]
    plain = best = start_on(sample, fitted["standardise"], learn=learn)
    for name in fitted:
        if name != "standardise":
            other = start_on(sample, fitted[name], learn=learn)
            if other.best.pooled_error < best.best.pooled_error * (1 - _MARGIN):
                best = other
    assert best.transforms is not None
    few = sample.first(START_ROWS, START_OUTSIDE)
    chosen = column_by_column(few, fitted, best.transforms, best.best, best.spread)
    if chosen.names != best.transforms.names:
        best = start_on(sample, chosen, learn=learn)
    return [plain] if best is plain else [plain, best]


def families_of(family: Any) -> dict[str, DistanceKernel]:
    """The families to choose from, by name."""
    if isinstance(family, str) and family == AUTO:
        return dict(FAMILIES)
    if isinstance(family, (list, tuple)):
        if not family:
            raise InvalidInputError("family is an empty list: give at least one family")
        return {name: each for one in family for name, each in families_of(one).items()}
    return {family if isinstance(family, str) else repr(family): family_of(family)}


def _race(starts: list[Start], families: Mapping[str, DistanceKernel]) -> list[Contestant]:
    """The best family on the best transform; those that fall back are not followed further.

    In every stage all see the same rows and folds, and may take as many steps.
    """
    running = [Contestant(name, f, start) for start in starts for name, f in families.items()]
    out: list[Contestant] = []
    sample = running[0].sample
    size, scales = len(sample), len(np.unique(sample.scale_of))
    # Repeating rows must do what weights do: steps are as many as for the rows that differ.
    share = sample.distinct / size
    rows, outside = START_ROWS, START_OUTSIDE
    for stage in _STAGES:
        rows, outside = int(min(stage.rows, size)), int(min(stage.outside, MOST_OUTSIDE))
        running.sort(key=lambda each: each.leading.pooled_error)
        limit = stage.margin * running[0].leading.pooled_error
        near = [each for each in running if each.leading.pooled_error <= limit]
        chosen = _going_on(near, stage.most)
        out = [each for each in running if each not in chosen] + out
        running = chosen
        if stage is _STAGES[0]:
            first = _Stage(START_ROWS, START_OUTSIDE, _FIRST_STEPS, stage.most, math.inf)
            for each in running:
                each.descend_from_both(first.steps_on(share * min(START_ROWS, size), scales))
        for each in running:
            each.advance(rows, outside, stage.steps_on(share * rows, scales))
    running.sort(key=lambda each: each.leading.pooled_error)
    running[0].look_at_isotropic(rows, outside)
    return [*running, *out]


def _going_on(ranked: list[Contestant], most: int) -> list[Contestant]:
    """The best; of many places each family gets one, and half are kept for rough families."""
    if most < 3:
        return ranked[:most]
    names = [each.name for each in ranked]
    first = [each for k, each in enumerate(ranked) if each.name not in names[:k]]
    rough = [each for each in first if each.name in _ROUGH][: most // 2]
    others = [each for each in [*first, *ranked] if each not in rough]
    return [*rough, *list(dict.fromkeys(others))[: most - len(rough)]]


def _as_metric(contestants: list[Contestant], *, leave_out: bool) -> LearnedMetric:
    winner = contestants[0]
    best, sample, transforms = winner.best, winner.sample, winner.transforms
    families: dict[str, float] = {}
    for each in contestants:
        families.setdefault(each.name, each.leading.pooled_error)
    scales = three_digits(best.kernel.length_scale)
    kernel = with_scales(best.kernel, scales)
    (alpha,) = three_digits([best.alpha])
    relevance = _relevance(winner, sample, scales)
    kept = np.ones(len(scales), dtype=bool)
    if leave_out and best is not winner.isotropic:
        kept = columns_to_keep(sample, kernel, alpha, relevance)
        relevance = np.where(kept, relevance, 0.0) / relevance[kept].sum()

    def in_units(error: float) -> float:
        return error * sample.unit * sample.unit

    return LearnedMetric(
        kernel=on_columns(kernel, scales, kept, transforms),
        alpha=alpha,
        family=winner.name,
        length_scales=np.where(kept, scales, np.inf),
        relevance=relevance,
        transforms=None if transforms is None else transforms.names,
        isotropic=best is winner.isotropic,
        error=in_units(best.error),
        outside_error=in_units(best.outside_error),
        isotropic_error=in_units(winner.isotropic.outside_error),
        families={name: in_units(error) for name, error in families.items()},
        rows=len(sample),
        history=tuple(
            replace(
                step,
                error=in_units(step.error),
                outside_error=in_units(step.outside_error),
            )
            for each in contestants
            for step in each.history
        ),
    )


def three_digits(values: Any) -> np.ndarray:
    """No more digits mean anything, and runs that differ by rounding then give the same."""
    return np.asarray([float(f"{value:.2e}") for value in np.asarray(values)])


def on_columns(
    kernel: DistanceKernel, scales: np.ndarray, kept: np.ndarray, transforms: Transforms | None
) -> Kernel:
    """The kernel on rows as they were given: of the columns that are kept, transformed."""
    columns = tuple(np.flatnonzero(kept).tolist())
    found: Kernel = with_scales(kernel, scales[kept])
    if transforms is not None:
        found = Warped(found, tuple(transforms.warps[j] for j in columns))
    return found if kept.all() else Columns(found, columns)


def _relevance(winner: Contestant, sample: Sample, scales: np.ndarray) -> np.ndarray:
    """Shares in the mean distance: ∝ s_j/ℓ_j for Manhattan distances, its square for others.

    That of a group is divided among its columns by their variances.
    """
    shares = winner.spread / scales
    if not isinstance(winner.family, Laplacian):
        shares = shares**2
    shares = shares * shares_of_variance(sample, winner.spread)
    total = float(shares.sum())
    return np.asarray(shares / total if total > 0 else np.full(len(shares), 1.0 / len(shares)))

"""Learn the metric and the shape of a kernel: scales, family and transforms of columns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.kernels import Columns, Kernel, Laplacian, Rotated
from ridgefold.kernels.distances import DistanceKernel, EuclideanKernel
from ridgefold.kernels.warped import Warped
from ridgefold.linalg import Array, namespace_of
from ridgefold.metric.families import FAMILIES, family_of, with_scales
from ridgefold.metric.groups import scales_of_columns
from ridgefold.metric.irrelevant_columns import columns_to_keep
from ridgefold.metric.racing_family import RacingFamily, kind_of_family
from ridgefold.metric.rotation import rotated_start
from ridgefold.metric.sample import MOST_OUTSIDE, Sample, draw_sample
from ridgefold.metric.slope_start import START_OUTSIDE, START_ROWS, Start, start_on
from ridgefold.metric.spreads import shares_of_variance
from ridgefold.metric.time_limit import TimeLimit
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
    """A stage of the race: how many rows and steps it has, and which families take part."""

    rows: float
    outside: float
    steps: int
    most: int
    """How many families take part, the best of those that are still in the race."""
    margin: float
    """A family takes part if its error is at most so many times the least one."""

    def steps_on(self, rows: float, scales: int) -> int:
        """More steps where there are fewer rows, which are cheap, and where more scales move."""
        several = min(2.0, max(0.5, math.sqrt(scales / _FEW_SCALES)))
        cheap = math.sqrt(min(self.rows, MAX_ROWS) / rows)
        return min(_MOST_STEPS, math.ceil(self.steps * several * cheap))


_FIRST_STEPS = 6
"""Steps from each start, on the rows of the start."""
_MOST_STEPS = 40
"""More steps hardly lowered an error outside the criterion any further."""
_FEW_SCALES = 8
"""The steps of the stages are meant for so many scales; pol, with 26 columns, needed more than
twelve."""
_STAGES = (
    _Stage(700, 500, 10, 4, math.inf),
    _Stage(1200, 1000, 8, 3, 1.6),
    _Stage(math.inf, math.inf, 5, 2, 1.1),
)
"""Most steps are taken on few rows, where they are cheap."""
_MORE_ROWS = 1.2
"""A stage with fewer than this many times the rows of the one before it is left out."""
_SHARE = 0.85
"""The race may take this share of the time limit; the rest is for leaving out columns."""
_ROUGH = ("manhattan", "rough")
"""Kinds of kernels that need more rows than others to show what they can do: one place in every
stage is kept for them. On ccpp the Laplacian is fifth of six families on 500 rows and first on
2,000."""
_ORDER = ("matern12", "laplacian", "matern32", "rbf")
_ROTATED_MARGIN = 1.05
"""Errors on directions, which have many numbers, must be smaller by this factor to come first."""
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
    fixed: tuple[int, ...] = (),
    folds: Sequence[np.ndarray] | int | None = 5,
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
    scale_groups: Any = None,
    leave_out: bool = True,
    rotate: bool = False,
    look_at_clock: Callable[[], None] | None = None,
    seconds: float | None = None,
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
    fixed : tuple of int
        Numbers of columns whose linear effect the models have besides, without a penalty.
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
    rotate : bool, default=False
        Families of Euclidean distances may have directions that mix columns, where rows outside
        are predicted clearly better by them.
    look_at_clock : callable, optional
        Called before every evaluation; what it raises ends the descent.
    seconds : float, optional
        About how long it may take. What is found by then is what comes of it: scales from slopes
        alone at the least, on rows as many as there is time for otherwise.

    Returns
    -------
    LearnedMetric
    """
    racing_families = race_families(
        X,
        y,
        family,
        learn_scales=learn_scales,
        preprocess=preprocess,
        weights=weights,
        bias=bias,
        fixed=fixed,
        folds=folds,
        max_rows=max_rows,
        random_state=random_state,
        scale_groups=scale_groups,
        rotate=rotate,
        look_at_clock=look_at_clock,
        seconds=seconds,
    )
    return _as_metric(racing_families, leave_out=leave_out)


def race_families(
    X: Array,
    y: Array,
    family: Any,
    *,
    learn_scales: bool,
    preprocess: str | None,
    weights: Array | None,
    bias: bool,
    fixed: tuple[int, ...],
    folds: Sequence[np.ndarray] | int | None,
    max_rows: int,
    random_state: int,
    scale_groups: Any,
    rotate: bool,
    look_at_clock: Callable[[], None] | None,
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> list[RacingFamily]:
    """Race the families against each other on every transform worth it; the best comes first."""
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
    limit = TimeLimit(None if seconds is None else _SHARE * seconds, clock)
    families = families_of(family)
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
        fixed=fixed,
    )
    sample = replace(sample, limit=limit)
    if look_at_clock is not None:
        sample = replace(sample, look_at_clock=look_at_clock)
    starts = _starts(sample, preprocess, learn=learn_scales)
    return _race(starts, families, sample.limit, rotate=rotate and learn_scales)


def _place_in_line(name: str) -> int:
    """Families in the order in which they are tried, if there may not be time for all."""
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


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
        if name != "standardise" and not sample.limit.spent:
            other = start_on(sample, fitted[name], learn=False, near=plain)
            if other.isotropic.pooled_error < best.isotropic.pooled_error * (1 - _MARGIN):
                best = other
    if best is not plain:
        best = start_on(sample, best.transforms, learn=learn, near=best)
    assert best.transforms is not None
    if sample.limit.spent:
        return [plain] if best is plain else [best, plain]
    few = sample.first(START_ROWS, START_OUTSIDE)
    chosen = column_by_column(few, fitted, best.transforms, best.best, best.spread)
    if chosen.names != best.transforms.names:
        best = start_on(sample, chosen, learn=learn, near=best)
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


def _race(
    starts: list[Start],
    families: Mapping[str, DistanceKernel],
    limit: TimeLimit,
    *,
    rotate: bool,
) -> list[RacingFamily]:
    """Descend on more and more rows, with fewer and fewer families; the best comes first.

    Of several families of one kind, only the best runs: after the first stage the others join
    it, with the scales that it has found; and the best of every Euclidean kind run once more, on
    directions that mix columns, where these are worth it. In every stage all families see the same
    rows and folds, and may take the same number of steps.
    """
    entered = _starters(starts, families, limit)
    sample = entered[0].sample
    size, scales = len(sample), len(np.unique(sample.scale_of))
    # Repeating rows must do what weights do: steps are as many as for the rows that differ.
    share = sample.distinct / size
    few = min(START_ROWS, size)
    still_racing = _who_goes_on(entered, _STAGES[0], size)
    steps = _Stage(START_ROWS, START_OUTSIDE, _FIRST_STEPS, 0, 0.0).steps_on(share * few, scales)
    for each in still_racing:
        if not limit.spent:
            each.descend_from_both(steps)
    rows, outside = few, START_OUTSIDE
    for stage in _STAGES:
        still_racing = _who_goes_on(still_racing, stage, size)
        stage_rows = min(stage.rows, size, limit.rows_for(stage.steps * len(still_racing)))
        if stage_rows >= _MORE_ROWS * rows or (stage is _STAGES[-1] and stage_rows == size > rows):
            rows, outside = int(stage_rows), int(min(stage.outside, MOST_OUTSIDE))
            for each in still_racing:
                if limit.has_time_for(rows):
                    each.advance(rows, outside, stage.steps_on(share * rows, scales))
        if stage is _STAGES[0]:
            rotated = _rotated(still_racing, rows, outside) if rotate else []
            for each in rotated:
                if limit.has_time_for(rows):
                    each.advance(rows, outside, stage.steps_on(share * rows, len(each.spread)))
            still_racing, entered = still_racing + rotated, entered + rotated
            for head, relative in _relatives(
                _who_goes_on(still_racing, _STAGES[1], size), entered, families
            ):
                each = relative.taking_over(head, rows, outside)
                still_racing += [] if each in still_racing else [each]
                entered += [] if each in entered else [each]
    entered.sort(key=_rank)
    entered[0].look_at_isotropic()
    return entered


def _rank(each: RacingFamily) -> tuple[int, float]:
    """Sort first by the number of rows that a family has got to, then by its error.

    Directions are found with the rows inside the criterion, and must be better by a margin.
    """
    margin = _ROTATED_MARGIN if each.is_rotated else 1.0
    return -each.most_rows, margin * each.leading.pooled_error


def _rotated(still_racing: list[RacingFamily], rows: int, outside: int) -> list[RacingFamily]:
    """The best family of every Euclidean kind, on directions found by the best of them all."""
    euclidean = sorted(
        (each for each in still_racing if each.kind != "manhattan"),
        key=lambda each: each.leading.pooled_error,
    )
    if not euclidean or not euclidean[0].sample.limit.has_time_for(rows):
        return []
    head = euclidean[0]
    start = rotated_start(head.start, head.leading, rows, outside)
    if start is None or start.slopes is None:
        return []
    heads = {each.kind: each for each in reversed(euclidean) if each.start is head.start}
    return [each.rotated(start, start.slopes.point, rows, outside) for each in heads.values()]


def _who_goes_on(still_racing: list[RacingFamily], stage: _Stage, size: int) -> list[RacingFamily]:
    """Which families go on to a stage: the best of every kind, and the best on another transform.

    Where there is more than one place, one of them goes to the best family of a rough kind.
    """
    ranked = sorted(still_racing, key=lambda each: each.expected_error(size))
    limit = stage.margin * ranked[0].expected_error(size)
    ranked = [each for each in ranked if each.expected_error(size) <= limit]
    kinds = [each.kind for each in ranked]
    heads = [each for k, each in enumerate(ranked) if each.kind not in kinds[:k]]
    others = [each for each in ranked if each.transforms is not ranked[0].transforms]
    queue = list(dict.fromkeys([*heads, *others[:1]]))
    rough = [each for each in queue if each.kind in _ROUGH][:1] if stage.most > 1 else []
    first = queue[0]
    return list(dict.fromkeys([first, *rough, *queue]))[: stage.most]


def _starters(
    starts: list[Start], families: Mapping[str, DistanceKernel], limit: TimeLimit
) -> list[RacingFamily]:
    """Who starts: one family of every kind, two of the smooth ones, all on the best transform.

    On the other transforms only the family starts that did best on the first one.
    """
    ordered = sorted(families, key=_place_in_line)
    kinds = [kind_of_family(families[name]) for name in ordered]
    names = [
        name
        for k, name in enumerate(ordered)
        if kinds[:k].count(kinds[k]) < (2 if kinds[k] == "smooth" else 1)
    ]
    starters: list[RacingFamily] = []
    for start in sorted(starts, key=lambda each: each.best.pooled_error):
        if starters:
            names = [min(starters, key=lambda each: each.leading.pooled_error).name]
        for name in names:
            if not starters or not limit.spent:
                starters.append(RacingFamily(name, families[name], start))
    return starters


def _relatives(
    heads: list[RacingFamily], known: list[RacingFamily], families: Mapping[str, DistanceKernel]
) -> Iterator[tuple[RacingFamily, RacingFamily]]:
    """Pairs of a family that leads its kind and another family of that kind, on one transform."""
    for head in heads:
        for name in sorted(families, key=_place_in_line):
            if kind_of_family(families[name]) != head.kind or name == head.name:
                continue
            if not head.sample.limit.has_time_for(head.most_rows):
                return
            start = head.unrotated.start
            same = [each for each in known if each.name == name and each.start is start]
            yield head, same[0] if same else RacingFamily(name, families[name], start)


def _as_metric(racing_families: list[RacingFamily], *, leave_out: bool) -> LearnedMetric:
    winner = racing_families[0]
    best, transforms = winner.best, winner.transforms
    directions = winner.directions_of(best)
    winner = winner.unrotated
    sample = winner.sample
    families: dict[str, float] = {}
    for each in racing_families:
        families.setdefault(each.name, each.leading.pooled_error)
    scales = three_digits(best.kernel.length_scale)
    kernel = with_scales(best.kernel, scales)
    (alpha,) = three_digits([best.alpha])
    if directions is not None:
        scales = in_directions(kernel, directions).column_scales
    relevance = _relevance(winner, sample, scales)
    kept = np.ones(len(scales), dtype=bool)
    isotropic = best is winner.isotropic
    if leave_out and directions is None and not isotropic and not sample.limit.spent:
        kept = columns_to_keep(sample.first(best.rows), kernel, alpha, relevance)
        relevance = np.where(kept, relevance, 0.0) / relevance[kept].sum()

    def in_units(error: float) -> float:
        return error * sample.unit * sample.unit

    return LearnedMetric(
        kernel=on_columns(kernel, transforms, directions, kept),
        alpha=alpha,
        family=winner.name,
        length_scales=np.where(kept, scales, np.inf),
        relevance=relevance,
        transforms=None if transforms is None else transforms.names,
        isotropic=isotropic,
        error=in_units(best.error),
        outside_error=in_units(best.outside_error),
        isotropic_error=in_units(winner.isotropic.outside_error),
        families={name: in_units(error) for name, error in families.items()},
        rows=best.rows,
        history=tuple(
            replace(
                step,
                error=in_units(step.error),
                outside_error=in_units(step.outside_error),
            )
            for each in racing_families
            for step in each.history
        ),
    )


def three_digits(values: Any) -> np.ndarray:
    """Rounded to three digits: more mean nothing, and runs that differ by rounding agree."""
    return np.asarray([float(f"{value:.2e}") for value in np.asarray(values)])


def on_columns(
    kernel: DistanceKernel,
    transforms: Transforms | None,
    directions: np.ndarray | None = None,
    kept: np.ndarray | None = None,
) -> Kernel:
    """The kernel on rows as they were given: of the columns that are kept, transformed, and then
    of coordinates along directions."""
    if kept is not None and not kept.all():
        columns = tuple(np.flatnonzero(kept).tolist())
        if transforms is not None:
            transforms = Transforms(
                tuple(transforms.names[j] for j in columns),
                tuple(transforms.warps[j] for j in columns),
            )
        scales = np.asarray(kernel.length_scale)[kept]
        return Columns(on_columns(with_scales(kernel, scales), transforms), columns)
    inner = kernel if directions is None else in_directions(kernel, directions)
    return inner if transforms is None else Warped(inner, transforms.warps)


def in_directions(kernel: DistanceKernel, directions: np.ndarray) -> Rotated:
    """The kernel on coordinates along directions, one a column of the array."""
    assert isinstance(kernel, EuclideanKernel)
    return Rotated(kernel, tuple(map(tuple, directions.T.tolist())))


def _relevance(winner: RacingFamily, sample: Sample, scales: np.ndarray) -> np.ndarray:
    """Shares in the mean distance: ∝ s_j/ℓ_j for Manhattan distances, its square for others.

    That of a group is divided among its columns by their variances.
    """
    shares = winner.spread / scales
    if not isinstance(winner.family, Laplacian):
        shares = shares**2
    shares = shares * shares_of_variance(sample, winner.spread)
    total = float(shares.sum())
    return np.asarray(shares / total if total > 0 else np.full(len(shares), 1.0 / len(shares)))

"""Learn the metric and the shape of a kernel: scales, family and transforms of columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.kernels import Columns, Kernel, Laplacian
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.kernels.warped import Warped
from ridgefold.learning.contestant import Contestant, shares_of_variance
from ridgefold.learning.families import FAMILIES, family_of, with_scales
from ridgefold.learning.groups import scales_of_columns
from ridgefold.learning.leaving_out import columns_to_keep
from ridgefold.learning.sample import Sample, draw_sample
from ridgefold.learning.transforms import (
    TRANSFORMS,
    Transforms,
    choose_transforms,
    transformed,
)
from ridgefold.linalg import Array, namespace_of
from ridgefold.records import LearnedMetric

AUTO = "auto"
MAX_ROWS = 2000
"""Rows that a metric is learned from by default: a step costs about n³ operations."""
_STAGES = ((500, 40, 4, 1.3), (1000, 20, 2, 1.1), (math.inf, 15, 1, 1.0))
"""Rows and most steps of every stage, how many families go on after it, and how much larger than
the least their error may be. Most of the way is gone on few rows, where steps are cheap."""
_FAMILIES_AGAIN = 3
"""Families, the best of those on standardised columns, that are tried on transformed ones."""


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
            f"preprocess must be None, {AUTO!r} or one of {', '.join(TRANSFORMS)}, got "
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
    if preprocess is None:
        return _contest(sample, contenders, learn=learn_scales, leave_out=leave_out)
    rows = int(_STAGES[0][0])
    found: list[LearnedMetric] = []
    for choice in choose_transforms(sample, preprocess, contenders, rows=rows, learn=learn_scales):
        part = transformed(sample, choice.warps)
        if found:
            again = list(found[0].families)[:_FAMILIES_AGAIN]
            contenders = {name: contenders[name] for name in again}
        found.append(
            _contest(part, contenders, learn=learn_scales, leave_out=leave_out, transforms=choice)
        )
    return min(found, key=lambda metric: next(iter(metric.families.values())))


def families_of(family: Any) -> dict[str, DistanceKernel]:
    """The families to choose from, by name."""
    if isinstance(family, str) and family == AUTO:
        return dict(FAMILIES)
    if isinstance(family, (list, tuple)):
        if not family:
            raise InvalidInputError("family is an empty list: give at least one family")
        return {name: each for one in family for name, each in families_of(one).items()}
    return {family if isinstance(family, str) else repr(family): family_of(family)}


def _contest(
    sample: Sample,
    families: Mapping[str, DistanceKernel],
    *,
    learn: bool,
    leave_out: bool,
    transforms: Transforms | None = None,
) -> LearnedMetric:
    """The best family; those that fall back are not followed further.

    In every stage all families see the same rows and folds, and may take as many steps.
    """
    running = [Contestant(name, f, sample, learn=learn) for name, f in families.items()]
    out: list[Contestant] = []
    done = 0
    for size, steps, most, margin in _STAGES:
        part = sample.first(int(min(size, len(sample))))
        if len(part) == done:
            break
        for each in running:
            if done == 0:
                each.start(part, steps)
            else:
                each.advance(part, steps)
        done = len(part)
        running.sort(key=lambda each: each.leading.pooled_error)
        limit = margin * running[0].leading.pooled_error
        kept = min(most, sum(each.leading.pooled_error <= limit for each in running))
        running, out = running[:kept], running[kept:] + out
    winner = running[0]
    if winner.learned is not None and winner.isotropic.rows < done:
        winner.advance_isotropic(sample)
    return _as_metric([*running, *out], sample, transforms, leave_out=leave_out)


def _as_metric(
    contestants: list[Contestant],
    sample: Sample,
    transforms: Transforms | None,
    *,
    leave_out: bool,
) -> LearnedMetric:
    winner = contestants[0]
    best = winner.best
    # Three digits: no more mean anything, and runs that differ by rounding give the same.
    scales = np.asarray([float(f"{scale:.2e}") for scale in np.asarray(best.kernel.length_scale)])
    kernel = with_scales(best.kernel, scales)
    alpha = float(f"{best.alpha:.2e}")
    relevance = _relevance(winner, sample, scales)
    kept = np.ones(len(scales), dtype=bool)
    if leave_out and best is not winner.isotropic:
        kept = columns_to_keep(sample, kernel, alpha, relevance)
        relevance = np.where(kept, relevance, 0.0) / relevance[kept].sum()

    def in_units(error: float) -> float:
        return error * sample.unit * sample.unit

    return LearnedMetric(
        kernel=_on_columns(kernel, scales, kept, transforms),
        alpha=alpha,
        family=winner.name,
        length_scales=np.where(kept, scales, np.inf),
        relevance=relevance,
        transforms=None if transforms is None else transforms.names,
        isotropic=best is winner.isotropic,
        error=in_units(best.error),
        outside_error=in_units(best.outside_error),
        isotropic_error=in_units(winner.isotropic.outside_error),
        families={each.name: in_units(each.leading.pooled_error) for each in contestants},
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


def _on_columns(
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

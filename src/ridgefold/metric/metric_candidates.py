"""Several kernels of different shapes and metrics, for a model that combines them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ridgefold.linalg import Array
from ridgefold.metric.descent import Descent
from ridgefold.metric.families import with_scales
from ridgefold.metric.metric import AUTO, MAX_ROWS, on_columns, race_families, three_digits
from ridgefold.metric.racing_family import RacingFamily
from ridgefold.records import MetricCandidate


def candidates(
    X: Array,
    y: Array,
    family: Any = AUTO,
    *,
    preprocess: str | None = AUTO,
    weights: Array | None = None,
    bias: bool = True,
    fixed: tuple[int, ...] = (),
    folds: Sequence[np.ndarray] | int | None = 5,
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
    scale_groups: Any = None,
    rotate: bool = False,
    look_at_clock: Callable[[], None] | None = None,
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[MetricCandidate, ...]:
    """Distinct kernels from one search for a metric, those of the least held-out error first.

    Every family that took part gives up to three, on every transform that it was tried on: with
    one width for all columns, with scales from the slopes of a first fit, and with scales that the
    gradient of the held-out error led to; on directions that mix columns, the last of these.
    Arguments are those of `learn_metric`.

    Returns
    -------
    tuple of MetricCandidate
    """
    begun = time.process_time()
    racing_families = race_families(
        X,
        y,
        family,
        learn_scales=True,
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
        clock=clock,
    )
    took = time.process_time() - begun
    every = [
        (each, origin, descent)
        for each in racing_families
        for origin, descent in (
            ("isotropic", None if each.is_rotated else each.isotropic),
            ("slopes", each.slopes),
            (each.learned_by, None if each.learned is each.slopes else each.learned),
        )
        if descent is not None
    ]
    made = [_candidate(each, origin, at, took / len(every)) for each, origin, at in every]
    distinct = {each.kernel: each for each in reversed(made)}
    return tuple(sorted(distinct.values(), key=lambda each: each.error))


def _candidate(
    racing_family: RacingFamily, origin: str, descent: Descent, seconds: float
) -> MetricCandidate:
    scales, transforms = three_digits(descent.kernel.length_scale), racing_family.transforms
    unit = racing_family.sample.unit
    return MetricCandidate(
        kernel=on_columns(
            with_scales(descent.kernel, scales), transforms, racing_family.directions_of(descent)
        ),
        alpha=float(three_digits([descent.alpha])[0]),
        family=racing_family.name,
        transforms=None if transforms is None else transforms.names,
        origin=origin,
        error=descent.pooled_error * unit * unit,
        rows=descent.rows,
        seconds=seconds,
    )

"""Which columns are irrelevant to a learned metric, so that it can do without them.

A column of a large scale hardly moves distances but costs as much time as any other. Columns are
left out in the order of their relevance, the least first, as many as change next to nothing: with
f and g the models with and without them, on the rows outside the criterion,

    rms(f − g) ≤ ε·rms(y − f)    or    rms(y − g) ≤ rms(y − f).

By the triangle inequality the error of g is then at most 1 + ε times that of f. It is about
1 + ε²/2 times where f − g has nothing to do with y − f, as what is left out is noise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ridgefold.errors import NumericalError
from ridgefold.kernels import KernelGram
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.metric.families import with_scales
from ridgefold.metric.sample import Sample
from ridgefold.solvers import SOLVERS, RidgeSystem

CHANGE = 0.03
"""ε: predictions may move by this share of their error."""
_LEAST = 0.05
"""Columns with a larger share in distances are kept without a trial."""


def columns_to_keep(
    sample: Sample, kernel: DistanceKernel, alpha: float, relevance: np.ndarray
) -> np.ndarray:
    """True for every column that the kernel needs, at least one; groups stay together."""
    d = len(relevance)
    everything = np.ones(d, dtype=bool)
    if int(sample.outside_X.shape[0]) == 0:
        return everything
    shares = np.bincount(sample.scale_of, weights=relevance)
    order = np.argsort(shares, kind="stable")
    most = min(int(np.sum(shares < _LEAST)), len(shares) - 1)
    if most == 0:
        return everything
    scales = np.asarray(kernel.length_scale)
    reference = _predictions(sample, kernel, alpha)
    if reference is None:
        return everything
    truth = np.asarray(sample.namespace.to_numpy(sample.outside_y))
    error = _root_mean_square(sample, truth - reference)

    def kept_without(count: int) -> np.ndarray:
        return ~np.isin(sample.scale_of, order[:count])

    def negligible(count: int) -> bool:
        if sample.limit.spent:
            return False
        kept = kept_without(count)
        columns = np.flatnonzero(kept)
        without = sample.with_columns(
            *(sample.namespace.xp.take(each, sample.namespace.indices(columns, each), axis=1)
              for each in (sample.X, sample.outside_X))
        )  # fmt: skip
        predicted = _predictions(
            replace(without, scale_of=sample.scale_of[kept]),
            with_scales(kernel, scales[kept]),
            alpha,
        )
        if predicted is None:
            return False
        change = _root_mean_square(sample, predicted - reference)
        return change <= CHANGE * error or _root_mean_square(sample, truth - predicted) <= error

    # What leaves out more changes more: a bisection finds about the largest number.
    low, high = 0, most + 1
    count = most
    while high - low > 1:
        low, high = (count, high) if negligible(count) else (low, count)
        count = (low + high) // 2
    return kept_without(low)


def _predictions(sample: Sample, kernel: DistanceKernel, alpha: float) -> np.ndarray | None:
    """Predictions of the rows outside the criterion, by a model of those inside it."""
    gram = KernelGram(kernel, sample.X, columns=sample.columns)
    ridges = np.full(int(sample.y.shape[1]), alpha)
    system = RidgeSystem(gram, sample.y, ridges, weights=sample.weights, bias=sample.bias)
    try:
        model = SOLVERS["cholesky"].solve(system)
    except NumericalError:
        return None
    new = KernelGram(kernel, sample.outside_X, sample.X)
    predicted = new.matmat(model.dual_coef) + model.intercept[None, :]
    if sample.outside_columns is not None:
        predicted = predicted + sample.outside_columns @ model.fixed_coef
    return np.asarray(sample.namespace.to_numpy(predicted))


def _root_mean_square(sample: Sample, errors: np.ndarray) -> float:
    squares = (errors * errors).mean(axis=1)
    return float(np.sqrt(np.average(squares, weights=sample.outside_weights)))

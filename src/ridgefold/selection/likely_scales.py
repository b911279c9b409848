"""Length scales that were learned, moved to where the marginal likelihood is largest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ridgefold.kernels import Columns, Kernel, Laplacian, Warped
from ridgefold.kernels.derived import with_core
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.kernels.gram import columns_of
from ridgefold.kernels.warped import warp
from ridgefold.linalg import Array
from ridgefold.linalg.unpenalised import unpenalised_space
from ridgefold.metric.families import with_scales
from ridgefold.metric.groups import scales_of_columns
from ridgefold.metric.likelihood import MarginalLikelihood, ascend
from ridgefold.metric.metric import three_digits
from ridgefold.records import LearnedMetric
from ridgefold.runtime.training_data import TrainingData


def with_likely_scales(
    metric: LearnedMetric,
    data: TrainingData,
    targets: Array,
    *,
    bias: bool,
    fixed: tuple[int, ...],
    groups: Any,
    max_rows: int,
    look_at_clock: Callable[[], None] | None,
) -> LearnedMetric:
    """The metric with scales and ridge of the largest likelihood, from where it stands.

    Of at most `max_rows` rows, evenly spaced among those of positive weight. One scale for all
    columns stays one.
    """
    namespace, double = data.namespace, data.namespace.double()
    n, weights = int(data.X.shape[0]), None
    counted = np.arange(n)
    if data.weights is not None:
        counted = np.flatnonzero(namespace.to_numpy(data.weights) > 0)
    places = np.linspace(0, len(counted) - 1, min(len(counted), max_rows)).astype(np.intp)
    rows = counted[places]
    if data.weights is not None:
        weights = namespace.take_rows(data.weights, rows)
    kernel, columns, warps = _parts(metric.kernel, int(data.X.shape[1]))
    X = namespace.astype(namespace.take_rows(data.X, rows), double)
    basis = namespace.ones((len(rows), int(bias)), X)
    if fixed:  # any basis of what the columns span gives the same likelihood
        space = unpenalised_space(
            namespace, columns_of(X, fixed), None, bias=bias, n_rows=len(rows), like=X
        )
        assert space is not None
        basis = space.basis
    X = namespace.xp.take(X, namespace.indices(np.asarray(columns), X), axis=1)
    if warps is not None:
        each = [warp(namespace, w, X[:, j]) for j, w in enumerate(warps)]
        X = namespace.xp.stack(each, axis=1)
    scale_of = scales_of_columns(groups, int(data.X.shape[1]))[list(columns)]
    scale_of = np.unique(scale_of, return_inverse=True)[1]
    if metric.isotropic:
        scale_of = np.zeros(len(columns), dtype=int)
    y = namespace.take_rows(targets, rows)
    found, alpha, _ = ascend(
        MarginalLikelihood(X, y, basis, weights),
        kernel,
        metric.alpha,
        scale_of=scale_of,
        n_targets=int(targets.shape[1]),
        look_at_clock=look_at_clock,
    )
    scales = three_digits(np.broadcast_to(np.asarray(found.length_scale), (len(columns),)))
    before = np.broadcast_to(np.asarray(kernel.length_scale, np.float64), (len(columns),))
    power = 1.0 if isinstance(kernel, Laplacian) else 2.0
    relevance = np.array(metric.relevance, dtype=np.float64)
    relevance[list(columns)] *= (before / scales) ** power
    every = np.full(int(data.X.shape[1]), np.inf)
    every[list(columns)] = scales
    return replace(
        metric,
        kernel=with_core(metric.kernel, lambda core: with_scales(core, scales)),
        alpha=float(three_digits([alpha])[0]),
        length_scales=every,
        relevance=relevance / relevance.sum(),
    )


def _parts(kernel: Kernel, n_columns: int) -> tuple[DistanceKernel, tuple[int, ...], Any]:
    """The kernel of distances within a learned one, its columns and their transforms."""
    columns, warps = tuple(range(n_columns)), None
    if isinstance(kernel, Columns):
        columns, kernel = tuple(kernel.columns), kernel.kernel
    if isinstance(kernel, Warped):
        warps, kernel = kernel.columns, kernel.kernel
    assert isinstance(kernel, DistanceKernel)
    return kernel, columns, warps

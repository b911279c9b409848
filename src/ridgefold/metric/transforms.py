"""Transforms of single columns, fitted to the rows that a metric is learned from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ridgefold.kernels import Laplacian
from ridgefold.kernels.warped import Warped
from ridgefold.metric.criterion import HeldOutError
from ridgefold.metric.descent import Descent
from ridgefold.metric.sample import Sample
from ridgefold.records import Quantile, SignedLog, Standardise, Warp

MOST_KNOTS = 101
_MOST_COLUMNS = 40
"""Columns, the most relevant ones, for which other transforms are tried one by one."""


def standardise(x: np.ndarray, shares: np.ndarray) -> Warp:
    """Mean 0, standard deviation 1; a column that never varies is only shifted."""
    mean = float(shares @ x)
    spread = math.sqrt(float(shares @ (x - mean) ** 2))
    return Standardise(mean, spread if spread > 1e-12 * max(abs(mean), 1.0) else 1.0)


def signed_log(x: np.ndarray, shares: np.ndarray) -> Warp:
    """Logarithms away from the median, in units of the median distance from it."""
    centre = _median(x, shares)
    away = np.abs(x - centre)
    unit = _median(away, shares)
    if unit == 0.0:  # more than half of the column is one value
        unit = _median(away[away > 0], shares[away > 0]) if np.any(away > 0) else 1.0
    u = (x - centre) / unit
    curve = np.sign(u) * np.log1p(np.abs(u))
    spread = math.sqrt(float(shares @ (curve - shares @ curve) ** 2))
    return SignedLog(centre, unit, spread if spread > 0 else 1.0)


def quantile(x: np.ndarray, shares: np.ndarray) -> Warp:
    """Ranks, as a piecewise linear function with the variance of a standardised column.

    Equal values get the middle of their ranks, so a few codes stay a few values.
    """
    values, which = np.unique(x, return_inverse=True)
    if len(values) < 2:
        return standardise(x, shares)
    counts = np.bincount(which.ravel(), weights=shares)
    ranks = np.cumsum(counts) - 0.5 * counts
    if len(values) > MOST_KNOTS:
        wanted = np.linspace(ranks[0], ranks[-1], MOST_KNOTS)
        kept = np.unique(np.clip(np.searchsorted(ranks, wanted), 0, len(values) - 1))
        values, ranks = values[kept], ranks[kept]
    heights = (ranks - 0.5) * math.sqrt(12.0)
    return Quantile(tuple(values.tolist()), tuple(heights.tolist()))


def _median(x: np.ndarray, shares: np.ndarray) -> float:
    """The smallest value that half of the weight does not exceed."""
    order = np.argsort(x, kind="stable")
    below = np.cumsum(shares[order])
    return float(x[order][np.searchsorted(below, 0.5 * below[-1] * (1 - 1e-9))])


TRANSFORMS: dict[str, Callable[[np.ndarray, np.ndarray], Warp]] = {
    "standardise": standardise,
    "quantile": quantile,
    "signed_log": signed_log,
}
"""What `MetricLearning(transforms=…)` may name; "auto" chooses one of them for every column. Each
is fitted to the values of a column and the shares of its rows, which add up to one."""


@dataclass(frozen=True)
class Transforms:
    """One transform a column, by name and fitted."""

    names: tuple[str, ...]
    warps: tuple[Warp, ...]


def transformed(sample: Sample, warps: Sequence[Warp]) -> Sample:
    """The sample with its columns transformed."""
    kernel = Warped(Laplacian(), tuple(warps))
    return sample.with_columns(
        kernel.transform(sample.namespace, sample.X),
        kernel.transform(sample.namespace, sample.outside_X),
    )


def fitted_transforms(sample: Sample) -> dict[str, Transforms]:
    """Every transform for all columns at once. Columns that share a scale share their unit too, and
    stay as they are."""
    X, grouped = np.asarray(sample.namespace.to_numpy(sample.X)), sample.grouped
    return {
        name: Transforms(
            tuple("none" if each else name for each in grouped),
            tuple(
                Standardise() if grouped[j] else fit(X[:, j], sample.shares)
                for j in range(X.shape[1])
            ),
        )
        for name, fit in TRANSFORMS.items()
    }


def column_by_column(
    sample: Sample,
    fitted: Mapping[str, Transforms],
    chosen: Transforms,
    leader: Descent,
    spread: np.ndarray,
) -> Transforms:
    """Change the transform of one column after the other, the most relevant first.

    `leader` is a fit on the columns in the transforms that are `chosen`; a change is kept where it
    lowers the held-out error of its kernel.
    """
    names, warps = list(chosen.names), list(chosen.warps)
    relevance = spread / np.asarray(leader.kernel.length_scale)

    current = transformed(sample, warps)

    def with_column(j: int, warp: Warp) -> Sample:
        """The rows inside with one column in another transform."""
        namespace, one = sample.namespace, Warped(Laplacian(), (warp,))
        X = namespace.copy(current.X)
        X[:, j] = one.transform(namespace, sample.X[:, j : j + 1])[:, 0]
        return current.with_columns(X, current.outside_X)

    def error(part: Sample) -> float:
        criterion = HeldOutError(
            part.X,
            part.y,
            folds=part.folds,
            bias=part.bias,
            weights=part.weights,
            score_weights=part.weights,
            columns=part.columns,
        )
        return criterion.value(leader.kernel, leader.alpha)

    lowest = error(current)
    alone = [j for j in np.argsort(-relevance) if not sample.grouped[j]]
    for j in alone[:_MOST_COLUMNS]:
        for other, every in fitted.items():
            if other == names[j] or sample.limit.spent:
                continue
            changed = with_column(j, every.warps[j])
            now = error(changed)
            if now < lowest * (1 - 4.0 / sample.distinct):
                lowest, current = now, changed
                names[j], warps[j] = other, every.warps[j]
    return Transforms(tuple(names), tuple(warps))

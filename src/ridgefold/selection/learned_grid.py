"""Candidates of the search from a learned metric instead of a grid of widths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from ridgefold.crossval import Deadline, Folds
from ridgefold.errors import InvalidInputError, ModelFileError, UnsupportedInputError
from ridgefold.kernels import (
    NAMED_KERNELS,
    Columns,
    Kernel,
    KernelSettings,
    Rotated,
    Warped,
    resolve_kernel,
)
from ridgefold.kernels.derived import with_core
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.linalg import Array
from ridgefold.metric import FAMILIES, LearnedMetric, learn_metric
from ridgefold.options import MetricLearning, metric_of, search_of
from ridgefold.runtime.training_data import TrainingData, as_ridgefold_errors
from ridgefold.selection.grids import Candidate, KernelGrid
from ridgefold.selection.learning_optimism import (
    FOLDS_LEARNED_AGAIN,
    Relearn,
    few_rows_a_scale,
)
from ridgefold.selection.likely_scales import with_likely_scales
from ridgefold.selection.scoring import by_likelihood

AUTO = "auto"
_SHARE_OF_TIME = 0.5
"""Learning takes at most this share of a time budget: the search and the fit come after it."""
_MANY_ROWS = 3000
"""Beyond so many rows the final search keeps to the learned scales and tries fewer ridges: what
one more kernel costs grows with the third power of the rows, what it gains does not."""
# Ties go to the first in the grid, so what was learned stands first, and what is near it next.
_FACTORS = tuple(2.0**step for step in (0.0, -0.5, 0.5))
_ISOTROPIC_FACTORS = tuple(2.0**step for step in (0.0, -0.5, 0.5, -1.0, 1.0))
_FEW_ALPHAS = 10.0 ** np.asarray([0.0, -0.5, 0.5, -1.0, 1.0])
_ALPHAS = 10.0 ** (np.asarray([0, -1, 1, -2, 2, -3, 3, -4, -5, -6]) / 3.0)
_LIKELY_ALPHA = 0.1
"""The ridge that plans take for the learned one: of kernels whose values are 1 at most it is most
often between a hundredth and 1."""


@dataclass(frozen=True)
class LearnedGrid:
    """The kernels and ridges that the final search tries, and the metric that they lie around."""

    metric: LearnedMetric
    grid: KernelGrid
    alphas: np.ndarray
    again: Relearn
    """Learns a metric in the same way from other rows."""


def is_automatic(kernel: Any) -> bool:
    """Whether the family of the kernel is to be chosen."""
    return isinstance(kernel, str) and kernel == AUTO


def to_learn(model: Any) -> MetricLearning | None:
    """What the model learns beyond a grid, if anything; a typed error if it cannot."""
    asked = metric_of(model)
    nothing = asked is None or not (asked.scales or asked.transforms is not None)
    if nothing and not is_automatic(model.kernel):
        return None
    parameters = model.kernel_params if isinstance(model.kernel_params, Mapping) else {}
    given = {"gamma": model.gamma, "length_scale": parameters.get("length_scale")}
    for name, value in given.items():
        if value is not None:
            raise InvalidInputError(
                f"{name}={value!r} cannot be given where the metric is learned, or with "
                f'kernel="auto": the length scales are found, leave {name} out'
            )
    return MetricLearning(scales=False) if asked is None else asked


def learning_arguments(model: Any, asked: MetricLearning, data: TrainingData) -> Mapping[str, Any]:
    """What the model asks of `learn_metric` and `candidates`, but for the number of rows."""
    if scipy.sparse.issparse(data.X):
        raise UnsupportedInputError(
            'metric and kernel="auto" cannot take sparse X: pass X.toarray()'
        )
    with as_ridgefold_errors("random_state must be a whole number, a RandomState or None"):
        seed = int(check_random_state(model.random_state).randint(2**31 - 1))
    again = search_of(model).stack or getattr(model, "intervals", None) is not None
    few = again and few_rows_a_scale(data.X, data.weights, asked.groups)
    look = None if data.deadline is None else partial(data.deadline.check, "learning scales")
    return {
        "family": families_to_learn(model.kernel, model.kernel_params),
        "preprocess": asked.transforms,
        "bias": bool(model.fit_intercept),
        "fixed": model._fixed_columns(),
        "random_state": seed,
        "scale_groups": asked.groups,
        "rotate": rotates(model, asked),
        "look_at_clock": look,
        "seconds": learning_seconds(asked, data.deadline, times=1 + FOLDS_LEARNED_AGAIN * few),
    }


def rotates(model: Any, asked: MetricLearning) -> bool:
    """Whether directions that mix columns may be learned.

    Not for classes: the log-loss of stacks with directions was lower on magic alone (by 0.5%) and
    0.4 to 3% higher on german, credit, electricity and letter_binary.
    """
    return bool(asked.rotate) and not is_classifier(model) and not by_likelihood(model.scoring)


def learning_seconds(
    asked: MetricLearning, deadline: Deadline | None, *, times: int
) -> float | None:
    """How long learning may take that is done so many times: all together as long as was said, but
    at most half of what is left."""
    left = None if deadline is None else _SHARE_OF_TIME * deadline.left
    said = None if asked.seconds is None else float(asked.seconds)
    return min((each / times for each in (left, said) if each is not None), default=None)


def learned_grid(
    model: Any,
    asked: MetricLearning,
    data: TrainingData,
    targets: Array,
    folds: Folds,
    *,
    max_rows: int,
) -> LearnedGrid:
    """Learn from at most so many rows, then lay a small grid around what was learned.

    Where the likelihood is to choose, it moves the scales that the held-out error has found.
    """
    arguments = {**learning_arguments(model, asked, data), "max_rows": max_rows}
    learn: Relearn = partial(learn_metric, learn_scales=bool(asked.scales), **arguments)
    metric = learn(data.X, targets, weights=data.weights, folds=folds_to_learn_from(folds))
    if data.deadline is not None:
        data.deadline.begun = True
    if by_likelihood(model.scoring):
        metric = with_likely_scales(
            metric,
            data,
            targets,
            bias=bool(model.fit_intercept),
            fixed=arguments["fixed"],
            groups=asked.groups,
            max_rows=max_rows,
            look_at_clock=arguments["look_at_clock"],
        )
    factors, ridges = _around(int(data.X.shape[0]), isotropic=metric.isotropic)
    candidates = tuple(
        Candidate(
            with_core(metric.kernel, partial(_multiplied, factor)),
            {"kernel": metric.family, "scale_factor": factor},
        )
        for factor in factors
    )
    alphas = metric.alpha * ridges
    return LearnedGrid(metric, KernelGrid(candidates, widths_from_data=False), alphas, learn)


def _around(n_rows: int, *, isotropic: bool) -> tuple[tuple[float, ...], np.ndarray]:
    """Factors of the scales and of the ridge that was learned, which the final search tries."""
    many = n_rows > _MANY_ROWS
    factors = _ISOTROPIC_FACTORS if isotropic else ((1.0,) if many else _FACTORS)
    return factors, _FEW_ALPHAS if many else _ALPHAS


def likely_grid(n_rows: int, *, isotropic: bool) -> tuple[int, np.ndarray]:
    """How many kernels the final search will try, and with which ridges, before they are known."""
    factors, ridges = _around(n_rows, isotropic=isotropic)
    return len(factors), _LIKELY_ALPHA * ridges


def families_to_learn(kernel: Any, parameters: Mapping[str, Any] | None) -> Any:
    """What `kernel` stands for, as something that `learn_metric` takes."""
    if isinstance(kernel, (list, tuple)):
        return [families_to_learn(each, parameters) for each in kernel]
    named = isinstance(kernel, str) and kernel in NAMED_KERNELS
    if not named or (kernel in FAMILIES and not parameters):
        return kernel
    resolved = resolve_kernel(kernel, KernelSettings(parameters=parameters), 1)
    if not isinstance(resolved, DistanceKernel):
        raise InvalidInputError(
            f"kernel={kernel!r} has no length scales to learn: use one of "
            f'{", ".join(FAMILIES)}, "matern", a kernel object of these, or "auto"'
        )
    return resolved


def folds_to_learn_from(folds: Folds) -> list[np.ndarray] | int | None:
    """The test sets of the search where the criterion can use them.

    Folds that overlap, or that train on less than all other rows (time series), have no short
    formula; the metric is then learned by five random folds, and the search that follows keeps
    to the folds it was given.
    """
    if folds.leave_one_out:
        return None
    if folds.complement and folds.disjoint:
        return list(folds.test)
    return 5


def _multiplied(factor: float, kernel: DistanceKernel) -> Kernel:
    """The kernel with all its length scales multiplied."""
    scales = np.asarray(kernel.length_scale) * factor
    return replace(kernel, length_scale=tuple(scales.tolist()))


def length_scales_of(kernel: Kernel | str, n_columns: int) -> np.ndarray:
    """One length scale a column, after its transform; infinite for those left out."""
    columns, inner = tuple(range(n_columns)), kernel
    if isinstance(inner, Columns):
        columns, inner = inner.columns, inner.kernel
    if isinstance(inner, Warped):
        inner = inner.kernel
    if not isinstance(inner, (DistanceKernel, Rotated)):
        raise ModelFileError(f"a metric was learned, but {inner!r} has no length scales")
    own = inner.column_scales if isinstance(inner, Rotated) else inner.length_scale
    if max(columns) >= n_columns or np.size(own) not in (1, len(columns)):
        raise ModelFileError(f"a metric was learned, but not for the {n_columns} columns of X")
    scales = np.full(n_columns, np.inf)
    scales[list(columns)] = own
    return scales

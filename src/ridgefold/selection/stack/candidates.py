"""Which kernels a stack is made from: families with widths of their own, or learned metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ridgefold.crossval import Folds
from ridgefold.errors import InvalidInputError
from ridgefold.exact.leave_two_out import leave_two_out
from ridgefold.kernels import Kernel, KernelGram
from ridgefold.linalg import Array
from ridgefold.metric import FAMILIES, candidates
from ridgefold.options import MetricLearning
from ridgefold.records import MetricCandidate
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.grids import (
    Candidate,
    KernelGrid,
    alphas_from_data,
    check_alphas,
    kernel_grid,
    widths_from_data,
)
from ridgefold.selection.learned_grid import (
    folds_to_learn_from,
    is_automatic,
    learning_arguments,
    to_learn,
)
from ridgefold.selection.learning_optimism import few_rows_a_scale
from ridgefold.selection.stack.nested import fold_groups, rows_of_groups
from ridgefold.selection.stack.relearned import (
    MOST_RELEARNED,
    ROWS_LEARNED_AGAIN,
    Learn,
    relearned_predictions,
)
from ridgefold.selection.stack.weights import weights_for_classes, weights_for_numbers

_FEW_ROWS, _MANY_ROWS = 1500, 6000
_MOST_CANDIDATES = (4, 3, 2)
"""The most candidates with few, more, and many rows: each costs a cross-validation and a fit of all
rows, and the third member of a stack lowers its error by less than the second."""
_SAMPLE_ROWS, _SAMPLE_FOLDS = 800, 5
_WORST = 3.0
"""Candidates with more than so many times the least squared error are not looked at."""
_RIDGES = 10.0 ** np.asarray([0.0, -0.5, 0.5])
"""Ridges to try around a learned one: it was found on other rows, or fewer."""
_RIDGES_OF_CLASSES = 10.0 ** np.asarray([0.0, 0.5, 1.0])
"""Learned ridges are for the squared error of labels; probabilities ask for larger ones."""
_ROWS_FOR_CLASSES = 700
"""Rows to learn metrics from where targets are classes: more rows gave stacks that were no better,
in half as much time again."""


Weigh: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(held-out predictions, targets, weights of the rows) -> weights, (candidates, t)."""
GRID = "grid"
"""The origin of kernels whose widths are tried one by one."""


@dataclass(frozen=True)
class StackCandidate:
    """A kernel, or one kernel of several widths, with the ridges to choose from."""

    family: str
    origin: str
    grid: KernelGrid
    alphas: np.ndarray
    extended: bool
    """Whether the ridges were chosen here, so that they are extended if the best is at an end."""

    @property
    def description(self) -> str:
        """What it is called in an explanation."""
        return self.family if self.origin == GRID else f"{self.family}, {self.origin}"


@dataclass(frozen=True)
class StackPlan:
    """The candidates, and what is known of them before their searches."""

    candidates: tuple[StackCandidate, ...]
    relearned: np.ndarray | None
    """Where needed, held-out predictions by metrics that have not seen the rows either, of shape
    (candidates, n, t)."""
    groups: tuple[np.ndarray, ...]
    """Numbers of the folds that are left out together to find weights."""


def most_candidates(n_rows: int) -> int:
    """How many kernels are tried on all rows."""
    few, some, many = _MOST_CANDIDATES
    return few if n_rows <= _FEW_ROWS else some if n_rows <= _MANY_ROWS else many


def stack_plan(
    model: Any,
    data: TrainingData,
    targets: Array,
    folds: Folds,
    *,
    max_rows: int | None = None,
    classify: bool = False,
) -> StackPlan:
    """Candidates of a model that combines kernels: metrics learned from at most so many rows, else
    a grid of every family.

    The targets of classes are columns of −1 and 1.
    """
    asked = to_learn(model)
    if asked is not None and (asked.scales or asked.transforms is not None):
        assert max_rows is not None
        return _learned(model, asked, data, targets, folds, max_rows=max_rows, classify=classify)
    grids = _grids(model, data)
    if len(grids) < 2:
        raise InvalidInputError(
            f"search.stack=True combines several kernels, and kernel={model.kernel!r} is one: use "
            'kernel="auto", a list of kernels, or learned scales'
        )
    return StackPlan(tuple(grids), None, fold_groups(folds))


def _grids(model: Any, data: TrainingData) -> list[StackCandidate]:
    """Every kernel of the list, with widths from the data if none is given."""
    kernels = model.kernel
    if is_automatic(kernels):
        kernels = list(FAMILIES.values())
    if not isinstance(kernels, (list, tuple)):
        kernels = [kernels]
    settings = {"gamma": model.gamma, "kernel_params": model.kernel_params}
    names = dict(zip(FAMILIES.values(), FAMILIES, strict=True))
    made = []
    for kernel in kernels:
        if kernel in names and is_automatic(model.kernel):
            grid = widths_from_data(kernel, data)
        else:
            grid = kernel_grid(kernel, settings, data)
        middle = grid.candidates[len(grid.candidates) // 2].kernel
        given = model.alpha is not None
        alphas = check_alphas(model.alpha) if given else alphas_from_data(middle, data)
        name = names.get(kernel, kernel if isinstance(kernel, str) else repr(kernel))
        named = tuple(
            replace(each, params={"kernel": name, **each.params}) for each in grid.candidates
        )
        made.append(StackCandidate(name, GRID, replace(grid, candidates=named), alphas, not given))
    return made


def _learned(
    model: Any,
    asked: MetricLearning,
    data: TrainingData,
    targets: Array,
    folds: Folds,
    *,
    max_rows: int,
    classify: bool,
) -> StackPlan:
    if classify:
        max_rows = min(max_rows, _ROWS_FOR_CLASSES)
    arguments = {**learning_arguments(model, asked, data), "max_rows": max_rows}
    learn: Learn = partial(candidates, **arguments)
    again: Learn = partial(
        candidates, **{**arguments, "max_rows": min(arguments["max_rows"], ROWS_LEARNED_AGAIN)}
    )
    metrics = learn(data.X, targets, weights=data.weights, folds=folds_to_learn_from(folds))
    if not asked.scales:
        metrics = tuple(each for each in metrics if each.origin == "isotropic")
    if data.deadline is not None:
        data.deadline.begun = True
    bias, fixed = bool(model.fit_intercept), model._fixed_columns()
    if not few_rows_a_scale(data.X, data.weights, asked.groups):
        chosen = promising(
            metrics, data.X, targets, data.weights, bias=bias, fixed=fixed, classify=classify
        )
        ridges = None if model.alpha is None else check_alphas(model.alpha)
        made = tuple(of_metric(each, ridges, classify=classify) for each in chosen)
        return StackPlan(made, None, fold_groups(folds))
    groups = fold_groups(folds, MOST_RELEARNED)
    training = (data.X, targets, data.weights)
    held_out = relearned_predictions(
        metrics, again, training, rows_of_groups(folds, groups), bias=bias, fixed=fixed
    )
    numbers = data.namespace.to_numpy(targets).astype(np.float64)
    counts = np.ones(len(numbers))
    if data.weights is not None:
        counts = data.namespace.to_numpy(data.weights).astype(np.float64)
    used = np.flatnonzero(counts > 0)
    kept = most_useful(
        held_out[:, used],
        numbers[used],
        counts[used],
        partial(weigh_candidates, bias=bias, classify=classify),
        most_candidates(len(numbers)),
    )
    made = tuple(of_metric(metrics[m], np.asarray([metrics[m].alpha])) for m in kept)
    return StackPlan(made, held_out[kept], groups)


def of_metric(
    metric: MetricCandidate, alphas: np.ndarray | None, *, classify: bool = False
) -> StackCandidate:
    """A learned metric with these ridges; without any with its own and some around it."""
    around = _RIDGES_OF_CLASSES if classify else _RIDGES
    params = {"kernel": metric.family, "origin": metric.origin}
    return StackCandidate(
        metric.family,
        metric.origin,
        KernelGrid((Candidate(metric.kernel, params),), widths_from_data=False),
        metric.alpha * around if alphas is None else alphas,
        extended=False,
    )


def promising(
    metrics: Sequence[MetricCandidate],
    X: Array,
    targets: Array,
    weights: Array | None,
    *,
    bias: bool,
    fixed: tuple[int, ...] = (),
    classify: bool = False,
) -> list[MetricCandidate]:
    """The metrics that get a weight in a stack of a sample of the rows, at most `most_candidates`.

    Most learned metrics are near to another one that is better. Looking at a sample takes as long
    as one cross-validation of all rows.
    """
    n = int(X.shape[0])
    # In a stack of kernels of like smoothness, one that errs by much more than the best adds
    # nothing.
    best = min(each.error for each in metrics)
    metrics = [each for each in metrics if each.error <= _WORST * best or each.error == best]
    gram = [
        KernelGram(each.kernel, X, fixed=fixed)
        for each in metrics
        if isinstance(each.kernel, Kernel)
    ]
    namespace = gram[0].namespace
    rows = np.random.default_rng(0).permutation(n)[:_SAMPLE_ROWS]
    if weights is not None:
        counts = namespace.to_numpy(weights)
        rows = rows[counts[rows] > 0] if np.any(counts[rows] > 0) else np.flatnonzero(counts > 0)
    sample_folds = Folds(len(rows), tuple(np.array_split(np.arange(len(rows)), _SAMPLE_FOLDS)))
    y = namespace.take_rows(targets, rows)
    w = None if weights is None else namespace.take_rows(weights, rows)
    nothing = (np.empty(0, dtype=int),)
    held_out = np.stack(
        [
            leave_two_out(
                each.restricted(rows),
                y,
                np.full(int(y.shape[1]), metric.alpha),
                sample_folds,
                nothing,
                weights=w,
                bias=bias,
            )[0]
            for each, metric in zip(gram, metrics, strict=True)
        ]
    )
    numbers = namespace.to_numpy(y).astype(np.float64)
    counts = np.ones(len(rows)) if w is None else namespace.to_numpy(w).astype(np.float64)
    weigh = partial(weigh_candidates, bias=bias, classify=classify)
    kept = most_useful(held_out, numbers, counts, weigh, most_candidates(n))
    return [metrics[m] for m in kept]


def weigh_candidates(
    held_out: np.ndarray, y: np.ndarray, counts: np.ndarray, *, bias: bool, classify: bool
) -> np.ndarray:
    """Weights of a stack of all of them: by the likelihood of classes, or by squared errors."""
    if not classify:
        return weights_for_numbers(held_out, y, counts, bias=bias).weights
    codes = (y[:, 0] > 0).astype(int) if y.shape[1] == 1 else np.argmax(y, axis=1)
    return weights_for_classes(held_out, codes, counts).weights


def most_useful(
    held_out: np.ndarray, y: np.ndarray, counts: np.ndarray, weigh: Weigh, most: int
) -> list[int]:
    """Numbers of the candidates of the largest weights, and that of the least squared error.

    Where there are too many, that of the least weight goes, and the others share what it had.
    """
    errors = np.mean(np.square(held_out - y), axis=2) @ counts
    best = int(np.argmin(errors))
    kept = np.arange(len(held_out))
    while True:
        weights = weigh(held_out[kept], y, counts)
        totals = weights.sum(axis=0)
        share = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0)
        share = np.where(kept == best, np.inf, share.max(axis=1))
        kept, share = kept[share > 0], share[share > 0]
        if len(kept) <= most:
            return [int(m) for m in kept[np.argsort(-share, kind="stable")]]
        kept = np.delete(kept, int(np.argmin(share)))

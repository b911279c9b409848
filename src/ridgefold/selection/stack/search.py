"""Cross-validate the candidates of a stack, each with its own best ridge, and weigh them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ridgefold.crossval import Progress
from ridgefold.exact.leave_two_out import LeaveTwoOut, TwoFoldsWork
from ridgefold.records import Stack, StackMember, StepRecord
from ridgefold.selection.describe import describe
from ridgefold.selection.held_out_predictions import by_row
from ridgefold.selection.kernel_paths import KernelPaths
from ridgefold.selection.path_tasks import STEP, gram_of
from ridgefold.selection.scoring import Truth, log_likelihood, scoring_of
from ridgefold.selection.search import Choice, GridSearch, Settings
from ridgefold.selection.stack.candidates import StackCandidate, StackPlan
from ridgefold.selection.stack.nested import (
    NestedStack,
    nested_stack,
    rows_of_groups,
    worth_leaving_two_out,
)
from ridgefold.selection.stack.weights import (
    SMALLEST_SHARE,
    StackWeights,
    weights_for_classes,
    weights_for_numbers,
)


@dataclass(frozen=True)
class StackChoice:
    """What every candidate's search found, and how they are combined."""

    candidates: tuple[StackCandidate, ...]
    choices: tuple[Choice, ...]
    members: tuple[int, ...]
    """Numbers of the candidates that are combined, the heaviest first; at least one."""
    nested: NestedStack
    """Of the members, in their order."""
    groups: tuple[np.ndarray, ...]
    """Numbers of the folds whose weights were found together."""
    errors: np.ndarray
    """Mean squared held-out error of every candidate by itself."""
    records: tuple[StepRecord, ...]

    def without(self, fold: int) -> StackWeights:
        """The weights of the members in the stack without a fold."""
        group = next(g for g, group in enumerate(self.groups) if fold in group)
        return self.nested.without[group]

    def record(self) -> Stack:
        """Who is in the stack, and who is not."""

        whole = self.nested.whole
        nothing = np.zeros_like(whole.offset)

        def described(m: int, weight: np.ndarray) -> StackMember:
            candidate, choice = self.candidates[m], self.choices[m]
            return StackMember(
                choice.candidate.kernel,
                candidate.family,
                candidate.origin,
                choice.alphas,
                weight,
                float(self.errors[m]),
            )

        return Stack(
            tuple(described(m, w) for m, w in zip(self.members, whole.weights, strict=True)),
            tuple(
                described(m, nothing) for m in range(len(self.candidates)) if m not in self.members
            ),
            whole.offset,
            whole.log_odds,
        )


def stack_search(
    paths: KernelPaths, plan: StackPlan, truth: Truth, settings: Settings, progress: Progress
) -> StackChoice:
    """Choose every candidate's width and ridge, then the weights.

    Numbers: by the squared error; classes: by the likelihood of calibrated decision values, which
    asks for larger ridges than the squared error of labels does. `truth` is what the stack is to
    predict: numbers, or classes. Where metrics were learned again without each fold, weights are
    found from the predictions of those. Else kernels and ridges are taken as given, and weights
    without a fold are found from models that have not seen that fold, unless there are so many
    rows that it makes no difference.
    """
    candidates, groups = plan.candidates, plan.groups
    common = paths.common
    folds, namespace = common.folds, paths.data.namespace
    classify = truth.classes is not None
    rule = log_likelihood() if classify else scoring_of(None, classifier=False)
    choices: list[Choice] = []
    records: list[StepRecord] = []
    for k, candidate in enumerate(candidates):
        paths.begin()
        search = GridSearch(paths, rule, settings)
        choice = search.run(
            candidate.grid,
            candidate.alphas,
            candidate.extended,
            _part(progress, k, len(candidates)),
        )
        records.append(replace(choice.record, name=f"{STEP}: {candidate.description}"))
        choices.append(choice)
    n = folds.n_rows
    weights = np.ones(n)
    if common.weights is not None:
        weights = namespace.to_numpy(common.weights).astype(np.float64)
    if plan.relearned is not None:
        single = plan.relearned
    else:
        single = np.stack([by_row(folds, choice.predictions) for choice in choices])
    single = single.astype(np.float64)
    y = namespace.to_numpy(common.targets)
    errors = np.mean(np.square(single - y), axis=2) @ weights / weights.sum()
    fit_weights = fit_weights_of(truth, weights, bias=common.bias)
    counted = np.flatnonzero(weights > 0)
    members = _members(fit_weights(single[:, counted], counted, SMALLEST_SHARE), errors)
    if plan.relearned is not None or not worth_leaving_two_out(n):
        own = single[members]
        double = np.broadcast_to(own[:, None], (own.shape[0], len(groups), *own.shape[1:]))
    else:
        pairs = [_without_two_folds(paths, candidates[m], choices[m], groups) for m in members]
        double = np.stack([predictions for predictions, _ in pairs]).astype(np.float64)
        records += [record for _, record in pairs]
    nested = nested_stack(
        single[members], double, rows_of_groups(folds, groups), fit_weights, weights > 0
    )
    return StackChoice(
        candidates,
        tuple(choices),
        tuple(members),
        nested,
        groups,
        errors,
        tuple(records),
    )


def _without_two_folds(
    paths: KernelPaths, candidate: StackCandidate, choice: Choice, groups: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, StepRecord]:
    """Predictions of a member's models without two folds, and what they took."""
    common, data = paths.common, paths.data
    gram = gram_of(choice.candidate.kernel, common.X, common.fixed)
    step = LeaveTwoOut(f"leaving two folds out: {candidate.description}", len(groups))
    problem = describe(
        data,
        common.targets,
        gram,
        choice.alphas,
        bias=common.bias,
        folds=common.folds,
        method="inverse_blocks",
    )
    work = TwoFoldsWork(
        gram,
        common.targets,
        choice.alphas,
        common.folds,
        groups,
        common.weights,
        common.bias,
        paths.resources(),
    )
    _, record = step.perform(problem, work)
    assert work.predictions is not None
    return work.predictions, record


def _members(stack: StackWeights, errors: np.ndarray) -> list[int]:
    """Those with a weight, the heaviest first; if none has any, the best by itself."""
    totals = stack.weights.sum(axis=1)
    heavy = [int(m) for m in np.argsort(-totals, kind="stable") if totals[m] > 0]
    return heavy or [int(np.argmin(errors))]


def fit_weights_of(
    truth: Truth, row_weights: np.ndarray, *, bias: bool
) -> Callable[..., StackWeights]:
    """How weights are found from predictions of some rows."""
    order = truth.folds.stacked
    if truth.classes is not None:
        codes = np.empty(truth.folds.n_rows, dtype=int)
        codes[order] = np.searchsorted(truth.classes, truth.y)

        def for_classes(
            predictions: np.ndarray, rows: np.ndarray, smallest_share: float = 0.0
        ) -> StackWeights:
            return weights_for_classes(
                predictions, codes[rows], row_weights[rows], smallest_share=smallest_share
            )

        return for_classes
    y = np.empty(truth.y.shape)
    y[order] = truth.y

    def for_numbers(
        predictions: np.ndarray, rows: np.ndarray, smallest_share: float = 0.0
    ) -> StackWeights:
        return weights_for_numbers(
            predictions, y[rows], row_weights[rows], bias=bias, smallest_share=smallest_share
        )

    return for_numbers


def _part(progress: Progress, k: int, count: int) -> Progress:
    return lambda share: progress((k + share) / count)

"""Cross-validate the candidates of a stack, each with its own best ridge, and weigh them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ridgefold.crossval import Progress
from ridgefold.exact.leave_two_out import leave_two_out
from ridgefold.records import Stack, StackMember, Step
from ridgefold.selection.held_out_predictions import by_row
from ridgefold.selection.kernel_paths import KernelPaths
from ridgefold.selection.path_tasks import gram_of
from ridgefold.selection.scoring import Rule, Truth
from ridgefold.selection.search import Choice, GridSearch, Settings
from ridgefold.selection.stack.candidates import StackCandidate, StackPlan
from ridgefold.selection.stack.nested import (
    FitWeights,
    NestedStack,
    nested_stack,
    rows_of_groups,
)
from ridgefold.selection.stack.weights import (
    StackWeights,
    weights_for_classes,
    weights_for_numbers,
)


@dataclass(frozen=True)
class StackChoice:
    """What every candidate's search found, and how they are combined."""

    candidates: tuple[StackCandidate, ...]
    choices: tuple[Choice, ...]
    nested: NestedStack
    groups: tuple[np.ndarray, ...]
    """Numbers of the folds whose weights were found together."""
    score: float
    """Of the stack's own held-out predictions."""
    steps: tuple[Step, ...]

    @property
    def members(self) -> list[int]:
        """Numbers of the candidates with a weight, the heaviest first; at least one."""
        totals = self.nested.whole.weights.sum(axis=1)
        order = np.argsort(-totals, kind="stable")
        heavy = [int(m) for m in order if totals[m] > 0]
        # Numbers of rounding must not decide: without any weight the best by itself stands alone.
        return heavy or [max(range(len(totals)), key=lambda m: (self.choices[m].score, -m))]

    def weight_without(self, member: int, fold: int) -> np.ndarray:
        """The weight of a candidate in the stack without a fold, shape (t,)."""
        return np.asarray(self.nested.without[self._group_of(fold)].weights[member])

    def offset_without(self, fold: int) -> np.ndarray:
        return self.nested.without[self._group_of(fold)].offset

    def _group_of(self, fold: int) -> int:
        return next(g for g, group in enumerate(self.groups) if fold in group)

    def record(self, errors: np.ndarray) -> Stack:
        """Who is in the stack; `errors` are those of every candidate by itself."""

        def member(m: int) -> StackMember:
            return StackMember(
                self.choices[m].candidate.kernel,
                self.candidates[m].family,
                self.candidates[m].origin,
                self.choices[m].alphas,
                self.nested.whole.weights[m],
                float(errors[m]),
            )

        others = [m for m in range(len(self.candidates)) if m not in self.members]
        return Stack(
            tuple(map(member, self.members)),
            tuple(map(member, others)),
            self.nested.whole.offset,
            self.nested.whole.log_odds,
        )


def stack_search(
    paths: KernelPaths, plan: StackPlan, scoring: Rule, settings: Settings, progress: Progress
) -> StackChoice:
    """Choose every candidate's width and ridge, then the weights.

    Where metrics were learned again without each fold, weights are found from the predictions of
    those. Else kernels and ridges are taken as given, and weights without a fold are found from
    models that have not seen that fold.
    """
    candidates, groups = plan.candidates, plan.groups
    common = paths.common
    folds, namespace = common.folds, paths.data.namespace
    choices, steps = [], []
    for k, candidate in enumerate(candidates):
        paths.begin()
        search = GridSearch(paths, scoring, settings)
        choice = search.run(
            candidate.grid,
            candidate.alphas,
            candidate.extended,
            _part(progress, k, len(candidates)),
        )
        name = f"choosing alpha for {candidate.family}, {candidate.origin}"
        steps.append(replace(choice.step, name=name))
        choices.append(choice)
    if plan.relearned is not None:
        single = plan.relearned
        double = np.broadcast_to(
            single[:, None], (single.shape[0], len(groups), *single.shape[1:])
        )
    else:
        single = np.stack([by_row(folds, choice.predictions) for choice in choices])
        double = np.stack(
            [
                leave_two_out(
                    gram_of(choice.candidate.kernel, common.X),
                    common.targets,
                    choice.alphas,
                    folds,
                    groups,
                    weights=common.weights,
                    bias=common.bias,
                )
                for choice in choices
            ]
        )
    n = folds.n_rows
    weights = np.ones(n)
    if common.weights is not None:
        weights = namespace.to_numpy(common.weights).astype(np.float64)
    nested = nested_stack(
        single.astype(np.float64),
        double.astype(np.float64),
        rows_of_groups(folds, groups),
        fit_weights_of(common.truth, weights, bias=common.bias),
        weights > 0,
    )
    score = scoring(common.truth, nested.held_out[folds.stacked][None]).overall[0]
    return StackChoice(candidates, tuple(choices), nested, groups, float(score), tuple(steps))


def fit_weights_of(truth: Truth, row_weights: np.ndarray, *, bias: bool) -> FitWeights:
    """How weights are found from predictions of some rows."""
    order = truth.folds.stacked
    if truth.classes is not None:
        codes = np.empty(truth.folds.n_rows, dtype=int)
        codes[order] = np.searchsorted(truth.classes, truth.y)

        def for_classes(predictions: np.ndarray, rows: np.ndarray) -> StackWeights:
            return weights_for_classes(predictions, codes[rows], row_weights[rows])

        return for_classes
    y = np.empty(truth.y.shape)
    y[order] = truth.y

    def for_numbers(predictions: np.ndarray, rows: np.ndarray) -> StackWeights:
        return weights_for_numbers(predictions, y[rows], row_weights[rows], bias=bias)

    return for_numbers


def _part(progress: Progress, k: int, count: int) -> Progress:
    return lambda share: progress((k + share) / count)

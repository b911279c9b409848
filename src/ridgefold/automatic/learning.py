"""Kernels with learned metrics, from a sample of the rows, and those worth a fit of all rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ridgefold.automatic.automatic_work import AutomaticProblem, AutomaticWork, FoundKernel
from ridgefold.executors.interruption import look_between_tasks
from ridgefold.metric import FAMILIES, candidates
from ridgefold.metric.transforms import TRANSFORMS
from ridgefold.planning.learning import learning_plan
from ridgefold.records import MetricCandidate, Plan, Resources
from ridgefold.selection.learned_grid import folds_to_learn_from
from ridgefold.selection.learning_optimism import few_rows_a_scale
from ridgefold.selection.stack.candidates import (
    most_candidates,
    most_useful,
    promising,
    weigh_candidates,
)
from ridgefold.selection.stack.nested import fold_groups, rows_of_groups
from ridgefold.selection.stack.relearned import (
    MOST_RELEARNED,
    ROWS_LEARNED_AGAIN,
    relearned_predictions,
)

_FEWEST_LEARNED = 40
"""From fewer different rows no metric is learned: they tell one width for all columns at most."""
MOST_ROWS, FEWEST_ROWS = 2000, 400
"""Metrics are learned from the first number of rows where there is time, and at least from the
second."""
_GROUPS_LEFT_OUT = (MOST_RELEARNED, 3, 2)
"""Into how many groups the folds may be put, the best first."""
_SAMPLE_ROWS = 1500
"""Rows that kernels are compared on before any is fitted to all rows: how many of them are worth a
fit, the time that is left decides."""


def plan_to_learn(
    known: AutomaticProblem, resources: Resources, rows: int, times_again: int
) -> Plan:
    """The plan of learning from at most so many rows, and again without groups of folds."""
    n = min(rows, known.problem.n_rows)
    plan = learning_plan(
        replace(known.problem, folds=(), n_alphas=1),
        resources,
        n,
        families=len(FAMILIES),
        starts=len(TRANSFORMS),
        times=1 + times_again,
        rotates=True,
    )
    return replace(plan, problem=replace(plan.problem, n_rows=n))


def times_again(known: AutomaticProblem, resources: Resources, kind: str) -> int:
    """How often metrics are learned again, each time without another group of folds.

    That is needed where rows are few. The groups are as many as there is time for: with fewer and
    larger ones held-out errors are those of metrics from fewer rows, too large if anything.
    """
    if not known.few_rows:
        return 0
    wanted = [groups for groups in _GROUPS_LEFT_OUT if groups <= known.problem.n_folds]
    for groups in wanted:
        plan = plan_to_learn(known, resources, FEWEST_ROWS, groups)
        if plan.seconds * known.pace(kind) <= known.left:
            return groups
    return min(wanted, default=known.problem.n_folds)


def is_worth_learning(work: AutomaticWork) -> bool:
    """Whether there are enough different rows; of those that repeat one counts."""
    if len(work.X) > _FEWEST_LEARNED**2:
        return True
    rows = np.column_stack([work.X, work.targets])[work.counts > 0]
    return len(np.unique(rows, axis=0)) >= _FEWEST_LEARNED


def is_short_of_rows(work: AutomaticWork) -> bool:
    """Whether errors of metrics learned from all rows would be too small to go by."""
    whole = work.folds.each_row_once
    return whole and few_rows_a_scale(work.X, work.weights, work.category_features or None)


def learned_kernels(work: AutomaticWork, seconds: float, times_again: int) -> list[FoundKernel]:
    """Kernels that have a weight in a stack of some rows, the best first, in about that time.

    With few rows metrics are learned again without each of so many groups of folds, and chosen by
    predictions of those.
    """
    settings: dict[str, Any] = {
        "random_state": work.seed,
        "scale_groups": work.category_features or None,
        "look_at_clock": look_between_tasks,
        "seconds": seconds / (1 + times_again),
        "clock": work.time.clock,
        "rotate": work.codes is None,
    }
    classify = work.codes is not None
    folds = folds_to_learn_from(work.folds)
    metrics = candidates(
        work.X, work.targets, weights=work.weights, folds=folds, max_rows=MOST_ROWS, **settings
    )
    if not times_again:
        rows = np.random.default_rng(work.seed).permutation(len(work.X))[:_SAMPLE_ROWS]
        weights = None if work.weights is None else work.weights[rows]
        chosen = promising(
            metrics, work.X[rows], work.targets[rows], weights, bias=True, classify=classify
        )
        return [_to_fit(each, None) for each in chosen]
    again = partial(candidates, max_rows=ROWS_LEARNED_AGAIN, **settings)
    groups = rows_of_groups(work.folds, fold_groups(work.folds, times_again))
    training = (work.X, work.targets, work.weights)
    held_out = relearned_predictions(metrics, again, training, groups, bias=True)
    used = np.flatnonzero(work.counts > 0)
    predictions, targets = held_out[:, used], work.targets[used]
    weigh = partial(weigh_candidates, bias=True, classify=classify)
    most = most_candidates(len(work.X))
    kept = most_useful(predictions, targets, work.counts[used], weigh, most)
    return [_to_fit(metrics[m], held_out[m]) for m in kept]


def _to_fit(metric: MetricCandidate, held_out: np.ndarray | None) -> FoundKernel:
    description = f"{metric.family}, {metric.origin}"
    if metric.transforms is not None and set(metric.transforms) - {"standardise", "none"}:
        description += ", transformed"
    return FoundKernel(description, metric.kernel, metric.family, metric.alpha, held_out)

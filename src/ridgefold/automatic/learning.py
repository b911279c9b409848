"""Kernels with learned metrics, from a sample of the rows, and those worth a fit of all rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ridgefold.automatic.known import AutomaticWork, FoundKernel, Known
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
from ridgefold.selection.stack.relearned import MOST_RELEARNED, relearned_predictions


def seconds_to_learn(known: Known, resources: Resources, rows: int) -> Plan:
    """The plan of learning from at most so many rows."""
    n = min(rows, known.problem.n_rows)
    plan = learning_plan(
        replace(known.problem, folds=(), n_alphas=1),
        resources,
        n,
        families=len(FAMILIES),
        starts=len(TRANSFORMS),
        times=1 + (min(known.problem.n_folds, MOST_RELEARNED) if known.few_rows else 0),
    )
    return replace(plan, problem=replace(plan.problem, n_rows=n))


def is_short_of_rows(work: AutomaticWork) -> bool:
    """Whether errors of metrics learned from all rows would be too small to go by."""
    whole = work.folds.each_row_once
    return whole and few_rows_a_scale(work.X, work.weights, work.category_features or None)


def learned_kernels(work: AutomaticWork, rows: int, *, again: bool) -> list[FoundKernel]:
    """Kernels that have a weight in a stack of some rows, the best first.

    With `again` metrics are learned again without each group of folds, and chosen by predictions
    of those.
    """
    learn = partial(
        candidates,
        max_rows=rows,
        random_state=work.seed,
        scale_groups=work.category_features or None,
        look_at_clock=work.time.look,
    )
    folds = folds_to_learn_from(work.folds)
    found = learn(work.X, work.targets, weights=work.weights, folds=folds)
    if not again:
        chosen = promising(
            found, work.X, work.targets, work.weights, bias=True, classify=work.codes is not None
        )
        return [_as_found(each, None) for each in chosen]
    groups = rows_of_groups(work.folds, fold_groups(work.folds, MOST_RELEARNED))
    training = (work.X, work.targets, work.weights)
    held_out = relearned_predictions(found, learn, training, groups, bias=True)
    counts = work.counts
    used = np.flatnonzero(counts > 0)
    some, targets = held_out[:, used], work.targets[used]
    weigh = partial(weigh_candidates, bias=True, classify=work.codes is not None)
    kept = most_useful(some, targets, counts[used], weigh, most_candidates(len(counts)))
    return [_as_found(found[m], held_out[m]) for m in kept]


def _as_found(metric: MetricCandidate, held_out: np.ndarray | None) -> FoundKernel:
    words = f"{metric.family}, {metric.origin}"
    if metric.transforms is not None and set(metric.transforms) - {"standardise", "none"}:
        words += ", transformed"
    return FoundKernel(words, metric.kernel, metric.family, metric.alpha, held_out)

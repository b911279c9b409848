"""Walk a plan: held-out predictions by the method it names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ridgefold.crossval import METHODS, Folds, HeldOut, Judge, Progress, no_progress
from ridgefold.errors import MethodGaveUpError, NumericalError
from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.linalg.threads import threads
from ridgefold.records import Plan


def _in_order(plan: Plan) -> list[tuple[str, bool]]:
    names = [plan.method, *plan.fallbacks]
    return [(name, name == names[-1]) for name in names]


def run_cross_validation(
    plan: Plan,
    gram: Gram,
    folds: Folds,
    targets: Array,
    alphas: np.ndarray,
    *,
    weights: Array | None = None,
    bias: bool = False,
    progress: Progress = no_progress,
    judge: Judge | None = None,
) -> HeldOut:
    """Held-out predictions of every fold for every α that the judge, if there is one, keeps.

    If the planned method gives up, the plan's fallbacks run in their order.
    """
    for name, is_last in _in_order(plan):
        method = METHODS[name]
        try:
            with threads(plan.resources.threads):
                state = method.prepare(gram, folds, weights, bias)
                result = method.held_out(state, targets, alphas, progress, judge)
                result = replace(result, method=name)
            break
        except MethodGaveUpError:
            if is_last:
                raise
    progress(1.0)  # methods that converge do not know beforehand when they are done
    computed = result.predictions
    if result.kept is not None:
        some = result.kept if result.open is None else result.kept | result.open
        computed = gram.namespace.take_rows(computed, np.flatnonzero(some))
    if not gram.namespace.all_finite(computed):
        raise NumericalError(
            "held-out predictions are NaN or infinite: values overflowed on the way; scale the "
            "columns of X and the targets, or use larger alphas"
        )
    return result

"""Walk a plan: held-out predictions by the method it names."""

from __future__ import annotations

import numpy as np

from ridgefold.crossval import METHODS, Folds, HeldOut, Progress, no_progress
from ridgefold.errors import NumericalError
from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.records import Plan


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
) -> HeldOut:
    """Held-out predictions of every fold for every α."""
    method = METHODS[plan.method]
    state = method.prepare(gram, folds, weights, bias)
    result = method.held_out(state, targets, alphas, progress)
    if not gram.namespace.all_finite(result.predictions):
        raise NumericalError(
            "held-out predictions are NaN or infinite: values overflowed on the way; scale the "
            "columns of X and the targets, or use larger alphas"
        )
    return result

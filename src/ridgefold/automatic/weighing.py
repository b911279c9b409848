"""Weights of candidates from their held-out predictions, and the error of their sum."""

from __future__ import annotations

import numpy as np

from ridgefold.automatic.automatic_work import AutomaticWork, Candidate
from ridgefold.selection.stack.nested import NestedStack, fold_groups, nested_stack, rows_of_groups
from ridgefold.selection.stack.weights import (
    SMALLEST_SHARE,
    StackWeights,
    weights_for_classes,
    weights_for_numbers,
)


def weighed(
    work: AutomaticWork, predictions: np.ndarray, rows: np.ndarray, smallest_share: float = 0.0
) -> StackWeights:
    """Weights from held-out predictions (candidates, rows, t) of some rows."""
    counts = work.counts[rows]
    if work.codes is not None:
        return weights_for_classes(
            predictions, work.codes[rows], counts, smallest_share=smallest_share
        )
    return weights_for_numbers(
        predictions, work.targets[rows], counts, bias=True, smallest_share=smallest_share
    )


def error_of(work: AutomaticWork, values: np.ndarray) -> float:
    """Root mean square error of predictions (n, t), or log-loss of decision values."""
    counts = work.counts
    used = np.flatnonzero(counts > 0)
    shares = counts[used] / counts[used].sum()
    if work.codes is None:
        squares = np.mean((values[used] - work.targets[used]) ** 2, axis=1)
        return float(np.sqrt(shares @ squares))
    if values.shape[1] == 1:
        signs = np.where(work.codes[used] == 1, -1.0, 1.0)
        return float(shares @ np.logaddexp(0.0, signs * values[used, 0]))
    own = values[used, work.codes[used]]
    return float(shares @ np.logaddexp(0.0, -own))


def stacked(candidates: list[Candidate]) -> np.ndarray:
    """Held-out predictions of candidates, shape (candidates, n, t)."""
    return np.stack([each.held_out for each in candidates])


def weigh_all(work: AutomaticWork) -> float:
    """Weigh the candidates so far; returns by what share that has lowered the held-out error.

    The error is that of weights found from the same rows, which is good enough to see whether one
    more candidate helps.
    """
    predictions = stacked(work.candidates)
    rows = np.flatnonzero(work.counts > 0)
    before = work.error
    work.whole = weighed(work, predictions[:, rows], rows, SMALLEST_SHARE)
    values = np.full(work.targets.shape, np.nan)
    values[rows] = work.whole.combined(predictions[:, rows])
    work.error = error_of(work, values)
    if not np.isfinite(before):
        return 1.0
    return float((before - work.error) / before) if before > 0 else 0.0


def error_alone(work: AutomaticWork, candidate: Candidate) -> float:
    """Held-out error of one candidate; of classes after a calibration of its decision values."""
    if work.codes is None:
        return error_of(work, candidate.held_out)
    rows = np.flatnonzero(work.counts > 0)
    predictions = candidate.held_out[None]
    values = np.full(work.targets.shape, np.nan)
    values[rows] = weighed(work, predictions[:, rows], rows).combined(predictions[:, rows])
    return error_of(work, values)


def nested(work: AutomaticWork, members: list[Candidate]) -> NestedStack:
    """The stack of the members, and its predictions of rows that its weights have not seen.

    Weights without a group of folds are found from the held-out predictions of the other rows.
    Their models have seen the group's targets, as those of any cross-validated stack have; with a
    few weights that are not negative this is not to be seen in the errors.
    """
    single = stacked(members)
    groups = rows_of_groups(work.folds, fold_groups(work.folds))
    double = np.broadcast_to(single[:, None], (len(members), len(groups), *single.shape[1:]))
    stack = nested_stack(
        single,
        double,
        groups,
        lambda predictions, rows: weighed(work, predictions, rows),
        work.counts > 0,
    )
    if not work.folds.each_row_once:
        untested = np.ones(len(work.X), dtype=bool)
        untested[work.folds.stacked] = False
        stack.held_out[untested] = np.nan
    return stack

"""The stack's own held-out predictions: neither the candidates nor their weights have seen a row.

What a stack predicts for a fold is honest if its weights were found without that fold, too. To
find them, held-out predictions are needed of models that have seen neither the fold nor the row
that they predict: predictions of models without two folds (`exact.leave_two_out`). So the held-out
prediction of a fold is to the last digit that of members and weights fitted to the other folds
alone, with their kernels and ridges as they are. Who is a member, with which kernel and ridge, was
chosen with all rows, as in any search.

With many folds, as of leave-one-out, weights are found without a group of folds at a time. With
many rows the models that weights are found from may have seen the group: a few weights learn next
to nothing of a row from how it moved the predictions of others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ridgefold.crossval import Folds
from ridgefold.errors import InvalidInputError
from ridgefold.selection.stack.weights import StackWeights

MOST_GROUPS = 10
"""With more folds, several share their weights: what one more row in twenty changes in a few
weights is nothing, and the work grows with the number of groups."""

_MOST_ROWS_LEFT_OUT_TWICE = 2000
"""With more rows, models without two folds take an inverse of all rows for every member. Without
them, held-out errors of 1,500 rows differed by 0.1% (cpusmall) and 0.5% (kin8nm) of themselves."""


def worth_leaving_two_out(n_rows: int) -> bool:
    """Whether weights without a fold are found from models that have not seen the fold."""
    return n_rows <= _MOST_ROWS_LEFT_OUT_TWICE


FitWeights = Callable[[np.ndarray, np.ndarray], StackWeights]
"""(predictions (members, rows, t), numbers of the rows) -> weights."""


@dataclass(frozen=True)
class NestedStack:
    """A stack, and what it is without each group of folds."""

    whole: StackWeights
    """From all held-out predictions: what new rows are predicted with."""
    without: tuple[StackWeights, ...]
    """Found without each group."""
    held_out: np.ndarray
    """Predictions (decision values) of every row, of which nothing has seen the row: (n, t)."""


def fold_groups(folds: Folds, most: int = MOST_GROUPS) -> tuple[np.ndarray, ...]:
    """Numbers of the folds whose weights are found together."""
    count = min(len(folds), most)
    return tuple(np.arange(start, len(folds), count) for start in range(count))


def rows_of_groups(folds: Folds, groups: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """The rows that every group tests."""
    return tuple(np.concatenate([folds.test[k] for k in group]) for group in groups)


def require_stackable(folds: Folds, weights: np.ndarray | None, cv: object) -> None:
    """Every row is held out once, and something is left to train on without two folds."""
    if not folds.each_row_once or len(folds) < 3:
        raise InvalidInputError(
            "search.stack=True needs a cv of at least 3 folds that holds every row out once, got "
            f"cv={cv!r}: use another cv, or search.stack=False"
        )
    if weights is None:
        return
    heavy = sum(bool(np.any(weights[rows] > 0)) for rows in folds.test)
    if heavy < 3:
        raise InvalidInputError(
            f"search.stack=True needs rows of positive sample_weight in at least 3 folds, got "
            f"{heavy}: use another cv, or search.stack=False"
        )


def nested_stack(
    single: np.ndarray,
    double: np.ndarray,
    group_rows: tuple[np.ndarray, ...],
    fit_weights: FitWeights,
    counted: np.ndarray,
) -> NestedStack:
    """Weights of all rows and without each group, and the held-out predictions of the stack.

    Parameters
    ----------
    single : array of shape (members, n, t)
        Held-out predictions.
    double : array of shape (members, groups, n, t)
        Predictions of models that have seen neither the row nor the group.
    group_rows : tuple of index arrays
        The rows of each group; together all rows.
    counted : bool array of shape (n,)
        Rows that weights are found from.
    """
    held_out = np.empty(single.shape[1:])
    without = []
    for g, own in enumerate(group_rows):
        used = counted.copy()
        used[own] = False
        rows = np.flatnonzero(used)
        without.append(fit_weights(double[:, g, rows], rows))
        held_out[own] = without[-1].combined(single[:, own])
    rows = np.flatnonzero(counted)
    return NestedStack(fit_weights(single[:, rows], rows), tuple(without), held_out)

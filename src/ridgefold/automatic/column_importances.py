"""How much the columns of a table count for a sum of models, by rows that these have not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ridgefold.automatic.members import Member
from ridgefold.errors import InvalidInputError
from ridgefold.estimators.importances import groups_of_table
from ridgefold.records import Importances, TableColumns
from ridgefold.selection.importances import (
    HeldOutSample,
    held_out_importances,
    loss_of_classes,
    loss_of_numbers,
)

_FOLDS_OF_CELLS = 2
"""Cells are fitted again without each fold that is looked at: two of them stand for all."""


def column_importances(
    sample: HeldOutSample,
    columns: TableColumns,
    *,
    codes: np.ndarray | None,
    summary: np.ndarray,
    n_repeats: int,
    random: np.random.Generator,
) -> Importances:
    """Rises of the held-out error when the values of a column of the table are exchanged."""
    names, groups = groups_of_table(columns)
    if codes is None:
        loss = loss_of_numbers(sample.targets, summary)
    else:
        loss = loss_of_classes(sample, None, summary)
    places = [np.asarray(group, dtype=np.intp) for group in groups]
    return held_out_importances(sample, loss, names, places, n_repeats=n_repeats, random=random)


def sample_of(
    members: Sequence[Member],
    total: Callable[[np.ndarray], np.ndarray],
    *,
    rows: np.ndarray,
    targets: np.ndarray,
    counts: np.ndarray,
    fold_of: np.ndarray,
    max_rows: int,
    random: np.random.Generator,
) -> HeldOutSample:
    """Some training rows with the models that have not seen them.

    Parameters
    ----------
    members : sequence of Member
    total : callable
        From the summed members to predictions or decision values.
    rows : array of shape (n, d)
        All training rows as numbers.
    targets : array of shape (n, t)
    counts : array of shape (n,)
        What every row counts; 0 for rows that no fold tests.
    fold_of : array of shape (n,)
    """
    usable = np.flatnonzero((counts > 0) & (fold_of >= 0))
    if any(each.in_cells for each in members):
        first = np.unique(fold_of[usable])[:_FOLDS_OF_CELLS]
        usable = usable[np.isin(fold_of[usable], first)]
    if len(usable) < 2:
        raise InvalidInputError("columns are compared on at least 2 held-out rows")
    if len(usable) > max_rows:
        usable = np.sort(random.choice(usable, size=max_rows, replace=False))
    folds = {int(k): np.flatnonzero(fold_of == k) for k in np.unique(fold_of[usable])}
    places = {k: np.flatnonzero(fold_of[usable] == k) for k in folds}
    without = {
        k: [each.without(np.asarray(fold), k) for each in members] for k, fold in folds.items()
    }

    def predict(X: np.ndarray) -> np.ndarray:
        summed = np.zeros((len(X), targets.shape[1]))
        for k, here in places.items():
            for model in without[k]:
                summed[here] += model(X[here])
        return total(summed)

    return HeldOutSample(
        rows[usable],
        targets[usable],
        counts[usable],
        predict,
        f"the models without each of {len(folds)} folds",
    )

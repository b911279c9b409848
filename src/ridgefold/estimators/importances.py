"""Importance of columns by held-out errors, for every model that can leave rows out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.estimators.facts import numbered_columns
from ridgefold.estimators.validation import out_of_memory_is_a_budget_error
from ridgefold.records import Importances, TableColumns
from ridgefold.selection.importances import (
    HeldOutSample,
    held_out_importances,
    loss_of_classes,
    loss_of_numbers,
)


class WithImportances:
    """`held_out_importances`, for models that give a sample of rows that they can leave out."""

    def _held_out_sample(self, max_rows: int, random: np.random.Generator) -> HeldOutSample:
        """Training rows of positive weight, with models that have not seen them."""
        raise NotImplementedError

    def _target_summary(self) -> np.ndarray:
        """Of numbers, the spread of every target; of classes, their frequencies."""
        raise NotImplementedError

    @out_of_memory_is_a_budget_error("held_out_importances")
    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def held_out_importances(
        self,
        *,
        n_repeats: int = 5,
        max_rows: int = 1000,
        groups: Sequence[Sequence[int]] | None = None,
        random_state: int = 0,
    ) -> Importances:
        """How far held-out errors rise when a column's values are exchanged between rows.

        Rows of the fit are predicted by models that have not seen them, as they are and with the
        values of a column of other rows. No test set is needed, and what the model has only
        learned by heart, such as an identifier, has no importance.

        Parameters
        ----------
        n_repeats : int
            How often the values of every column are exchanged.
        max_rows : int
            So many rows are held out and looked at, drawn at random.
        groups : sequence of sequences of int, optional
            Columns that are exchanged together, such as those that one column of a table was
            encoded as. Without them, each column by itself.
        random_state : int

        Returns
        -------
        importances : Importances
            `names`, `rises` (in units of knowing nothing: what is taken off R²), their
            `standard_errors`, and every repeat. A rise below two standard errors may be chance.

        Notes
        -----
        Columns that say the same share their importance: the model can rely on the other one.
        The work is that of predicting `max_rows` rows ``n_repeats`` times a column. Models that
        keep what intervals are made of have the models without a fold at hand; others first fit
        their kernel without each of five folds, about as long as one fit. In cells each row is
        left out of its own cells; of many cells some are drawn, and rows from these.
        """
        return self._importances_of(None, groups, n_repeats, max_rows, random_state)

    def _importances_of(
        self,
        names: Sequence[str] | None,
        groups: Sequence[Sequence[int]] | None,
        n_repeats: int,
        max_rows: int,
        random_state: int,
    ) -> Importances:
        """Of groups of columns that have these names, or the names of the columns."""
        check_count("n_repeats", n_repeats, 1)
        check_count("max_rows", max_rows, 2)
        random = np.random.default_rng(random_state)
        sample = self._held_out_sample(int(max_rows), random)
        d = int(sample.X.shape[1])
        some = [np.array([j]) for j in range(d)] if groups is None else _checked_groups(groups, d)
        if names is None:
            columns = numbered_columns(getattr(self, "feature_names_in_", None), d)
            names = tuple(_name_of(columns, group) for group in some)
        summary = self._target_summary()
        if hasattr(self, "classes_"):
            loss = loss_of_classes(sample, self._probability_curves(), summary)
        else:
            loss = loss_of_numbers(sample.targets, summary)
        return held_out_importances(
            sample, loss, names, some, n_repeats=int(n_repeats), random=random
        )

    def _probability_curves(self) -> np.ndarray | None:
        """Curves from decision values to probabilities, if the model has any."""
        curves = getattr(self, "calibration_", None)
        return None if curves is None else np.asarray(curves)

    def _can_leave_rows_out(self) -> bool:
        """Whether `_held_out_sample` has what it needs."""
        raise NotImplementedError

    def _importances_for_facts(self) -> Callable[[int, int], Importances] | None:
        if not self._can_leave_rows_out():
            return None
        return lambda n_repeats, max_rows: self.held_out_importances(
            n_repeats=n_repeats, max_rows=max_rows
        )


def groups_of_table(columns: TableColumns) -> tuple[tuple[str, ...], list[list[int]]]:
    """The names of a table's columns, and the columns of numbers that each was encoded as."""
    groups: dict[str, list[int]] = {name: [] for name in columns.names}
    for j, name in enumerate(columns.origins):
        groups[name].append(j)
    used = {name: group for name, group in groups.items() if group}
    return tuple(used), list(used.values())


def check_count(name: str, value: Any, least: int) -> int:
    """A whole number of at least so many."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:
        raise InvalidInputError(f"{name} must be a whole number >= {least}, got {value!r}")
    return int(value)


def _checked_groups(groups: Sequence[Sequence[int]], d: int) -> list[np.ndarray]:
    checked = []
    for group in groups:
        places = np.asarray(group)
        good = places.ndim == 1 and len(places) > 0 and places.dtype.kind in "iu"
        if not good or places.min() < 0 or places.max() >= d:
            raise InvalidInputError(
                f"groups must hold lists of column numbers from 0 to {d - 1}, got {group!r}"
            )
        checked.append(places.astype(np.intp))
    return checked


def _name_of(names: Sequence[str], group: np.ndarray) -> str:
    if len(group) == 1:
        return names[int(group[0])]
    return f"{names[int(group.min())]} … {names[int(group.max())]}"

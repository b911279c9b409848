"""Curves of how the predictions of a model move with its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.estimators.facts import numbered_columns
from ridgefold.estimators.importances import check_count
from ridgefold.estimators.validation import out_of_memory_is_a_budget_error
from ridgefold.records import EffectCurve, TableColumns
from ridgefold.selection.effect_curves import (
    ColumnGrid,
    effect_curve,
    grids_of_numbers,
    grids_of_table,
)
from ridgefold.selection.probabilities import probabilities

Decisions = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]]
"""Rows -> f(x) of shape (m, t), and that of the models without a fold each, (m, l, t), if any."""


class WithEffectCurves:
    """`effect_curves`, for models that give some of their rows and predict changed ones."""

    def _rows_for_curves(
        self, max_rows: int, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Training rows and their weights."""
        raise NotImplementedError

    def _with_folds(self) -> Decisions:
        """The model, and the models without a fold each."""
        raise NotImplementedError

    @out_of_memory_is_a_budget_error("effect_curves")
    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def effect_curves(
        self,
        columns: Sequence[Any] | None = None,
        *,
        target: int | None = None,
        max_rows: int = 200,
        random_state: int = 0,
    ) -> list[EffectCurve]:
        """How the prediction moves with each column, as curves with an error.

        Parameters
        ----------
        columns : sequence of str or int, optional
            Names or numbers of the columns; all of them if not given.
        target : int, optional
            Which target, or which class by its position in `classes_`: the first target, and the
            last class, if not given.
        max_rows : int
            So many training rows, drawn at random, are predicted with every value in the place of
            their own.
        random_state : int

        Returns
        -------
        curves : list of EffectCurve
            `positions` (or `levels` of categories), `means` and their `standard_errors`, which
            models in cells lack. Classifiers fitted with ``probability=True`` give probabilities,
            others decision values.
        """
        return self._curves_of(None, columns, target, max_rows, random_state)

    def _curves_for_facts(self, columns: Sequence[Any], target: int | None) -> list[EffectCurve]:
        return self.effect_curves(columns, target=target)

    def _curves_of(
        self,
        table: TableColumns | None,
        columns: Sequence[Any] | None,
        target: int | None,
        max_rows: int,
        random_state: int,
    ) -> list[EffectCurve]:
        check_count("max_rows", max_rows, 1)
        random = np.random.default_rng(random_state)
        X, weights = self._rows_for_curves(int(max_rows), random)
        every, _ = self._rows_for_curves(_ROWS_FOR_RANGES, random)
        if table is None:
            names = numbered_columns(getattr(self, "feature_names_in_", None), int(X.shape[1]))
            grids = grids_of_numbers(every, names)
        else:
            names, grids = table.names, grids_of_table(every, table)
        decide = self._with_folds()
        quantity, of = _quantity(self, target)

        def predict(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
            whole, without = decide(rows)
            if without is None:
                return of(whole), None
            apart = [of(without[:, k]) for k in range(without.shape[1])]
            return of(whole), np.stack(apart, axis=1)

        return [
            effect_curve(grid, X, weights, predict, quantity)
            for grid in _chosen(grids, columns, names)
        ]


_ROWS_FOR_RANGES = 5000
"""Rows that say which values a column has."""


def _chosen(
    grids: list[ColumnGrid], columns: Sequence[Any] | None, names: Sequence[str]
) -> list[ColumnGrid]:
    """The grids of the columns that were asked for; of constant columns there is none."""
    if columns is None:
        return grids
    by_name = {grid.name: grid for grid in grids}
    found = []
    for column in columns:
        number = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
        name = names[int(column)] if number and 0 <= column < len(names) else column
        if name not in names:
            raise InvalidInputError(
                f"columns must hold names or numbers of columns, got {column!r}: there are "
                f"{len(names)}, such as {', '.join(map(repr, list(names)[:5]))}"
            )
        if name in by_name:
            found.append(by_name[name])
    return found


def _quantity(model: Any, target: int | None) -> tuple[str, Callable[[np.ndarray], np.ndarray]]:
    """What curves are of, in words and from f(x) of shape (m, t)."""
    classes = getattr(model, "classes_", None)
    count = int(model._n_outputs()) if classes is None else len(classes)
    place = (0 if classes is None else count - 1) if target is None else target
    whole = isinstance(place, (int, np.integer)) and not isinstance(place, bool)
    if not whole or not 0 <= place < count:
        raise InvalidInputError(f"target must be one of 0 to {count - 1}, got {target!r}")
    if classes is None:
        return "mean prediction", lambda values: values[:, place]
    label = classes[place]
    curves = model._probability_curves()
    if curves is not None:
        return (
            f"mean probability of {label}",
            lambda values: probabilities(values, curves)[:, place],
        )
    words = f"mean decision value for {label}"
    if count == 2:
        return words, lambda values: values[:, 0] if place == 1 else -values[:, 0]
    return words, lambda values: values[:, place]

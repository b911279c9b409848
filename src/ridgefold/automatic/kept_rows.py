"""Some of the rows of a fit: to leave out, to draw curves over, and to compare new rows with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ridgefold.automatic.automatic_work import AutomaticProblem, AutomaticWork
from ridgefold.automatic.given_model import WithGivenModel
from ridgefold.cells.cell_rows import number_of
from ridgefold.errors import InvalidInputError, ModelFileError, OutsideDataWarning
from ridgefold.estimators.effect_curves import Decisions, WithEffectCurves
from ridgefold.estimators.facts import class_columns
from ridgefold.estimators.importances import WithImportances, groups_of_table
from ridgefold.estimators.models_without_rows import spread_of
from ridgefold.estimators.stored_values import Floats
from ridgefold.notices import warn
from ridgefold.records import Cells, EffectCurve, Importances
from ridgefold.selection.importances import HeldOutSample
from ridgefold.selection.limits import limits_of
from ridgefold.selection.outside import ColumnRanges, ranges_of
from ridgefold.selection.stack.weights import decisions_of
from ridgefold.storage.annotations import check_fields

if TYPE_CHECKING:
    from ridgefold.automatic.members import Member
    from ridgefold.tables.encoder import TableEncoder

_MOST_KEPT = 2000
"""At most so many rows of the fit are kept as numbers: the members of the stack keep theirs in
coordinates that cannot be turned back."""
_MOST_CELLS = 48
"""At most so many cells are looked at: the inverse of each has to be computed again."""


class KeepsRows(WithGivenModel, WithImportances, WithEffectCurves):
    """What the estimators that choose everything know of the rows of their fit."""

    stack_: tuple[Member, ...]
    _encoder: TableEncoder
    _offset: np.ndarray
    _log_odds: bool
    _targets_fit: np.ndarray
    _counts: np.ndarray
    _fold_of: np.ndarray
    n_features_in_: int
    _numbers: Callable[[Any], np.ndarray]
    _decision_of_numbers: Callable[[np.ndarray], np.ndarray]

    def _keep_rows(
        self, work: AutomaticWork, known: AutomaticProblem, held_out: np.ndarray
    ) -> None:
        n = len(work.X)
        rows = np.arange(n)
        if n > _MOST_KEPT:
            rows = np.sort(np.random.default_rng(work.seed).choice(n, _MOST_KEPT, replace=False))
        self._kept_numbers, self._kept_places = work.X[rows].copy(), rows
        self._ranges = ranges_of(work.X, work.counts > 0)
        self._one_by_one = bool(known.exchangeable)
        counted = work.counts > 0
        targets = work.targets[counted]
        errors = np.sqrt(np.nanmean((targets - held_out[counted]) ** 2, axis=0))
        lowest, highest = targets.min(axis=0)[None, :], targets.max(axis=0)[None, :]
        self._least, self._most = (ends[0] for ends in limits_of(lowest, highest, errors[None, :]))

    # -- rows outside --------------------------------------------------------------------

    def is_outside(self, X: Any) -> np.ndarray:
        """Whether each row of a table lies outside what the model was fitted to.

        As :meth:`KernelRidge.is_outside`, in the metric of the model with the largest share.

        Parameters
        ----------
        X : table

        Returns
        -------
        outside : bool array of shape (n_rows,)
        """
        check_is_fitted(self, "stack_")
        if self._is_given:
            return np.asarray(self._ask("is_outside", X))
        return self._outside_numbers(self._numbers(X))

    def _outside_numbers(self, X: np.ndarray) -> np.ndarray:
        outside = self._ranges.beyond(X)
        inside = np.flatnonzero(~outside)
        if self.stack_ and len(inside):
            outside[inside] = self.stack_[0].is_outside(X[inside])
        return np.asarray(outside)

    def _warn_of_far_values(self, X: np.ndarray) -> None:
        far = int(np.sum(self._ranges.beyond(X)))
        if far:
            warn(
                f"{far:,} of {len(X):,} rows {'has' if far == 1 else 'have'} a value far beyond "
                "those that the model was fitted to: these predictions are guesses (is_outside "
                "says which)",
                OutsideDataWarning,
            )

    def _bounded(self, values: np.ndarray) -> np.ndarray:
        """Predictions of numbers, kept near the targets of the fit as those of cells are."""
        if hasattr(self, "classes_"):
            return values
        return np.asarray(np.clip(values, self._least, self._most))

    # -- importance ----------------------------------------------------------------------

    def held_out_importances(  # type: ignore[override]
        self, *, n_repeats: int = 5, max_rows: int = 1000, random_state: int = 0
    ) -> Importances:
        """How far held-out errors rise when a column's values are exchanged between rows.

        Columns of the table, whatever they were encoded as; see
        :meth:`KernelRidgeCV.held_out_importances`. Columns that were left out have no entry.
        """
        check_is_fitted(self, "stack_")
        names, groups = groups_of_table(self._encoder.columns)
        if not self.stack_ or not names:
            raise InvalidInputError(
                "the model predicts the same for every row, as no column says anything of the "
                "target: there is no importance to measure"
            )
        asked = self.model_ if self._is_given else self
        found: Importances = asked._importances_of(names, groups, n_repeats, max_rows, random_state)
        return found

    @property
    def feature_importances_(self) -> np.ndarray:
        """What the held-out error rises by when each column's values are exchanged between rows.

        One number for each column of the table, 0 for those that were left out; computed when first
        asked for. :meth:`held_out_importances` has the standard errors.
        """
        check_is_fitted(self, "stack_")
        kept: np.ndarray | None = self.__dict__.get("_known_importances")
        if kept is None:
            kept = np.zeros(int(self.n_features_in_))
            if self.stack_ and self._encoder.columns.names:
                found = self.held_out_importances()
                given = getattr(self, "feature_names_in_", None)
                every = [f"x{j}" for j in range(len(kept))] if given is None else list(given)
                for name, rise in zip(found.names, found.rises, strict=True):
                    kept[every.index(name)] = rise
            self._known_importances = kept
        return kept

    def _can_leave_rows_out(self) -> bool:
        return bool(self.stack_)

    def _fitted_columns(self) -> np.ndarray:
        if hasattr(self, "classes_"):
            return class_columns(self._targets_fit, len(self._offset))
        return self._targets_fit

    def _target_summary(self) -> np.ndarray:
        if hasattr(self, "classes_"):
            counts = np.bincount(self._targets_fit, self._counts, minlength=len(self.classes_))
            return np.asarray(counts / counts.sum())
        return spread_of(self._targets_fit, self._counts)

    def _probability_curves(self) -> np.ndarray | None:
        """Decision values are log-odds already."""
        return np.tile([1.0, 0.0], (len(self._offset), 1))

    def _held_out_sample(self, max_rows: int, random: np.random.Generator) -> HeldOutSample:
        usable = (self._counts[self._kept_places] > 0) & (self._fold_of[self._kept_places] >= 0)
        places = np.flatnonzero(usable)
        clusters = self._clusters(places, random)
        if clusters is not None:
            places, clusters = places[clusters >= 0], clusters[clusters >= 0]
        if len(places) > max_rows:
            some = np.sort(random.choice(len(places), size=max_rows, replace=False))
            places, clusters = places[some], None if clusters is None else clusters[some]
        rows = self._kept_places[places]
        members = [
            each.left_out(rows, self._fold_of, one_by_one=self._one_by_one) for each in self.stack_
        ]

        def predict(X: np.ndarray) -> np.ndarray:
            total = np.tile(self._offset, (len(X), 1))
            for member in members:
                total += member(X)
            return decisions_of(total) if self._log_odds else total

        return HeldOutSample(
            X=self._kept_numbers[places],
            targets=self._fitted_columns()[rows].astype(np.float64),
            weights=self._counts[rows].astype(np.float64),
            predict=predict,
            how="the models of the stack without the row, weighted as in the stack",
            clusters=clusters,
            donors=None if clusters is None else self._kept_numbers,
            donor_weights=None if clusters is None else self._counts[self._kept_places],
        )

    def _clusters(self, places: np.ndarray, random: np.random.Generator) -> np.ndarray | None:
        """The cell of each kept row, −1 in cells that are not looked at; None of few cells."""
        in_cells = [each.model for each in self.stack_ if each.in_cells]
        if not in_cells or number_of(in_cells[0]._cells) <= _MOST_CELLS:
            return None
        owners = _owners(in_cells[0]._cells, self._kept_places[places])
        cells = np.unique(owners)
        chosen = random.choice(cells, size=min(_MOST_CELLS, len(cells)), replace=False)
        return np.where(np.isin(owners, chosen), owners, -1)

    # -- curves --------------------------------------------------------------------------

    def effect_curves(
        self,
        columns: Sequence[Any] | None = None,
        *,
        target: int | None = None,
        max_rows: int = 200,
        random_state: int = 0,
    ) -> list[EffectCurve]:
        """How the prediction moves with each column of the table, as curves with an error.

        See :meth:`KernelRidgeCV.effect_curves`; there is no error where models in cells take part.
        """
        check_is_fitted(self, "stack_")
        asked = self.model_ if self._is_given else self
        of_table = (self._encoder.columns, columns, target, max_rows, random_state)
        curves: list[EffectCurve] = asked._curves_of(*of_table)
        return curves

    def _n_outputs(self) -> int:
        return len(self._offset)

    def _rows_for_curves(
        self, max_rows: int, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        counts = self._counts[self._kept_places]
        places = np.flatnonzero(counts > 0)
        if len(places) > max_rows:
            places = np.sort(random.choice(places, size=max_rows, replace=False))
        return self._kept_numbers[places], counts[places].astype(np.float64)

    def _with_folds(self) -> Decisions:
        parts = [each.with_folds() for each in self.stack_]

        def decide(X: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
            whole = self._decision_of_numbers(X)
            found = [None if part is None else part(X) for part in parts]
            known = [each for each in found if each is not None]
            if not known or len(known) < len(found) or len({each.shape[1] for each in known}) > 1:
                return whole, None
            total = np.sum(known, axis=0) + self._offset[None, None, :]
            if self._log_odds:
                total = np.stack([decisions_of(each) for each in np.moveaxis(total, 1, 0)], axis=1)
            return whole, total

        return decide

    # -- model files ---------------------------------------------------------------------

    def _kept_rows_state(self) -> dict[str, Any]:
        return {
            "numbers": self._kept_numbers,
            "places": self._kept_places,
            "lowest": self._ranges.lowest,
            "highest": self._ranges.highest,
            "one_by_one": self._one_by_one,
            "least": self._least,
            "most": self._most,
        }

    def _restore_kept_rows(self, state: Mapping[str, Any], width: int, n: int) -> None:
        where = "model.state.kept_rows"
        check_fields(where, state, _FIELDS, {})
        numbers, places = state["numbers"], state["places"]
        good = (
            numbers.shape[1] == width
            and state["lowest"].shape == state["highest"].shape == (width,)
            and places.ndim == 1
            and places.dtype.kind == "i"
            and len(places) == len(numbers)
            and state["least"].shape == state["most"].shape == (len(self._offset),)
            and bool(np.all((places >= 0) & (places < n)))
        )
        if not good:
            raise ModelFileError(f"{where} must hold rows of the fit")
        self._kept_numbers, self._kept_places = numbers, places
        self._ranges = ColumnRanges(state["lowest"], state["highest"])
        self._one_by_one = state["one_by_one"]
        self._least, self._most = state["least"], state["most"]


_FIELDS: Mapping[str, Any] = {
    "numbers": Annotated[np.ndarray, Floats((2,))],
    "places": np.ndarray,
    "lowest": Annotated[np.ndarray, Floats((1,))],
    "highest": Annotated[np.ndarray, Floats((1,))],
    "one_by_one": bool,
    "least": Annotated[np.ndarray, Floats((1,))],
    "most": Annotated[np.ndarray, Floats((1,))],
}


def _owners(cells: Cells, rows: np.ndarray) -> np.ndarray:
    """The cell in which each of some rows has its largest share."""
    entries = np.flatnonzero(np.isin(cells.rows, rows))
    shares = np.ones(len(entries)) if cells.weights is None else cells.weights[entries]
    owner = np.searchsorted(cells.offsets, entries, side="right") - 1
    order = np.lexsort((-shares, cells.rows[entries]))
    found, first = np.unique(cells.rows[entries][order], return_index=True)
    return np.asarray(owner[order][first][np.searchsorted(found, rows)])

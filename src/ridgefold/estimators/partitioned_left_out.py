"""Rows of a fit in cells, predicted by the cells without them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ridgefold.cells.cell_intervals import CellIntervals
from ridgefold.cells.cells_without_rows import RowsLeftOut, rows_to_leave_out
from ridgefold.cells.combine import COMBINERS
from ridgefold.cells.linear_part import left_to_cells
from ridgefold.errors import InvalidInputError
from ridgefold.estimators.effect_curves import Decisions, WithEffectCurves
from ridgefold.estimators.importances import WithImportances
from ridgefold.estimators.models_without_rows import spread_of
from ridgefold.estimators.partitioned_predict import PredictsByCells
from ridgefold.options import cells_of
from ridgefold.planning import available_resources
from ridgefold.planning.cell_memory import WORK_BYTES
from ridgefold.selection.importances import HeldOutSample

_DONORS = 2000
"""Rows of all cells, at most, that columns take exchanged values from where the rows that are left
out come from few cells."""


class LeavesRowsOutOfCells(PredictsByCells, WithImportances, WithEffectCurves):
    """A fitted model of cells, as its own rows see it when they are left out."""

    def _fitted_targets(self) -> np.ndarray:
        """Targets of all training rows, as they were fitted; shape (n, n_columns)."""
        raise NotImplementedError

    def _targets_of_cells(self) -> np.ndarray:
        """The same as cells learned them: what a linear part leaves."""
        targets = self._fitted_targets()
        if self._linear is None:
            return targets
        return left_to_cells(targets, self.X_fit_, self._linear)[:]

    def _target_columns(self, rows: np.ndarray) -> np.ndarray:
        """Targets of numbered training rows, as they were fitted; shape (n, n_columns)."""
        raise NotImplementedError

    def _held_out_sample(self, max_rows: int, random: np.random.Generator) -> HeldOutSample:
        check_is_fitted(self, "X_fit_")
        self._require_rows_to_leave_out()
        cells, weights = self._cells, self._weights
        n = int(self.X_fit_.shape[0])
        rows, clusters = rows_to_leave_out(
            cells, weights, n_rows=n, max_rows=max_rows, random=random
        )
        if len(rows) < 2:
            raise InvalidInputError("rows are left out of models of 2 or more, got one row")
        predict, how = self._left_out(rows)
        donors = np.sort(random.choice(n, size=min(n, _DONORS), replace=False))
        return HeldOutSample(
            X=np.asarray(self.X_fit_[rows]),
            targets=self._target_columns(rows).astype(np.float64),
            weights=np.ones(len(rows)) if weights is None else np.asarray(weights[rows], float),
            predict=predict,
            how=how,
            clusters=clusters,
            donors=None if clusters is None else np.asarray(self.X_fit_[donors]),
            donor_weights=None
            if clusters is None or weights is None
            else np.asarray(weights[donors], dtype=np.float64),
        )

    def _left_out(self, rows: np.ndarray) -> tuple[Callable[[np.ndarray], np.ndarray], str]:
        """Predictions of changed versions of training rows without them; and how, in words."""
        self._require_rows_to_leave_out()
        order = np.argsort(rows, kind="stable")
        left_out = RowsLeftOut(self._smoothers(None), rows[order])

        def predict(X: np.ndarray) -> np.ndarray:
            given = np.asarray(X, dtype=self.X_fit_.dtype)[order]
            new = self._in_metric(given)
            assignment = self._assignment(new)
            whole = self._combined_from(given, new, assignment).astype(np.float64)
            out = np.empty_like(whole)
            out[order] = whole - left_out.change(new, assignment)
            return out

        return predict, "leave-one-out in every cell"

    def _can_leave_rows_out(self) -> bool:
        in_space = COMBINERS[self._combine].needs_space
        return in_space and hasattr(self, "y_fit_") and int(self.X_fit_.shape[0]) > 1

    def _require_rows_to_leave_out(self) -> None:
        if not COMBINERS[self._combine].needs_space:
            how = "refined" if cells_of(self).refine is not None else f'combine="{self._combine}"'
            raise InvalidInputError(
                f'no row can be left out of a {how} model: fit with combine="blend" or '
                '"route" and cells.refine=None, or use KernelRidgeCV'
            )
        if not hasattr(self, "y_fit_"):
            raise InvalidInputError(
                "the model comes from a file of an older version, which lacks the targets of its "
                "rows: fit and save it again"
            )

    def _smoothers(self, residuals: np.ndarray | None) -> CellIntervals:
        """Models of cells without single rows; `residuals` are for intervals."""
        budget = available_resources(self.memory_budget).memory_bytes
        targets = self._targets_of_cells()
        return CellIntervals(
            self._training_rows(),
            targets,
            self._weights,
            self._cells,
            self._models,
            np.zeros(targets.shape) if residuals is None else residuals,
            bool(self.fit_intercept),
            self._coarse_model,
            max(budget - WORK_BYTES, WORK_BYTES),
        )

    def _target_summary(self) -> np.ndarray:
        n = int(self.X_fit_.shape[0])
        weights = np.ones(n) if self._weights is None else np.asarray(self._weights)
        classes = getattr(self, "classes_", None)
        if classes is not None:
            codes = np.asarray(self.y_fit_)
            counts = np.bincount(codes, weights, minlength=len(classes))
            return np.asarray(counts / weights.sum())
        return spread_of(self._fitted_targets(), weights)

    def _rows_for_curves(
        self, max_rows: int, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self, "X_fit_")
        n = int(self.X_fit_.shape[0])
        rows = np.arange(n) if self._weights is None else np.flatnonzero(self._weights > 0)
        if len(rows) > max_rows:
            rows = np.sort(random.choice(rows, size=max_rows, replace=False))
        weights = np.ones(len(rows)) if self._weights is None else self._weights[rows]
        return np.asarray(self.X_fit_[rows]), np.asarray(weights, dtype=np.float64)

    def _with_folds(self) -> Decisions:
        """Decision values of new rows, and None, as cells have no models without a fold."""

        def decide(X: np.ndarray) -> tuple[np.ndarray, None]:
            new = np.asarray(X, dtype=self.X_fit_.dtype)
            return self._combined(new).astype(np.float64), None

        return decide

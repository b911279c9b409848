"""What the kernel regressors share: targets that are numbers, and prediction intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ridgefold.crossval import Folds
from ridgefold.errors import BudgetError, InvalidInputError, ModelFileError
from ridgefold.estimators.base import KernelModel
from ridgefold.estimators.diagnostics import WithDiagnostics
from ridgefold.estimators.facts import HeldOutFacts, IntervalFacts, ModelFacts, to_numpy
from ridgefold.estimators.given_work import GivenModelWork
from ridgefold.estimators.uncertainty import WithPosterior
from ridgefold.estimators.validation import (
    check_new_rows,
    out_of_memory_is_a_budget_error,
)
from ridgefold.exact.interval_ranks import interval_from_models, is_widening
from ridgefold.exact.leave_one_out import leave_one_out_models
from ridgefold.linalg import Array, namespace_of
from ridgefold.linalg.blocks import row_blocks
from ridgefold.planning import available_resources, device_of
from ridgefold.records import Intervals, Problem
from ridgefold.runtime import Step
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.describe import TrainingGram
from ridgefold.selection.fit_steps import HoldOut
from ridgefold.selection.fold_models import targets_without_folds
from ridgefold.selection.grids import rows_that_count

_FOLDS = 10
"""Folds of CV+ for a model that was not cross-validated."""
_BLOCK_BYTES = 64e6
"""Kernel values that are held at once where intervals of new rows are made."""


class KernelRegressor(WithPosterior, WithDiagnostics, KernelModel):
    """Targets are numbers, one column or several."""

    intervals: Any

    def _fit_numbers(self, data: TrainingData) -> None:
        """Fit with this model's own kernel and alpha."""
        one_target = data.y.ndim == 1
        targets = data.y[:, None] if one_target else data.y
        self._fit_given(data, targets)
        self._set_coefficients(one_target)
        self.y_fit_ = data.y

    def _steps(self) -> list[Step[Problem, Any]]:
        steps = super()._steps()
        return [HoldOut(_FOLDS), *steps] if self._interval_method() == "cv+" else steps

    def _solve(self, work: GivenModelWork) -> None:
        self._solve_with_intervals(
            work.data,
            work.targets,
            work.gram,
            work.alphas,
            folds=work.folds,
            held_out=work.held_out,
        )

    def _predict_numbers(self, X: Any) -> Array:
        values = self._decision(X)
        return values[:, 0] if self.dual_coef_.ndim == 1 else values

    # -- intervals -----------------------------------------------------------------------

    def _interval_method(self) -> str | None:
        """The kind of intervals that is asked for; None where there are none, or it is open."""
        if self.intervals is None or self.intervals in ("auto", "cv+", "jackknife+"):
            return self.intervals if self.intervals in ("cv+", "jackknife+") else None
        raise InvalidInputError(
            f'intervals must be "auto", "cv+", "jackknife+" or None, got {self.intervals!r}'
        )

    def _solve_with_intervals(
        self,
        data: TrainingData,
        targets: Array,
        gram: TrainingGram,
        alphas: np.ndarray,
        *,
        folds: Folds | None = None,
        held_out: np.ndarray | None = None,
        final: Array | None = None,
    ) -> None:
        """Fit, and keep what intervals need: with folds CV+, else what `intervals` asks for.

        What is fitted are the targets, or `final` in their place.

        The model without a fold is the model of all rows with the targets of the fold replaced
        by its own predictions of them. So the fold models are further columns of the same
        system, solved with the factorisation that there is anyway.
        """
        self.intervals_: Intervals | None = None
        fitted = targets if final is None else final
        if folds is not None and held_out is not None:
            further = targets_without_folds(data, targets, folds, held_out)
            model = self._solve_with(data, fitted, gram, alphas, further, observed=targets)
            numbers = data.namespace.to_numpy(targets)
            groups = np.full(folds.n_rows, -1)
            for k, rows in enumerate(folds.test):
                groups[rows] = k
            counted = rows_that_count(data)
            residuals = data.namespace.asarray((numbers - held_out)[counted], data.like)
            assert model is not None
            self.intervals_ = Intervals("cv+", model, residuals, groups[counted])
            return
        if self._interval_method() == "jackknife+":
            self._require_one_alpha(alphas)
            self._require_room(int(targets.shape[0]), data)
        self._solve_with(data, fitted, gram, alphas, observed=targets)
        if self._interval_method() == "jackknife+":
            self.intervals_ = leave_one_out_models(
                gram, targets, float(alphas[0]), data.weights, bool(self.fit_intercept)
            )

    @staticmethod
    def _require_one_alpha(alphas: np.ndarray) -> None:
        if len(np.unique(alphas)) > 1 or alphas[0] <= 0:
            raise InvalidInputError(
                'intervals="jackknife+" needs one alpha > 0 for all targets, got '
                f'{np.unique(alphas).tolist()}: use intervals="cv+", or one model a target'
            )

    def _require_room(self, n: int, data: TrainingData) -> None:
        needed = 2.0 * n**2 * data.namespace.itemsize(data.like)
        device = device_of(data.like)
        budget = available_resources(self.memory_budget, device=device).memory_bytes
        if needed > budget:
            raise BudgetError(
                f'intervals="jackknife+" keeps an n × n matrix, which takes {needed / 1e9:.3g} GB '
                f"to make, and the budget is {budget / 1e9:.3g} GB: use "
                'intervals="cv+" (n numbers a fold), or fewer rows'
            )

    @out_of_memory_is_a_budget_error("predict_interval")
    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[Array, Array]:
        """An interval for each row of X that should hold the target with probability `coverage`.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
        coverage : float, default=0.9
            Between 0 and 1. The guarantee for rows drawn like the training rows is 2·coverage − 1
            (CV+: less a little), for any distribution; in practice it is close to `coverage`.

        Returns
        -------
        lower, upper : arrays with the shape of `predict`
            Infinite where there are too few training rows for the coverage. The prediction lies
            between them.

        Notes
        -----
        Exact CV+ or jackknife+ (Barber, Candès, Ramdas and Tibshirani 2021), as the argument
        `intervals` says, widened to hold the prediction. Choosing alpha and kernel on the same
        rows, or weights that differ, are outside the guarantee. Where length scales were learned
        from few rows a column, errors are multiplied by how much larger they are at rows that the
        learning has not seen (``intervals_.widening``).
        """
        check_is_fitted(self, "X_fit_")
        coverage = check_coverage(coverage)
        if self.intervals_ is None:
            raise InvalidInputError(self._why_no_intervals())
        X = check_new_rows(self, X, self.X_fit_)
        lower, upper = self._interval_columns(X, coverage)
        namespace = namespace_of(self.dual_coef_)
        # Far from all rows, models without some of them may all lie on one side of the prediction.
        centre = self._decision_of_checked(X)
        lower = namespace.xp.minimum(namespace.asarray(lower, self.dual_coef_), centre)
        upper = namespace.xp.maximum(namespace.asarray(upper, self.dual_coef_), centre)
        return (lower[:, 0], upper[:, 0]) if self.dual_coef_.ndim == 1 else (lower, upper)

    def _why_no_intervals(self) -> str:
        n = int(self.X_fit_.shape[0])
        if hasattr(self, "compression_bound_"):
            return (
                "a compressed model has no intervals: the models without some rows need all of "
                "them; ask the model that it came from"
            )
        asked = f"intervals={self.intervals!r}"
        if self.intervals is not None:
            asked += f", which keeps nothing in {type(self).__name__}"
        return (
            f"nothing was kept to predict intervals with ({asked}): fit with "
            f'intervals="cv+" ({_FOLDS * n:,} numbers more for these {n:,} rows) or '
            f'intervals="jackknife+" ({n * n:,})'
        )

    @np.errstate(over="ignore", invalid="ignore")
    def _interval_columns(self, X: Array, coverage: float) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends in blocks of bounded memory, shape (n_new, t)."""
        kept = self.intervals_
        assert kept is not None
        namespace = namespace_of(self.dual_coef_)
        t = int(self._model.intercept.shape[0])
        residuals = namespace.to_numpy(kept.residuals).astype(np.float64)
        groups = np.asarray(kept.groups)
        widening = np.ones(t) if kept.widening is None else kept.widening
        lower = np.empty((int(X.shape[0]), t))
        upper = np.empty_like(lower)
        predict = self._predictor()
        budget = available_resources(self.memory_budget).memory_bytes
        per_row = 8.0 * 5 * (len(groups) + 1)
        for rows in row_blocks(int(X.shape[0]), per_row, min(_BLOCK_BYTES, budget / 4)):
            part = X[rows, ...]
            values = namespace.to_numpy(predict(part, kept.model)).astype(np.float64)
            centre = None
            if kept.method == "jackknife+":
                centre = namespace.to_numpy(predict(part, self._model)).astype(np.float64)
            for j in range(t):
                if centre is None:
                    left_out = values[:, j::t][:, groups]
                else:
                    left_out = centre[:, j : j + 1] - values[:, groups] * residuals[None, :, j]
                lower[rows, j], upper[rows, j] = interval_from_models(
                    left_out, residuals[:, j] * widening[j], coverage
                )
        return lower, upper

    # -- reports -------------------------------------------------------------------------

    def report_facts(self) -> ModelFacts:
        """What a report may know of the fitted model."""
        facts = super().report_facts()
        kept = self.intervals_
        if kept is None:
            return facts
        residuals, groups = to_numpy(kept.residuals), np.asarray(kept.groups)
        # Rows of weight zero have no residual, and which they are is not kept.
        complete = facts.targets is not None and len(residuals) == facts.n_rows
        n_folds = int(np.max(groups)) + 1
        by_folds = kept.method == "cv+"
        how = f"{n_folds}-fold cross-validation" if by_folds else "leave-one-out"
        held_out = None
        if complete:
            columns = to_numpy(self.y_fit_).reshape(facts.n_rows, -1)
            held_out = HeldOutFacts(how, lambda rows: columns[rows] - residuals[rows])
        return replace(
            facts,
            held_out=held_out,
            intervals=IntervalFacts(by_cell=False, groups=groups if complete else None),
            predict_interval=self.predict_interval,
        )

    # -- model files ---------------------------------------------------------------------

    _further_state: Mapping[str, Any] = {"intervals": Intervals | None}

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "intervals": self.intervals_}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        self.intervals_ = state["intervals"]
        if self.intervals_ is not None:
            self._require_usable_intervals(self.intervals_)

    def _require_usable_intervals(self, kept: Intervals) -> None:
        wrong = ModelFileError("model.state.intervals does not fit the model")
        ours = (self._model, *self._model.further)
        theirs = (kept.model, *kept.model.further)
        arrays = [kept.residuals]
        for each in theirs:
            arrays += [each.dual_coef, each.intercept]
            arrays += [] if each.primal_coef is None else [each.primal_coef]
            arrays += [] if each.fixed_coef is None else [each.fixed_coef]
        dtype = self._model.dual_coef.dtype
        if len(ours) != len(theirs) or not all(
            type(a) is np.ndarray and a.dtype == dtype and np.all(np.isfinite(a)) for a in arrays
        ):
            raise wrong
        groups = kept.groups
        if type(groups) is not np.ndarray or groups.dtype.kind != "i" or groups.ndim != 1:
            raise wrong
        t, columns = self._model.intercept.shape[0], kept.model.intercept.size
        models = columns if kept.method == "jackknife+" else columns // t
        good = (
            kept.method in ("cv+", "jackknife+")
            and len(groups) > 0
            and groups.min() >= 0
            and groups.max() < models
            and kept.residuals.shape == (len(groups), t)
            and all(each.dual_coef.shape == (self.X_fit_.shape[0], columns) for each in theirs)
            and all(each.intercept.shape == (columns,) for each in theirs)
            and (kept.method == "jackknife+" or columns == models * t)
        )
        if kept.widening is not None:
            good = good and is_widening(kept.widening, t)
        for own, each in zip(ours, theirs, strict=True):
            good = good and (own.fixed_coef is None) == (each.fixed_coef is None)
            if each.fixed_coef is not None and own.fixed_coef is not None:
                good = good and each.fixed_coef.shape == (len(own.fixed_coef), columns)
            if each.primal_coef is not None:
                primal = own.primal_coef
                good = (
                    good and primal is not None and each.primal_coef.shape == (len(primal), columns)
                )
        if not good:
            raise wrong


def check_coverage(coverage: Any) -> float:
    """The share of targets that intervals should hold."""
    number = isinstance(coverage, (int, float, np.number)) and not isinstance(coverage, bool)
    if not number or not 0 < coverage < 1:
        raise InvalidInputError(f"coverage must lie between 0 and 1, got {coverage!r}")
    return float(coverage)

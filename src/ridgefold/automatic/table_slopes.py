"""Slopes, effects and standard deviations of the weighted sum of models, for columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from ridgefold.errors import InvalidInputError
from ridgefold.estimators.effects import (
    Effect,
    WithEffects,
    check_estimand,
    effects_in_short,
    effects_of,
    require_columns,
    rows_and_shares,
)
from ridgefold.estimators.effects_table import MarginalEffects
from ridgefold.estimators.facts import to_numpy
from ridgefold.estimators.posterior import forget_posterior
from ridgefold.estimators.table_effects import places_of_numbers, table_effects
from ridgefold.estimators.validation import out_of_memory_is_a_budget_error
from ridgefold.linalg.namespace import on_device

if TYPE_CHECKING:
    from ridgefold.automatic.table_estimator import TableEstimator

_MOST_ROWS_FACTORISED = 6000
"""Rows up to which standard errors of effects are computed: a factor for every model, each a few
seconds and 0.3 GB."""


class KnowsItsSlopes:
    """`predict_gradient`, `marginal_effects` and standard deviations of estimators for tables."""

    @out_of_memory_is_a_budget_error("predict_gradient")
    def predict_gradient(self: TableEstimator, X: Any) -> np.ndarray:  # type: ignore[misc]
        """The slope of the prediction along every column of the table, at every row.

        Parameters
        ----------
        X : table

        Returns
        -------
        gradient : array of shape (n_rows, n_columns) or (n_rows, n_columns, n_targets)
            In the units of the table; of classifiers, slopes of log-odds. NaN for columns that
            have no slope: categories, dates, true and false (:meth:`marginal_effects` has their
            differences). 0 for columns that were left out. Where a value is missing it is the
            slope at the number that stands for it.

        Notes
        -----
        The weighted sum of the slopes of the models; 0 where a prediction is held near the targets
        of the fit.
        """
        check_is_fitted(self, "stack_")
        numbers = self._numbers(X)
        slopes = _AsOneModel(self)._gradients(numbers)
        given = getattr(self, "feature_names_in_", None)
        names = [f"x{j}" for j in range(self.n_features_in_)] if given is None else list(given)
        found = np.zeros((len(numbers), len(names), slopes.shape[2]))
        for name, feature, scale in places_of_numbers(self._encoder.columns):
            own = np.nan if feature is None else slopes[:, feature, :] / scale
            found[:, names.index(name), :] = own
        return found[:, :, 0] if found.shape[2] == 1 else found

    @out_of_memory_is_a_budget_error("marginal_effects")
    def marginal_effects(  # type: ignore[misc]
        self: TableEstimator,
        X: Any = None,
        *,
        estimand: str = "rows",
        standard_errors: bool = True,
        decision: bool = False,
    ) -> MarginalEffects:
        """How predictions change with every column of the table, in the units of the table.

        Numbers have slopes; those with two values in the fit, and categories, differences against
        the lower value or the first category; dates the difference between the first and the third
        quartile of the dates of the fit. Places in an order have slopes from one to the next, and
        categories of many levels those of the numbers that they were made into.

        Parameters
        ----------
        X : table, optional
            Where to look; by default the rows of the fit (2,000 of them where all models are in
            cells).
        estimand, decision
            As in :meth:`KernelRidge.marginal_effects`.
        standard_errors : bool, default=True
            Where all models are of all rows, for numbers: with the kernels, ridges and weights as
            given. Otherwise there are none, and the table says why.

        Returns
        -------
        effects : MarginalEffects
        """
        check_is_fitted(self, "stack_")
        check_estimand(estimand)
        model: Any = self.model_ if self._is_given else _AsOneModel(self)
        numbers = None if X is None else self._numbers(X)
        if self._is_given:
            require_columns(model)
            at = None if numbers is None else on_device(numbers, self.device)
            rows, shares = rows_and_shares(model, at, None)
        else:
            rows, weights = model.X_fit_, model.weights_fit_
            if numbers is not None:
                rows, weights = numbers, np.ones(len(numbers))
            rows, shares = rows[weights > 0], weights[weights > 0] / weights.sum()
        return effects_of(
            model,
            rows,
            shares,
            self._table_effects(to_numpy(model.X_fit_)),
            estimand=estimand,
            errors=bool(standard_errors),
            decision=bool(decision),
        )

    def _table_effects(self: TableEstimator, numbers: np.ndarray) -> Sequence[Effect]:  # type: ignore[misc]
        if not self._encoder.names:
            raise InvalidInputError(
                "no column of the table says anything of the target, so that there are no effects"
            )
        return table_effects(self._encoder.columns, numbers)

    def _effects_for_facts(self: TableEstimator) -> MarginalEffects:  # type: ignore[misc]
        """Effects at some of the rows, for a report."""
        model = _AsOneModel(self)
        return effects_in_short(model, self._table_effects(model.X_fit_))

    def _deviations(self: TableEstimator, numbers: np.ndarray, *, noise: bool) -> np.ndarray:  # type: ignore[misc]
        """Σ w_m σ_m of rows of numbers, shape (n, t): no correlation of the models' errors makes
        that of their weighted sum larger."""
        total = np.zeros((len(numbers), len(self._offset)))
        for member in self.stack_:
            _, own = member.model.predict(
                member.placed(numbers), return_std=True, noise=bool(noise)
            )
            if not member.in_cells and len(self.stack_) > 1:
                forget_posterior(member.model)  # the factors of all of them are much memory
            total += member.weights * to_numpy(own).reshape(total.shape)
        return total


class _AsOneModel:
    """The sum of all members as a function of the encoded columns: what effects are made of.

    Where every member is of all rows it is a stack of kernels on the same rows, so that averages
    have the standard errors of stacks (`estimators.effect_errors`).
    """

    def __init__(self, estimator: TableEstimator) -> None:
        self._estimator = estimator
        members = estimator.stack_
        whole = [each for each in members if not each.in_cells and each.places is None]
        self._alike = bool(members) and len(whole) == len(members)
        self.fit_intercept, self.memory_budget = True, estimator.memory_budget
        if whole:
            self.X_fit_ = to_numpy(whole[0].model.X_fit_)
            self.weights_fit_ = estimator._counts
        else:
            self.X_fit_ = estimator._kept_numbers
            self.weights_fit_ = estimator._counts[estimator._kept_places]
        if hasattr(estimator, "classes_"):
            self.classes_ = estimator.classes_
            self.calibration_ = estimator._probability_curves()
        if self._alike:
            self.y_fit_ = estimator._targets_fit
            self.kernel_, self._model = (
                members[0].kernel,
                SimpleNamespace(intercept=estimator._offset),
            )
            self.stack_ = SimpleNamespace(
                members=[
                    SimpleNamespace(
                        kernel=each.kernel,
                        alpha=np.broadcast_to(each.ridges, len(estimator._offset)),
                        weight=each.weights,
                    )
                    for each in members
                ],
                offset=estimator._offset,
            )

    def _n_outputs(self) -> int:
        return len(self._estimator._offset)

    _effect_errors = WithEffects._effect_errors

    def _row_weights(self) -> np.ndarray:
        return self.weights_fit_

    def _why_no_effect_errors(self) -> str | None:
        if hasattr(self, "classes_"):
            return "Standard errors are not known for sums of several classifiers."
        if not self._estimator.stack_:
            return "No column says anything of the target."
        n = len(self.X_fit_)
        if self._alike and n > _MOST_ROWS_FACTORISED:
            return (
                f"Standard errors of {n:,} rows would take the factor of a matrix of as many "
                "columns: fit KernelRidge, which is asked by itself, or fewer rows."
            )
        if not self._alike:
            return (
                "Standard errors are known where all models are of all rows; here some are in "
                "cells, or of some rows."
            )
        return None

    def _decision_of_checked(self, X: np.ndarray) -> np.ndarray:
        return self._estimator._bounded(self._estimator._decision_of_numbers(X))

    def _gradients(self, X: np.ndarray) -> np.ndarray:
        """∂f/∂x_j of rows of numbers, of shape (n, d, t)."""
        estimator = self._estimator
        slopes = np.zeros((len(X), X.shape[1], len(estimator._offset)))
        total = np.tile(estimator._offset, (len(X), 1))
        for member in estimator.stack_:
            slopes += member.gradients(X)
            total += member.predict(X, estimator.device)
        if estimator._log_odds and total.shape[1] > 1:
            return _slopes_of_odds(total, slopes)
        held = estimator._bounded(total) != total
        return np.where(held[:, None, :], 0.0, slopes)


def _slopes_of_odds(total: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Those of log p_k − log(1 − p_k) = f_k − log Σ_{l ≠ k} exp f_l."""
    found = slopes.copy()
    for k in range(total.shape[1]):
        others = np.arange(total.shape[1]) != k
        shares = softmax(total[:, others], axis=1)
        found[:, :, k] -= np.einsum("ijl,il->ij", slopes[:, :, others], shares)
    return found

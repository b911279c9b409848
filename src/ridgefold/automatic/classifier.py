"""Classification for people with a table: everything is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ridgefold.automatic.table_estimator import TableEstimator
from ridgefold.errors import InvalidInputError
from ridgefold.estimators.facts import ModelFacts
from ridgefold.estimators.labels import class_numbers, label_targets, labels_of, require_classes
from ridgefold.estimators.stored_values import Classes
from ridgefold.linalg import namespace_of
from ridgefold.runtime.training_data import TrainingData, as_ridgefold_errors


class RidgefoldClassifier(ClassifierMixin, TableEstimator):
    """Classification from a table as it is, within a time that you set.

    As :class:`RidgefoldRegressor`; candidates are combined by a logistic regression of the classes
    on their held-out decision values, which makes them probabilities as well.

    Parameters
    ----------
    model : classifier of ridgefold, optional
        :class:`LSSVMClassifierCV` or another one, fitted as it is.
    time_budget, memory_budget, columns, cv, n_jobs, device, verbose, random_state
        As in :class:`RidgefoldRegressor`; folds hold every class where they can.
    class_weight : dict, "balanced" or None
        Weights of the classes, multiplied with `sample_weight`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    held_out_predictions_ : array of shape (n_rows,)
        The class of every row by models and weights that had not seen it; None for rows without
        a target, or in no test set.
    held_out_decisions_ : array of shape (n_rows,) or (n_rows, n_classes)
        The decision values behind them.
    held_out_error_ : float
        Their log-loss; of a given `model` the share of them that are wrong.
    columns_, diagnosis_, feature_names_in_, fixed_coef_, fixed_coef_std_, fixed_names_, \
leaderboard_, model_, n_features_in_, stack_, target_, time_budget_, \
n_splits_, run_record_
        As in :class:`RidgefoldRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import RidgefoldClassifier
    >>> X = np.linspace(-3, 3, 120)[:, None]
    >>> model = RidgefoldClassifier(time_budget=20).fit(X, np.abs(X[:, 0]) < 1.5)
    >>> model.predict([[0.0], [2.5]]).tolist()
    [True, False]
    """

    _classify = True
    _measure = "log-loss"
    _nature = "classification, everything chosen"

    def __init__(
        self,
        *,
        model: Any = None,
        time_budget: Any = "auto",
        memory_budget: Any = "auto",
        columns: Mapping[str, Any] | None = None,
        class_weight: Any = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        device: str | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            model=model,
            time_budget=time_budget,
            memory_budget=memory_budget,
            columns=columns,
            cv=cv,
            n_jobs=n_jobs,
            device=device,
            verbose=verbose,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def _targets(
        self, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray | None]:
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        with as_ridgefold_errors("y must hold one label for each row of the table"):
            if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
                raise ValueError("Input y contains NaN or infinity")
        data = TrainingData(namespace_of(), X, y, weights)
        data, targets, self.classes_ = label_targets(self, data, self.class_weight)
        codes = class_numbers(np.asarray(targets))
        return np.asarray(targets), codes, np.asarray(self.classes_)[codes], data.weights

    def _spread_held_out(self, spread: Callable[[np.ndarray], np.ndarray]) -> None:
        decisions = self._held_out
        labels = labels_of(self.classes_, decisions)
        untested = np.isnan(decisions[:, 0])
        if untested.any():
            labels = labels.astype(object)
            labels[untested] = None
        self.held_out_predictions_ = spread(labels)
        self.held_out_decisions_ = spread(decisions[:, 0] if decisions.shape[1] == 1 else decisions)

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds: one a row for two classes (positive: the second), else one a class.

        Of a given `model` its decision values.
        """
        check_is_fitted(self, "stack_")
        if self._is_given:
            return np.asarray(self._ask("decision_function", X))
        values = self._decision(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of every class."""
        check_is_fitted(self, "stack_")
        if self._is_given:
            if not hasattr(self.model_, "predict_proba"):
                raise InvalidInputError(
                    f"the {type(self.model_).__name__} has no probabilities: give it "
                    "probability=True, and fit again"
                )
            return np.asarray(self._ask("predict_proba", X))
        return self.probabilities_of(self._decision(X))

    def probabilities_of(self, odds: np.ndarray) -> np.ndarray:
        """The probability of every class, from log-odds of shape (n, 1) or (n, n_classes)."""
        if odds.shape[1] == 1:
            second = expit(odds[:, 0])
            return np.column_stack([1.0 - second, second])
        shares: np.ndarray = expit(odds)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        check_is_fitted(self, "stack_")
        if self._is_given:
            return np.asarray(self._ask("predict", X))
        return np.asarray(labels_of(self.classes_, self._decision(X)))

    def report_facts(self) -> ModelFacts:
        """What a report may know of the fitted model."""
        if self._is_given:
            return self._facts_of_given()
        facts = super().report_facts()
        held_out = None if self._held_out is None else facts.held_out
        return replace(
            facts,
            n_targets=1,
            classes=np.asarray(self.classes_),
            predict_proba=self.predict_proba,
            held_out=held_out,
        )

    _further_state: ClassVar[Mapping[str, Any]] = {"classes": Classes}

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "classes": self.classes_}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        self.classes_ = state["classes"]
        require_classes(self.classes_, len(self._offset))
        if self._held_out is not None:
            self._spread_held_out(lambda values: values)

"""A model of somebody's own at the front door: fitted as it is to the columns as they were read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier

from ridgefold.automatic.columns_by_name import (
    set_fixed_attributes,
    with_names_for_numbers,
    with_numbers_for_names,
)
from ridgefold.automatic.leaderboard import Leaderboard
from ridgefold.automatic.members import Member
from ridgefold.errors import InvalidInputError, ModelFileError
from ridgefold.estimators.effects import Effect, effects_in_short
from ridgefold.estimators.facts import ModelFacts, to_numpy
from ridgefold.estimators.labels import labels_of
from ridgefold.estimators.saving import Storable, unpack_estimator
from ridgefold.estimators.scale_names import named_scales
from ridgefold.linalg.namespace import on_device
from ridgefold.records import Attempt
from ridgefold.tables.encoder import TableEncoder

_OF_CHOOSING: Mapping[str, Any] = {
    "time_budget": "auto",
    "memory_budget": "auto",
    "class_weight": None,
    "cv": 5,
    "n_jobs": None,
    "verbose": 0,
}
"""Arguments that a given model has of its own, and their defaults."""


class WithGivenModel:
    """What estimators for tables do where `model` was given: the fitted model is asked."""

    model: Any
    model_: Any
    device: Any
    n_features_in_: int
    stack_: tuple[Member, ...]
    leaderboard_: Leaderboard
    held_out_error_: float
    _classify: ClassVar[bool]
    _counts: np.ndarray
    _encoder: TableEncoder
    _held_out: np.ndarray
    _least: np.ndarray
    _log_odds: bool
    _most: np.ndarray
    _numbers: Callable[[Any], np.ndarray]
    _offset: np.ndarray
    _targets_fit: np.ndarray
    predict: Callable[..., Any]
    is_outside: Callable[[Any], np.ndarray]
    _importances_for_facts: Callable[[], Any]
    _curves_for_facts: Callable[..., Any]
    _table_effects: Callable[[np.ndarray], Sequence[Effect]]

    @property
    def _is_given(self) -> bool:
        return hasattr(self, "model_")

    def _check_given(self) -> None:
        model, name = self.model, type(self).__name__
        if not isinstance(model, Storable) or isinstance(model, WithGivenModel):
            raise InvalidInputError(
                "model must be None, or an estimator of ridgefold for numbers, such as "
                f"KernelRidgeCV(), got {model!r}"
            )
        if is_classifier(model) != self._classify:
            other = "RidgefoldRegressor" if self._classify else "RidgefoldClassifier"
            raise InvalidInputError(
                f"{name} cannot have {model!r} as its model: pass it to {other}"
            )
        for argument, usual in _OF_CHOOSING.items():
            value = getattr(self, argument, usual)
            if value is not usual and not (isinstance(value, (int, str)) and value == usual):
                raise InvalidInputError(
                    f"{argument}={value!r} is for models that {name} chooses, and model= is given: "
                    f"leave it out, and say it to the {type(model).__name__}"
                )

    def _fit_given(self, X: Any, y: Any, weights: Any, groups: Any) -> None:
        """Fit the model to numbers, which may lie in a file."""
        inner = with_numbers_for_names(self.model, self._encoder.columns)
        more = {} if groups is None else {"groups": groups}
        if groups is not None and "groups" not in inspect.signature(inner.fit).parameters:
            raise InvalidInputError(
                f"groups were given, and {type(inner).__name__} holds no rows out: leave them out, "
                "or give a model that chooses by cross-validation"
            )
        self.model_ = inner.fit(on_device(X, self.device), y, weights, **more)
        n = int(X.shape[0])
        self._counts = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
        self._know_given()
        known = np.isfinite(self.held_out_error_)
        attempt = Attempt(
            type(inner).__name__,
            "fitted",
            self.held_out_error_ if known else None,
            1.0,
            0.0,
            0.0,
            "as given" if known else "as given; it keeps no predictions of rows held out",
        )
        self.leaderboard_ = Leaderboard([attempt], self.held_out_error_, self._measure_of_given)

    @property
    def _measure_of_given(self) -> str:
        return "share of wrong classes" if self._classify else "root mean square error"

    def _know_given(self) -> None:
        """What follows from the fitted model: attributes of estimators that choose."""
        facts = self.model_.report_facts()
        self.run_record_ = facts.run
        if self._classify:
            self.classes_ = np.asarray(facts.classes)
        self._targets_fit = facts.targets
        n, width = facts.n_rows, int(self.model_._n_outputs())
        self._held_out = np.full((n, width), np.nan)
        if facts.held_out is not None:
            self._held_out = to_numpy(facts.held_out.at(np.arange(n))).reshape(n, -1)
        self.held_out_error_ = self._error_of_given()
        name = type(self.model_).__name__
        self.stack_ = (Member(name, self.model_, None, np.ones(width)),)
        self._offset, self._log_odds = np.zeros(width), False
        self._least, self._most = np.full(width, -np.inf), np.full(width, np.inf)
        set_fixed_attributes(self)

    def _error_of_given(self) -> float:
        known = ~np.isnan(self._held_out).any(axis=1) & (self._counts > 0)
        if not known.any():
            return float("nan")
        held_out, targets = self._held_out[known], np.asarray(self._targets_fit)[known]
        if self._classify:
            wrong = labels_of(self.classes_, held_out) != self.classes_[targets]
        else:
            wrong = np.mean((held_out - targets.reshape(held_out.shape)) ** 2, axis=1)
        error = float(np.average(wrong, weights=self._counts[known]))
        return error if self._classify else float(np.sqrt(error))

    # -- what the model is asked -----------------------------------------------------------

    def _ask(self, method: str, X: Any, *arguments: Any, **options: Any) -> Any:
        """What a method of the model says of the rows of a table."""
        numbers = on_device(self._numbers(X), self.device)
        found = getattr(self.model_, method)(numbers, *arguments, **options)
        return tuple(map(to_numpy, found)) if isinstance(found, tuple) else to_numpy(found)

    def _facts_of_given(self) -> ModelFacts:
        """The facts of the model, with the names of the table and the methods that take one."""
        facts: ModelFacts = self.model_.report_facts()
        names = tuple(map(str, self._encoder.feature_names))
        metric = facts.metric
        if metric is not None:
            metric = replace(metric, named=named_scales(self, names, metric.shares))
        of_tables = {
            "predict": self.predict,
            "predict_proba": getattr(self, "predict_proba", None),
            "predict_interval": getattr(self, "predict_interval", None),
            "is_outside": self.is_outside,
            "importances": self._importances_for_facts(),
            "effect_curves": self._curves_for_facts,
        }
        own = {name: each for name, each in of_tables.items() if getattr(facts, name) is not None}
        return replace(
            facts,
            column_names=names,
            n_table_columns=self.n_features_in_,
            metric=metric,
            effects=lambda: effects_in_short(
                self.model_, self._table_effects(to_numpy(self.model_.X_fit_))
            ),
            **own,
        )

    # -- model files -----------------------------------------------------------------------

    def _restore_given(self, fitted: Any, counts: np.ndarray | None) -> None:
        """Take back a model, for the columns of the table that are known."""
        self.model_ = unpack_estimator(fitted)
        self.model = with_names_for_numbers(self.model_, self._encoder.columns)
        if isinstance(self.model_, WithGivenModel):
            raise ModelFileError("model.state.fitted must be a model of numbers")
        if is_classifier(self.model_) != self._classify:
            raise ModelFileError(f"model.state.fitted must fit {type(self).__name__}")
        if max(1, len(self._encoder.feature_names)) != self.model_.n_features_in_:
            raise ModelFileError("model.state.columns must name the columns of the model")
        if len(set(self._encoder.names)) != len(self._encoder.names):
            raise ModelFileError("model.state.columns must name every column once")
        n = self.model_.report_facts().n_rows
        self._counts = np.ones(n) if counts is None else counts
        if len(self._counts) != n:
            raise ModelFileError("model.state must have one entry for each row of the fit")
        self._know_given()

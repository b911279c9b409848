"""Labels as columns of ±1 and back, and what all classifiers share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from ridgefold.errors import InvalidInputError, ModelFileError
from ridgefold.estimators.facts import ModelFacts, to_numpy
from ridgefold.estimators.stored_values import Classes
from ridgefold.linalg import Array, namespace_of
from ridgefold.runtime.training_data import (
    TrainingData,
    as_ridgefold_errors,
    require_usable_weights,
)
from ridgefold.selection.probabilities import probabilities

CLASSES_STATE: Mapping[str, Any] = {"classes": Classes, "calibration": np.ndarray | None}
"""What model files hold of classifiers beside the model."""


def has_probability(model: Any) -> bool:
    """Whether `predict_proba` was asked for; scikit-learn hides the method otherwise."""
    if not model.probability:
        raise AttributeError(f"predict_proba needs {type(model).__name__}(probability=True)")
    return True


class WithClasses(ClassifierMixin):
    """Predictions of a model whose columns of decision values stand for classes."""

    classes_: Any
    calibration_: np.ndarray
    """Curves from decision values to probabilities, if these were asked for."""

    def decision_function(self, X: Any) -> Array:
        """Decision values: one a row for two classes (positive: the second), else one a class."""
        values = self._decision(X)
        return self._given_back(values[:, 0] if values.shape[1] == 1 else values, X)

    @available_if(has_probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, calibrated on decision values of rows that were held out.

        Platt's curve, one a class against the others (:mod:`ridgefold.selection.probabilities`).
        """
        decisions = self._decision(X)
        if not hasattr(self, "calibration_"):
            raise InvalidInputError(
                "probability=True was set after the fit, which looked for no probabilities: fit "
                "again"
            )
        return self._given_back(_probabilities_of(decisions, self.calibration_), X)

    def predict(self, X: Any) -> Array:
        """The class of each row."""
        decisions = self._decision(X)
        return self._given_back(labels_of(self.classes_, decisions), X)

    def report_facts(self) -> ModelFacts:
        """What a report may know of the fitted model; its columns are classes of one target."""
        calibration = getattr(self, "calibration_", None)
        facts: ModelFacts = super().report_facts()
        return replace(
            facts,
            n_targets=1,
            classes=to_numpy(self.classes_),
            calibration=calibration,
            predict_proba=None if calibration is None else getattr(self, "predict_proba", None),
        )

    def _state(self) -> dict[str, Any]:
        calibration = getattr(self, "calibration_", None)
        return {**super()._state(), "classes": self.classes_, "calibration": calibration}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.classes_ = state.get("classes")
        super()._restore(state)
        n_targets = self._n_outputs()
        require_classes(self.classes_, n_targets)
        if state["calibration"] is not None:
            self.calibration_ = _checked_curves(state["calibration"], n_targets)


def class_numbers(columns: np.ndarray) -> np.ndarray:
    """Class numbers from columns of ±1."""
    if columns.shape[1] == 1:
        return np.asarray(columns[:, 0] > 0, dtype=int)
    return np.asarray(np.argmax(columns, axis=1))


def row_counts(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Sample weights as NumPy, without those of the classes: frequencies are what is estimated."""
    if sample_weight is None:
        return None
    weights = namespace_of(sample_weight).to_numpy(sample_weight)
    return np.broadcast_to(np.asarray(weights, dtype=np.float64), (n_rows,))


def _probabilities_of(decisions: Array, curves: np.ndarray) -> Array:
    """Probabilities in the array library of the decision values."""
    namespace = namespace_of(decisions)
    values = probabilities(namespace.to_numpy(decisions), curves)
    return namespace.asarray(values, decisions)


def _checked_curves(curves: np.ndarray, n_targets: int) -> np.ndarray:
    """Stored curves of probabilities: two finite numbers a column."""
    if (
        curves.shape != (n_targets, 2)
        or curves.dtype != np.float64
        or not np.all(np.isfinite(curves))
    ):
        raise ModelFileError("model.state.calibration must hold two numbers for each column")
    return curves


def require_classes(classes: np.ndarray, n_targets: int) -> None:
    """Stored classes are as many as the columns of a model say: two for one column."""
    if classes.ndim != 1 or len(classes) != (2 if n_targets == 1 else n_targets):
        raise ModelFileError("model.state.classes must name one class for each column of the model")


def label_targets(
    estimator: Any, data: TrainingData, class_weight: Any
) -> tuple[TrainingData, Array, Array]:
    """Labels as columns of ±1, and the data with class weights multiplied in.

    Two classes give one column, +1 for the second class; more give one column a class.
    """
    namespace = data.namespace
    on_device = namespace_of(data.y).name == namespace.name and namespace.name != "numpy"
    labels = namespace.to_numpy(data.y) if on_device else np.asarray(data.y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = column_or_1d(labels, warn=True)
    if labels.ndim != 1:
        raise InvalidInputError(
            f"y must hold one label a row, got shape {labels.shape}: "
            "fit one classifier a column (sklearn.multioutput.MultiOutputClassifier)"
        )
    with as_ridgefold_errors("y must hold one label for each row of X, all of one type"):
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInputError(
            f"{type(estimator).__name__} needs at least two classes, but y holds only one class: "
            f"{classes[0]}"
        )
    columns = np.where(codes[:, None] == np.arange(len(classes))[None, :], 1.0, -1.0)
    if len(classes) == 2:
        columns = columns[:, 1:]
    weights = data.weights
    if class_weight is not None:
        counts = None if weights is None else namespace.to_numpy(weights)
        factors = namespace.asarray(
            _class_factors(class_weight, classes, codes, counts)[codes], data.like
        )
        weights = factors if weights is None else weights * factors
        require_usable_weights(namespace.to_numpy(weights))
    data = TrainingData(namespace, data.X, data.y, weights)
    kept = namespace.placed(classes, data.like) if on_device else classes
    return data, namespace.asarray(columns, data.like), kept


def _class_factors(
    class_weight: Any, classes: np.ndarray, codes: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """The weight of each class; "balanced" counts rows by their weight, as if repeated."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, weights=weights, minlength=len(classes)).astype(np.float64)
        present = totals > 0
        shares = totals.sum() / np.where(present, present.sum() * totals, 1.0)
        return np.where(present, shares, 0.0)
    if not isinstance(class_weight, Mapping):
        raise InvalidInputError(
            f'class_weight must be a dict, "balanced" or None, got {class_weight!r}'
        )
    unknown = [label for label in class_weight if label not in set(classes.tolist())]
    if unknown:
        raise InvalidInputError(
            f"class_weight has weights for {unknown}, but the classes in y are {classes.tolist()}"
        )
    factors = np.asarray([class_weight.get(label, 1.0) for label in classes.tolist()])
    if factors.dtype.kind not in "iuf" or not np.all(np.isfinite(factors)) or np.any(factors < 0):
        raise InvalidInputError(
            f"class_weight must give finite numbers >= 0, got {dict(class_weight)!r}"
        )
    return factors.astype(np.float64)


def labels_of(classes: Array, decisions: Array) -> Array:
    """The class of the largest decision value; with one column, of its sign."""
    namespace = namespace_of(decisions)
    if decisions.shape[1] == 1:
        codes = namespace.astype(decisions[:, 0] > 0, namespace.xp.int64)
    else:
        codes = namespace.xp.argmax(decisions, axis=1)
    if namespace_of(classes).name == namespace.name:
        return namespace.xp.take(classes, codes, axis=0)
    return classes[namespace.to_numpy(codes)]

"""Least-squares support vector machines: kernel ridge with an unpenalised bias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from ridgefold.errors import InvalidInputError, ModelFileError
from ridgefold.estimators.base import KernelModel, KernelRegressor
from ridgefold.estimators.validation import (
    TrainingData,
    as_ridgefold_errors,
    check_training_data,
    require_usable_weights,
    unchanged_on_error,
)
from ridgefold.linalg import Array, namespace_of


class LSSVMRegressor(MultiOutputMixin, RegressorMixin, KernelRegressor):
    """LS-SVM regression: kernel ridge with an unpenalised bias and an RBF kernel by default.

    Solves ``[[0, 1ᵀ], [1, K + alpha·I]] [b, a] = [0, y]``; the literature's γ is 1/alpha.

    Parameters
    ----------
    alpha, kernel, gamma, degree, coef0, kernel_params, solver, tol, memory_budget
        As in :class:`KernelRidge`; `kernel` is "rbf" by default.
    fit_intercept : bool, default=True

    Attributes
    ----------
    dual_coef_, intercept_, X_fit_, kernel_, plan_
        As in :class:`KernelRidge`.
    """

    def __init__(
        self,
        alpha: Any = 1,
        *,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float | None = None,
        memory_budget: Any = "auto",
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.memory_budget = memory_budget

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X and targets y; see :meth:`KernelRidge.fit`."""
        with unchanged_on_error(self):
            data = check_training_data(self, X, y, sample_weight, numeric_targets=True)
            self._fit_numbers(data)
        return self

    def predict(self, X: Any) -> Array:
        """Predictions for the rows of X, in blocks of bounded memory."""
        return self._predict_numbers(X)


class LSSVMClassifier(ClassifierMixin, KernelModel):
    """LS-SVM classification: ridge on labels ±1, one column a class, one factorisation for all.

    Parameters
    ----------
    alpha, kernel, gamma, degree, coef0, kernel_params, solver, tol, memory_budget
        As in :class:`LSSVMRegressor`.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None
        Weights of the classes, multiplied with `sample_weight`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    dual_coef_, intercept_, X_fit_, kernel_, plan_
        As in :class:`KernelRidge`; one column for two classes, else one a class.
    """

    def __init__(
        self,
        alpha: Any = 1,
        *,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str = "auto",
        tol: float | None = None,
        memory_budget: Any = "auto",
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.memory_budget = memory_budget

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X and labels y (numbers or strings)."""
        with unchanged_on_error(self):
            data = check_training_data(self, X, y, sample_weight, numeric_targets=False)
            data, targets, classes = label_targets(self, data, self.class_weight)
            self._solve(data, targets)
            self.classes_ = classes
            self._set_coefficients(one_target=targets.shape[1] == 1)
        return self

    _further_state: Mapping[str, Any] = {"classes": np.ndarray}

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "classes": self.classes_}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        require_classes(state["classes"], self._model.intercept.shape[0])
        self.classes_ = state["classes"]

    def decision_function(self, X: Any) -> Array:
        """Decision values: one a row for two classes (positive: the second), else one a class."""
        values = self._decision(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> Array:
        """The class of each row."""
        decisions = self._decision(X)
        return labels_of(self.classes_, decisions)


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
    kept = namespace.xp.asarray(classes) if on_device else classes
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

"""Least-squares support vector machines: kernel ridge with an unpenalised bias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from ridgefold.errors import InvalidInputError, ModelFileError
from ridgefold.estimators.base import KernelModel
from ridgefold.estimators.facts import HeldOutFacts, ModelFacts, to_numpy, with_classes
from ridgefold.estimators.kernel_ridge import KernelRidge
from ridgefold.estimators.other_defaults import with_defaults
from ridgefold.estimators.stored_values import Classes, HeldOut
from ridgefold.estimators.validation import (
    check_training_data,
    require_symmetric_if_precomputed,
    unchanged_on_error,
)
from ridgefold.kernels import KernelSettings
from ridgefold.linalg import Array, namespace_of
from ridgefold.options import Compute
from ridgefold.records import Problem
from ridgefold.runtime import Step
from ridgefold.runtime.training_data import (
    TrainingData,
    as_ridgefold_errors,
    require_usable_weights,
)
from ridgefold.selection.fit_steps import HoldOut
from ridgefold.selection.probabilities import fit_curves, probabilities


@with_defaults(kernel="rbf", fit_intercept=True)
class LSSVMRegressor(KernelRidge):
    """LS-SVM regression: kernel ridge with an unpenalised bias and an RBF kernel by default.

    Solves ``[[0, 1ᵀ], [1, K + alpha·I]] [b, a] = [0, y]``; the literature's γ is 1/alpha.

    Parameters
    ----------
    alpha, kernel, gamma, degree, coef0, kernel_params, fixed, intervals, memory_budget, \
time_budget, compute
        As in :class:`KernelRidge`; `kernel` is "rbf" by default.
    fit_intercept : bool, default=True
        Add a bias that is not penalised.

    Attributes
    ----------
    dual_coef_, intercept_, fixed_coef_, fixed_coef_std_, fixed_names_, X_fit_, y_fit_, kernel_, \
intervals_, plan_
        As in :class:`KernelRidge`.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import LSSVMRegressor
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = LSSVMRegressor(alpha=1e-3, gamma=1.0).fit(X, 100 + np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.5]])[0] - 100 - np.sin(1.5)) < 0.01)
    True
    """

    _nature = "LS-SVM regression"


_FOLDS = 5
"""Folds whose decision values probabilities are calibrated on."""


def has_probability(model: Any) -> bool:
    """Whether `predict_proba` was asked for; scikit-learn hides the method otherwise."""
    if not model.probability:
        raise AttributeError(f"predict_proba needs {type(model).__name__}(probability=True)")
    return True


class LSSVMClassifier(ClassifierMixin, KernelModel):
    """LS-SVM classification: ridge on labels ±1, one column a class, one factorisation for all.

    Parameters
    ----------
    alpha, kernel, gamma, degree, coef0, kernel_params, fixed, memory_budget, time_budget, compute
        As in :class:`LSSVMRegressor`.
    fit_intercept : bool, default=True
        Add a bias that is not penalised.
    class_weight : dict, "balanced" or None
        Weights of the classes, multiplied with `sample_weight`.
    probability : bool, default=False
        Make :meth:`predict_proba` available: decision values of 5 folds by the models that did not
        see them, at about the cost of one more factorisation. :meth:`predict` goes by the sign of
        the decision, so that a class may be predicted at a probability below one half.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    calibration_ : array of shape (n_columns, 2)
        Slope and offset of the curve from decision values to probabilities, if asked for.
    held_out_decisions_ : array of shape (n_rows,) or (n_rows, n_classes)
        The decision values that the curve was fitted to, if asked for.
    y_fit_ : array of shape (n_rows,)
        The classes of the training rows, as positions in `classes_`.
    dual_coef_, intercept_, fixed_coef_, fixed_coef_std_, fixed_names_, X_fit_, kernel_, plan_
        As in :class:`KernelRidge`; one column for two classes, else one a class.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import LSSVMClassifier
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> model = LSSVMClassifier(alpha=0.1, gamma=1.0).fit(X, np.abs(X[:, 0]) < 1.5)
    >>> model.predict([[0.0], [2.5]]).tolist()
    [True, False]
    """

    _nature = "LS-SVM classification"

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
        fixed: Any = None,
        class_weight: Any = None,
        probability: bool = False,
        memory_budget: Any = "auto",
        time_budget: float | None = None,
        compute: Compute | None = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.fixed = fixed
        self.class_weight = class_weight
        self.probability = probability
        self.memory_budget = memory_budget
        self.time_budget = time_budget
        self.compute = compute

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X and labels y (numbers or strings)."""
        with unchanged_on_error(self):
            self._check_options()
            data = check_training_data(self, X, y, sample_weight, numeric_targets=False)
            data, targets, classes = label_targets(self, data, self.class_weight)
            require_symmetric_if_precomputed(self, data.X)
            codes = class_numbers(data.namespace.to_numpy(targets))
            work = self._fit_given(data, targets, codes)
            self.classes_, self.y_fit_ = classes, codes
            self._set_coefficients(one_target=targets.shape[1] == 1)
            self._calibrate(work.held_out, sample_weight)
        return self

    def _settings(self) -> KernelSettings:
        return KernelSettings(self.gamma, self.degree, self.coef0, self.kernel_params)

    def _steps(self) -> list[Step[Problem, Any]]:
        steps = super()._steps()
        return [*steps, HoldOut(_FOLDS)] if self.probability else steps

    def _calibrate(self, decisions: np.ndarray | None, sample_weight: Any) -> None:
        """Curves from decisions on rows that were held out to probabilities."""
        self.__dict__.pop("calibration_", None)
        self.__dict__.pop("held_out_decisions_", None)
        if decisions is None:
            return
        codes = self.y_fit_
        self.calibration_ = fit_curves(decisions, codes, row_counts(sample_weight, len(codes)))
        self.held_out_decisions_ = decisions[:, 0] if decisions.shape[1] == 1 else decisions

    _further_state: Mapping[str, Any] = {"classes": Classes, "calibration": np.ndarray | None}
    _optional_state: Mapping[str, Any] = {
        **KernelModel._optional_state,
        "held_out": ("held_out_decisions_", HeldOut),
    }

    def _state(self) -> dict[str, Any]:
        calibration = getattr(self, "calibration_", None)
        return {**super()._state(), "classes": self.classes_, "calibration": calibration}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        n_targets = self._model.intercept.shape[0]
        require_classes(state["classes"], n_targets)
        self.classes_ = state["classes"]
        if state["calibration"] is not None:
            self.calibration_ = require_curves(state["calibration"], n_targets)
        if "held_out" in state:
            tail = () if n_targets == 1 else (n_targets,)
            held_out = state["held_out"]
            if held_out.ndim != 1 + len(tail) or held_out.shape[1:] != tail:
                raise ModelFileError("model.state.held_out must have one column a target")
            if "targets" in state and len(held_out) != len(state["targets"]):
                raise ModelFileError("model.state.held_out must have one row for each of the fit")

    def report_facts(self) -> ModelFacts:
        """What a report may know of the fitted model."""
        facts = super().report_facts()
        decisions = getattr(self, "held_out_decisions_", None)
        if decisions is not None and facts.targets is not None:
            columns = to_numpy(decisions).reshape(len(decisions), -1)
            how = f"{_FOLDS}-fold cross-validation"
            facts = replace(facts, held_out=HeldOutFacts(how, lambda rows: columns[rows]))
        calibration = getattr(self, "calibration_", None)
        return with_classes(facts, self.classes_, calibration, getattr(self, "predict_proba", None))

    @available_if(has_probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, calibrated on held-out decision values."""
        if not hasattr(self, "calibration_"):
            raise InvalidInputError(
                "probability=True was set after the fit, which looked for no probabilities: fit "
                "again"
            )
        return probabilities_of(self._decision(X), self.calibration_)

    def decision_function(self, X: Any) -> Array:
        """Decision values: one a row for two classes (positive: the second), else one a class."""
        values = self._decision(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> Array:
        """The class of each row."""
        decisions = self._decision(X)
        return labels_of(self.classes_, decisions)


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


def probabilities_of(decisions: Array, curves: np.ndarray) -> Array:
    """Probabilities in the array library of the decision values."""
    namespace = namespace_of(decisions)
    values = probabilities(namespace.to_numpy(decisions), curves)
    return namespace.asarray(values, decisions)


def require_curves(curves: np.ndarray, n_targets: int) -> np.ndarray:
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

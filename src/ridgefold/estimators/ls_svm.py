"""Least-squares support vector machines: kernel ridge with an unpenalised bias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from ridgefold.errors import ModelFileError
from ridgefold.estimators.base import KernelModel
from ridgefold.estimators.facts import HeldOutFacts, ModelFacts, to_numpy
from ridgefold.estimators.kernel_ridge import KernelRidge
from ridgefold.estimators.labels import (
    CLASSES_STATE,
    WithClasses,
    class_numbers,
    label_targets,
    row_counts,
)
from ridgefold.estimators.other_defaults import with_defaults
from ridgefold.estimators.stored_values import HeldOut
from ridgefold.estimators.validation import (
    check_training_data,
    require_symmetric_if_precomputed,
    unchanged_on_error,
)
from ridgefold.kernels import KernelSettings
from ridgefold.options import Compute
from ridgefold.records import Problem
from ridgefold.runtime import Step
from ridgefold.selection.fit_steps import HoldOut
from ridgefold.selection.probabilities import fit_curves


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


class LSSVMClassifier(WithClasses, KernelModel):
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

    _further_state: Mapping[str, Any] = CLASSES_STATE
    _optional_state: Mapping[str, Any] = {
        **KernelModel._optional_state,
        "held_out": ("held_out_decisions_", HeldOut),
    }

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        n_targets = self._model.intercept.shape[0]
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
        return facts

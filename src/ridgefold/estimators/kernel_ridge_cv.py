"""Regression that chooses its own kernel width and ridge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from ridgefold.crossval import Folds
from ridgefold.errors import InvalidInputError
from ridgefold.estimators.cross_validated import CrossValidatedModel
from ridgefold.estimators.other_defaults import with_defaults
from ridgefold.estimators.regressor import KernelRegressor
from ridgefold.estimators.stacked import sum_of, weighted
from ridgefold.estimators.validation import check_training_data, unchanged_on_error
from ridgefold.linalg import Array
from ridgefold.options import Compute, MetricLearning, Search, metric_of, search_of
from ridgefold.records import FittedModel, Problem
from ridgefold.runtime import Step
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.describe import TrainingGram
from ridgefold.selection.fit_steps import LearnAgain, LearnMetric
from ridgefold.selection.grids import rows_that_count
from ridgefold.selection.held_out_predictions import by_row
from ridgefold.selection.learned_grid import LearnedGrid
from ridgefold.selection.learning_optimism import widening_by_learning
from ridgefold.selection.scoring import Truth
from ridgefold.selection.search import Choice
from ridgefold.selection.splits import folds_of
from ridgefold.selection.stack.search import StackChoice

_MOST_FOLDS = 50
"""With more folds, one model a fold takes more room than the rows."""


class KernelRidgeCV(MultiOutputMixin, RegressorMixin, CrossValidatedModel, KernelRegressor):
    """Kernel ridge regression that chooses kernel width and ridge by exact cross-validation.

    Every fold's error is that of a model that never saw the fold, for every ridge value, at
    about the cost of one decomposition for each kernel.

    Parameters
    ----------
    alpha : None, float or sequence of float
        Ridge: chosen from the data, given, or chosen from those; > 0. Chosen from the data, it is
        one of a few a decade up to the largest eigenvalue of the kernel matrix, further if the
        best one lies at an end.
    kernel : str, kernel object, callable, list of them, or "auto", default="rbf"
        As in :class:`KernelRidge`; of a list, the best is chosen. A named kernel of distances
        ("rbf", "laplacian", "matern", "rational_quadratic") without a width gets widths from the
        data: powers of two around the median distance, further if the best one lies at an end.
        "auto" chooses the family too (RBF, Matérn 1/2, 3/2, 5/2, Laplacian, rational quadratic),
        with or without a learned metric.
    gamma : float or list of float, optional
        Parameter of a named kernel, as in scikit-learn; of a list, the best is chosen.
    kernel_params : dict, optional
        Further parameters of a named kernel, as ``{"degree": 2}``, or of a callable:
        `length_scale`, `degree`, `coef0`, `nu`, …. Of a list of length scales, degrees or `coef0`
        the best is chosen; a tuple of length scales holds one a column.
    fit_intercept : bool, default=False
        Add a bias that is not penalised.
    fixed : None, "linear" or list of str or int, default=None
        Columns whose linear effect is not penalised, as in :class:`KernelRidge`.
    cv : int, "loo", splitter or iterable of (train, test), default=5
        A number means consecutive folds, as for ``GridSearchCV``.
    scoring : str, scorer, callable or None
        None: mean squared error over all held-out rows together. "marginal_likelihood": the
        (restricted) likelihood of a Gaussian process of the best variance, in which folds have no
        part; `best_score_` is its logarithm. Learned scales then move to where it is largest. A
        scikit-learn name, or scorer of ``make_scorer``: averaged over folds, as ``GridSearchCV``
        does. Another callable: ``scoring(y_true, y_predicted)`` on all held-out rows, higher is
        better. Ties go to the first in grid order.
    metric : None, "learned" or MetricLearning, default=None
        Learn one length scale a column, or transforms of the columns, before alpha is chosen:
        "learned" is ``MetricLearning()``.
    search : Search, optional
        How the choice is made: cross-validation method, races, one ridge for each target, several
        kernels combined, the mean of the models of the folds.
    intervals : {"auto", "cv+", "jackknife+", None}, default="auto"
        What to keep for :meth:`predict_interval`: "cv+" the models without one fold of `cv`, one
        number a row and fold, at almost no cost; "jackknife+" those without one row, an n × n
        matrix; None nothing. "auto" is "cv+" where every row is held out exactly once by at
        most 50 folds, else nothing.
    memory_budget, time_budget
        As in :class:`KernelRidge`. Kernels that are worked on at once on this machine share the
        memory; every worker of a cluster may take that much.
    compute : Compute, optional
        Solver, workers, run directory, progress.
    random_state : int, RandomState or None, default=0
        Which rows a metric is learned from.

    Attributes
    ----------
    alpha_ : float or array of shape (n_targets,)
    kernel_ : Kernel
    best_params_, best_score_, best_index_, cv_results_
        As `GridSearchCV` has them.
    held_out_predictions_ : array of shape (n_rows,) or (n_rows, n_targets)
        Prediction of every row by the model of the chosen parameters that did not see it. Rows
        that several folds test have the mean, rows that none tests NaN.
    y_fit_ : array with the shape of y
        The targets of the training rows.
    cv_plan_, plan_ : Plan
        How the cross-validation and the last fit were computed, and what else was possible.
    length_scales_, column_shares_ : array of shape (n_columns,)
        With something learned: the scales of `kernel_` (infinite for columns that are left out),
        and the share of every column in the mean distance between two rows.
    metric_ : LearnedMetric
        How they were found: families tried, errors inside and outside the criterion, every step.
    stack_ : Stack
        With ``Search(stack=True)``: who is in it, who was tried besides, with what
        weights and held-out errors.
    dual_coef_, intercept_, fixed_coef_, fixed_coef_std_, fixed_names_, X_fit_, intervals_
        As in :class:`KernelRidge`.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import KernelRidgeCV
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> noise = 0.1 * np.random.default_rng(0).standard_normal(60)
    >>> model = KernelRidgeCV(cv=5).fit(X, np.sin(X[:, 0]) + noise)
    >>> bool(model.best_score_ > -0.05)
    True
    """

    _nature = "kernel ridge regression, kernel and ridge by cross-validation"

    def __init__(
        self,
        alpha: Any = None,
        *,
        kernel: Any = "rbf",
        gamma: Any = None,
        kernel_params: dict[str, Any] | None = None,
        fit_intercept: bool = False,
        fixed: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        metric: str | MetricLearning | None = None,
        search: Search | None = None,
        intervals: str | None = "auto",
        memory_budget: Any = "auto",
        time_budget: float | None = None,
        compute: Compute | None = None,
        random_state: Any = 0,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.fixed = fixed
        self.cv = cv
        self.scoring = scoring
        self.metric = metric
        self.search = search
        self.intervals = intervals
        self.memory_budget = memory_budget
        self.time_budget = time_budget
        self.compute = compute
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Choose kernel and alpha by cross-validation, then fit on all rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_columns)
            The kernel matrix (n_rows, n_rows) if ``kernel="precomputed"``.
        y : array of shape (n_rows,) or (n_rows, n_targets)
        sample_weight : float or array of shape (n_rows,), optional
            Weights of the fits and, unless ``Search(weighted_scores=False)``, of the scores.
        groups : array of shape (n_rows,), optional
            Passed to the splitter.
        """
        with unchanged_on_error(self):
            self._check_options()
            data = check_training_data(self, X, y, sample_weight, numeric_targets=True)
            one_target = data.y.ndim == 1
            targets = data.y[:, None] if one_target else data.y
            numbers = data.namespace.to_numpy(targets).astype(np.float64)
            folds = folds_of(self.cv, data.X, numbers, classifier=False, groups=groups)
            truth = Truth(folds, numbers[folds.stacked], self._score_weights(data, folds))
            self._choose_and_fit(data, targets, folds, truth)
            self._set_coefficients(one_target)
            self._set_held_out(self.held_out_predictions_)
            self.y_fit_ = data.y
        return self

    def _fit_choice(
        self,
        data: TrainingData,
        targets: Array,
        gram: TrainingGram,
        choice: Choice,
        folds: Folds,
    ) -> None:
        few = folds.each_row_once and len(folds) <= _MOST_FOLDS
        method = self._interval_method()
        by_folds = method == "cv+" or (self.intervals == "auto" and few)
        # The stack without a row is a model like that without a fold: weights and kernels change.
        by_folds = by_folds or (search_of(self).stack and method == "jackknife+")
        held_out = by_row(folds, choice.predictions) if by_folds else None
        self._solve_with_intervals(
            data,
            targets,
            gram,
            choice.alphas,
            folds=folds if by_folds else None,
            held_out=held_out,
            final=self._final_targets(data, targets, choice, folds),
        )

    def _steps(self) -> list[Step[Problem, Any]]:
        steps = super()._steps()
        for step in steps:
            if (
                isinstance(step, LearnMetric)
                and self.intervals is not None
                and not search_of(self).stack
            ):
                most = _MOST_FOLDS if self.intervals == "auto" else math.inf
                return [*steps, LearnAgain(step, most)]
        return steps

    def _widen_intervals(self, data: TrainingData, targets: Array, learned: LearnedGrid) -> None:
        if self.intervals_ is not None:
            asked = metric_of(self)
            widening = widening_by_learning(
                data.X,
                targets,
                data.weights,
                learned.metric,
                learned.again,
                bias=bool(self.fit_intercept),
                fixed=self._fixed_columns(),
                scale_groups=None if asked is None else asked.groups,
            )
            self.intervals_ = replace(self.intervals_, widening=widening)

    def _without_folds(self, chosen: StackChoice, place: int, folds: Folds) -> FittedModel | None:
        if self.intervals_ is None:
            return None
        stacks = [chosen.without(k) for k in range(len(folds))]
        weights = np.concatenate([each.weights[place] for each in stacks])
        offset = np.concatenate([each.offset for each in stacks])
        return weighted(self.intervals_.model, weights, offset if place == 0 else 0.0 * offset)

    def _set_stack_intervals(
        self, data: TrainingData, targets: Array, chosen: StackChoice, kept: list[Any]
    ) -> None:
        if self.intervals_ is None:
            return
        errors = data.namespace.to_numpy(targets) - chosen.nested.held_out
        errors = errors[rows_that_count(data)]
        residuals = data.namespace.asarray(errors, self.intervals_.residuals)
        self.intervals_ = replace(self.intervals_, model=sum_of(kept), residuals=residuals)

    def _require_usable(self, data: TrainingData, folds: Folds) -> None:
        super()._require_usable(data, folds)
        method = self._interval_method()
        if method == "cv+" and not (folds.each_row_once and len(folds) <= _MOST_FOLDS):
            raise InvalidInputError(
                f'intervals="cv+" needs a cv of at most {_MOST_FOLDS} folds that holds every row '
                f"out once, got cv={self.cv!r}: use "
                'intervals="jackknife+" (an n × n matrix), or another cv'
            )
        if method == "jackknife+":
            self._require_room(folds.n_rows, data)
            if search_of(self).stack and not folds.leave_one_out:
                raise InvalidInputError(
                    f'intervals="jackknife+" of a stack needs cv="loo", got cv={self.cv!r}: its '
                    'weights without a row come from there; use intervals="cv+", or cv="loo"'
                )

    def _why_no_intervals(self) -> str:
        if hasattr(self, "compression_bound_"):
            return super()._why_no_intervals()
        n = int(self.X_fit_.shape[0])
        return (
            f"nothing was kept to predict intervals with (intervals={self.intervals!r}, "
            f"cv={self.cv!r}): fit with a cv of at most {_MOST_FOLDS} folds that holds every row "
            f'out once and intervals="auto", or with intervals="jackknife+" ({n * n:,} numbers)'
        )

    _further_state: Mapping[str, Any] = {
        **CrossValidatedModel._further_state,
        **KernelRegressor._further_state,
    }

    def _held_out_columns(self) -> Array:
        held_out = self.held_out_predictions_
        return held_out[:, None] if held_out.ndim == 1 else held_out

    def _set_held_out(self, columns: Array) -> None:
        self.held_out_predictions_ = columns[:, 0] if self.dual_coef_.ndim == 1 else columns


@with_defaults(fit_intercept=True)
class LSSVMRegressorCV(KernelRidgeCV):
    """LS-SVM regression that chooses kernel width and ridge by exact cross-validation.

    :class:`KernelRidgeCV` with an unpenalised bias by default; see there for the arguments.

    Parameters
    ----------
    alpha, kernel, gamma, kernel_params, fixed, cv, scoring, metric, search, intervals, \
memory_budget, time_budget, compute, random_state
        As in :class:`KernelRidgeCV`.
    fit_intercept : bool, default=True
        Add a bias that is not penalised.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import LSSVMRegressorCV
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> noise = 0.1 * np.random.default_rng(0).standard_normal(60)
    >>> model = LSSVMRegressorCV(cv="loo").fit(X, 100 + np.sin(X[:, 0]) + noise)
    >>> bool(abs(model.predict([[1.5]])[0] - 100 - np.sin(1.5)) < 0.1)
    True
    """

    _nature = "LS-SVM regression, kernel and ridge by cross-validation"

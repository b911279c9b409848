"""Regression that chooses its own kernel width and ridge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from ridgefold.crossval import Folds
from ridgefold.errors import InvalidInputError
from ridgefold.estimators.cross_validated import CrossValidatedModel
from ridgefold.estimators.other_defaults import with_defaults
from ridgefold.estimators.regressor import KernelRegressor, rows_that_count
from ridgefold.estimators.stacked import sum_of, weighted
from ridgefold.estimators.validation import check_training_data, unchanged_on_error
from ridgefold.linalg import Array
from ridgefold.records import FittedModel
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.describe import TrainingGram
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
    alphas : sequence of float, optional
        Ridge values to choose from, each > 0. By default from the data: whole decades up to the
        largest eigenvalue of the kernel matrix, further if the best one lies at an end.
    kernel : str, kernel object, callable or list of them, default="rbf"
        As in :class:`KernelRidge`; of a list, the best is chosen. A named kernel of distances
        ("rbf", "laplacian", "matern", "rational_quadratic") without `gamma` or `length_scale`
        gets widths from the data: powers of two around the median distance, further if the
        best one lies at an end.
    gamma, length_scale, degree, coef0 : float or list of float
        Parameters of a named kernel; of a list, the best is chosen.
    kernel_params : dict, optional
        Further parameters of named kernels or callables, as in :class:`KernelRidge`.
    fit_intercept : bool, default=False
        Add a bias that is not penalised.
    cv : int, "loo", splitter or iterable of (train, test), default=5
        A number means consecutive folds, as for ``GridSearchCV``.
    scoring : str, scorer, callable or None
        None: mean squared error over all held-out rows together. A scikit-learn name, or scorer
        of ``make_scorer``: averaged over folds, as ``GridSearchCV`` does. Another callable:
        ``scoring(y_true, y_predicted)`` on all held-out rows, higher is better. Ties go to the
        first in grid order.
    method : str, default="auto"
        Cross-validation method: the name of one, or the one predicted to be fastest within the
        memory budget.
    search : {"auto", "full", "race"}, default="auto"
        "full" scores every pair of kernel and alpha. "race" drops pairs as soon as they cannot win
        any more, by bounds on their scores: the same winner, sooner; dropped pairs have NaN in
        `cv_results_`, and as `bound_test_score` what they could have reached at most. It needs
        ``scoring=None`` or a negated error by name, folds of more than one row, and neither
        `alpha_per_target` nor `one_standard_error`; otherwise every pair is scored. "auto" races
        from 1000 rows on.
    alpha_per_target : bool, default=False
        Choose one ridge for each target.
    one_standard_error : bool, default=False
        Take the largest alpha whose score is within one standard error of the best.
    average_folds : bool, default=False
        Predict with the mean of the models of the folds instead of one fit on all rows. It needs
        a `cv` that holds every row out once, and costs nothing.
    weighted_scores : bool, default=True
        Count rows by their `sample_weight` in the scores too, if there is one, as GridSearchCV of
        scikit-learn does since its version 1.9: rows of weight zero take no part. False counts
        every row once.
    learn_scales : bool, default=False
        Learn one length scale a column by the gradient of the exact held-out error, on a subset
        of the rows; then choose alpha by cross-validation on all rows and fit. Columns that do
        not matter get large scales; those without which predictions change by at most 3% of
        the error are left out of the kernel, which saves time. Isotropic kernels are kept where
        learned scales are not better on rows that took no part. ``kernel="auto"`` chooses the
        family too (RBF, Matérn 1/2, 3/2, 5/2, Laplacian, rational quadratic), with or without
        learned scales.
    preprocess : None, "standardise", "quantile", "signed_log" or "auto"
        Transform every column before the kernel sees it; "auto" chooses one for every column by
        the same error.
    learning_rows : int, default=2000
        At most so many rows are learned from.
    scale_groups : sequence of sequences of int, optional
        Columns that share one learned scale, as the columns of 0 and 1 of one category do: they
        count as one column. In the RBF and Laplacian kernels each category is then one factor,
        and the kernel a product.
    random_state : int, RandomState or None, default=0
        Which rows those are.
    solver, tol, memory_budget, time_budget
        As in :class:`KernelRidge`. Kernels that are worked on at once on this machine share the
        memory; every worker of a cluster may take that much.
    n_jobs : int, optional
        Kernels that are worked on at once; -1: as many as there are cores.
    executor : {"auto", "serial", "threads", "processes", "dask"}, Client or str, default="auto"
        Where the kernels of the grid are cross-validated: every kernel is a task of its own, on
        one BLAS thread. "auto" is this process, or processes with `n_jobs`; "dask" starts workers
        on this machine for the time of the fit; or a ``distributed.Client``, or the address of a
        scheduler, or :class:`ridgefold.executors.Dask`, which says how long to wait where a
        cluster has no workers. The choice, the scores and the model are the same wherever it
        runs. The last fit on all rows is made by this process.
    run_dir : str or path, optional
        A folder in which every finished kernel is kept: the same fit goes on where it was
        stopped. Workers of a cluster must see it (and X, if that is mapped from a file); without
        it a temporary folder is used, which only workers on this machine see.
    verbose : int, default=0
        1 shows a progress bar.
    intervals : {"auto", "cv+", "jackknife+", None}, default="auto"
        What to keep for :meth:`predict_interval`: "cv+" the models without one fold of `cv`, one
        number a row and fold, at almost no cost; "jackknife+" those without one row, an n × n
        matrix; None nothing. "auto" is "cv+" where every row is held out exactly once by at
        most 50 folds, else nothing.

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
    length_scales_, feature_relevance_ : array of shape (n_columns,)
        With something learned: the scales of `kernel_` (infinite for columns that are left out),
        and the share of every column in the mean distance between two rows.
    metric_ : LearnedMetric
        How they were found: families tried, errors inside and outside the criterion, every step.
    dual_coef_, intercept_, X_fit_, intervals_
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
        alphas: Any = None,
        *,
        kernel: Any = "rbf",
        gamma: Any = None,
        length_scale: Any = None,
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: dict[str, Any] | None = None,
        fit_intercept: bool = False,
        cv: Any = 5,
        scoring: Any = None,
        method: str = "auto",
        search: str = "auto",
        alpha_per_target: bool = False,
        one_standard_error: bool = False,
        average_folds: bool = False,
        weighted_scores: bool = True,
        learn_scales: bool = False,
        preprocess: str | None = None,
        learning_rows: int = 2000,
        scale_groups: Any = None,
        random_state: Any = 0,
        solver: str = "auto",
        tol: float | None = None,
        memory_budget: Any = "auto",
        time_budget: float | None = None,
        n_jobs: int | None = None,
        executor: Any = "auto",
        run_dir: Any = None,
        verbose: int = 0,
        intervals: str | None = "auto",
    ) -> None:
        self.alphas = alphas
        self.kernel = kernel
        self.gamma = gamma
        self.length_scale = length_scale
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.method = method
        self.search = search
        self.alpha_per_target = alpha_per_target
        self.one_standard_error = one_standard_error
        self.average_folds = average_folds
        self.weighted_scores = weighted_scores
        self.learn_scales = learn_scales
        self.preprocess = preprocess
        self.learning_rows = learning_rows
        self.scale_groups = scale_groups
        self.random_state = random_state
        self.solver = solver
        self.tol = tol
        self.memory_budget = memory_budget
        self.time_budget = time_budget
        self.n_jobs = n_jobs
        self.executor = executor
        self.run_dir = run_dir
        self.verbose = verbose
        self.intervals = intervals

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Choose kernel and alpha by cross-validation, then fit on all rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_columns)
            The kernel matrix (n_rows, n_rows) if ``kernel="precomputed"``.
        y : array of shape (n_rows,) or (n_rows, n_targets)
        sample_weight : float or array of shape (n_rows,), optional
            Weights of the fits and, unless ``weighted_scores=False``, of the scores.
        groups : array of shape (n_rows,), optional
            Passed to the splitter.
        """
        with unchanged_on_error(self):
            data = check_training_data(self, X, y, sample_weight, numeric_targets=True)
            one_target = data.y.ndim == 1
            targets = data.y[:, None] if one_target else data.y
            numbers = data.namespace.to_numpy(targets).astype(np.float64)
            folds = folds_of(self.cv, data.X, numbers, classifier=False, groups=groups)
            truth = Truth(folds, numbers[folds.stacked], self._score_weights(data, folds))
            self._choose_and_fit(
                data, targets, folds, truth, alpha_per_target=bool(self.alpha_per_target)
            )
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
        by_folds = by_folds or (bool(self.stack) and method == "jackknife+")
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

    def _reckon_with_learning(
        self, data: TrainingData, targets: Array, learned: LearnedGrid
    ) -> None:
        if self.intervals_ is not None:
            widening = widening_by_learning(
                data.X,
                targets,
                data.weights,
                learned.metric,
                learned.again,
                bias=bool(self.fit_intercept),
                scale_groups=self.scale_groups,
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
            if self.stack and not folds.leave_one_out:
                raise InvalidInputError(
                    f'intervals="jackknife+" of a stack needs cv="loo", got cv={self.cv!r}: its '
                    'weights without a row come from there; use intervals="cv+", or cv="loo"'
                )

    _interval_choices = '"auto", None, "cv+" or "jackknife+"'

    def _interval_method(self) -> str | None:
        if isinstance(self.intervals, str) and self.intervals == "auto":
            return None
        return super()._interval_method()

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

    def predict(self, X: Any) -> Array:
        """Predictions for the rows of X, in blocks of bounded memory."""
        return self._predict_numbers(X)


@with_defaults(fit_intercept=True)
class LSSVMRegressorCV(KernelRidgeCV):
    """LS-SVM regression that chooses kernel width and ridge by exact cross-validation.

    :class:`KernelRidgeCV` with an unpenalised bias by default; see there for the arguments.

    Parameters
    ----------
    alphas, kernel, gamma, length_scale, degree, coef0, kernel_params, cv, scoring, method, \
search, alpha_per_target, one_standard_error, average_folds, weighted_scores, learn_scales, \
preprocess, learning_rows, scale_groups, random_state, solver, tol, memory_budget, time_budget, \
n_jobs, executor, run_dir, verbose, intervals
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

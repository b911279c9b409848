"""Classification that chooses its own kernel width and ridge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from ridgefold.estimators.cross_validated import CrossValidatedModel
from ridgefold.estimators.labels import (
    CLASSES_STATE,
    WithClasses,
    class_numbers,
    label_targets,
    labels_of,
    require_classes,
    row_counts,
)
from ridgefold.estimators.validation import (
    check_training_data,
    require_symmetric_if_precomputed,
    unchanged_on_error,
)
from ridgefold.linalg import Array, namespace_of
from ridgefold.options import Compute, MetricLearning, Search
from ridgefold.selection.probabilities import fit_curves
from ridgefold.selection.scoring import Truth
from ridgefold.selection.splits import folds_of


class LSSVMClassifierCV(WithClasses, CrossValidatedModel):
    """LS-SVM classification that chooses kernel width and ridge by exact cross-validation.

    Parameters
    ----------
    alpha, kernel, gamma, kernel_params, fixed, metric, search, memory_budget, time_budget, \
compute, random_state
        As in :class:`KernelRidgeCV`.
    fit_intercept : bool, default=True
        Add a bias that is not penalised.
    class_weight : dict, "balanced" or None
        Weights of the classes, multiplied with `sample_weight`.
    cv : int, "loo", splitter or iterable of (train, test), default=5
        A number means stratified folds, as for ``GridSearchCV``.
    scoring : str, scorer, callable or None
        None: the share of all held-out rows that are classified rightly. A scikit-learn name
        ("balanced_accuracy", "roc_auc", …), or scorer of ``make_scorer``: from held-out decision
        values, averaged over folds. One that asks for probabilities ("neg_log_loss",
        "neg_brier_score") gets those of :meth:`predict_proba`'s curves, calibrated for every
        candidate on its held-out decision values of all folds: the decision values have not seen
        the labels they are scored by, but the calibration has, by two numbers a class, so that
        the score is a little better than on new rows. Another callable:
        ``scoring(labels, predicted_labels)`` on all held-out rows.
    probability : bool, default=False
        Make :meth:`predict_proba` available, calibrated on the held-out decision values that the
        search has computed. :meth:`predict` goes by the sign of the decision, so that a class may
        be predicted at a probability below one half.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    alpha_, kernel_, best_params_, best_score_, best_index_, cv_results_, cv_plan_, plan_, \
length_scales_, column_shares_, metric_, stack_, dual_coef_, intercept_, fixed_coef_, \
fixed_coef_std_, fixed_names_
        As in :class:`KernelRidgeCV`.
    held_out_predictions_ : array of shape (n_rows,)
        The class of every row by the model that did not see it; None for rows in no test set.
    held_out_decisions_ : array of shape (n_rows,) or (n_rows, n_classes)
        The decision values behind them.
    y_fit_ : array of shape (n_rows,)
        The classes of the training rows, as positions in `classes_`.
    calibration_ : array of shape (n_columns, 2)
        Slope and offset of the curve from decision values to probabilities, if asked for.

    Notes
    -----
    A fold whose training rows hold a single class is no error: ridge on labels is defined
    there, and classifies every row as that class.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import LSSVMClassifierCV
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> model = LSSVMClassifierCV(probability=True).fit(X, np.abs(X[:, 0]) < 1.5)
    >>> model.predict([[0.0], [2.5]]).tolist()
    [True, False]
    >>> bool(model.predict_proba([[0.0]])[0, 1] > 0.9)
    True
    """

    _nature = "LS-SVM classification, kernel and ridge by cross-validation"

    def __init__(
        self,
        alpha: Any = None,
        *,
        kernel: Any = "rbf",
        gamma: Any = None,
        kernel_params: dict[str, Any] | None = None,
        fit_intercept: bool = True,
        fixed: Any = None,
        class_weight: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        metric: str | MetricLearning | None = None,
        search: Search | None = None,
        probability: bool = False,
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
        self.class_weight = class_weight
        self.cv = cv
        self.scoring = scoring
        self.metric = metric
        self.search = search
        self.probability = probability
        self.memory_budget = memory_budget
        self.time_budget = time_budget
        self.compute = compute
        self.random_state = random_state

    _without_use: ClassVar[Mapping[str, str]] = {
        **CrossValidatedModel._without_use,
        "search.alpha_per_target": "classes share one ridge",
    }

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Choose kernel and alpha by cross-validation, then fit on all rows."""
        with unchanged_on_error(self):
            self._check_options()
            data = check_training_data(self, X, y, sample_weight, numeric_targets=False)
            score_data = data
            data, targets, classes = label_targets(self, data, self.class_weight)
            require_symmetric_if_precomputed(self, data.X)
            codes = class_numbers(data.namespace.to_numpy(targets))
            names = namespace_of(classes).to_numpy(classes)
            labels = names[codes]
            folds = folds_of(self.cv, data.X, labels, classifier=True, groups=groups)
            truth = Truth(
                folds,
                labels[folds.stacked],
                self._score_weights(score_data, folds),
                names,
            )
            self._choose_and_fit(data, targets, folds, truth)
            self.classes_, self.y_fit_ = classes, codes
            self._set_coefficients(one_target=targets.shape[1] == 1)
            decisions = self.held_out_predictions_
            self._set_held_out(decisions)
            self.__dict__.pop("calibration_", None)
            if self.probability:
                numbers = data.namespace.to_numpy(decisions)
                weights = row_counts(sample_weight, len(codes))
                self.calibration_ = fit_curves(numbers, codes, weights)
        return self

    def _held_out_columns(self) -> Array:
        decisions = self.held_out_decisions_
        return decisions[:, None] if decisions.ndim == 1 else decisions

    def _set_held_out(self, columns: Array) -> None:
        require_classes(self.classes_, int(columns.shape[1]))
        labels = labels_of(self.classes_, columns)
        numbers = namespace_of(columns).to_numpy(columns)
        untested = np.isnan(numbers[:, 0])
        if untested.any():
            labels = namespace_of(labels).to_numpy(labels).astype(object)
            labels[untested] = None
        self.held_out_predictions_ = labels
        self.held_out_decisions_ = columns[:, 0] if columns.shape[1] == 1 else columns

    _further_state: Mapping[str, Any] = {
        **CrossValidatedModel._further_state,
        **CLASSES_STATE,
    }

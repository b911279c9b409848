"""Scores of held-out predictions. Higher is better.

`scoring=None` pools the rows of all folds, as the papers do: mean squared error (negated), or
for classes the share of rows classified rightly. A scikit-learn name, or scorer object, is computed
for each fold and averaged, as `GridSearchCV` does. Another callable gets all held-out rows at once.

A scorer that asks for probabilities gets those of Platt's curves, calibrated on the held-out
decision values of all folds together: two numbers a class have seen the labels that are scored.

Rows count by their weights, as they do in `GridSearchCV` of scikit-learn 1.9: a row of weight 2 is
two rows, one of weight 0 none.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer, make_scorer, r2_score

from ridgefold.crossval import Folds
from ridgefold.errors import InvalidInputError
from ridgefold.notices import without_foreign
from ridgefold.selection.probabilities import fit_curves, probabilities


@dataclass(frozen=True)
class Scores:
    """Scores for every α."""

    overall: np.ndarray
    """What candidates are compared by, shape (n_alphas,)."""
    by_fold: np.ndarray
    """Shape (n_alphas, n_folds)."""


@dataclass(frozen=True)
class Truth:
    """What the predictions are compared with, in the order of the stacked test rows."""

    folds: Folds
    y: np.ndarray
    """Targets (rows, t), or for classes the labels (rows,)."""
    weights: np.ndarray | None
    """Weights of the scores; None counts every row once."""
    classes: np.ndarray | None = None

    @property
    def counted(self) -> np.ndarray:
        """Which folds have rows that count; a fold of weight zero says nothing."""
        if self.weights is None:
            return np.ones(len(self.folds), dtype=bool)
        return np.asarray([bool(np.any(self.weights[run] > 0)) for run in self.folds.runs])

    def mean_of_folds(self, by_fold: np.ndarray) -> np.ndarray:
        """The mean of scores (n_alphas, n_folds) over the folds that count."""
        return np.asarray(by_fold[:, self.counted].mean(axis=1))

    def part(self, fold: int) -> Truth:
        """The truth of one fold alone."""
        folds, run = self.folds, self.folds.runs[fold]
        train = None if folds.train is None else (folds.train[fold],)
        return Truth(
            Folds(folds.n_rows, (folds.test[fold],), train),
            self.y[run],
            None if self.weights is None else self.weights[run],
            self.classes,
        )

    def labels_of(self, decisions: np.ndarray) -> np.ndarray:
        """Labels for decision values (…, rows, t)."""
        assert self.classes is not None
        if decisions.shape[-1] == 1:
            codes = (decisions[..., 0] > 0).astype(int)
        else:
            codes = np.argmax(decisions, axis=-1)
        return np.asarray(self.classes[codes])


Score: TypeAlias = Callable[[Truth, np.ndarray], Scores]
"""From predictions of shape (n_alphas, rows, t) to their scores."""


Spread: TypeAlias = Callable[["Rule", Truth, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""(rule, one fold, predictions, their error) -> bounds on the score for every alpha."""


@dataclass(frozen=True)
class Rule:
    """How predictions are scored."""

    score: Score
    best_fold_score: float | None = None
    """What no fold's score can exceed, if that is known: a race over the grid needs it."""
    pooled: bool = False
    """True if rows of all folds count alike, False if folds do."""
    spread: Spread | None = None
    """How far a fold's score can move when its predictions do; None if that is not known."""

    def between(
        self, part: Truth, predictions: np.ndarray, error: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on the score of one fold, for predictions that are off by at most `error`.

        `part` is that fold alone, predictions (n_alphas, rows, t), error (n_alphas, t).
        """
        assert self.spread is not None
        return self.spread(self, part, predictions, error)

    takes_weights: bool = True
    """False for a score that knows no weights of rows."""

    def __call__(self, truth: Truth, predictions: np.ndarray) -> Scores:
        return self.score(truth, predictions)

    def shares(self, truth: Truth) -> np.ndarray:
        """What every fold contributes to the overall score."""
        if not self.pooled:
            counted = truth.counted
            return np.asarray(counted / counted.sum())
        weights = np.ones(len(truth.y)) if truth.weights is None else truth.weights
        totals = np.asarray([weights[run].sum() for run in truth.folds.runs])
        return np.asarray(totals / totals.sum())


_Scorer = type(make_scorer(r2_score))
"""scikit-learn names this type nowhere in public."""


MARGINAL_LIKELIHOOD = "marginal_likelihood"
"""What chooses by the likelihood of the targets instead of by held-out predictions."""


def by_likelihood(scoring: Any) -> bool:
    """Whether a choice is by the marginal likelihood."""
    return isinstance(scoring, str) and scoring == MARGINAL_LIKELIHOOD


_LEAST_SHARE = 1e-15
"""Probabilities of zero count as this."""


def log_likelihood() -> Rule:
    """The mean log-likelihood of classes, by Platt's curves of the decision values."""
    return Rule(_pooled_log_likelihood, 0.0, pooled=True)


def scoring_of(scoring: Any, *, classifier: bool) -> Rule:
    """The rule that `scoring` stands for."""
    likely = by_likelihood(scoring)
    if likely and classifier:
        raise InvalidInputError(
            'scoring="marginal_likelihood" is for regressors, as labels are no normal numbers: '
            'use None, "neg_log_loss" or another score of classes'
        )
    if scoring is None and classifier:
        return Rule(_pooled_accuracy, 1.0, pooled=True, spread=_spread_of_accuracy)
    if scoring is None or likely:
        # Predictions held out from a choice by likelihood have their squared error; none races.
        spread = None if likely else _spread_of_square
        return Rule(_pooled_squared_error, 0.0, pooled=True, spread=spread)
    if isinstance(scoring, str):
        simple = {} if classifier else _SQUARED_AND_ABSOLUTE
        if scoring in simple:
            squared = scoring == "neg_mean_squared_error"
            spread = _spread_of_square if squared else _spread_of_norm
            return Rule(simple[scoring], 0.0, spread=spread)
        try:
            return _rule_of(get_scorer(scoring), scoring)
        except (ValueError, KeyError):
            raise InvalidInputError(
                f"scoring must be a scikit-learn scorer or its name, a callable or None, got "
                f"{scoring!r}: sklearn.metrics.get_scorer_names() lists the names"
            ) from None
    if isinstance(scoring, _Scorer):
        return _rule_of(scoring, scoring)
    if callable(scoring):
        return Rule(_by_callable(scoring), takes_weights=_takes_weights(scoring))
    raise InvalidInputError(
        f"scoring must be a scikit-learn scorer or its name, a callable or None, got {scoring!r}"
    )


def _rule_of(scorer: Any, scoring: Any) -> Rule:
    return Rule(_by_scorer(scorer, scoring), takes_weights=_takes_weights(scorer._score_func))


def _takes_weights(function: Callable[..., Any]) -> bool:
    """Whether a score has the argument that scikit-learn's metrics have."""
    try:
        arguments = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):  # a function that does not say
        return False
    return any(
        each.name == "sample_weight" or each.kind is inspect.Parameter.VAR_KEYWORD
        for each in arguments
    )


def _fold_means(truth: Truth, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means of values (n_alphas, rows), over all rows and over every fold."""
    weights = np.ones(values.shape[1]) if truth.weights is None else truth.weights
    starts = [run.start for run in truth.folds.runs]
    sums = np.add.reduceat(values * weights, starts, axis=1)
    totals = np.add.reduceat(weights, starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums.sum(axis=1) / totals.sum(), sums / totals


def _pooled_squared_error(truth: Truth, predictions: np.ndarray) -> Scores:
    errors = np.mean((predictions - truth.y) ** 2, axis=2)
    pooled, by_fold = _fold_means(truth, errors)
    return Scores(-pooled, -by_fold)


def _pooled_log_likelihood(truth: Truth, decisions: np.ndarray) -> Scores:
    assert truth.classes is not None
    codes = np.searchsorted(truth.classes, truth.y)
    rows = np.arange(len(codes))
    each = np.empty(decisions.shape[:2])
    for k, values in enumerate(decisions):
        known = np.all(np.isfinite(values), axis=1)
        if not known.all():
            each[k] = -np.inf
            continue
        shares = probabilities(values, fit_curves(values, codes, truth.weights))
        each[k] = np.log(np.maximum(shares[rows, codes], _LEAST_SHARE))
    return Scores(*_fold_means(truth, each))


def _pooled_accuracy(truth: Truth, predictions: np.ndarray) -> Scores:
    right = (truth.labels_of(predictions) == truth.y).astype(float)
    return Scores(*_fold_means(truth, right))


def _averaged(error: Callable[[np.ndarray], np.ndarray], root: bool = False) -> Score:
    """A named error of every fold, averaged over folds: GridSearchCV's numbers, vectorised."""

    def score(truth: Truth, predictions: np.ndarray) -> Scores:
        errors = error(predictions - truth.y)
        if root:  # the root of each target's mean, then the mean over targets
            by_target = [_fold_means(truth, errors[:, :, j])[1] for j in range(errors.shape[2])]
            by_fold = np.mean(np.sqrt(by_target), axis=0)
        else:
            by_fold = _fold_means(truth, np.mean(errors, axis=2))[1]
        return Scores(-truth.mean_of_folds(by_fold), -by_fold)

    return score


_SQUARED_AND_ABSOLUTE: dict[str, Score] = {
    "neg_mean_squared_error": _averaged(np.square),
    "neg_root_mean_squared_error": _averaged(np.square, root=True),
    "neg_mean_absolute_error": _averaged(np.abs),
}


def _spread_of_norm(
    rule: Rule, part: Truth, predictions: np.ndarray, error: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A root mean square, or a mean of absolute values, moves by no more than its entries."""
    score, moved = rule(part, predictions).by_fold[:, 0], error.max(axis=1)
    return score - moved, np.minimum(score + moved, 0.0)


def _spread_of_square(
    rule: Rule, part: Truth, predictions: np.ndarray, error: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The root of a mean square moves by no more than its entries."""
    root, moved = np.sqrt(-rule(part, predictions).by_fold[:, 0]), error.max(axis=1)
    return -np.square(root + moved), -np.square(np.maximum(root - moved, 0.0))


def _spread_of_accuracy(
    rule: Rule, part: Truth, predictions: np.ndarray, error: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows count as right, or as wrong, wherever the decision could still turn out so."""
    assert part.classes is not None
    truth = part.y[:, None] == part.classes[None, :]  # (rows, classes)
    if predictions.shape[2] == 1:
        lead = np.where(truth[:, 1], predictions[..., 0], -predictions[..., 0])
        moved = error[:, :1]
    else:
        own = np.max(np.where(truth, predictions, -np.inf), axis=2)
        lead = own - np.max(np.where(truth, -np.inf, predictions), axis=2)
        moved = 2.0 * error.max(axis=1, keepdims=True)
    sure, possible = (lead > moved).astype(float), (lead >= -moved).astype(float)
    return _fold_means(part, sure)[1][:, 0], _fold_means(part, possible)[1][:, 0]


def _by_callable(function: Callable[..., float]) -> Score:
    """A function of (true, predicted) on all held-out rows; for classes, of labels.

    Weighted scores give it `sample_weight` too, as scikit-learn's metrics take it.
    """

    def of_rows(truth: Truth, y: np.ndarray, values: np.ndarray, rows: slice) -> float:
        extra = {} if truth.weights is None else {"sample_weight": truth.weights[rows]}
        try:
            # A score that is undefined on one fold's few rows is NaN there.
            with without_foreign(UndefinedMetricWarning):
                return float(function(y[rows], values[rows], **extra))
        except (ValueError, TypeError) as error:
            raise InvalidInputError(
                f"scoring={function!r} cannot score these held-out predictions: {error}"
            ) from error

    def score(truth: Truth, predictions: np.ndarray) -> Scores:
        values = truth.labels_of(predictions) if truth.classes is not None else predictions
        if values.ndim == 3 and values.shape[2] == 1:
            values = values[:, :, 0]
        y = truth.y[:, 0] if truth.y.ndim == 2 and truth.y.shape[1] == 1 else truth.y
        overall = [of_rows(truth, y, row, slice(None)) for row in values]
        runs, counted = truth.folds.runs, truth.counted
        by_fold = np.full((len(values), len(runs)), np.nan)
        for j, row in enumerate(values):
            for k in np.flatnonzero(counted):
                by_fold[j, k] = of_rows(truth, y, row, runs[k])
        return Scores(np.asarray(overall), by_fold)

    return score


class _HeldOutRegressor(RegressorMixin, BaseEstimator):
    """Answers a scorer with predictions that were made elsewhere: X holds their row numbers."""

    def __init__(self, values: np.ndarray | None = None) -> None:
        self.values = values
        self.fitted_ = True

    def predict(self, X: np.ndarray) -> np.ndarray:
        assert self.values is not None
        values: np.ndarray = self.values[X[:, 0]]
        return values[:, 0] if values.shape[1] == 1 else values


class _HeldOutClassifier(ClassifierMixin, BaseEstimator):
    """The same for classes."""

    def __init__(self, truth: Truth | None = None, values: np.ndarray | None = None) -> None:
        self.truth = truth
        self.values = values
        self.classes_ = None if truth is None else truth.classes

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        assert self.values is not None
        values: np.ndarray = self.values[X[:, 0]]
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: np.ndarray) -> np.ndarray:
        assert self.truth is not None
        assert self.values is not None
        return self.truth.labels_of(self.values[X[:, 0]])

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        assert self.values is not None
        return probabilities(self.values[X[:, 0]], self._curves)

    @cached_property
    def _curves(self) -> np.ndarray:
        assert self.truth is not None
        assert self.truth.classes is not None
        assert self.values is not None
        codes = np.searchsorted(self.truth.classes, self.truth.y)
        return fit_curves(self.values, codes, self.truth.weights)


def _by_scorer(scorer: Any, scoring: Any) -> Score:
    def score(truth: Truth, predictions: np.ndarray) -> Scores:
        rows = np.arange(predictions.shape[1])[:, None]
        y = truth.y[:, 0] if truth.y.ndim == 2 and truth.y.shape[1] == 1 else truth.y
        by_fold = np.full((len(predictions), len(truth.folds)), np.nan)
        for j, values in enumerate(predictions):
            model = (
                _HeldOutRegressor(values)
                if truth.classes is None
                else _HeldOutClassifier(truth, values)
            )
            for k in np.flatnonzero(truth.counted):
                run = truth.folds.runs[k]
                extra = {} if truth.weights is None else {"sample_weight": truth.weights[run]}
                try:
                    # An undefined score is NaN, and a candidate with NaN cannot win.
                    with without_foreign(UndefinedMetricWarning):
                        by_fold[j, k] = scorer(model, rows[run], y[run], **extra)
                except (ValueError, TypeError, AttributeError) as error:
                    raise InvalidInputError(
                        f"scoring={scoring!r} cannot score these held-out predictions: {error}"
                    ) from None
        return Scores(truth.mean_of_folds(by_fold), by_fold)

    return score

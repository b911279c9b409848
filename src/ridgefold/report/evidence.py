"""What a fitted model has shown on rows that it did not see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError, NumericalError
from ridgefold.linalg import namespace_of
from ridgefold.selection.probabilities import probabilities

_LARGEST = 1e300
"""Axes have ends beyond the numbers on them, and must be finite."""
_MOST_ROWS = 2_000_000
"""Of more held-out rows, so many are looked at: a page shows no more digits than they give."""


@dataclass(frozen=True)
class HeldOutNumbers:
    """True and predicted numbers, shapes (n, n_targets)."""

    source: str
    """Which rows these are, in words."""
    truth: np.ndarray
    predictions: np.ndarray
    rows: np.ndarray | None
    """Positions among the training rows; None for rows of a test set."""
    sampled: bool = False
    """True if there are more."""

    def __post_init__(self) -> None:
        for values in (self.truth, self.predictions):
            largest = float(np.max(np.abs(values), initial=0.0))
            if largest > _LARGEST:
                raise NumericalError(
                    f"targets or predictions of {largest:.1e} cannot be drawn, nor their squares "
                    "be told apart: fit to targets divided by some number"
                )

    @property
    def residuals(self) -> np.ndarray:
        return np.asarray(self.truth - self.predictions)

    @property
    def rmse(self) -> np.ndarray:
        """Root mean square error of every target."""
        return np.asarray(np.sqrt(np.mean(self.residuals**2, axis=0)))

    @property
    def spread(self) -> np.ndarray:
        """What predicting the mean is off by, for every target."""
        return np.asarray(np.std(self.truth, axis=0))


@dataclass(frozen=True)
class HeldOutClasses:
    """True and predicted classes, as positions among the classes; shape (n,)."""

    source: str
    truth: np.ndarray
    predicted: np.ndarray
    probabilities: np.ndarray | None
    """Shape (n, n_classes)."""
    rows: np.ndarray | None
    sampled: bool = False

    @property
    def accuracy(self) -> float:
        return float(np.mean(self.truth == self.predicted))


HeldOut = HeldOutNumbers | HeldOutClasses


def inner_of(model: Any) -> Any:
    """The model of numbers within a model of tables."""
    return getattr(model, "model_", model)


def to_numpy(values: Any) -> np.ndarray:
    """From whatever library and device they are on."""
    return np.asarray(namespace_of(values).to_numpy(values))


def classes_of(model: Any) -> np.ndarray | None:
    found = getattr(inner_of(model), "classes_", None)
    return None if found is None else to_numpy(found)


def held_out_of(model: Any, X: Any = None, y: Any = None) -> HeldOut | None:
    """Evidence from a test set if there is one, else from what the fit has kept, if anything."""
    if (X is None) != (y is None):
        raise InvalidInputError("X_test and y_test go together: give both, or neither")
    if X is not None:
        return _of_test_rows(model, X, y)
    inner = inner_of(model)
    truth = getattr(inner, "y_fit_", None)
    if truth is None:
        return None
    if classes_of(model) is not None:
        return _kept_classes(inner, to_numpy(truth))
    return _kept_numbers(inner, to_numpy(truth))


# -- what a fit has kept -------------------------------------------------------------------


def _kept_numbers(inner: Any, truth: np.ndarray) -> HeldOutNumbers | None:
    n, some = len(truth), _some(len(truth))
    columns = truth[some].astype(np.float64).reshape(len(some), -1)
    kept = getattr(inner, "held_out_residuals_", None)
    if kept is not None:
        predictions = columns - to_numpy(kept[some])
    elif hasattr(inner, "held_out_predictions_"):
        predictions = to_numpy(inner.held_out_predictions_)[some].reshape(len(some), -1)
    elif getattr(inner, "intervals_", None) is not None:
        residuals = to_numpy(inner.intervals_.residuals)
        if len(residuals) != n:
            return None  # rows of weight zero have none, and which these are is not kept
        predictions = columns - residuals[some]
    else:
        return None
    known = np.all(np.isfinite(predictions), axis=1)
    if not known.any():
        return None
    return HeldOutNumbers(
        how_held_out(inner),
        columns[known],
        predictions[known].astype(np.float64),
        some[known],
        sampled=len(some) < n,
    )


def _kept_classes(inner: Any, truth: np.ndarray) -> HeldOutClasses | None:
    n, some = len(truth), _some(len(truth))
    truth = truth[some]
    decisions = getattr(inner, "held_out_decisions_", None)
    residuals = getattr(inner, "held_out_residuals_", None)
    if decisions is not None:
        columns = to_numpy(decisions)[some].astype(np.float64).reshape(len(some), -1)
    elif residuals is not None:
        kept = to_numpy(residuals[some]).astype(np.float64)
        columns = _signs(truth, kept.shape[1]) - kept
    else:
        return None
    known = np.all(np.isfinite(columns), axis=1)
    if not known.any():
        return None
    columns = columns[known]
    predicted = (
        (columns[:, 0] > 0).astype(int) if columns.shape[1] == 1 else np.argmax(columns, axis=1)
    )
    curves = getattr(inner, "calibration_", None)
    shares = None if curves is None else probabilities(columns, np.asarray(curves))
    return HeldOutClasses(
        how_held_out(inner), truth[known], predicted, shares, some[known], sampled=len(some) < n
    )


def _some(n: int) -> np.ndarray:
    """All rows, or so many of them, evenly spread."""
    if n <= _MOST_ROWS:
        return np.arange(n)
    return np.unique(np.linspace(0, n - 1, _MOST_ROWS).astype(np.intp))


def _signs(codes: np.ndarray, n_columns: int) -> np.ndarray:
    """Classes as columns of ±1, as they are fitted."""
    if n_columns == 1:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(n_columns), 1.0, -1.0)


def how_held_out(inner: Any) -> str:
    """How rows were held out, in words."""
    if hasattr(inner, "cv_results_"):
        n = int(to_numpy(inner.y_fit_).shape[0]) if hasattr(inner, "y_fit_") else -1
        return (
            "leave-one-out" if inner.n_splits_ == n else f"{inner.n_splits_}-fold cross-validation"
        )
    if hasattr(inner, "held_out_residuals_"):
        return "leave-one-out in every cell"
    kept = getattr(inner, "intervals_", None)
    if kept is not None and kept.method == "jackknife+":
        return "leave-one-out"
    folds = 5 if kept is None else int(np.max(kept.groups)) + 1
    return f"{folds}-fold cross-validation"


# -- test rows -----------------------------------------------------------------------------


def _of_test_rows(model: Any, X: Any, y: Any) -> HeldOut:
    truth = to_numpy(y) if hasattr(y, "__array_namespace__") else np.asarray(y)
    found = to_numpy(model.predict(X))
    if len(truth) != len(found):
        raise InvalidInputError(
            f"y_test must have one entry for each row of X_test: got {len(truth)} for {len(found)}"
        )
    classes = classes_of(model)
    words = f"{len(truth):,} test rows"
    if classes is not None:
        return _test_classes(model, X, truth, found, classes)
    truth = truth.astype(np.float64).reshape(len(found), -1)
    predictions = found.astype(np.float64).reshape(len(found), -1)
    if truth.shape != predictions.shape:
        raise InvalidInputError(
            f"y_test must have {predictions.shape[1]} columns, as the model predicts, got "
            f"{truth.shape[1]}"
        )
    known = np.all(np.isfinite(predictions) & np.isfinite(truth), axis=1)
    if not known.any():
        raise InvalidInputError("X_test and y_test have no row without missing values")
    return HeldOutNumbers(words, truth[known], predictions[known], None)


def _test_classes(
    model: Any, X: Any, truth: np.ndarray, found: np.ndarray, classes: np.ndarray
) -> HeldOutClasses:
    labels = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.asarray([labels.get(label, -1) for label in truth.tolist()])
    if np.any(codes < 0):
        unknown = truth[codes < 0].tolist()[0]
        raise InvalidInputError(
            f"y_test has the class {unknown!r}, which the model has not learned; it knows "
            f"{', '.join(map(repr, classes.tolist()[:8]))}"
        )
    predicted = np.asarray([labels.get(label, -1) for label in found.tolist()])
    shares = to_numpy(model.predict_proba(X)) if hasattr(model, "predict_proba") else None
    known = predicted >= 0  # rows with missing values have no prediction
    if not known.any():
        raise InvalidInputError("X_test has no row without missing values")
    return HeldOutClasses(
        f"{int(known.sum()):,} test rows",
        codes[known],
        predicted[known],
        None if shares is None else shares[known].astype(np.float64),
        None,
    )

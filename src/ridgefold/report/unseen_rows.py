"""True and predicted targets of rows that a model did not see: test rows, or held-out ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError, NumericalError
from ridgefold.estimators.facts import HeldOutFacts, ModelFacts, to_numpy
from ridgefold.linalg.namespace import is_foreign_array
from ridgefold.selection.probabilities import probabilities

_LARGEST = 1e300
"""Larger numbers are not drawn: axes end beyond the numbers on them, and must stay finite."""
_MOST_ROWS = 2_000_000
"""Of more held-out rows, this many are looked at: more change no digit that a page shows."""


@dataclass(frozen=True)
class UnseenNumbers:
    """True and predicted numbers, shapes (n, n_targets)."""

    source: str
    """Which rows these are, in words."""
    truth: np.ndarray
    predictions: np.ndarray
    rows: np.ndarray | None
    """Positions among the training rows; None for rows of a test set."""
    sampled: bool = False
    """True if these are a sample of the rows that were held out."""

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
        """The root mean square error of predicting the mean, for every target."""
        return np.asarray(np.std(self.truth, axis=0))


@dataclass(frozen=True)
class UnseenClasses:
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


UnseenRows = UnseenNumbers | UnseenClasses


def unseen_rows(facts: ModelFacts, X: Any = None, y: Any = None) -> UnseenRows | None:
    """Rows of a test set if there is one, else those held out by the fit, if any were."""
    if (X is None) != (y is None):
        raise InvalidInputError("X_test and y_test go together: give both, or neither")
    if X is not None:
        return _of_test_rows(facts, X, y)
    if facts.held_out is None or facts.targets is None:
        return None
    return _of_held_out_rows(facts, facts.held_out, facts.targets)


# -- rows that the fit held out ------------------------------------------------------------


def _of_held_out_rows(
    facts: ModelFacts, held_out: HeldOutFacts, targets: np.ndarray
) -> UnseenRows | None:
    rows = _evenly_spread(len(targets))
    sampled = len(rows) < len(targets)
    columns = held_out.at(rows).astype(np.float64).reshape(len(rows), -1)
    known = np.all(np.isfinite(columns), axis=1)
    if not known.any():
        return None
    rows, columns = rows[known], columns[known]
    truth = targets[rows]
    if facts.classes is None:
        truth = truth.astype(np.float64).reshape(len(rows), -1)
        return UnseenNumbers(held_out.how, truth, columns, rows, sampled=sampled)
    shares = None
    if facts.calibration is not None:
        shares = probabilities(columns, np.asarray(facts.calibration))
    predicted = (
        (columns[:, 0] > 0).astype(int) if columns.shape[1] == 1 else np.argmax(columns, axis=1)
    )
    return UnseenClasses(held_out.how, truth, predicted, shares, rows, sampled=sampled)


def _evenly_spread(n: int) -> np.ndarray:
    """All rows, or as many as are looked at, evenly spread."""
    if n <= _MOST_ROWS:
        return np.arange(n)
    return np.unique(np.linspace(0, n - 1, _MOST_ROWS).astype(np.intp))


# -- test rows -----------------------------------------------------------------------------


def _of_test_rows(facts: ModelFacts, X: Any, y: Any) -> UnseenRows:
    truth = to_numpy(y) if is_foreign_array(y) else np.asarray(y)
    predictions = to_numpy(facts.predict(X))
    n = len(predictions)
    if len(truth) != n:
        raise InvalidInputError(
            f"y_test must have one entry for each row of X_test: got {len(truth)} for {n}"
        )
    if facts.classes is not None:
        return _test_classes(facts, X, truth, predictions, facts.classes)
    truth = truth.astype(np.float64).reshape(n, -1)
    predictions = predictions.astype(np.float64).reshape(n, -1)
    if truth.shape != predictions.shape:
        raise InvalidInputError(
            f"y_test must have {predictions.shape[1]} columns, as the model predicts, got "
            f"{truth.shape[1]}"
        )
    known = np.all(np.isfinite(predictions) & np.isfinite(truth), axis=1)
    if not known.any():
        raise InvalidInputError("X_test and y_test have no row without missing values")
    return UnseenNumbers(f"{n:,} test rows", truth[known], predictions[known], None)


def _test_classes(
    facts: ModelFacts, X: Any, truth: np.ndarray, labels: np.ndarray, classes: np.ndarray
) -> UnseenClasses:
    position = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.asarray([position.get(label, -1) for label in truth.tolist()])
    if np.any(codes < 0):
        unknown = truth[codes < 0].tolist()[0]
        raise InvalidInputError(
            f"y_test has the class {unknown!r}, which the model has not learned; it knows "
            f"{', '.join(map(repr, classes.tolist()[:8]))}"
        )
    predicted = np.asarray([position.get(label, -1) for label in labels.tolist()])
    shares = None if facts.predict_proba is None else to_numpy(facts.predict_proba(X))
    known = predicted >= 0  # rows with missing values have no prediction
    if not known.any():
        raise InvalidInputError("X_test has no row without missing values")
    return UnseenClasses(
        f"{int(known.sum()):,} test rows",
        codes[known],
        predicted[known],
        None if shares is None else shares[known].astype(np.float64),
        None,
    )

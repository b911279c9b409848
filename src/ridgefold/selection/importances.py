"""Importance of columns: what held-out errors rise by when a column's values change places.

Every row of a sample is predicted by a model that has not seen it, as it is and with the values of
one column taken from another row of the sample (Breiman 2001). Models of rows that they have seen
would find a column important that they have only learned by heart, such as an identifier.

A length scale says how smooth a model is along a column, and this how much it relies on it: the
effect of a column may be a steep straight line, which has a long scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ridgefold.records import Importances
from ridgefold.selection.probabilities import fit_curves, probabilities

_LEAST_PROBABILITY = 1e-12
"""No answer costs more than its logarithm, 28: one row should not decide."""


@dataclass(frozen=True)
class HeldOutSample:
    """Some training rows, and the models that have not seen them."""

    X: np.ndarray
    """The rows as the models take them, shape (m, n_columns)."""
    targets: np.ndarray
    """What was fitted: numbers, or −1 and 1 a class; shape (m, n_targets)."""
    weights: np.ndarray
    """What each row counts, > 0."""
    predict: Callable[[np.ndarray], np.ndarray]
    """Predictions (decision values) of changed versions of the rows, in their order, each by a
    model that has not seen the row; shape (m, n_targets)."""
    how: str
    """Which models these are, in words."""
    clusters: np.ndarray | None = None
    """For every row a number that rows have in common which were drawn together."""
    donors: np.ndarray | None = None
    """Rows that values are taken from, where those of the sample do not stand for all."""
    donor_weights: np.ndarray | None = None


@dataclass(frozen=True)
class Loss:
    """What predictions of the sample cost row by row, in units of knowing no column."""

    of: Callable[[np.ndarray], np.ndarray]
    measure: str


def loss_of_numbers(targets: np.ndarray, spread: np.ndarray) -> Loss:
    """Squared errors over the variances of the targets, their mean over targets."""
    variances = np.where(spread > 0, spread, 1.0) ** 2

    def of(predictions: np.ndarray) -> np.ndarray:
        return np.asarray(np.mean((predictions - targets) ** 2 / variances[None, :], axis=1))

    return Loss(of, "mean squared error over the variance of the target")


def loss_of_classes(
    sample: HeldOutSample, calibration: np.ndarray | None, frequencies: np.ndarray
) -> Loss:
    """Log-loss over that of the frequencies of the classes.

    Log-loss and not the share of right answers: some hundred rows tell columns apart by how sure
    the answers are long before answers change. Without curves from decision values to
    probabilities they are fitted to the held-out decision values of the sample.
    """
    codes = codes_of(sample.targets)
    curves = calibration
    if curves is None:
        curves = fit_curves(sample.predict(sample.X), codes, sample.weights)
    known = frequencies[frequencies > 0]
    unit = float(-known @ np.log(known)) or 1.0

    def of(decisions: np.ndarray) -> np.ndarray:
        given = probabilities(decisions, curves)[np.arange(len(codes)), codes]
        return np.asarray(-np.log(np.maximum(given, _LEAST_PROBABILITY)) / unit)

    return Loss(of, "log-loss over that of the frequencies of the classes")


def codes_of(targets: np.ndarray) -> np.ndarray:
    """Positions of classes from columns of −1 and 1."""
    if targets.shape[1] == 1:
        return np.asarray((targets[:, 0] > 0).astype(int))
    return np.asarray(np.argmax(targets, axis=1))


def held_out_importances(
    sample: HeldOutSample,
    loss: Loss,
    names: Sequence[str],
    groups: Sequence[np.ndarray],
    *,
    n_repeats: int,
    random: np.random.Generator,
) -> Importances:
    """Rises of the error for every group of columns, which are exchanged together.

    Parameters
    ----------
    names, groups
        A name for each group, and the positions of its columns.
    """
    weights = sample.weights / sample.weights.sum()
    before = loss.of(sample.predict(sample.X))
    rises = np.empty((len(groups), n_repeats, len(weights)))
    source, p = sample.X, weights
    if sample.donors is not None:
        source, p = sample.donors, np.ones(len(sample.donors))
        p = p if sample.donor_weights is None else sample.donor_weights
    donors = [_donors(p, len(weights), random) for _ in range(n_repeats)]
    for g, group in enumerate(groups):
        for r, rows in enumerate(donors):
            changed = sample.X.copy()
            changed[:, group] = source[rows[:, None], group]
            rises[g, r] = loss.of(sample.predict(changed)) - before
    by_row = rises.mean(axis=1)
    return Importances(
        names=tuple(names),
        rises=by_row @ weights,
        standard_errors=_standard_errors(by_row, weights, sample.clusters),
        repeats=rises @ weights,
        error=float(before @ weights),
        measure=loss.measure,
        n_rows=len(weights),
        how=sample.how,
    )


def _donors(shares: np.ndarray, n: int, random: np.random.Generator) -> np.ndarray:
    """The row that each of n rows takes its value from: as often as its share says."""
    if len(shares) == n and np.ptp(shares) <= 1e-12 * shares.max():
        return random.permutation(n)
    return random.choice(len(shares), size=n, p=shares / shares.sum())


def _standard_errors(
    by_row: np.ndarray, weights: np.ndarray, clusters: np.ndarray | None
) -> np.ndarray:
    """Of weighted means over rows, which stand together where they were drawn together."""
    apart = (by_row - (by_row @ weights)[:, None]) * weights[None, :]
    if clusters is not None:
        _, places = np.unique(clusters, return_inverse=True)
        sums = np.zeros((len(by_row), int(places.max()) + 1))
        np.add.at(sums.T, places, apart.T)
        apart = sums
    count = apart.shape[1]
    if count < 2:
        return np.full(len(by_row), np.inf)
    return np.asarray(np.sqrt(np.sum(apart**2, axis=1) * count / (count - 1)))

"""What every cross-validation method promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ridgefold.crossval.shared.folds import Folds
from ridgefold.kernels import Gram
from ridgefold.linalg import Array, Namespace
from ridgefold.records import Cost, Problem

Progress = Callable[[float], None]
"""Called with the share of the work that is done, from 0 to 1."""


def no_progress(share: float) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class HeldOut:
    """Predictions of every held-out row by the model that did not see it."""

    predictions: Array
    """Shape (n_alphas, rows of all folds one after the other, n_targets)."""
    conditions: np.ndarray
    """Condition number of K + αI for every α, as far as the method knows it (else NaN)."""
    certificate: np.ndarray | None = None
    """Bound on the error of the predictions, shape (n_alphas, n_folds, n_targets); None for
    methods that are right to rounding error."""
    method: str = ""
    """The method that made them, filled in by the engine."""


def certified(
    namespace: Namespace,
    predictions: Array,
    *,
    conditions: np.ndarray,
    bound: np.ndarray,
    n_rows: int,
) -> HeldOut:
    """Predictions with a bound on their error, to which rounding is added.

    The allowance for rounding is what methods that are exact are held to:
    10(n + condition)·eps·max|ŷ|.
    """
    largest = float(namespace.xp.max(namespace.xp.abs(predictions)))
    rounding = 10.0 * (n_rows + conditions) * namespace.eps(predictions) * largest
    return HeldOut(predictions, conditions, np.asarray(bound + rounding[:, None, None]))


class CrossValidation(Protocol):
    """One way to compute held-out predictions. Registered in `crossval/__init__.py`."""

    name: str
    exact: bool
    """True if the predictions are right to rounding error, False if to a certificate."""
    may_give_up: bool
    """True if the method can find out, at little cost, that the data do not suit it; it then
    raises `MethodGaveUpError`, and the plan names what runs instead."""

    last_resort: bool
    """True if it is to be chosen only when nothing else fits the memory."""

    def can_run(self, problem: Problem) -> str | None:
        """None, or the reason why this method cannot take the problem."""

    def cost(self, problem: Problem) -> Cost:
        """Work and memory for all folds and ridge values, from shapes."""

    def prepare(self, gram: Gram, folds: Folds, weights: Array | None, bias: bool) -> Any:
        """Do what depends neither on the targets nor on α."""

    def held_out(
        self, state: Any, targets: Array, alphas: np.ndarray, progress: Progress = no_progress
    ) -> HeldOut:
        """Held-out predictions for targets (n, t) and every α."""


NEEDS_COMPLEMENT = (
    "a fold's training rows are not all the rows it does not test (as in a time-series split), "
    "which only refitting covers"
)


def needs_complement(problem: Problem) -> str | None:
    """The reason shared by all shortcuts."""
    return None if problem.complement_folds else NEEDS_COMPLEMENT

"""What every cross-validation method promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ridgefold.crossval.shared.folds import Folds
from ridgefold.kernels import Gram
from ridgefold.linalg import Array, Namespace
from ridgefold.records import Cost, Problem

Progress = Callable[[float], None]
"""Called with the share of the work that is done, from 0 to 1."""


Judge = Callable[[int, Array, np.ndarray], np.ndarray]
"""Called with a fold, predictions (a, rows, t) of its test rows and a bound (a, t) on their
error; says for every α whether it still matters. A method may leave out what does not."""


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
    kept: np.ndarray | None = None
    """Which α were computed to the end; None if all were."""
    open: np.ndarray | None = None
    """Which α may still win, though their certificate is not small enough to call them exact;
    None if there are none. Only where a judge had a say."""
    method: str = ""
    """The method that made them, filled in by the search."""


def rounding_allowance(
    namespace: Namespace, like: Array, conditions: np.ndarray, n_rows: int, largest: float
) -> np.ndarray:
    """What rounding may do to predictions of size `largest`, for every α.

    It is what methods that are exact are held to: 10(n + condition)·eps·max|ŷ|.
    """
    return np.asarray(10.0 * (n_rows + conditions) * namespace.eps(like) * largest)


def certified(
    namespace: Namespace,
    predictions: Array,
    *,
    conditions: np.ndarray,
    bound: np.ndarray,
    scale: float,
    folds: Folds,
    kept: np.ndarray | None = None,
) -> HeldOut:
    """Predictions with a bound on their error (a, folds or 1, t), to which rounding is added.

    `scale` is the largest target: rounding is felt at that size even if predictions are small.
    """
    xp = namespace.xp
    largest = max(float(xp.max(predictions)), -float(xp.min(predictions)), scale)
    rounding = rounding_allowance(namespace, predictions, conditions, folds.n_rows, largest)
    total = bound + rounding[:, None, None]
    shape = (total.shape[0], len(folds), total.shape[2])
    return HeldOut(predictions, conditions, np.broadcast_to(total, shape), kept)


def judged(
    result: HeldOut, folds: Folds, judge: Judge, alive: np.ndarray, precise: np.ndarray
) -> HeldOut:
    """`result` without the α that cannot win, as its certificate tells.

    A certificate may tell an α from the best long before it is small enough to call its
    predictions exact. Those that are neither beaten nor `precise` are left open.
    """
    assert result.certificate is not None
    alive = alive.copy()
    for k, run in enumerate(folds.runs):
        alive &= judge(k, result.predictions[:, run, :], result.certificate[:, k, :])
    return replace(result, kept=alive & precise, open=alive & ~precise)


def at_places(namespace: Namespace, part: Array, some: np.ndarray) -> Array:
    """What is known of `some` of the α at their places among all, zero for the others."""
    every = namespace.zeros((len(some), *part.shape[1:]), part)
    for place, j in enumerate(np.flatnonzero(some)):
        every[int(j), ...] = part[place, ...]
    return every


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
        self,
        state: Any,
        targets: Array,
        alphas: np.ndarray,
        progress: Progress = no_progress,
        judge: Judge | None = None,
    ) -> HeldOut:
        """Held-out predictions for targets (n, t) and every α.

        A method that goes step by step may ask the judge, and leave out what no longer matters.
        """


NEEDS_COMPLEMENT = (
    "a fold's training rows are not all the rows it does not test (as in a time-series split), "
    "which this method does not cover (refit does)"
)


def needs_complement(problem: Problem) -> str | None:
    """The reason shared by all shortcuts."""
    return None if problem.complement_folds else NEEDS_COMPLEMENT


NEEDS_SEMIDEFINITE = (
    "its error bound holds for positive semi-definite kernels, and this one (a precomputed "
    "matrix, a function, a sigmoid) is not known to be one"
)


def needs_semidefinite(problem: Problem) -> str | None:
    """The reason shared by methods whose certificate needs K ≥ 0."""
    return None if problem.semidefinite else NEEDS_SEMIDEFINITE

"""Stop trying what can no longer win.

The overall score of a pair (kernel, alpha) is a weighted mean of its scores on the folds, and no
fold's score can exceed a known best value (0 for a negated error, 1 for a share of right answers).
A method that goes fold by fold, or that comes closer step by step with a bound on its error, so
gives upper bounds on the overall scores long before it is done. A pair whose upper bound is below
what another is sure to reach is dropped. Nothing is estimated: the winner is that of the full grid.

There are two rounds. In the first the kernel runs that does best on a small sample of the rows (of
few rows, the one in the middle of the grid), and sets a score that is certain; in the second all
others run, each against that score and its own pairs. They know nothing of each other, so that they
can run anywhere and in any order with the same result. A method may leave a pair open: bounded, but
not exactly known. What then is still open when all kernels have been seen is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ridgefold.linalg import Array, namespace_of
from ridgefold.selection.scoring import Rule, Truth


@dataclass(frozen=True)
class Verdict:
    """What is known of the scores of one kernel's alphas."""

    upper: np.ndarray
    """Bounds on the score of every alpha and fold, shape (n_alphas, n_folds)."""
    lower: np.ndarray
    dropped: np.ndarray
    """What a pair could reach at most when that was too little, shape (n_alphas,); NaN for
    those that were not dropped. It is not looked at again."""


@dataclass(frozen=True)
class Ran:
    """One kernel as it came out of its round."""

    predictions: np.ndarray
    """Shape (n_alphas, rows, t)."""
    kept: np.ndarray | None
    """Which alphas were computed to the end; None if all were."""
    open: np.ndarray | None
    """Which may still win, but are only bounded; None if there are none."""
    verdict: Verdict


@dataclass(frozen=True)
class Standing:
    """What became of one kernel."""

    predictions: np.ndarray
    """Shape (n_alphas, rows, t)."""
    finished: np.ndarray
    """Which alphas were computed to the end; the others cannot win."""
    bounds: np.ndarray
    """For every alpha a score that it cannot exceed, as it was known when it was dropped."""


class Contest:
    """One kernel's alphas, against each other and against a score that is certain."""

    def __init__(self, rule: Rule, truth: Truth, n_alphas: int, certain: float = -np.inf) -> None:
        assert rule.best_fold_score is not None
        self._rule, self._certain = rule, certain
        self._parts = [truth.part(k) for k in range(len(truth.folds))]
        self._shares = rule.shares(truth)
        shape = (n_alphas, len(self._parts))
        self._upper, self._lower = np.full(shape, rule.best_fold_score), np.full(shape, -np.inf)
        self._dropped = np.full(n_alphas, np.nan)
        self._told = np.ones(n_alphas, dtype=bool)
        """Which alphas were said to be able to win: what is told of the others may mean nothing."""
        self._holder: int | None = None
        """The alpha whose score the certain one is, if it is one of these."""

    def judge(self, fold: int, predictions: Array, error: np.ndarray) -> np.ndarray:
        """Which alphas may still win, given predictions of a fold and a bound on their error."""
        numbers = namespace_of(predictions).to_numpy(predictions)
        low, high = self._rule.between(self._parts[fold], numbers, error)
        high = np.where(self._told, high, np.nan)
        low = np.where(self._told, low, np.nan)
        self._upper[:, fold] = np.fmin(self._upper[:, fold], high)
        self._lower[:, fold] = np.fmax(self._lower[:, fold], low)
        reached = _overall(self._lower, self._shares)
        best = int(np.argmax(reached))
        if reached[best] > self._certain:
            self._certain, self._holder = float(reached[best]), best
        alive, self._dropped = _alive(self.verdict, self._shares, self._certain, self._holder)
        self._told = self._told & alive
        return self._told.copy()

    @property
    def verdict(self) -> Verdict:
        return Verdict(self._upper, self._lower, self._dropped)


def promised(rule: Rule, truth: Truth, verdict: Verdict) -> float:
    """The best score that a kernel is sure to reach."""
    return float(np.max(_overall(verdict.lower, rule.shares(truth))))


Exactly = Callable[[int, np.ndarray], np.ndarray]
"""(kernel, numbers of alphas) -> exact predictions of these alphas."""


def settle(rule: Rule, truth: Truth, ran: Sequence[Ran], exactly: Exactly) -> list[Standing]:
    """Every kernel's standing; what was left open and may still win is computed again."""
    shares = rule.shares(truth)
    reached = [_overall(each.verdict.lower, shares) for each in ran]
    leader = int(np.argmax([np.max(scores) for scores in reached]))
    holder = int(np.argmax(reached[leader]))
    certain = float(reached[leader][holder])
    standings = []
    for kernel, each in enumerate(ran):
        predictions, count = each.predictions, len(each.predictions)
        finished = np.ones(count, dtype=bool) if each.kept is None else each.kept
        alive, dropped = _alive(each.verdict, shares, certain, holder if kernel == leader else None)
        again = np.flatnonzero(alive & (False if each.open is None else each.open))
        if len(again):
            predictions, finished = predictions.copy(), finished.copy()
            predictions[again] = exactly(kernel, again)
            finished[again] = True
        standings.append(Standing(predictions, finished, dropped))
    return standings


def _overall(bounds: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Bounds on overall scores; a fold without a share counts for nothing, even if unknown."""
    return np.asarray(np.where(shares > 0, bounds, 0.0) @ shares)


def _alive(
    verdict: Verdict, shares: np.ndarray, certain: float, holder: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Which alphas of a kernel may still win, and what those that may not were dropped at."""
    # Scores that are the same up to rounding are not told apart by bounds: both go on.
    slack = 1e-10 * abs(certain) if np.isfinite(certain) else 0.0
    possible, dropped = _overall(verdict.upper, shares), verdict.dropped
    alive = np.asarray(~(possible < certain - slack))
    dropped = np.where(~alive & np.isnan(dropped), possible, dropped)
    # A bound leaves out rounding: computed to the end by another method, the score that
    # it promised may come out a little lower. That is no reason to drop its own pair.
    if holder is not None:
        alive[holder] = True
    return alive, dropped

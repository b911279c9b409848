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
from dataclasses import replace

import numpy as np

from ridgefold.linalg import Array, namespace_of
from ridgefold.records import KernelPath
from ridgefold.selection.scoring import Rule, Truth


class Contest:
    """One kernel's alphas, against each other and against a score that is certain."""

    def __init__(self, rule: Rule, truth: Truth, n_alphas: int, certain: float = -np.inf) -> None:
        assert rule.best_fold_score is not None
        self._rule, self._certain = rule, certain
        self._parts = [truth.part(k) for k in range(len(truth.folds))]
        self._shares = rule.shares(truth)
        shape = (n_alphas, len(self._parts))
        self.upper, self.lower = np.full(shape, rule.best_fold_score), np.full(shape, -np.inf)
        """Bounds on the score of every alpha and fold."""
        self.dropped = np.full(n_alphas, np.nan)
        """What an alpha could reach at most when that was too little: it is not looked at again."""
        self._running = np.ones(n_alphas, dtype=bool)
        """Which alphas the method still computes: predictions with the others may mean nothing."""
        self._holder: int | None = None
        """The alpha whose score the certain one is, if it is one of these."""

    def judge(self, fold: int, predictions: Array, error: np.ndarray) -> np.ndarray:
        """Which alphas may still win, given predictions of a fold and a bound on their error."""
        numbers = namespace_of(predictions).to_numpy(predictions)
        low, high = self._rule.between(self._parts[fold], numbers, error)
        high = np.where(self._running, high, np.nan)
        low = np.where(self._running, low, np.nan)
        self.upper[:, fold] = np.fmin(self.upper[:, fold], high)
        self.lower[:, fold] = np.fmax(self.lower[:, fold], low)
        reached = _overall(self.lower, self._shares)
        best = int(np.argmax(reached))
        if reached[best] > self._certain:
            self._certain, self._holder = float(reached[best]), best
        alive, self.dropped = _alive(
            self.upper, self.dropped, self._shares, self._certain, self._holder
        )
        self._running = self._running & alive
        return self._running.copy()


def promised(rule: Rule, truth: Truth, lower: np.ndarray | None) -> float:
    """The best score that a kernel is sure to reach, from bounds on that of every fold."""
    return float(np.max(_overall(_known(lower), rule.shares(truth))))


Exactly = Callable[[int, np.ndarray], np.ndarray]
"""(kernel, numbers of alphas) -> exact predictions of these alphas."""


def settle(
    rule: Rule, truth: Truth, paths: Sequence[KernelPath], exactly: Exactly
) -> list[KernelPath]:
    """Every kernel when all have been seen; what was left open and may still win is computed."""
    shares = rule.shares(truth)
    reached = [_overall(_known(path.lower), shares) for path in paths]
    leader = int(np.argmax([np.max(scores) for scores in reached]))
    holder = int(np.argmax(reached[leader]))
    certain = float(reached[leader][holder])
    settled = []
    for kernel, path in enumerate(paths):
        predictions, finished = path.predictions, path.finished
        alive, dropped = _alive(
            _known(path.upper), path.dropped, shares, certain, holder if kernel == leader else None
        )
        again = np.flatnonzero(alive & path.open)
        if len(again):
            predictions, finished = predictions.copy(), finished.copy()
            predictions[again] = exactly(kernel, again)
            finished[again] = True
        settled.append(replace(path, predictions=predictions, finished=finished, dropped=dropped))
    return settled


def _known(bounds: np.ndarray | None) -> np.ndarray:
    assert bounds is not None  # of every kernel in a race
    return bounds


def _overall(bounds: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Bounds on overall scores; a fold without a share counts for nothing, even if unknown."""
    return np.asarray(np.where(shares > 0, bounds, 0.0) @ shares)


def _alive(
    upper: np.ndarray, dropped: np.ndarray, shares: np.ndarray, certain: float, holder: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Which alphas of a kernel may still win, and what those that may not were dropped at."""
    # Scores that are the same up to rounding are not told apart by bounds: both go on.
    slack = 1e-10 * abs(certain) if np.isfinite(certain) else 0.0
    possible = _overall(upper, shares)
    alive = np.asarray(~(possible < certain - slack))
    dropped = np.where(~alive & np.isnan(dropped), possible, dropped)
    # A bound leaves out rounding: computed to the end by another method, the score that
    # it promised may come out a little lower. That is no reason to drop its own pair.
    if holder is not None:
        alive[holder] = True
    return alive, dropped

"""Stop trying what can no longer win.

The overall score of a pair (kernel, alpha) is a weighted mean of its scores on the folds, and no
fold's score can exceed a known best value (0 for a negated error, 1 for a share of right answers).
A method that goes fold by fold, or that comes closer step by step with a bound on its error, so
gives upper bounds on the overall scores long before it is done. A pair whose upper bound is below
what another is sure to reach is dropped. Nothing is estimated: the winner is that of the full grid.

Kernels are tried in the order of their promise on a small sample of the rows, so that a good score
is known early; the order changes the time, not the result. A method may leave a pair open: bounded,
but not exactly known. What then is still open when all kernels have been seen is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ridgefold.crossval import HeldOut, Judge, Progress
from ridgefold.estimators.scoring import Rule, Truth
from ridgefold.linalg import Array, namespace_of

Path = Callable[[int, Judge, Progress], HeldOut]
"""(kernel, judge, progress) -> held-out predictions of all alphas."""
Exactly = Callable[[int, np.ndarray, Progress], Array]
"""(kernel, numbers of alphas, progress) -> exact predictions of these alphas."""


@dataclass(frozen=True)
class Standing:
    """What became of one kernel."""

    predictions: np.ndarray
    """Shape (n_alphas, rows, t)."""
    finished: np.ndarray
    """Which alphas were computed to the end; the others cannot win."""
    bounds: np.ndarray
    """For every alpha a score that it cannot exceed, as it was known when it was dropped."""


class Race:
    """Kernel after kernel, each against the best score that is certain so far."""

    def __init__(self, rule: Rule, truth: Truth, n_kernels: int, n_alphas: int) -> None:
        assert rule.best_fold_score is not None
        self._rule = rule
        self._parts = [truth.part(k) for k in range(len(truth.folds))]
        self._shares = rule.shares(truth)
        shape = (n_kernels, n_alphas, len(self._parts))
        self._upper, self._lower = np.full(shape, rule.best_fold_score), np.full(shape, -np.inf)
        """Bounds on the scores of every kernel, alpha and fold."""
        self._dropped = np.full(shape[:2], np.nan)
        """What a pair could reach at most when that was too little. It is not looked at again:
        what a judge is told of an alpha that was dropped before may mean nothing."""
        self._certain = -np.inf
        """An overall score that some pair is sure to reach."""
        self._holder = (-1, -1)
        """Whose score that is: the number of its kernel, and of its alpha."""

    def run(
        self, path: Path, exactly: Exactly, order: Sequence[int], progress: Progress
    ) -> list[Standing]:
        """Every kernel's standing, in the order of their numbers."""

        def part(place: int) -> Progress:
            return lambda share: progress((place + share) / len(order))

        found = {k: path(k, self._judge(k), part(place)) for place, k in enumerate(order)}
        last = part(len(order) - 1)
        return [self._settle(k, found[k], exactly, last) for k in range(len(order))]

    def _settle(
        self, kernel: int, result: HeldOut, exactly: Exactly, progress: Progress
    ) -> Standing:
        """The standing of a kernel, with what was left open and may still win computed again."""
        predictions = namespace_of(result.predictions).to_numpy(result.predictions)
        finished = np.ones(len(predictions), dtype=bool) if result.kept is None else result.kept
        alive = self._alive(kernel)
        again = np.flatnonzero(alive & (False if result.open is None else result.open))
        if len(again):
            exact = exactly(kernel, again, progress)
            predictions, finished = predictions.copy(), finished.copy()
            predictions[again] = namespace_of(exact).to_numpy(exact)
            finished[again] = True
        return Standing(predictions, finished, self._dropped[kernel])

    def _judge(self, kernel: int) -> Judge:
        """A judge of one kernel's alphas, that remembers what it has seen of them."""
        upper, lower = self._upper[kernel], self._lower[kernel]

        def judge(fold: int, predictions: Array, error: np.ndarray) -> np.ndarray:
            numbers = namespace_of(predictions).to_numpy(predictions)
            low, high = self._rule.between(self._parts[fold], numbers, error)
            upper[:, fold] = np.fmin(upper[:, fold], high)
            lower[:, fold] = np.fmax(lower[:, fold], low)
            reached = lower @ self._shares
            best = int(np.argmax(reached))
            if reached[best] > self._certain:
                self._certain, self._holder = float(reached[best]), (kernel, best)
            return self._alive(kernel)

        return judge

    def _alive(self, kernel: int) -> np.ndarray:
        """Which alphas of a kernel may still win."""
        # Scores that are the same up to rounding tie: the first in grid order wins.
        slack = 1e-10 * abs(self._certain) if np.isfinite(self._certain) else 0.0
        possible, dropped = self._upper[kernel] @ self._shares, self._dropped[kernel]
        alive = np.asarray(~(possible < self._certain - slack))
        dropped[:] = np.where(~alive & np.isnan(dropped), possible, dropped)
        # A bound leaves out rounding: computed to the end by another method, the score that
        # it promised may come out a little lower. That is no reason to drop its own pair.
        if self._holder[0] == kernel:
            alive[self._holder[1]] = True
        return alive

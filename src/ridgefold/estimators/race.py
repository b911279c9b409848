"""Stop trying what can no longer win.

The overall score of a pair (kernel, alpha) is a weighted mean of its scores on the folds, and no
fold's score can exceed a known best value (0 for a negated error, 1 for a share of right answers).
A method that goes fold by fold, or that comes closer step by step with a bound on its error, so
gives upper bounds on the overall scores long before it is done. A pair whose upper bound is below
what another is sure to reach is dropped. Nothing is estimated: the winner is that of the full grid.

Kernels are tried in the order of their promise on a small sample of the rows, so that a good score
is known early; the order changes the time, not the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ridgefold.crossval import Judge, Progress
from ridgefold.estimators.scoring import Rule, Truth
from ridgefold.linalg import Array, namespace_of

Path = Callable[[int, Judge, Progress], tuple[np.ndarray, np.ndarray]]
"""(kernel, judge, progress) -> predictions (n_alphas, rows, t), and which alphas were finished."""


@dataclass(frozen=True)
class Standing:
    """What became of one kernel."""

    predictions: np.ndarray
    finished: np.ndarray
    """Which alphas were computed to the end; the others cannot win."""
    bounds: np.ndarray
    """For every alpha a score that it cannot exceed, as it was known when it was dropped."""


class Race:
    """Kernel after kernel, each against the best score that is certain so far."""

    def __init__(self, rule: Rule, truth: Truth, n_alphas: int) -> None:
        assert rule.best_fold_score is not None
        self._rule, self._truth, self._n_alphas = rule, truth, n_alphas
        self._parts = [truth.part(k) for k in range(len(truth.folds))]
        self._shares = rule.shares(truth)
        self._certain = -np.inf
        """An overall score that some pair is sure to reach."""
        self._holder: tuple[object, int] | None = None
        """Whose score that is: the judge of its kernel, and the number of its alpha."""

    def run(self, path: Path, order: Sequence[int], progress: Progress) -> list[Standing]:
        """Every kernel's standing, in the order of their numbers."""
        standings: dict[int, Standing] = {}
        for place, kernel in enumerate(order):

            def part(share: float, place: int = place) -> None:
                progress((place + share) / len(order))

            bounds = np.full(self._n_alphas, np.nan)
            standings[kernel] = Standing(*path(kernel, self._judge(bounds), part), bounds)
        return [standings[kernel] for kernel in range(len(order))]

    def _judge(self, bounds: np.ndarray) -> Judge:
        """A judge of one kernel's alphas, that remembers what it has seen of them.

        It writes to `bounds` what an alpha can reach at most when that is too little: what it is
        told of an alpha that was dropped before may mean nothing.
        """
        shape = (self._n_alphas, len(self._parts))
        upper = np.full(shape, self._rule.best_fold_score)
        lower = np.full(shape, -np.inf)

        def judge(fold: int, predictions: Array, error: np.ndarray) -> np.ndarray:
            numbers = namespace_of(predictions).to_numpy(predictions)
            low, high = self._rule.between(self._parts[fold], numbers, error)
            upper[:, fold] = np.fmin(upper[:, fold], high)
            lower[:, fold] = np.fmax(lower[:, fold], low)
            reached = lower @ self._shares
            if np.max(reached) > self._certain:
                best = int(np.argmax(reached))
                self._certain, self._holder = float(reached[best]), (judge, best)
            # Scores that are the same up to rounding tie: the first in grid order wins.
            slack = 1e-10 * abs(self._certain) if np.isfinite(self._certain) else 0.0
            possible = upper @ self._shares
            kept = np.asarray(~(possible < self._certain - slack))
            bounds[:] = np.where(~kept & np.isnan(bounds), possible, bounds)
            # A bound leaves out rounding: computed to the end by another method, the score that
            # it promised may come out a little lower. That is no reason to drop its own pair.
            if self._holder is not None and self._holder[0] is judge:
                kept[self._holder[1]] = True
            return kept

        return judge

"""Stop trying what can no longer win.

The overall score of a pair (kernel, alpha) is a weighted mean of its scores on the folds, and no
fold's score can exceed a known best value (0 for a negated error, 1 for a share of right answers).
So after some folds the pair has an upper bound on its overall score; once that is below the
overall score of another pair, the rest of its folds need not be computed. Nothing is estimated:
the winner is that of the full grid.

Every kernel is tried on the first fold. From then on the kernel that looks best goes on, so that
a good overall score is known early; widths far from the best are dropped after a fold or two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ridgefold.crossval import Folds, Progress
from ridgefold.estimators.scoring import Rule, Truth

FoldPath = Callable[[int, np.ndarray, Folds], tuple[np.ndarray, float]]
"""(kernel, alphas, folds) -> predictions (n_alphas, rows, t) and a bound on their error."""


@dataclass
class Standing:
    """How far one kernel has come."""

    scores: np.ndarray
    """Shape (n_alphas, n_folds); NaN where not computed."""
    predictions: np.ndarray
    """Shape (n_alphas, rows of all folds, t)."""
    alive: np.ndarray
    """Which alphas may still win."""
    folds_done: int = 0


@dataclass
class Race:
    """Fold by fold over kernels; `run` gives every kernel's standing at the end."""

    rule: Rule
    truth: Truth
    path: FoldPath
    n_kernels: int
    alphas: np.ndarray
    progress: Progress
    _standings: list[Standing] = field(default_factory=list)
    _error: float = 0.0

    def run(self) -> list[Standing]:
        folds, shape = self.truth.folds, (len(self.alphas), len(self.truth.folds))
        for _ in range(self.n_kernels):
            empty = np.full((len(self.alphas), len(folds.stacked), 0), np.nan)
            alive = np.ones(len(self.alphas), dtype=bool)
            self._standings.append(Standing(np.full(shape, np.nan), empty, alive))
        for kernel in range(self.n_kernels):
            self._next_fold(kernel)
        while (leader := self._most_promising()) is not None:
            self._next_fold(leader)
            self._drop_losers()
            done = sum(s.folds_done for s in self._standings)
            self.progress(min(0.99, done / (self.n_kernels * len(folds))))
        return self._standings

    def _next_fold(self, kernel: int) -> None:
        standing = self._standings[kernel]
        k, run = standing.folds_done, self.truth.folds.runs[standing.folds_done]
        alive = np.flatnonzero(standing.alive)
        part = self.truth.part(k)
        predictions, error = self.path(kernel, self.alphas[alive], part.folds)
        if standing.predictions.shape[2] == 0:
            total = (len(self.alphas), len(self.truth.folds.stacked), predictions.shape[2])
            standing.predictions = np.full(total, np.nan, dtype=predictions.dtype)
        standing.predictions[alive, run, :] = predictions
        standing.scores[alive, k] = self.rule(part, predictions).by_fold[:, 0]
        standing.folds_done += 1
        self._error = max(self._error, error)

    def upper_bounds(self, standing: Standing) -> np.ndarray:
        """The most that every alpha's overall score can still be."""
        assert self.rule.best_fold_score is not None
        shares = self.rule.shares(self.truth)
        filled = np.where(np.isnan(standing.scores), self.rule.best_fold_score, standing.scores)
        return np.asarray(filled @ shares)

    def _most_promising(self) -> int | None:
        """The unfinished kernel whose best alpha has the highest mean over its folds so far."""
        shares, best = self.rule.shares(self.truth), None
        for kernel, standing in enumerate(self._standings):
            if standing.folds_done == len(self.truth.folds) or not standing.alive.any():
                continue
            done = slice(0, standing.folds_done)
            means = standing.scores[:, done] @ shares[done] / shares[done].sum()
            merit = float(np.max(means[standing.alive]))
            if best is None or merit > best[0]:
                best = (merit, kernel)
        return None if best is None else best[1]

    def _drop_losers(self) -> None:
        finished = [
            float(np.max(self.upper_bounds(s)[s.alive]))
            for s in self._standings
            if s.folds_done == len(self.truth.folds) and s.alive.any()
        ]
        if not finished:
            return
        floor = max(finished)
        # Predictions off by e move a mean squared error m by at most 2e√m + e², a mean absolute
        # error or the root of a squared one by e.
        error = self._error
        slack = error + 2.0 * error * np.sqrt(abs(floor)) + error**2 + 1e-12 * abs(floor)
        for standing in self._standings:
            if standing.folds_done < len(self.truth.folds):
                standing.alive &= self.upper_bounds(standing) >= floor - 2.0 * slack

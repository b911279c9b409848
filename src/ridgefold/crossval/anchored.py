"""A few Cholesky factorisations a fold, then every ridge value from one small space.

The solutions x(α) = (A + αI)⁻¹b of one fold (A = K̃_cc, without what is not penalised) lie, for all
α at once, close to the space spanned by repeated solves with a few *anchors* σ:

    b, (A + σ₁I)⁻¹b, (A + σ₂I)⁻¹(A + σ₁I)⁻¹b, …       (a rational Krylov space)

Every solve with σ lowers the error at α by (√α − √σ)/(√α + √σ) whatever the spectrum of A, so
that two anchors serve five decades of α in some tens of solves. With an orthonormal basis V of the
space, x(α) = V(VᵀAV + αI)⁻¹Vᵀb for all α costs one small eigendecomposition; AV is one product
with K, whose other rows are the predictions.

The residuals give the certificate, whatever rounding errors the solves had (shared/spaces.py).

Without it the best other method takes 1.01 times as long over 165 problems in the geometric mean,
1.6 times for rough kernels of 4,000 rows, and 2.9 times for 10,000 rows on an H200.

Güttel, *Rational Krylov approximation of matrix functions*, GAMM-Mitt. 36 (2013).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ridgefold.crossval.shared.base import (
    HeldOut,
    Judge,
    Progress,
    certified,
    needs_semidefinite,
    no_progress,
)
from ridgefold.crossval.shared.folds import Folds
from ridgefold.crossval.shared.masked import ErrorBounds, MaskedFolds, mask_folds
from ridgefold.crossval.shared.spaces import FoldSystem, Found, Space
from ridgefold.errors import MethodGaveUpError
from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.linalg.blocks import WORKSPACE_BYTES
from ridgefold.records import Cost, Problem

_FIRST_SOLVES, _MORE_SOLVES = 12, 4
"""Solves with each anchor before the first look, and between looks."""
_SLOW = 0.3
"""If a round leaves more than this of the residual, the next starts from the residuals."""
_MOST_ROUNDS = 60
"""A bound against running for ever."""
_LARGEST_CONDITION = 1e9
"""Above it, rounding may keep the residuals from falling: at 1e10 some kernels stall."""
_REDUCTION = 25.0
"""Solves go on until they have lowered the error by about exp(this): measured 19 to 30 over one to
seven decades of α, as long as the spectrum is not flat."""
_JUDGED_SHARE = 0.9
"""The share of the solves that a search needs which drops ridge values on the way."""
_SOLVE_PASSES = 0.4
"""A solve streams its triangle twice, faster than a product of K with a handful of vectors."""
_MOST_FOLDS = 25
"""With more, factors of every fold cost more than one inverse that all of them share."""
_SMALLEST = 1e-300
"""In the place of a ridge of zero, which has no logarithm."""


def anchors_for(alphas: np.ndarray) -> np.ndarray:
    """Where to factorise: one value for up to 2.5 decades of α, two for 6, three beyond."""
    low, high = math.log10(float(alphas.min())), math.log10(float(alphas.max()))
    decades = high - low
    if decades <= 2.5:
        places = [0.5]
    elif decades <= 6.0:
        places = [0.2, 0.8]
    else:
        places = [0.13, 0.5, 0.87]
    return np.asarray([10.0 ** (low + place * decades) for place in places])


def _likely_solves(problem: Problem) -> tuple[int, int]:
    """How many anchors, and how many solves with all of them together, a fold will need.

    Every eigenvalue is at least λ_min, so that α and σ work as α + λ_min and σ + λ_min do.
    """
    low = max(problem.smallest_alpha, _SMALLEST)
    alphas = np.geomspace(low, max(problem.largest_alpha, low), 50)
    anchors = anchors_for(alphas)
    floor = max(problem.spectrum[-1], 0.0) if problem.spectrum else 0.0
    roots, at = np.sqrt(alphas + floor)[:, None], np.sqrt(anchors + floor)[None, :]
    slowest = float(np.max(np.prod(np.abs(roots - at) / (roots + at), axis=1)))
    # Where alphas lie so far apart that a solve gains nothing, nobody waits for as many.
    rounds = _REDUCTION / max(-math.log(max(slowest, 1e-10)), 1e-10)
    if problem.judged:
        rounds *= _JUDGED_SHARE
    more = max(0, math.ceil((rounds - _FIRST_SOLVES) / _MORE_SOLVES))
    return len(anchors), len(anchors) * (_FIRST_SOLVES + _MORE_SOLVES * more)


@dataclass(frozen=True)
class _State:
    folds: MaskedFolds
    """With the rows in an order where every fold is one run if folds are disjoint."""
    order: np.ndarray


class Anchored:
    """Rational Krylov spaces with a few factorised anchors, fold by fold; takes any folds."""

    name = "anchored"
    exact = False
    may_give_up = True
    last_resort = False

    def can_run(self, problem: Problem) -> str | None:
        if problem.n_folds > _MOST_FOLDS:
            return f"{problem.n_folds} folds would each need factorisations of their own"
        if problem.spectrum and problem.spectrum[0] > _LARGEST_CONDITION * problem.smallest_alpha:
            return (
                f"K + αI has a condition number of about "
                f"{problem.spectrum[0] / problem.smallest_alpha:.0e}, too high for its certificate"
            )
        return needs_semidefinite(problem)

    def cost(self, problem: Problem) -> Cost:
        folds, n = problem.folds, float(problem.n_rows)
        largest = float(max(f.train for f in folds))
        rows = sum(f.count * f.train for f in folds)
        squares = sum(f.count * f.train**2 for f in folds)
        anchors, solves = _likely_solves(problem)
        a, t = problem.n_alphas, problem.n_targets
        width = float(solves * t)
        columns = max(problem.n_columns, 1)
        moved = (
            squares * (_SOLVE_PASSES * (solves + 2.0) + anchors)
            # What the basis predicts, and every new vector made orthogonal to it, twice.
            + problem.n_folds * (2.0 * n**2 + 2.0 * n * width * solves)
        )
        by_fold = {
            "cholesky": anchors * sum(f.count * f.train**3 for f in folds) / 3.0,
            "memory": problem.itemsize * moved,
            "product": problem.n_folds * 2 * n**2 * width
            + 2.0 * squares * width
            + rows * (8 * width**2 + 6 * width * a * t),
            "calls": problem.n_folds * (2.0 * solves + 5.0),
        }
        share = problem.likely_share
        return Cost(
            flops={"kernel": 0.5 * n**2, **{k: share * work for k, work in by_fold.items()}},
            size=largest,
            peak_bytes=WORKSPACE_BYTES
            + problem.itemsize
            * (n**2 + n * (8 * width + 4 * a * t + 2 * columns) + problem.held_out_numbers)
            + anchors * problem.itemsize * largest**2,
        )

    def prepare(self, gram: Gram, folds: Folds, weights: Array | None, bias: bool) -> _State:
        namespace = gram.namespace
        tested_by = np.full(folds.n_rows, len(folds))
        for k, test in enumerate(folds.test):
            tested_by[test] = np.minimum(tested_by[test], k)
        order = np.argsort(tested_by, kind="stable")
        if weights is not None:
            weights = namespace.take_rows(weights, order)
        ordered = mask_folds(gram.restricted(order), folds.reordered(order), weights, bias)
        return _State(ordered, order)

    def held_out(
        self,
        state: _State,
        targets: Array,
        alphas: np.ndarray,
        progress: Progress = no_progress,
        judge: Judge | None = None,
    ) -> HeldOut:
        masked, namespace, folds = state.folds, state.folds.namespace, state.folds.folds
        a, t = len(alphas), int(targets.shape[1])
        targets = namespace.take_rows(targets, state.order)
        matrix = masked.gram.lower()
        namespace.fill_upper_in_place(matrix)
        wanted = masked.wanted_residuals(targets, alphas)
        bounds = masked.bounds(targets, alphas)
        predictions = namespace.empty((a, len(folds.stacked), t), targets)
        residuals = np.empty((a, len(folds), t))
        kept = np.ones(a, dtype=bool)
        for k, run in enumerate(folds.runs):
            # The judge may have left a few ridge values, which fewer anchors serve.
            search = _search(_Fold(state, matrix, targets, k), anchors_for(alphas[kept]))
            found = search.solve(alphas, wanted, kept, bounds, judge)
            del search  # its factors: the next fold's shall not stand beside them
            predictions[:, run, :], residuals[:, k, :] = found.predictions, found.residuals
            progress((k + 1) / len(folds))
            if not kept.any():
                predictions[:, run.stop :, :] = 0.0
                residuals[:, k + 1 :, :] = math.inf
                break
        return certified(
            namespace,
            predictions,
            conditions=bounds.conditions,
            bound=bounds.of(residuals),
            scale=bounds.scale,
            folds=folds,
            kept=kept,
        )


class _Fold(FoldSystem):
    """The system of one fold, and where its training rows are in K."""

    def __init__(self, state: _State, matrix: Array, targets: Array, k: int) -> None:
        super().__init__(state.folds, targets, k)
        self.matrix = matrix
        self.rows = np.flatnonzero(self.namespace.to_numpy(self.roots) > 0)
        self._runs = _runs(self.rows)
        self._weighted = not bool(self.namespace.xp.all(state.folds.roots == 1.0))

    def copy_lower(self, out: Array) -> None:
        """Write K̃ between training rows into `out`, on and below the diagonal alone."""
        for into, source in self._runs:
            for across, column in self._runs:
                if across.start <= into.start:
                    block = self.matrix[source, column]
                    if self._weighted:
                        block = block * self.roots[source, None] * self.roots[None, column]
                    out[into, across] = block

    def gather(self, vectors: Array) -> Array:
        parts = [vectors[:, source] for _, source in self._runs]
        return self.namespace.xp.concat(parts, axis=1)

    def spread(self, vectors: Array) -> Array:
        """Training rows at their places among all rows."""
        out = self.namespace.zeros((vectors.shape[0], int(self.roots.shape[0])), vectors)
        for into, source in self._runs:
            out[:, source] = vectors[:, into]
        return out


_Run = tuple[slice, slice]
"""Where some rows stand among the training rows, and where among all."""


def _runs(rows: np.ndarray) -> list[_Run]:
    """Stretches of consecutive rows."""
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    return [
        (slice(start, stop), slice(int(rows[start]), int(rows[stop - 1]) + 1))
        for start, stop in pairwise([0, *breaks.tolist(), len(rows)])
    ]


class _Anchor:
    """(A + σI)⁻¹ of one fold."""

    def __init__(self, fold: _Fold, sigma: float) -> None:
        self.sigma, self._fold = sigma, fold
        n = len(fold.rows)
        self._factor = fold.namespace.empty((n, n), fold.matrix)
        fold.copy_lower(self._factor)
        fold.namespace.add_to_diagonal_in_place(self._factor, sigma)
        if not fold.namespace.cholesky_in_place(self._factor):
            raise MethodGaveUpError(
                f"anchored: K + {sigma:.1e}·I has no Cholesky factor in this precision: use "
                'method="auto", or larger alphas'
            )
        self._border = None
        if fold.basis is not None:
            border = self._plain(fold.basis.T)
            self._border = fold.namespace.xp.linalg.solve(border @ fold.basis, border)

    def _plain(self, vectors: Array) -> Array:
        right = self._fold.gather(vectors).T
        return self._fold.spread(self._fold.namespace.solve_cholesky(self._factor, right).T)

    def solve(self, vectors: Array) -> Array:
        """About (A + σI)⁻¹v, inside the vectors without a part in the unpenalised columns."""
        solved = self._plain(vectors)
        if self._border is None:
            return solved
        return solved - (solved @ self._fold.basis) @ self._border


def _search(fold: _Fold, anchors: np.ndarray) -> _Search:
    return _Search(fold, [_Anchor(fold, float(sigma)) for sigma in anchors])


class _Search:
    """A space that grows by solves with the anchors."""

    def __init__(self, fold: _Fold, anchors: list[_Anchor]) -> None:
        self._fold, self._anchors = fold, anchors
        self._space = Space(fold)
        self._latest = fold.right

    def solve(
        self,
        alphas: np.ndarray,
        wanted: np.ndarray,
        kept: np.ndarray,
        bounds: ErrorBounds,
        judge: Judge | None,
    ) -> Found:
        """Solutions for all α that matter; `kept` is narrowed to those as they are found."""
        before, stalls = math.inf, 0
        exhausted = not self._chain(_FIRST_SOLVES)
        for _ in range(_MOST_ROUNDS):
            solutions, residual = self._space.solutions(alphas)
            found = self._space.found(solutions, residual)
            excess = found.residuals / wanted[:, None]
            if judge is not None:
                told = bounds.told(found.residuals)
                kept &= judge(self._fold.index, found.predictions, told)
            left = float(np.max(excess[kept], initial=0.0))
            stalls += left > _SLOW * before
            if left <= 1.0 or (left <= 10.0 and (exhausted or stalls > 1)):
                return found
            if exhausted:
                break
            if left > _SLOW * before:
                self._latest = self._worst(residual, np.where(kept[:, None], excess, 0.0))
            before = left
            exhausted = not self._chain(_MORE_SOLVES)
        raise MethodGaveUpError(
            f"anchored: with {self._space.size} vectors the residual is still {left:.1e} times too "
            'large: use method="auto" or "eigendecomposition", or larger alphas'
        )

    def _chain(self, solves: int) -> bool:
        """Solves with the anchors in turn, each starting from what the last one gave."""
        for step in range(solves * len(self._anchors)):
            new = self._space.grow(self._anchors[step % len(self._anchors)].solve(self._latest))
            if new.shape[0] == 0:
                break
            self._latest = new
        new = self._space.unmeasured
        if new.shape[0] == 0:
            return False
        self._space.measured(self._fold.values(new, self._fold.matrix))
        return True

    def _worst(self, residual: Array, excess: np.ndarray) -> Array:
        """For each target, the residual that is farthest from small enough."""
        worst = [residual[int(np.argmax(excess[:, j])), j, :] for j in range(excess.shape[1])]
        return self._fold.namespace.xp.stack(worst, axis=0)

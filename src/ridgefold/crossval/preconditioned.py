"""All folds, all ridge values side by side, behind a low-rank factor of K as preconditioner.

K = F Fᵀ + E with F n×r from a pivoted Cholesky factorisation and E ⪰ 0. On the training rows of
fold k, F_cF_cᵀ + αI (without what is not penalised) is inverted for every α from one r×r
eigendecomposition, and is the better a preconditioner of K̃_cc + αI the less E weighs beside α:
about √(trace E/α) steps are needed.

Every fold has one space for all its systems (shared/spaces.py). In each step the residuals of a few
ridge values, spread over those that are not solved yet, are added to it, each behind the
preconditioner of its α; what they give serves the α between them too. The folds go side by side, so
that a step is a product with K and two with F.

More columns of F cost r³ a fold and save steps; F grows as long as that pays. Ridge values that are
solved, or that a judge has dropped, leave the others to go on.

Without it the best other method takes 1.02 times as long over 165 problems in the geometric mean,
2.8 times for some kernels between wide and narrow.
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
    judged,
    needs_semidefinite,
    no_progress,
)
from ridgefold.crossval.shared.folds import Folds
from ridgefold.crossval.shared.masked import MaskedFolds, mask_folds
from ridgefold.crossval.shared.spaces import FoldSystem, Found, Space
from ridgefold.crossval.shared.spectrum import lost_in_rounding, traces_beyond
from ridgefold.errors import MethodGaveUpError
from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.linalg.blocks import WORKSPACE_BYTES
from ridgefold.records import Cost, Problem

_PIVOTS_A_ROUND = 32
"""Between looks at what more columns would save."""
_PATIENCE = 4
"""Rounds without a gain after which F stops growing: the trace does not fall evenly."""
_LARGEST_SHARE, _LARGEST_A_ROOT = 0.5, 24.0
"""The most columns that F may have: this share of the rows, and so many times their root."""
_FEW_ROWS = 1.4
"""A product of K with few vectors takes so many times what its operations would."""
_EFFORTS = {"product": 1.0, "eigendecomposition": 1.3, "calls": 5e6}
"""How long each takes on an ordinary core, in operations of a product."""
_NOMINAL_RATIO = 1e3
"""trace E/α at the smallest α, where nothing is known of the spectrum."""
_MOST_STEPS, _MOST_LIKELY_STEPS = 60, 40.0
"""When it gives up, and what it must not be foreseen to need to be tried: forecasts are rough."""
_ACCEPTED, _SLOW = 10.0, 0.3
"""Residuals so many times too large are taken if a step leaves more than this share of them."""
_STALLED = 12
"""Steps without a smaller residual after which rounding is taken to be the reason."""


@dataclass(frozen=True)
class _Pace:
    vectors: int
    """Ridge values whose residuals are added to the space of a fold in every step."""
    fewest: float
    a_root: float

    def steps(self, trace: float, alpha: float) -> float:
        """Steps that the smallest α will take."""
        return self.fewest + self.a_root * math.sqrt(trace / alpha)


_TO_THE_END = _Pace(8, 8.0, 0.4)
_JUDGED = _Pace(4, 5.0, 0.19)
"""A search that drops ridge values only has to tell them apart. The steps were measured on three
data sets and three widths of the RBF kernel each, for trace E/α from 0.2 to 9e3."""


def _pace(is_judged: bool) -> _Pace:
    return _JUDGED if is_judged else _TO_THE_END


@dataclass(frozen=True)
class _Sizes:
    n: int
    columns: int
    """Folds × targets."""
    folds: int
    alphas: np.ndarray
    pace: _Pace

    @property
    def vectors(self) -> int:
        """That a step adds."""
        return self.columns * min(self.pace.vectors, len(self.alphas))

    def steps(self, trace: float) -> float:
        """Until all is solved, or a space holds every vector there is."""
        every = 1.0 + self.n / min(self.pace.vectors, len(self.alphas))
        return min(every, self.pace.steps(trace, float(self.alphas.min())))

    def work(self, rank: int, trace: float) -> dict[str, float]:
        """With so many columns of F, which leave so much of the trace."""
        n, steps = float(self.n), self.steps(trace)
        return {
            "product": 5.0 * n * rank**2
            + _FEW_ROWS * steps * self.vectors * (2.0 * n**2 + 4.0 * n * rank),
            "eigendecomposition": self.folds * 9.0 * rank**3,
            "calls": rank / 32.0 + steps * (6.0 + 12.0 * self.folds),
        }

    def effort(self, rank: int, trace: float) -> float:
        """The same in operations of a product, as they compare on an ordinary core."""
        if self.steps(trace) > _MOST_LIKELY_STEPS:
            return math.inf
        return sum(_EFFORTS[kind] * work for kind, work in self.work(rank, trace).items())

    def most(self) -> int:
        return max(1, int(min(_LARGEST_SHARE * self.n, _LARGEST_A_ROOT * math.sqrt(self.n))))


class Preconditioned:
    """One small space a fold, grown by residuals behind a factor of K that all folds share."""

    name = "preconditioned"
    exact = False
    may_give_up = True
    last_resort = False

    def can_run(self, problem: Problem) -> str | None:
        sizes = _sizes(problem)
        if sizes.columns > max(64, problem.n_rows // 4):
            return f"{problem.n_folds} folds × {problem.n_targets} targets are too many systems"
        _, trace = _likely_rank(problem)
        steps = sizes.steps(trace)
        if steps > _MOST_LIKELY_STEPS:
            return (
                f"the spectrum falls so slowly that about {steps:.0f} steps would be needed with "
                f"alpha={problem.smallest_alpha:g}"
            )
        if lost_in_rounding(problem):
            return (
                "the kernel matrix is of low rank, and its rounding errors are too large for "
                f"alpha={problem.smallest_alpha:g}"
            )
        return needs_semidefinite(problem)

    def cost(self, problem: Problem) -> Cost:
        sizes, n = _sizes(problem), float(problem.n_rows)
        rank, trace = _likely_rank(problem)
        steps, vectors = sizes.steps(trace), float(sizes.vectors)
        most = float(sizes.most())
        return Cost(
            flops={
                "kernel": 0.5 * n**2,
                **sizes.work(rank, trace),
                # K is written, read and mirrored. Every new vector is made orthogonal to those
                # before, three times.
                "memory": problem.itemsize
                * (3.0 * n**2 + n * vectors * steps * (1.5 * steps + 10.0)),
            },
            size=float(rank),
            peak_bytes=WORKSPACE_BYTES
            + problem.itemsize
            * (
                n**2
                + n * (2.0 * most + 3.0 * problem.n_columns)
                + problem.n_folds * most**2
                + n * vectors * 4.0 * _MOST_STEPS
                + 2.0 * problem.held_out_numbers
            ),
        )

    def prepare(self, gram: Gram, folds: Folds, weights: Array | None, bias: bool) -> MaskedFolds:
        return mask_folds(gram, folds, weights, bias)

    def held_out(
        self,
        state: MaskedFolds,
        targets: Array,
        alphas: np.ndarray,
        progress: Progress = no_progress,
        judge: Judge | None = None,
    ) -> HeldOut:
        namespace, folds, t = state.namespace, state.folds, int(targets.shape[1])
        wanted = state.wanted_residuals(targets, alphas)
        bounds = state.bounds(targets, alphas)
        search = _Search(state, targets, alphas, _pace(judge is not None))
        predictions = namespace.zeros((len(alphas), len(folds.stacked), t), targets)
        residuals = np.full((len(alphas), len(folds), t), math.inf)
        alive = np.ones(len(alphas), dtype=bool)
        which, before, least, since = np.arange(len(alphas)), math.inf, math.inf, 0
        for step in range(_MOST_STEPS):
            for k, found in enumerate(search.look(which)):
                for place, j in enumerate(which.tolist()):
                    predictions[j, folds.runs[k], :] = found.predictions[place, ...]
                residuals[which, k, :] = found.residuals
            if judge is not None:
                told = bounds.told(residuals)
                for k, run in enumerate(folds.runs):
                    alive &= judge(k, predictions[:, run, :], told[:, k, :])
            excess = np.where(alive, residuals.T / wanted, 0.0).T
            progress(min(0.99, step / _MOST_LIKELY_STEPS))
            left, worst = float(np.sum(np.log(np.maximum(excess, 1.0)))), float(excess.max())
            least, since = (left, 0) if left < 0.99 * least else (least, since + 1)
            stalled = since > _STALLED or (worst <= _ACCEPTED and worst > _SLOW * before)
            if worst <= 1.0 or stalled or not search.grow(which, excess[which]):
                break
            before = worst
            which = np.flatnonzero(np.any(excess > 1.0, axis=(1, 2)))
        excess = np.max(residuals, axis=(1, 2)) / wanted
        result = certified(
            namespace,
            predictions,
            conditions=bounds.conditions,
            bound=bounds.of(residuals),
            scale=bounds.scale,
            folds=folds,
        )
        precise = excess <= _ACCEPTED
        if judge is not None:
            return judged(result, folds, judge, alive, precise)
        if not np.all(precise):
            raise MethodGaveUpError(
                f"preconditioned: after {step + 1} steps the residual is still "
                f"{float(excess.max()):.1e} times too large: use "
                'method="auto" or "eigendecomposition", or larger alphas'
            )
        return result


def _sizes(problem: Problem) -> _Sizes:
    low = max(problem.smallest_alpha, 1e-300)
    alphas = np.geomspace(low, max(problem.largest_alpha, low), problem.n_alphas)
    folds = problem.n_folds
    return _Sizes(problem.n_rows, folds * problem.n_targets, folds, alphas, _pace(problem.judged))


def _likely_rank(problem: Problem) -> tuple[int, float]:
    """How many columns F will have, and the trace of what it leaves."""
    sizes = _sizes(problem)
    ranks = np.unique(np.geomspace(min(32, sizes.most()), sizes.most(), 20).astype(int))
    traces = traces_beyond(problem, ranks)
    if traces is None:
        return max(1, sizes.most() // 4), _NOMINAL_RATIO * problem.smallest_alpha
    efforts = [
        sizes.effort(int(rank), float(trace)) for rank, trace in zip(ranks, traces, strict=True)
    ]
    best = int(np.argmin(efforts)) if min(efforts) < math.inf else len(ranks) - 1
    return int(ranks[best]), float(traces[best])


class _Factor:
    """(F_cF_cᵀ + αI)⁻¹ on the training rows of every fold, by the Woodbury identity."""

    def __init__(
        self, state: MaskedFolds, systems: list[FoldSystem], alphas: np.ndarray, pace: _Pace
    ) -> None:
        namespace = state.namespace
        self._namespace = namespace
        self.rows = _grown(state, int(systems[0].right.shape[0]), alphas, pace)
        """Fᵀ, weighted: (r, n)."""
        self._parts: list[tuple[Array, Array]] = []
        """Eigenvalues and eigenvectors of every fold's F_cᵀF_c."""
        for system, product in zip(systems, state.training_products(self.rows), strict=True):
            centred = product
            if system.basis is not None:
                along = self.rows @ system.basis
                centred -= along @ along.T
            values, vectors = namespace.eigh_in_place(centred)
            namespace.maximum_in_place(values, 0.0)
            self._parts.append((values, vectors))

    def solve(self, rights: list[Array], alphas: list[np.ndarray]) -> list[Array]:
        """For each fold rows, and an α for each; what comes out at rows it tests is nothing."""
        bounds = np.cumsum([0, *map(len, alphas)])
        runs = [slice(start, stop) for start, stop in pairwise(bounds.tolist())]
        right = self._namespace.xp.concat(rights, axis=0)
        shifts = self._namespace.asarray(np.concatenate(alphas), right)[:, None]
        inner = right @ self.rows.T
        for run, (values, vectors) in zip(runs, self._parts, strict=True):
            turned = inner[run, :] @ vectors
            turned /= values[None, :] + shifts[run, :]
            inner[run, :] = turned @ vectors.T
        out = right - inner @ self.rows
        out /= shifts
        return [out[run, :] for run in runs]


def _grown(state: MaskedFolds, t: int, alphas: np.ndarray, pace: _Pace) -> Array:
    """Fᵀ with as many rows as pay, weighted."""
    partial = state.gram.partial_cholesky()
    folds = len(state.folds)
    sizes = _Sizes(state.folds.n_rows, folds * t, folds, alphas, pace)
    least, since = math.inf, 0
    while partial.rank < sizes.most() and since < _PATIENCE and partial.trace > partial.rounding:
        if partial.grow(min(_PIVOTS_A_ROUND, sizes.most() - partial.rank)) == 0:
            break
        effort = sizes.effort(partial.rank, partial.trace)
        # As long as too many steps would be needed, more columns are the only way.
        least, since = (effort, 0) if effort < least or effort == math.inf else (least, since + 1)
    steps = sizes.steps(partial.trace)
    if steps > _MOST_STEPS:
        raise MethodGaveUpError(
            f"preconditioned: {partial.rank} columns leave {partial.trace:.1e} of the trace of the "
            f"kernel matrix, so that about {steps:.0f} steps would be needed: use "
            'method="auto" or "banded", or larger alphas'
        )
    rows = partial.factor_rows()
    rows *= state.roots[None, :]
    return rows


class _Search:
    """A space for every fold that grows by residuals, each behind the preconditioner of its α."""

    def __init__(self, state: MaskedFolds, targets: Array, alphas: np.ndarray, pace: _Pace) -> None:
        self._namespace, self._alphas, self._pace = state.namespace, alphas, pace
        self._systems = [FoldSystem(state, targets, k) for k in range(len(state.folds))]
        self.spaces = [Space(system) for system in self._systems]
        self._masks = [state.mask[:, k][None, :] for k in range(len(state.folds))]
        self._matrix = state.gram.lower()
        self._namespace.fill_upper_in_place(self._matrix)
        self._factor = _Factor(state, self._systems, alphas, pace)
        self._residuals: list[Array] = []
        places = _worst_of_each(np.full(len(alphas), math.inf), pace.vectors)
        self._grow(
            [state.namespace.xp.concat([each.right] * len(places)) for each in self._systems],
            [np.repeat(alphas[places], int(targets.shape[1])) for _ in self._systems],
        )

    def look(self, which: np.ndarray) -> list[Found]:
        """What every fold's space says of some α."""
        self._residuals, found = [], []
        for space in self.spaces:
            z, residual = space.solutions(self._alphas[which])
            self._residuals.append(residual)
            found.append(space.found(z, residual))
        return found

    def grow(self, which: np.ndarray, excess: np.ndarray) -> bool:
        """Add a few of the residuals that are too large, of the α that the last look was at.

        `excess` has the shape (α, fold, target), zero for what no longer matters.
        """
        namespace, n = self._namespace, int(self._matrix.shape[0])
        picked, alphas = [], []
        for k, residual in enumerate(self._residuals):
            t = int(residual.shape[1])
            places = [_worst_of_each(excess[:, k, j], self._pace.vectors) * t + j for j in range(t)]
            chosen = np.concatenate(places)
            flat = namespace.xp.reshape(residual, (residual.shape[0] * t, n))
            picked.append(namespace.take_rows(flat, chosen))
            alphas.append(self._alphas[which[chosen // t]])
        return self._grow(picked, alphas)

    def _grow(self, rights: list[Array], alphas: list[np.ndarray]) -> bool:
        """Add the rows as their α's preconditioner turns them; False if nothing was new."""
        xp = self._namespace.xp
        for k, steered in enumerate(self._factor.solve(rights, alphas)):
            self.spaces[k].grow(self._systems[k].project(steered * self._masks[k]))
        new = [space.unmeasured for space in self.spaces]
        weighted = [
            rows * system.roots[None, :] for rows, system in zip(new, self._systems, strict=True)
        ]
        values = xp.concat(weighted, axis=0) @ self._matrix
        start = 0
        for rows, space in zip(new, self.spaces, strict=True):
            space.measured(values[start : start + rows.shape[0], :])
            start += int(rows.shape[0])
        return start > 0


def _worst_of_each(excess: np.ndarray, most: int) -> np.ndarray:
    """Places of residuals that are too large, the largest of each group of neighbours."""
    places = np.flatnonzero(excess > 1.0)
    groups = np.array_split(places, min(most, len(places)) or 1)
    return np.asarray(
        [group[np.argmax(excess[group])] for group in groups if len(group)], dtype=int
    )

"""All folds, all ridge values in Krylov spaces: needs products with K and nothing else.

A shift by α does not change the Krylov space of K̃_cc and ỹ_c, so one Lanczos run a fold serves
every α. The folds run side by side: V holds one column for each fold (and target), zero outside
its training rows, and one pass over K moves them all; the rows a fold tests come out as
K_kc v. Full reorthogonalisation keeps the spaces what they are in exact arithmetic.

With T the projection of K̃_cc and z = (T + αI)⁻¹‖ỹ‖e₁, the residual of the shifted system is
β_{j+1}|z_j|, which tells when to stop. The residual reported is computed afresh in the pass that
makes the predictions: |ŷ(x) − exact(x)| ≤ ‖φ(x)‖·‖residual‖/(2√α), ‖φ(x) − φ̄‖ with a bias.

For a single α the same is done by preconditioned conjugate gradients, with a low-rank factor of
K as preconditioner, short recurrences and K computed block by block: O(n·(folds + rank)) numbers.

Without it the best other method takes 1.05 times as long over 165 problems in the geometric mean,
3.6 times for narrow kernels in 30 columns; where a fifth of K must do, no other can run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh_tridiagonal

from ridgefold.crossval.shared.base import (
    HeldOut,
    Judge,
    Progress,
    at_places,
    certified,
    judged,
    needs_semidefinite,
    no_progress,
)
from ridgefold.crossval.shared.folds import Folds
from ridgefold.crossval.shared.masked import TOLERANCE, ErrorBounds, MaskedFolds, mask_folds
from ridgefold.crossval.shared.masked_gradients import (
    BLOCK_BYTES,
    MOST_STEPS,
    NOMINAL_STEPS,
    preconditioner_rank,
    solve_one_alpha,
)
from ridgefold.crossval.shared.spectrum import lanczos_steps, preconditioned_steps
from ridgefold.errors import MethodGaveUpError
from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.linalg.blocks import WORKSPACE_BYTES
from ridgefold.records import Cost, Problem

_CHECK_EVERY = 10
"""Steps between looks, each of which takes a small eigendecomposition a fold."""
_HELD_BYTES = 4e9
"""A Gram matrix up to this size is computed once and held."""
_SMALL_PRODUCT = 9e5
"""Multiplications up to which BLAS libraries multiply without copying the factors first."""
_LEAST_TILE = 128
"""Smaller tiles cost more in calls than one pass over K saves."""
_FEW_COLUMNS = 5
"""With so many, a product takes as long as moving K through memory: that rate is measured so."""
_NOMINAL_STEPS = 200
"""Steps where nothing is known of the spectrum."""
_ROUNDING = 10.0
"""What rounding leaves of residuals, in units of eps·(‖ỹ‖ + ‖K̃‖‖ã‖)."""


class Krylov:
    """Lanczos for all folds and alphas at once; conjugate gradients in little memory for one."""

    name = "krylov"
    exact = False
    may_give_up = True
    last_resort = False

    def can_run(self, problem: Problem) -> str | None:
        columns = problem.n_folds * problem.n_targets
        if columns > max(64, problem.n_rows // 4):
            return (
                f"{problem.n_folds} folds × {problem.n_targets} targets are too many Krylov spaces"
            )
        steps = _likely_steps(problem)
        if problem.n_alphas > 1 and steps > MOST_STEPS:
            return f"the spectrum falls so slowly that about {steps:.0f} steps would be needed"
        return needs_semidefinite(problem)

    def cost(self, problem: Problem) -> Cost:
        n, columns = float(problem.n_rows), problem.n_folds * problem.n_targets
        if problem.n_alphas == 1:
            rank = preconditioner_rank(problem.n_rows, columns)
            steps = (
                preconditioned_steps(problem, rank, problem.smallest_alpha, TOLERANCE)
                or NOMINAL_STEPS
            )
            passes = steps + 1.0  # the last one gives the predictions
            numbers = n * (2 * rank + 10 * columns) + columns * rank**2
            return Cost(
                flops={
                    "kernel": passes * n**2 + n * rank,
                    # Blocks of K are written, and read again before they have left the cache.
                    "memory": passes * n**2 * problem.itemsize,
                    "product": passes * 2 * n**2 * columns
                    + steps * 4 * n * rank * columns
                    + 6 * n * rank**2,
                    "eigendecomposition": problem.n_folds * 9.0 * rank**3,
                    "calls": steps * (3.0 + 0.4 * problem.n_folds),
                },
                size=n,
                peak_bytes=WORKSPACE_BYTES
                + problem.itemsize * (numbers + problem.held_out_numbers)
                + 2 * BLOCK_BYTES,
            )
        held = n**2 * problem.itemsize <= _HELD_BYTES
        steps = _likely_steps(problem)
        beyond = max(0, columns - _FEW_COLUMNS) if held else columns
        return Cost(
            flops={
                "kernel": (0.5 if held else steps) * n**2,
                # A product of K with few columns moves K through memory once, and is done with it.
                "memory": steps * n**2 * problem.itemsize if held else 0.0,
                "product": steps * (2 * n**2 * beyond + 4 * n * columns * steps),
                "calls": steps * (3.0 + 0.4 * columns),
            },
            size=n,
            peak_bytes=WORKSPACE_BYTES
            + problem.itemsize * ((n**2 if held else 0.0) + n * columns * (MOST_STEPS + 12.0))
            + problem.itemsize * problem.held_out_numbers
            + 2 * BLOCK_BYTES,
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
        if len(alphas) == 1:
            return solve_one_alpha(state, targets, float(alphas[0]), progress)
        return _lanczos(state, targets, alphas, progress, judge)


def _likely_steps(problem: Problem) -> float:
    """A search that drops ridge values needs only to tell them apart."""
    tolerance = 1e-3 if problem.judged else TOLERANCE
    known = lanczos_steps(problem, problem.smallest_alpha, tolerance)
    return min(_NOMINAL_STEPS, problem.n_rows / 4) if known is None else known


# -- all alphas --------------------------------------------------------------------------


@dataclass
class _Spaces:
    """Orthonormal bases of all Krylov spaces, grown a step at a time."""

    state: MaskedFolds
    n_targets: int
    multiply: Callable[[Array], Array]
    """v ↦ Kv for vectors that are rows."""
    right: Array
    most_steps: int

    def __post_init__(self) -> None:
        namespace, xp = self.state.namespace, self.state.namespace.xp
        self.roots = self.state.roots[None, :]
        self.mask = self.state.repeated(self.n_targets).T  # vectors are rows here
        self.directions = tuple(each.T for each in self.state.directions(self.n_targets))
        start = self.project(self.right.T)
        self.norms = namespace.to_numpy(xp.sqrt(xp.sum(start * start, axis=1))).astype(float)
        safe = namespace.asarray(np.where(self.norms > 0, self.norms, 1.0), start)
        self.latest = start / safe[:, None]
        self.bases = namespace.empty((start.shape[0], self.most_steps, start.shape[1]), start)
        self.seen: list[list[Array]] = [[] for _ in self.state.folds.test]
        """What every vector predicts at the test rows of its fold: (t, rows), step by step."""
        self.means: list[Array] = []
        """With unpenalised columns, their components along each of the directions: (r, columns)."""
        self.diagonals: list[np.ndarray] = []
        self.sizes = np.zeros(start.shape[0])
        """The largest of them: rounding errors of a step are relative to it."""
        self.couplings: list[np.ndarray] = []

    def project(self, rows: Array) -> Array:
        rows = rows * self.mask
        for direction in self.directions:
            inner = self.state.namespace.xp.sum(direction * rows, axis=1)
            rows = rows - direction * inner[:, None]
        return rows

    def step(self) -> None:
        """One more vector for every space."""
        namespace, xp, v = self.state.namespace, self.state.namespace.xp, self.latest
        self.bases[:, len(self.diagonals), :] = v
        values = self.multiply(v * self.roots)
        for k, test in enumerate(self.state.folds.test):
            own = values[k * self.n_targets : (k + 1) * self.n_targets, :]
            self.seen[k].append(xp.take(own, namespace.indices(test, own), axis=1))
        if self.directions:
            weighted = values * self.roots
            self.means.append(xp.stack([xp.sum(weighted * d, axis=1) for d in self.directions]))
        w = self.project(values * self.roots)
        self.diagonals.append(namespace.to_numpy(xp.sum(v * w, axis=1)).astype(float))
        self.sizes = np.maximum(self.sizes, np.abs(self.diagonals[-1]))
        bases = self.bases[:, : len(self.diagonals), :]
        # The last two vectors are what exact arithmetic would take off; the others, rounding.
        w = w - namespace.asarray(self.diagonals[-1], w)[:, None] * v
        if self.couplings:
            w -= (
                namespace.asarray(self.couplings[-1], w)[:, None]
                * self.bases[:, -2 + len(self.diagonals), :]
            )
        norms = self._norms(w)
        for _ in range(2):  # twice is enough (Kahan, Parlett), once if it takes off little
            before = norms
            inner = bases @ w[:, :, None]
            w -= (xp.matrix_transpose(inner) @ bases)[:, 0, :]
            w = self.project(w)
            norms = self._norms(w)
            if np.all(norms >= 0.7 * before) and np.all(norms >= 1e-4 * self.sizes):
                break
        # A space that is exhausted stays where it is: its coupling is rounding error.
        floor = 100 * namespace.eps(w) * np.maximum(self.sizes, 1e-300)
        alive = norms > floor
        self.couplings.append(np.where(alive, norms, 0.0))
        factors = np.where(alive, 1.0 / np.where(alive, norms, 1.0), 0.0)
        self.latest = w * namespace.asarray(factors, w)[:, None]

    def _norms(self, rows: Array) -> np.ndarray:
        namespace, xp = self.state.namespace, self.state.namespace.xp
        return namespace.to_numpy(xp.sqrt(xp.sum(rows * rows, axis=1))).astype(float)

    def solve(self, column: int, alphas: np.ndarray) -> _Solved:
        """The solutions for every α in one space."""
        steps = len(self.diagonals)
        main = np.asarray([d[column] for d in self.diagonals])
        side = np.asarray([c[column] for c in self.couplings])
        dead = np.flatnonzero(side[:-1] == 0.0)
        used = int(dead[0]) + 1 if len(dead) else steps
        if not (np.all(np.isfinite(main[:used])) and np.all(np.isfinite(side[:used]))):
            raise MethodGaveUpError(
                "krylov: numbers overflow on the way: scale the columns of X and the targets"
            )
        values, vectors = eigh_tridiagonal(main[:used], side[: used - 1])
        filters = 1.0 / (values[:, None] + alphas[None, :])
        z = np.zeros((steps, len(alphas)))
        z[:used] = vectors @ (filters * (self.norms[column] * vectors[0])[:, None])
        lengths = np.sqrt(np.sum(z * z, axis=0))
        rounding = self.norms[column] + (float(values[-1]) + alphas) * lengths
        eps = self.state.namespace.eps(self.latest)
        return _Solved(z, side[used - 1] * np.abs(z[used - 1]), _ROUNDING * eps * rounding)

    def judged(self, judge: Judge, solved: list[_Solved], bounds: ErrorBounds) -> np.ndarray:
        """Which alphas still matter, from all folds as they stand."""
        namespace, xp, t = self.state.namespace, self.state.namespace.xp, self.n_targets
        alive = np.ones(len(bounds.conditions), dtype=bool)
        for k, seen in enumerate(self.seen):
            values = xp.stack(seen, axis=1)  # (t, steps, rows)
            z = xp.stack(
                [namespace.asarray(solved[k * t + j].z.T, values) for j in range(t)], axis=0
            )
            predictions = xp.permute_dims(z @ values, (1, 2, 0))  # (a, rows, t)
            if self.directions:
                predictions = predictions + self._unpenalised(k, z)
            own = solved[k * t : (k + 1) * t]
            residuals = np.stack([each.residuals + each.rounding for each in own], axis=1)
            alive &= judge(k, predictions, bounds.told(residuals))
        return alive

    def _unpenalised(self, k: int, z: Array) -> Array:
        """What the unpenalised columns predict at the test rows of fold k: (a, rows, t)."""
        xp, own = self.state.namespace.xp, slice(k * self.n_targets, (k + 1) * self.n_targets)
        at_test = self.state.at_test(k)
        rank = int(at_test.shape[1])
        means = xp.permute_dims(xp.stack(self.means, axis=0)[:, :rank, own], (2, 0, 1))
        right = self.right.T[own, :]
        total = xp.stack([xp.sum(right * d[own, :], axis=1) for d in self.directions[:rank]])
        coordinates = total.T[:, None, :] - z @ means  # (t, a, r)
        return xp.permute_dims(coordinates @ at_test.T, (1, 2, 0))


@dataclass(frozen=True)
class _Solved:
    """Solutions of one space for every α."""

    z: np.ndarray
    """Their coefficients in its basis, shape (steps, n_alphas)."""
    residuals: np.ndarray
    """The norms of their residuals, but for rounding,"""
    rounding: np.ndarray
    """and what that may add: no residual falls below eps·(‖ỹ‖ + ‖K̃‖‖ã‖)."""


def _lanczos(
    state: MaskedFolds,
    targets: Array,
    alphas: np.ndarray,
    progress: Progress,
    judge: Judge | None,
) -> HeldOut:
    namespace, t = state.namespace, int(targets.shape[1])
    most = min(state.folds.n_rows, MOST_STEPS)
    spaces = _Spaces(state, t, _multiplier(state.gram), state.spread(targets), most)
    columns = len(state.folds) * t
    wanted = state.wanted_residuals(targets, alphas)
    bounds = state.bounds(targets, alphas)
    alive = np.ones(len(alphas), dtype=bool)
    excess: list[tuple[int, float]] = []
    while True:
        steps = len(spaces.diagonals)
        for _ in range(min(max(_CHECK_EVERY, steps // 6), most - steps)):
            spaces.step()
            progress(min(0.99, len(spaces.diagonals) / most))
        steps = len(spaces.diagonals)
        solved = [spaces.solve(column, alphas) for column in range(columns)]
        # A space with nothing left to add has residuals at the level of rounding: these are looked
        # at in the last pass, not estimated.
        if judge is not None and np.all(spaces.couplings[-1] > 0.0):
            alive &= spaces.judged(judge, solved, bounds)
        ratio = max(float(np.max((each.residuals / wanted)[alive], initial=0.0)) for each in solved)
        progress(min(0.99, steps / most))
        if ratio <= 1.0:
            break
        excess.append((steps, math.log(ratio)))
        if steps >= most or _hopeless(excess, most):
            raise MethodGaveUpError(
                f"krylov: after {steps} steps the residual is still {ratio:.1e} times too large, "
                'so the spectrum falls too slowly for these alphas: use method="auto" or '
                '"eigendecomposition"'
            )
    some = alphas[alive]
    predictions = namespace.empty((len(some), len(state.folds.stacked), t), targets)
    residuals = np.full((len(alphas), len(state.folds), t), math.inf)
    for k, run in enumerate(state.folds.runs if alive.any() else ()):
        for j in range(t):
            values, norms = _predict(spaces, k * t + j, solved[k * t + j].z[:, alive], some)
            predictions[:, run, j] = values
            residuals[alive, k, j] = norms
    if not alive.all():
        predictions = at_places(namespace, predictions, alive)
    result = certified(
        namespace,
        predictions,
        conditions=bounds.conditions,
        bound=bounds.of(residuals),
        scale=bounds.scale,
        folds=state.folds,
    )
    excess_left = np.max(residuals / wanted[:, None, None], axis=(1, 2))
    precise = excess_left <= 10.0
    if judge is not None:
        return judged(result, state.folds, judge, alive, precise)
    if not np.all(precise):
        raise MethodGaveUpError(
            f"krylov: rounding leaves a residual {float(excess_left.max()):.1e} times too large at "
            f'alpha={float(alphas.min()):g}: use method="auto", or larger alphas'
        )
    return result


def _predict(
    spaces: _Spaces, column: int, z: np.ndarray, alphas: np.ndarray
) -> tuple[Array, np.ndarray]:
    """Predictions (a, rows) of one space for its fold's test rows, and the true residuals."""
    state, namespace, xp = spaces.state, spaces.state.namespace, spaces.state.namespace.xp
    k = column // spaces.n_targets
    x = namespace.asarray(z.T, spaces.bases) @ spaces.bases[column, : z.shape[0], :]
    values = spaces.multiply(x * spaces.roots)
    left = spaces.right[:, column][None, :] - values * spaces.roots * spaces.mask[column, :]
    values = xp.take(values, namespace.indices(state.folds.test[k], values), axis=1)
    if spaces.directions:
        basis = state.spaces[k].basis
        coordinates = left @ basis
        left = left - coordinates @ basis.T
        values = values + coordinates @ state.at_test(k).T
    residual = left - namespace.asarray(alphas, x)[:, None] * x
    norms = namespace.to_numpy(xp.sqrt(xp.sum(residual * residual, axis=1)))
    return values, norms.astype(float)


def _multiplier(gram: Gram) -> Callable[[Array], Array]:
    """v ↦ Kv for rows v, with K held if it is not too large."""
    if gram.shape[0] ** 2 * gram.itemsize > _HELD_BYTES:
        return lambda rows: gram.matmat(rows.T).T
    held, namespace = gram.full(), gram.namespace
    n = int(held.shape[0])
    most = math.isqrt(namespace.tile_bytes(held) // (2 * gram.itemsize))

    def by_tiles(rows: Array) -> Array:
        """Every tile is read once, for the rows and for the columns that it belongs to."""
        step = min(most, math.isqrt(int(_SMALL_PRODUCT / rows.shape[0])))
        if n <= most or step < _LEAST_TILE:
            return rows @ held  # K is symmetric; few rows from the left are faster
        columns = namespace.copy(rows.T)
        out = namespace.zeros(columns.shape, columns)
        for start in range(0, n, step):
            below = slice(start, min(start + step, n))
            own = held[below, below] @ columns[below, :]
            for left in range(0, start, step):
                beside = slice(left, left + step)
                tile = held[below, beside]
                own += tile @ columns[beside, :]
                out[beside, :] += tile.T @ columns[below, :]
            out[below, :] += own
        return out.T

    return by_tiles


def _hopeless(excess: list[tuple[int, float]], most: int) -> bool:
    """True if, at the pace of the last steps, the tolerance is out of reach."""
    if excess[-1][0] < 120:
        return False  # convergence is slow at first and then quickens
    (first, before), (last, now) = excess[-6], excess[-1]
    pace = (before - now) / (last - first)
    return pace <= 0 or last + now / pace > 3 * most

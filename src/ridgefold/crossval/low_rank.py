"""Exact to a certificate from a low-rank factor: for kernels whose spectrum falls fast.

K = F Fᵀ + E with F n×r from a pivoted Cholesky factorisation. In the r features F the model is
an ordinary weighted ridge regression, and all folds share its moments: with S = FᵀWF,
g = FᵀWy, those of the training rows of fold k are what remains when the fold's own are taken
off (with a bias, centred at the training rows' weighted means; with further unpenalised columns B,
less what these explain of them); where the fold outweighs the rest, and little but rounding error
would remain, they are summed anew. One r×r eigendecomposition a fold serves every
α. For leave-one-out, with f centred, l_i = b_iᵀ(BᵀWB)⁻¹b_i (of a bias 1/Σw) and
h_i = w_i l_i + w_i f_iᵀ(S + αI)⁻¹f_i,

    y_i − ŷ_i = (y_i − fitted_i)/(1 − h_i).

Certificate. Let a be the dual coefficients, ã = a/√w, τ the weighted trace of E over the
training rows. The residual of the exact system is −Ea, so that, without a bias,

    |ŷ(x) − exact(x)| ≤ τ‖ã‖√k(x,x)/(2√α) + √(E_xx τ)‖ã‖;

with one, √k(x,x) becomes ‖φ(x) − φ̄‖ ≤ √k(x,x) + √(max k(x_i,x_i)) and τ‖ã‖/√Σw is added. Of
further columns, with l = b(x)ᵀ(BᵀWB)⁻¹b(x): √(l Σw)·√(max k) and τ‖ã‖√l.
α²‖ã‖² is the weighted residual sum of squares, which the moments give.

Where nothing but rounding error is left of K, E is one of the perturbations that every method
makes: an exact one solves a system whose matrix is off by a few eps·‖K‖, here it is off by τ, some
32 eps·tr K. The bound, which takes E to lie where it does most harm, is some thousand times what
is measured then. What counts is τ/α: relative to the residuals, the values at training rows
are right to that, as a mean. Up to 10⁻⁵ it is accepted, too.

Without it the best other method takes 1.21 times as long over 165 problems in the geometric mean,
and more than ten times for smooth kernels in few columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ridgefold.crossval.shared.base import (
    HeldOut,
    Judge,
    Progress,
    certified,
    judged,
    needs_complement,
    needs_semidefinite,
    no_progress,
)
from ridgefold.crossval.shared.folds import Folds
from ridgefold.crossval.shared.shortcut import require_weighted_training_rows
from ridgefold.crossval.shared.spectrum import pivots_an_eigenvalue, rank_above
from ridgefold.crossval.shared.weight_spread import share_of_training
from ridgefold.errors import MethodGaveUpError
from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.linalg.blocks import CACHE_BYTES, WORKSPACE_BYTES, row_blocks
from ridgefold.linalg.partial_cholesky import PartialCholesky
from ridgefold.linalg.unpenalised import Unpenalised
from ridgefold.records import Cost, Problem
from ridgefold.solvers.base import unpenalised_columns

_TOLERANCE = 1e-9
"""Aimed at: error of a prediction, relative to the largest target."""
_LEAST_SHARE = 1e-2
"""Of every unpenalised direction, the training rows of a fold must hold this share: with less, what
moments of all rows leave of it has lost too many digits."""
_ACCEPTED = 1e-7
"""A certificate above this is not worth calling exact,"""
_ROUNDING_ACCEPTED = 1e-5
"""unless K is all there but for rounding errors that are less than this share of α."""
_PIVOTS_A_ROUND = 40
"""Between looks at how fast the trace falls."""
_LARGEST_SHARE = 0.3
"""Above this rank, as a share of the training rows, other methods are faster."""
_ALWAYS_ALLOWED = 128
"""Up to this rank nothing is slow."""
_FIRST_ROUNDS = 2
"""Rounds whose fall says little about the next ones."""
_OUTWEIGHED = 10.0
"""A difference of moments loses one digit where what is taken off is so many times what remains."""


@dataclass(frozen=True)
class _State:
    gram: Gram
    folds: Folds
    weights: Array | None
    bias: bool
    partial: PartialCholesky
    space: Unpenalised | None
    """Of a bias and other unpenalised columns; None without any."""


class LowRank:
    """r features instead of n rows, with a bound on what that loses."""

    name = "low_rank"
    exact = False
    may_give_up = True
    last_resort = False

    def can_run(self, problem: Problem) -> str | None:
        if problem.fixed and problem.least_training_share < _LEAST_SHARE:
            return (
                f"the training rows of a fold hold a share of {problem.least_training_share:.1e} "
                "of an unpenalised column, or of what columns beside it leave of it, which moments "
                "of all rows do not tell from none (refit does)"
            )
        rank = _likely_rank(problem)
        if rank is not None and rank > _most(max(f.train for f in problem.folds)):
            return (
                f"the kernel matrix has a rank of about {rank:.0f} of {problem.n_rows}, too high "
                "for a factor of few columns to be exact"
            )
        if problem.spectrum and not problem.judged and _likely_to_fail(problem):
            return (
                f"rounding alone would leave its certificate far above {_ACCEPTED:.0e} with "
                f"alpha={problem.smallest_alpha:g}"
            )
        return needs_complement(problem) or needs_semidefinite(problem)

    def cost(self, problem: Problem) -> Cost:
        """With an unknown rank, as if it were an eighth of its cap: above that it gives up."""
        n, a, t = problem.n_rows, problem.n_alphas, problem.n_targets
        rank = _likely_rank(problem) or max(1.0, _LARGEST_SHARE * n / 8)
        most = min(n, _most(max(f.train for f in problem.folds)))
        decompositions = 1 if max(f.test for f in problem.folds) == 1 else problem.n_folds
        return Cost(
            flops={
                "kernel": n * rank,
                "product": 6.0 * n * rank**2 + 4.0 * n * rank * a * t,
                "eigendecomposition": decompositions * 9.0 * rank**3,
                "calls": 20.0 + 12.0 * decompositions + rank / 2,
            },
            size=rank,
            peak_bytes=WORKSPACE_BYTES
            + problem.itemsize * (6.0 * n * most + 5 * problem.held_out_numbers),
        )

    def prepare(self, gram: Gram, folds: Folds, weights: Array | None, bias: bool) -> _State:
        positive = np.ones(folds.n_rows, dtype=bool)
        if weights is not None:
            positive = gram.namespace.to_numpy(weights) > 0
        require_weighted_training_rows(folds, positive)
        if gram.fixed_columns() is not None:
            known = None if weights is None else gram.namespace.to_numpy(weights)
            if share_of_training(gram, folds, known, bias=bias) < _LEAST_SHARE:
                raise MethodGaveUpError(
                    "low_rank: the training rows of a fold hold next to nothing of an unpenalised "
                    'column: use method="auto" or "refit"'
                )
        roots = None if weights is None else gram.namespace.xp.sqrt(weights)
        space = unpenalised_columns(gram, roots, bias=bias)
        return _State(gram, folds, weights, bias, gram.partial_cholesky(), space)

    def held_out(
        self,
        state: _State,
        targets: Array,
        alphas: np.ndarray,
        progress: Progress = no_progress,
        judge: Judge | None = None,
    ) -> HeldOut:
        namespace = state.gram.namespace
        scale = float(namespace.xp.max(namespace.xp.abs(targets)))
        _factorise(state, targets, float(alphas.min()), scale, progress)
        problem = _problem(state, targets)
        if state.folds.leave_one_out:
            predictions, certificate, largest = _leave_one_out(state, problem, alphas)
        else:
            predictions, certificate, largest = _by_fold(state, problem, alphas, progress)
        result = certified(
            namespace,
            predictions,
            conditions=(largest + alphas) / alphas,
            bound=certificate,
            scale=scale,
            folds=state.folds,
        )
        worst = np.max(certificate, axis=(1, 2))
        precise = (worst <= _ACCEPTED * scale) | _right_to_rounding(state, alphas)
        if judge is not None and not state.folds.leave_one_out:
            return judged(result, state.folds, judge, np.ones(len(alphas), dtype=bool), precise)
        if not np.all(precise):
            raise MethodGaveUpError(
                f"low_rank can only promise an error of {float(worst.max()):.1e} (largest target "
                f'{scale:.1e}) with alpha={float(alphas.min()):g}: use method="auto", or larger '
                "alphas"
            )
        return result


def _most(n_training: int) -> int:
    """The largest rank that is worth it."""
    return max(_ALWAYS_ALLOWED, int(_LARGEST_SHARE * n_training))


def _power(alpha: float) -> float:
    """α^(3/2); infinite, not an error, where that overflows."""
    return alpha * math.sqrt(alpha)


def _likely_rank(problem: Problem) -> float | None:
    """The rank that the certificate will ask for, if the spectrum is known."""
    needed = _TOLERANCE * 2.0 * _power(problem.smallest_alpha) / math.sqrt(problem.n_rows)
    found = rank_above(problem, 0.1 * max(needed, _likely_floor(problem)))
    return None if found is None else min(problem.n_rows, pivots_an_eigenvalue(problem) * found)


def _likely_floor(problem: Problem) -> float:
    """The trace below which the rest of the kernel matrix is rounding error."""
    eps = 2.0**-23 if problem.itemsize == 4 else 2.0**-52
    diagonal = sum(problem.spectrum) / problem.n_rows if problem.spectrum else 1.0
    return 32.0 * eps * problem.n_rows * diagonal


def _likely_to_fail(problem: Problem) -> bool:
    """Whether this floor is too high for the smallest α, with residuals of a fifth of the largest
    target."""
    floor, alpha = _likely_floor(problem), problem.smallest_alpha
    promise = floor * 0.2 * math.sqrt(problem.n_rows) / (2.0 * _power(alpha))
    return promise > 10.0 * _ACCEPTED and floor > _ROUNDING_ACCEPTED * alpha


def _right_to_rounding(state: _State, alphas: np.ndarray) -> np.ndarray:
    """For which α what the factor leaves of K does no more than rounding in an exact method."""
    partial = state.partial
    if partial.trace > 2.0 * partial.rounding:
        return np.zeros(len(alphas), dtype=bool)
    heaviest = 1.0 if state.weights is None else float(state.gram.namespace.xp.max(state.weights))
    return np.asarray(heaviest * partial.rounding <= _ROUNDING_ACCEPTED * alphas)


def _factorise(
    state: _State, targets: Array, alpha: float, scale: float, progress: Progress
) -> None:
    """Grow the factor until the certificate will hold, or give up as soon as it will not.

    The trace needed follows from the certificate with ‖ã‖ ≤ ‖ỹ‖/α; the weighted trace is at most
    the largest weight times the trace.
    """
    namespace, partial = state.gram.namespace, state.partial
    n, heaviest, weighted = state.folds.n_rows, 1.0, targets
    if state.weights is not None:
        heaviest = float(namespace.xp.max(state.weights))
        weighted = targets * namespace.xp.sqrt(state.weights)[:, None]
    reach = math.sqrt(float(namespace.xp.max(state.gram.diagonal()))) or 1.0
    size = namespace.norm(weighted) or 1.0
    aim = _TOLERANCE * (scale or 1.0) * 2.0 * _power(alpha) / (size * reach * heaviest)
    aim = max(aim, np.finfo(np.float64).tiny)
    needed = max(aim, partial.rounding)
    most = _most(n - min(state.folds.sizes))
    seen = [(0, partial.trace)]
    while partial.trace > needed:
        progress(0.0)  # nobody knows how far it is yet
        added = partial.grow(min(_PIVOTS_A_ROUND, n - partial.rank))
        needed = max(aim, partial.rounding)
        if added == 0:
            if partial.trace > 2 * needed:
                break
            return
        seen.append((partial.rank, partial.trace))
        if partial.trace > needed and (partial.rank >= most or _rank_ahead(seen, needed) > most):
            break
    else:
        return
    raise MethodGaveUpError(
        f"low_rank: after {partial.rank} of {n} columns the rest of the kernel matrix still has "
        f"trace {partial.trace:.1e} (needed: {needed:.1e}), so its rank is too high: use "
        'method="auto" or "eigendecomposition"'
    )


def _rank_ahead(seen: list[tuple[int, float]], needed: float) -> float:
    """The rank at which the trace will be what is needed, from (rank, trace) after every round.

    The trace falls ever more slowly with the rank, in more than one dimension, so that the
    fall over the last half of the columns goes on at best. The first rounds may promise too
    much or too little: half of what they say counts.
    """
    rank, trace = seen[-1]
    half, before = min(seen[:-1], key=lambda each: abs(each[0] - rank / 2))
    fallen, left = math.log(before / trace) if before > trace else 0.0, math.log(trace / needed)
    ahead = rank + left * (rank - half) / fallen if fallen > 0 else math.inf
    return ahead if len(seen) > _FIRST_ROUNDS + 1 else ahead / 2


@dataclass(frozen=True)
class _Problem:
    """The ridge regression on r features: rows Z = [F B y]ᵀ with their weights."""

    state: _State
    rows: Array
    """Z, of shape (r + q + t, n)."""
    weights: Array | None
    rank: int
    free: int
    """q: how many unpenalised columns there are; of a bias it is the column of ones."""
    shift: Array
    """What was taken off the targets (t, n): what unpenalised columns alone explain."""

    @property
    def unpenalised(self) -> slice:
        """The rows B of Z."""
        return slice(self.rank, self.rank + self.free)

    @property
    def targets(self) -> slice:
        """The rows y of Z."""
        return slice(self.rank + self.free, None)

    def moments(self, test: np.ndarray | None = None) -> Array:
        """Z W Zᵀ over some rows, or all: every sum that the fits need, in one matrix."""
        rows, weights = self.rows, self.weights
        if test is not None:
            rows = self.columns(rows, test)
            if weights is not None:
                weights = self.state.gram.namespace.take_rows(weights, test)
        return (rows if weights is None else rows * weights[None, :]) @ rows.T

    def moments_without(self, test: np.ndarray, everything: Array, own: Array) -> Array:
        """Those of the rows that are trained on, from those of all and of the test rows."""
        left = everything - own
        namespace, r = self.state.gram.namespace, self.rank
        kept, taken = (
            namespace.to_numpy(namespace.diagonal(moments)).astype(np.float64)
            for moments in (left, own)
        )
        features = taken[:r].sum() > _OUTWEIGHED * kept[:r].sum()
        if not features and np.all(taken[r:] <= _OUTWEIGHED * kept[r:]):
            return left
        others = np.ones(self.state.folds.n_rows, dtype=bool)
        others[test] = False
        return self.moments(np.flatnonzero(others))

    def columns(self, rows: Array, test: np.ndarray) -> Array:
        """Some columns: a view if they stand together."""
        if len(test) and np.array_equal(test, np.arange(test[0], test[0] + len(test))):
            return rows[:, int(test[0]) : int(test[-1]) + 1]
        namespace = self.state.gram.namespace
        return namespace.xp.take(rows, namespace.indices(test, rows), axis=1)

    def centre(self, moments: Array) -> Array:
        """Moments of what the unpenalised columns do not explain: of a bias, about the means."""
        return moments - moments[:, self.unpenalised] @ self.explained(moments)

    def explained(self, moments: Array) -> Array:
        """Coefficients (q, r + q + t) of B in least squares fits to all rows of Z."""
        B = self.unpenalised
        if self.free == 1:
            return moments[B, :] / moments[B, B]
        return self.state.gram.namespace.xp.linalg.solve(moments[B, B], moments[B, :])


class _Fit:
    """One ridge regression for every α, by the eigendecomposition of its second moments."""

    def __init__(self, problem: _Problem, moments: Array, alphas: np.ndarray) -> None:
        namespace, r = problem.state.gram.namespace, problem.rank
        xp = namespace.xp
        centred = problem.centre(moments)
        values, vectors = namespace.eigh_in_place(namespace.copy(centred[:r, :r]))
        namespace.maximum_in_place(values, 0.0)
        self.largest = float(values[-1]) if r else 0.0
        self.vectors = vectors
        projected = vectors.T @ centred[:r, problem.targets]
        shifted = values[:, None] + namespace.asarray(alphas, values)[None, :]
        self.filters = 1.0 / shifted  # (r, a)
        self.coefficients = self.filters[:, :, None] * projected[:, None, :]  # (r, a, t)
        self.moments = moments[problem.unpenalised, problem.unpenalised]
        explained = problem.explained(moments)
        self.of_features, self.of_targets = explained[:, :r], explained[:, problem.targets]
        # Weighted residual sums of squares, and the least value of the whole objective, at most.
        square = xp.linalg.diagonal(centred[problem.targets, problem.targets])
        fitted = projected[:, None, :] ** 2 * self.filters[:, :, None]
        penalty = namespace.asarray(alphas, values)[None, :, None] * self.filters[:, :, None]
        objective = namespace.to_numpy(square[None, :] - xp.sum(fitted, axis=0))
        residual = namespace.to_numpy(square[None, :] - xp.sum(fitted * (1.0 + penalty), axis=0))
        # Sums of so many squares, and eigenvalues that are off by some eps times the largest.
        sums = (r + math.sqrt(problem.rows.shape[1])) * xp.linalg.diagonal(moments)[problem.targets]
        solved = self.largest * xp.sum(self.coefficients * self.coefficients, axis=0)
        rounding = 10.0 * namespace.eps(values) * namespace.to_numpy(sums[None, :] + solved)
        self.objective = np.maximum(objective, 0.0) + rounding
        self.residual = np.maximum(residual, 0.0) + rounding

    def predict(self, problem: _Problem, test: np.ndarray) -> tuple[Array, Array]:
        """Features (r, rows) in the eigenbasis and predictions (a, t, rows)."""
        state, r = problem.state, problem.rank
        xp = state.gram.namespace.xp
        features = self.vectors.T @ problem.columns(problem.rows[:r, :], test)
        free = problem.columns(problem.rows[problem.unpenalised, :], test)
        if problem.free:
            features -= (self.of_features @ self.vectors).T @ free
        a, t = self.coefficients.shape[1:]
        values = xp.reshape(self.coefficients, (r, a * t)).T @ features
        values = xp.reshape(values, (a, t, len(test)))
        if problem.free:
            values += (self.of_targets.T @ free)[None, :, :]
        return features, values

    def leverages(self, problem: _Problem, rows: np.ndarray) -> Array:
        """l = bᵀ(BᵀWB)⁻¹b of some rows; zeros without unpenalised columns."""
        free = problem.columns(problem.rows[problem.unpenalised, :], rows)
        xp = problem.state.gram.namespace.xp
        if problem.free < 2:
            return xp.sum(free * free, axis=0) / (self.moments[0, 0] if problem.free else 1.0)
        return xp.sum(free * xp.linalg.solve(self.moments, free), axis=0)


def _problem(state: _State, targets: Array) -> _Problem:
    namespace, xp = state.gram.namespace, state.gram.namespace.xp
    factor, rank = state.partial.factor_rows(), state.partial.rank
    n = factor.shape[1]
    space = state.space
    if space is None:
        rows, free = xp.concat([factor, targets.T], axis=0), 0
        shift = namespace.zeros((targets.shape[1], n), targets)
        return _Problem(state, rows, state.weights, rank, free, shift)
    # Of a bias ones, which no rounding has touched.
    columns = state.gram.fixed_columns()
    free = namespace.ones((1, n), targets) if columns is None else space.at(columns, n).T
    rows = xp.concat([factor, free, targets.T], axis=0)
    problem = _Problem(state, rows, state.weights, rank, int(free.shape[0]), targets.T)
    # These columns take up any shift. Squares of what is far from zero would lose the digits that
    # residuals are made of, and those that α is compared with.
    weights = None if state.weights is None else state.weights / xp.max(state.weights)
    weighted = free if weights is None else free * weights[None, :]
    inner, across = weighted @ free.T, weighted @ rows.T
    explained = across / inner if problem.free == 1 else xp.linalg.solve(inner, across)
    explained[:, problem.unpenalised] = 0.0
    rows -= explained.T @ free
    return replace(problem, shift=explained[:, problem.targets].T @ free)


def _bound(
    problem: _Problem,
    squared_residual: np.ndarray,
    alphas: np.ndarray,
    *,
    leverage: float,
    training_weight: float,
    seen: np.ndarray,
    training: np.ndarray,
) -> np.ndarray:
    """The certificate (a, t) for predictions at the rows `seen` of models of `training` rows.

    `leverage` is the largest that unpenalised columns give one of the rows seen; 0 without any.
    """
    state, namespace = problem.state, problem.state.gram.namespace
    partial = state.partial
    remainder = namespace.to_numpy(partial.remainder).astype(np.float64) + partial.floor
    diagonal = namespace.to_numpy(state.gram.diagonal()).astype(np.float64)
    weights = np.ones(len(diagonal))
    if problem.weights is not None:
        weights = namespace.to_numpy(problem.weights).astype(np.float64)
    trace = float(weights[training] @ remainder[training])
    size = np.sqrt(squared_residual) / alphas[:, None]
    reach = math.sqrt(float(diagonal[seen].max()))
    bias = 0.0
    if problem.free:
        share = math.sqrt(leverage * training_weight)
        reach += share * math.sqrt(float(diagonal[weights > 0].max()))
        bias = trace * math.sqrt(leverage)
    spread = trace * reach / (2.0 * np.sqrt(alphas)) + bias
    bound = size * (spread[:, None] + math.sqrt(float(remainder[seen].max()) * trace))
    return np.asarray(bound)


def _by_fold(
    state: _State, problem: _Problem, alphas: np.ndarray, progress: Progress
) -> tuple[Array, np.ndarray, float]:
    namespace, folds = state.gram.namespace, state.folds
    t = problem.shift.shape[0]
    weights = np.ones(folds.n_rows)
    if problem.weights is not None:
        weights = namespace.to_numpy(problem.weights).astype(np.float64)
    predictions = namespace.empty((len(alphas), len(folds.stacked), t), problem.rows)
    certificate = np.empty((len(alphas), len(folds), t))
    own = [problem.moments(test) for test in folds.test]
    everywhere = folds.disjoint and len(folds.stacked) == folds.n_rows
    everything = sum(own) if everywhere else problem.moments()
    largest = 0.0
    for k, run in enumerate(folds.runs):
        test = folds.test[k]
        fit = _Fit(problem, problem.moments_without(test, everything, own[k]), alphas)
        predictions[:, run, :] = namespace.xp.permute_dims(fit.predict(problem, test)[1], (0, 2, 1))
        training = folds.training_rows(k)
        certificate[:, k, :] = _bound(
            problem,
            fit.residual,
            alphas,
            leverage=float(namespace.xp.max(fit.leverages(problem, test))),
            training_weight=float(weights[training].sum()),
            seen=test,
            training=training,
        )
        largest = max(largest, fit.largest)
        progress((k + 1) / len(folds))
    predictions += problem.columns(problem.shift, folds.stacked).T[None, :, :]
    return predictions, certificate, largest


def _leave_one_out(
    state: _State, problem: _Problem, alphas: np.ndarray
) -> tuple[Array, np.ndarray, float]:
    namespace, xp, folds = state.gram.namespace, state.gram.namespace.xp, state.folds
    fit = _Fit(problem, problem.moments(), alphas)
    rows, t = folds.stacked, problem.shift.shape[0]
    weights = np.ones(folds.n_rows)
    if problem.weights is not None:
        weights = namespace.to_numpy(problem.weights).astype(np.float64)
    # With a bias 1 − h has no digits at a row that outweighs all others, if there is one: it is
    # left out by hand. Other columns do not come here where one row holds most of them.
    alone_with_bias = state.bias and problem.free == 1
    outweighing = rows[weights[rows] > 0.5 * weights.sum()] if alone_with_bias else rows[:0]
    furthest = 0.0
    predictions = namespace.empty((len(alphas), t, len(rows)), problem.rows)
    # A few rows at a time, so that they stay in the cache until they are done.
    a_row = state.gram.itemsize * (2.0 * len(alphas) * t + 2.0 * problem.rank)
    for run in row_blocks(len(rows), a_row, CACHE_BYTES):
        some = rows[run]
        features, fitted = fit.predict(problem, some)
        # 1 − h of every row, (a, rows).
        kept = (-fit.filters).T @ (features * features)
        if problem.free:
            leverages = fit.leverages(problem, some)
            kept -= leverages[None, :]
            own = namespace.to_numpy(leverages).astype(np.float64)
            others = ~np.isin(some, outweighing)
            left = own[others] / (1.0 - weights[some][others] * own[others])
            furthest = max(furthest, float(left.max(initial=0.0)))
        if problem.weights is not None:
            kept *= namespace.take_rows(problem.weights, some)[None, :]
        kept += 1.0
        if len(outweighing) and outweighing[0] in some:
            kept[:, int(np.flatnonzero(some == outweighing[0])[0])] = 1.0
        if float(xp.min(kept)) <= 100.0 * namespace.eps(kept) * (problem.rank + 1):
            raise MethodGaveUpError(
                f"low_rank: with alpha={float(alphas.min()):g} a row all but determines its own "
                'prediction, and no digits are left without it: use method="auto", or larger alphas'
            )
        # y − (y − fitted)/(1 − h)
        y = problem.columns(problem.rows[problem.targets, :], some)
        fitted -= y[None, :, :]
        fitted /= kept[:, None, :]
        fitted += y[None, :, :]
        predictions[:, :, run] = fitted
    # Leaving a row out cannot raise the least objective, which bounds its residuals.
    every = np.arange(folds.n_rows)
    bound = _bound(
        problem,
        fit.objective,
        alphas,
        leverage=furthest,
        training_weight=float(weights.sum()),
        seen=rows,
        training=every,
    )[:, None, :]
    if len(outweighing):
        place = int(np.flatnonzero(rows == outweighing[0])[0])
        others = every[every != outweighing[0]]
        alone = _Fit(problem, problem.moments(others), alphas)
        predictions[:, :, place] = alone.predict(problem, outweighing)[1][:, :, 0]
        bound = np.repeat(bound, len(rows), axis=1)
        bound[:, place, :] = _bound(
            problem,
            alone.residual,
            alphas,
            leverage=float(xp.max(alone.leverages(problem, outweighing))),
            training_weight=float(weights[others].sum()),
            seen=outweighing,
            training=others,
        )
    predictions += problem.columns(problem.shift, rows)[None, :, :]
    return xp.permute_dims(predictions, (0, 2, 1)), bound, fit.largest

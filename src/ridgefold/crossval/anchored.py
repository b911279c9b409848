"""A few Cholesky factorisations a fold, then every ridge value from one small space.

The solutions x(α) = (A + αI)⁻¹b of one fold (A = K̃_cc, centred if there is a bias) lie, for all
α at once, close to the space spanned by repeated solves with a few *anchors* σ:

    v, (A + σ₁I)⁻¹v, (A + σ₂I)⁻¹(A + σ₁I)⁻¹v, …       (a rational Krylov space)

Every solve with σ lowers the error at α by (√α − √σ)/(√α + √σ) whatever the spectrum of A, so
that two anchors serve five decades of α in some thirty pairs of solves (and fewer where the
spectrum helps). A solve costs n² once A + σI is factorised: two factorisations replace an
eigendecomposition, and no fold blocks are needed for any α.

With an orthonormal basis V, x(α) = V(VᵀAV + αI)⁻¹Vᵀb for all α costs one small eigendecomposition.
AV comes from the factor, AV = LLᵀV − σV, many vectors in one pass. (w = (A + σI)⁻¹v also gives
Aw = v − σw for nothing, but its rounding errors grow with every step.) The residual reported is
computed afresh from K in the pass that makes the predictions:
|ŷ(x) − exact(x)| ≤ ‖φ(x)‖·‖residual‖/(2√α), ‖φ(x) − φ̄‖ with a bias.

Güttel, *Rational Krylov approximation of matrix functions*, GAMM-Mitt. 36 (2013).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ridgefold.crossval.shared.base import (
    HeldOut,
    Progress,
    certified,
    needs_semidefinite,
    no_progress,
    wanted_residuals,
)
from ridgefold.crossval.shared.folds import Folds
from ridgefold.crossval.shared.shortcut import require_weighted_training_rows
from ridgefold.errors import MethodGaveUpError
from ridgefold.kernels import Gram, WeightedGram
from ridgefold.linalg import Array, Namespace
from ridgefold.linalg.blocks import WORKSPACE_BYTES
from ridgefold.linalg.centring import Centring
from ridgefold.linalg.symmetric import Factor, factorise
from ridgefold.records import Cost, Problem
from ridgefold.solvers.base import write_system_matrix

_TOLERANCE = 1e-8
"""Bound on the error of a prediction, relative to the largest target."""
_FIRST_CHECK = 16
"""Solves with each anchor before the first look; fewer have never been enough."""
_CHECK_EVERY = 4
_MOST_SOLVES = 200
_NOMINAL_SOLVES = 70


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


@dataclass(frozen=True)
class _State:
    gram: Gram
    folds: Folds
    weights: Array | None
    bias: bool


class Anchored:
    """Rational Krylov spaces with a few factorised anchors, fold by fold; takes any folds."""

    name = "anchored"
    exact = False
    may_give_up = True
    last_resort = False

    def can_run(self, problem: Problem) -> str | None:
        if problem.n_folds > 25:
            return f"{problem.n_folds} folds would each need factorisations of their own"
        return needs_semidefinite(problem)

    def cost(self, problem: Problem) -> Cost:
        folds, n = problem.folds, float(problem.n_rows)
        largest = float(max(f.train for f in folds))
        rows = sum(f.count * f.train for f in folds)
        squares = sum(f.count * f.train**2 for f in folds)
        anchors = 1 if problem.n_alphas == 1 else 2
        a, t = problem.n_alphas, problem.n_targets
        width = float(_NOMINAL_SOLVES * t)
        columns = max(problem.n_columns, 1)
        return Cost(
            flops={
                "kernel": (0.5 * anchors * squares + n * rows) * columns,
                "cholesky": anchors * sum(f.count * f.train**3 for f in folds) / 3.0,
                # A solve with one right-hand side moves the factor through memory twice.
                "memory": float(_NOMINAL_SOLVES * problem.itemsize * squares),
                "product": rows * (2 * n * a * t + 8 * width**2),
            },
            peak_bytes=WORKSPACE_BYTES
            + problem.itemsize
            * (
                anchors * largest**2
                + largest * (2 * _MOST_SOLVES * t + 4 * a * t)
                + n * (2 * a * t + 2 * problem.n_columns)
                + problem.held_out_numbers
            ),
        )

    def prepare(self, gram: Gram, folds: Folds, weights: Array | None, bias: bool) -> _State:
        positive = np.ones(folds.n_rows, dtype=bool)
        if weights is not None:
            positive = gram.namespace.to_numpy(weights) > 0
        require_weighted_training_rows(folds, positive)
        return _State(gram, folds, weights, bias)

    def held_out(
        self, state: _State, targets: Array, alphas: np.ndarray, progress: Progress = no_progress
    ) -> HeldOut:
        namespace, folds = state.gram.namespace, state.folds
        a, t = len(alphas), int(targets.shape[1])
        diagonal = state.gram.diagonal()
        reach = math.sqrt(float(namespace.xp.max(diagonal))) * (2.0 if state.bias else 1.0)
        # The trace bounds the largest eigenvalue, and with it the rounding errors.
        largest = float(namespace.xp.sum(diagonal))
        wanted = wanted_residuals(
            namespace,
            targets,
            alphas,
            tolerance=_TOLERANCE,
            reach=reach,
            largest_eigenvalue=largest,
        )
        predictions = namespace.empty((a, len(folds.stacked), t), targets)
        residuals = np.empty((a, len(folds), t))
        for k, run in enumerate(folds.runs):
            fold = _Fold(state, targets, k)
            solutions = fold.solve(alphas, wanted)
            predictions[:, run, :], residuals[:, k, :] = fold.predict(solutions, alphas)
            progress((k + 1) / len(folds))
        excess = float(np.max(residuals / wanted[:, None, None]))
        if not excess <= 10.0:
            raise MethodGaveUpError(
                f"anchored: rounding leaves a residual {excess:.1e} times too large at "
                f'alpha={float(alphas.min()):g}: use method="auto", or larger alphas'
            )
        return certified(
            namespace,
            predictions,
            conditions=(largest + alphas) / alphas,
            bound=reach * residuals / (2.0 * np.sqrt(alphas)[:, None, None]),
            folds=folds,
        )


class _Fold:
    """One fold's training system and its solutions."""

    def __init__(self, state: _State, targets: Array, k: int) -> None:
        self.state, self.test = state, state.folds.test[k]
        namespace = state.gram.namespace
        rows = state.folds.training_rows(k)
        self.roots = None
        if state.weights is not None:
            rows = rows[namespace.to_numpy(namespace.take_rows(state.weights, rows)) > 0]
            self.roots = namespace.xp.sqrt(namespace.take_rows(state.weights, rows))
        self.rows = rows
        y = namespace.take_rows(targets, rows)
        self.y = y if self.roots is None else y * self.roots[:, None]
        inner = state.gram.restricted(rows)
        self.gram = inner if self.roots is None else WeightedGram(inner, self.roots)
        self.direction = None
        if state.bias:
            ones = namespace.ones(len(rows), targets)
            self.direction = ones if self.roots is None else self.roots
        self.centring: Centring | None = None

    def _factor(self, sigma: float) -> Factor:
        namespace, n = self.state.gram.namespace, len(self.rows)

        def fill(storage: Array) -> None:
            self.centring = write_system_matrix(self.gram, self.direction, storage)
            namespace.add_to_diagonal_in_place(storage, sigma)

        matrix = namespace.empty((n, n), self.y)
        fill(matrix)
        return factorise(namespace, matrix, fill)

    def solve(self, alphas: np.ndarray, wanted: np.ndarray) -> Array:
        """x(α) for all α, shape (n, a, t)."""
        namespace = self.state.gram.namespace
        sigmas = anchors_for(alphas)
        factors = [self._factor(float(sigma)) for sigma in sigmas]
        right = self.y if self.centring is None else self.centring.project(self.y)
        space = _Space(namespace, right)
        solves = 0
        while True:
            rounds = _FIRST_CHECK if solves == 0 else _CHECK_EVERY
            for _ in range(rounds * len(sigmas)):
                which = solves % len(sigmas)
                solves += 1
                if not space.extend(factors[which]):
                    break
            space.complete(factors[0], float(sigmas[0]))
            solutions, residuals = space.solutions(alphas)
            excess = float(np.max(residuals / wanted[:, None]))
            if excess <= 0.5 or space.exhausted:
                return solutions
            if solves >= _MOST_SOLVES:
                raise MethodGaveUpError(
                    f"anchored: after {solves} solves the residual is still {excess:.1e} times "
                    'too large: use method="auto" or "eigendecomposition"'
                )

    def predict(self, solutions: Array, alphas: np.ndarray) -> tuple[Array, np.ndarray]:
        """Predictions (a, rows, t), and the norms (a, t) of the residuals as they truly are."""
        namespace, xp = self.state.gram.namespace, self.state.gram.namespace.xp
        n, a, t = solutions.shape
        x = xp.reshape(solutions, (n, a * t))
        y = xp.reshape(xp.broadcast_to(self.y[:, None, :], (n, a, t)), (n, a * t))
        dual = x if self.roots is None else x * self.roots[:, None]
        fitted = self.state.gram.product(self.rows, self.rows, dual)
        values = self.state.gram.product(self.test, self.rows, dual)
        if self.roots is not None:
            fitted = fitted * self.roots[:, None]
        shifts = np.repeat(alphas, t)
        residual = y - fitted - x * namespace.asarray(shifts, x)[None, :]
        if self.direction is not None:
            s = self.direction
            intercept = (s @ (y - fitted)) / (s @ s)
            residual = residual - s[:, None] * intercept[None, :]
            values = values + intercept[None, :]
        norms = namespace.to_numpy(xp.sqrt(xp.sum(residual * residual, axis=0)))
        shaped = xp.reshape(values, (len(self.test), a, t))
        return xp.permute_dims(shaped, (1, 0, 2)), norms.reshape(a, t).astype(float)


class _Space:
    """An orthonormal basis V that grows by solves, with A V."""

    def __init__(self, namespace: Namespace, right: Array) -> None:
        self._namespace, self._right = namespace, right
        self._basis: Array = namespace.zeros((right.shape[0], 0), right)
        self._image: Array = namespace.zeros((right.shape[0], 0), right)  # A V
        self._latest = right
        self.exhausted = not bool(namespace.xp.any(right != 0.0))

    def extend(self, factor: Factor) -> bool:
        """Add (A + σI)⁻¹ of the latest vectors; False when nothing new came of it."""
        if self.exhausted:
            return False
        namespace, xp = self._namespace, self._namespace.xp
        w = factor.solve(self._latest)
        w = w / xp.sqrt(xp.sum(w * w, axis=0))[None, :]
        for _ in range(2):  # twice is enough (Kahan, Parlett)
            w = w - self._basis @ (self._basis.T @ w)
        w = _orthonormal(namespace, w)
        # What was rounding error lies in the old space again once it is scaled up.
        w = w - self._basis @ (self._basis.T @ w)
        lengths = namespace.to_numpy(xp.sqrt(xp.sum(w * w, axis=0)))
        new = np.flatnonzero(lengths > 0.5)
        if len(new) == 0:
            self.exhausted = True
            return False
        w = xp.take(w, namespace.indices(new, w), axis=1)
        w = w / namespace.asarray(lengths[new], w)[None, :]
        self._basis = xp.concat([self._basis, w], axis=1)
        self._latest = w
        return True

    def complete(self, factor: Factor, sigma: float) -> None:
        """A V for the vectors that were added since the last time."""
        new = self._basis[:, self._image.shape[1] :]
        image = factor.multiply(new) - sigma * new
        self._image = self._namespace.xp.concat([self._image, image], axis=1)

    def solutions(self, alphas: np.ndarray) -> tuple[Array, np.ndarray]:
        """x(α), shape (n, a, t), and the norms (a, t) of their residuals by A V."""
        namespace, xp = self._namespace, self._namespace.xp
        n, t = self._right.shape
        width, a = self._basis.shape[1], len(alphas)
        projected = self._basis.T @ self._image
        symmetric = xp.asarray((projected + projected.T) / 2.0, copy=True)
        values, vectors = namespace.eigh_in_place(symmetric)
        right = vectors.T @ (self._basis.T @ self._right)
        shifts = namespace.asarray(alphas, values)
        z = right[:, None, :] / (values[:, None] + shifts[None, :])[:, :, None]
        z = vectors @ xp.reshape(z, (width, a * t))
        x = self._basis @ z
        wide = xp.reshape(xp.broadcast_to(self._right[:, None, :], (n, a, t)), (n, a * t))
        repeated = namespace.asarray(np.repeat(alphas, t), values)
        residual = wide - self._image @ z - x * repeated[None, :]
        norms = namespace.to_numpy(xp.sqrt(xp.sum(residual * residual, axis=0)))
        return xp.reshape(x, (n, a, t)), norms.reshape(a, t).astype(float)


def _orthonormal(namespace: Namespace, w: Array) -> Array:
    """Orthonormal columns that span w; combinations of the others, up to rounding, are left out."""
    xp = namespace.xp
    values, vectors = namespace.eigh_in_place(xp.asarray(w.T @ w, copy=True))
    kept = np.flatnonzero(namespace.to_numpy(values) > (1e3 * namespace.eps(w)) ** 2)
    if len(kept) == 0:
        return w[:, :0]
    index = namespace.indices(kept, w)
    scale = xp.sqrt(xp.take(values, index, axis=0))
    return w @ (xp.take(vectors, index, axis=1) / scale[None, :])

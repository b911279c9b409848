"""Fit every fold's model anew: the plain definition, and the oracle for all other methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.crossval.shared.base import HeldOut, Judge, Progress, no_progress
from ridgefold.crossval.shared.folds import Folds
from ridgefold.crossval.shared.shortcut import require_weighted_training_rows
from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.linalg.blocks import WORKSPACE_BYTES
from ridgefold.records import Cost, Problem
from ridgefold.solvers import SOLVERS, RidgeSystem
from ridgefold.solvers.base import with_unpenalised


@dataclass(frozen=True)
class _State:
    gram: Gram
    folds: Folds
    weights: Array | None
    bias: bool


class Refit:
    """One Cholesky factorisation for every fold and every α; takes any folds."""

    name = "refit"
    exact = True
    may_give_up = False
    last_resort = False

    def can_run(self, problem: Problem) -> str | None:
        return None

    def cost(self, problem: Problem) -> Cost:
        folds = problem.folds
        evaluations = sum(f.count * f.train * (0.5 * f.train + f.test) for f in folds)
        train, test = max(f.train for f in folds), max(f.test for f in folds)
        return Cost(
            flops={
                "kernel": problem.n_alphas * evaluations,
                "cholesky": problem.n_alphas * sum(f.count * f.train**3 for f in folds) / 3.0,
                "product": 2.0
                * problem.n_alphas
                * problem.n_targets
                * sum(f.count * f.train * (f.train + f.test) for f in folds),
                "calls": 8.0 * problem.n_folds * problem.n_alphas,
            },
            size=train,
            peak_bytes=WORKSPACE_BYTES
            + problem.itemsize * (float(train) ** 2 + train * test + problem.held_out_numbers),
        )

    def prepare(self, gram: Gram, folds: Folds, weights: Array | None, bias: bool) -> _State:
        positive = np.ones(folds.n_rows, dtype=bool)
        if weights is not None:
            positive = gram.namespace.to_numpy(weights) > 0
        require_weighted_training_rows(folds, positive)
        return _State(gram, folds, weights, bias)

    def held_out(
        self,
        state: _State,
        targets: Array,
        alphas: np.ndarray,
        progress: Progress = no_progress,
        judge: Judge | None = None,
    ) -> HeldOut:
        namespace, folds = state.gram.namespace, state.folds
        t = targets.shape[1]
        predictions = namespace.zeros((len(alphas), len(folds.stacked), t), targets)
        alive = np.ones(len(alphas), dtype=bool)
        for k, run in enumerate(folds.runs):
            train = folds.training_rows(k)
            weights = None
            if state.weights is not None:
                weights = namespace.take_rows(state.weights, train)
                kept = np.flatnonzero(namespace.to_numpy(weights) > 0)
                train, weights = train[kept], namespace.take_rows(weights, kept)
            for j in np.flatnonzero(alive):
                system = RidgeSystem(
                    gram=state.gram.restricted(train),
                    targets=namespace.take_rows(targets, train),
                    alphas=np.full(t, alphas[j]),
                    weights=weights,
                    bias=state.bias,
                )
                model = SOLVERS["cholesky"].solve(system)
                values = state.gram.block(folds.test[k], train) @ model.dual_coef
                predictions[j, run, :] = with_unpenalised(state.gram, folds.test[k], values, model)
                progress((k + (j + 1) / len(alphas)) / len(folds))
            if judge is not None:
                alive &= judge(k, predictions[:, run, :], np.zeros((len(alphas), t)))
        conditions = np.full(len(alphas), np.nan)
        return HeldOut(predictions, conditions, kept=None if judge is None else alive)

"""Predictions of models without two folds at once, from one inverse: what stacks are judged by.

With D and residuals r_k = D_kk⁻¹(Dy)_k of `exact.leave_one_out`, leaving out the rows of a group g
first gives the same quantities of the model without them,

    D⁽ᵍ⁾_kk = D_kk − D_kg D_gg⁻¹ D_gk,    (Dy)⁽ᵍ⁾_k = (Dy)_k − D_kg D_gg⁻¹ (Dy)_g,

and the model without g and without fold k errs by (D⁽ᵍ⁾_kk)⁻¹(Dy)⁽ᵍ⁾_k at the rows of k. With G
groups of n/G rows this takes about n³/G multiplications for the solves and n³/G for the blocks,
beside the n³ of the inverse.

Where g and k hold nearly all of an unpenalised column (the rows of a level), D⁽ᵍ⁾_kk is singular:
the model without them is then fitted by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ridgefold.crossval import Folds, Progress
from ridgefold.errors import NumericalError
from ridgefold.exact.leave_one_out import Smoother, smoother
from ridgefold.kernels import Gram
from ridgefold.linalg import Array, Namespace
from ridgefold.linalg.symmetric import Factor, factorise
from ridgefold.linalg.threads import threads
from ridgefold.planning import plan_only
from ridgefold.records import Cost, Plan, Problem, Resources
from ridgefold.runtime.step import MeasuredStep, Work
from ridgefold.solvers import SOLVERS, RidgeSystem
from ridgefold.solvers.base import unpenalised_columns, with_unpenalised


@dataclass
class TwoFoldsWork(Work):
    """One kernel with its ridges, the folds, and the groups of them that are left out besides."""

    gram: Gram
    targets: Array
    alphas: np.ndarray
    folds: Folds
    groups: Sequence[np.ndarray]
    weights: Array | None
    bias: bool
    limits: Resources
    predictions: np.ndarray | None = None
    """What comes of it."""

    def __post_init__(self) -> None:
        self.like = self.gram.like

    def resources(self) -> Resources:
        return self.limits


@dataclass(frozen=True)
class LeaveTwoOut(MeasuredStep[Problem, TwoFoldsWork]):
    """Predictions of one kernel's models without two folds."""

    name: str
    n_groups: int

    def cost(self, known: Problem, resources: Resources) -> Plan:
        return plan_only("stack", "inverse_blocks", _TwoFoldsOut(self.n_groups), known, resources)

    def run(self, known: Problem, plan: Plan, work: TwoFoldsWork, progress: Progress) -> Problem:
        with threads(plan.resources.threads):
            work.predictions = leave_two_out(
                work.gram,
                work.targets,
                work.alphas,
                work.folds,
                work.groups,
                weights=work.weights,
                bias=work.bias,
            )
        return known


@dataclass(frozen=True)
class _TwoFoldsOut:
    """What it costs."""

    n_groups: int
    may_give_up = False
    last_resort = False

    def can_run(self, problem: Problem) -> str | None:
        return None

    def cost(self, problem: Problem) -> Cost:
        n, a, g = problem.n_rows, problem.n_alphas, self.n_groups
        cubes = sum(fold.count * float(fold.test) ** 3 for fold in problem.folds)
        squares = sum(fold.count * float(fold.test) ** 2 for fold in problem.folds)
        return Cost(
            flops={
                "kernel": a * 0.5 * n**2,
                "cholesky": a * (n**3 + g * cubes) / 3.0,
                "inverse": a * 2.0 * n**3 / 3.0,
                "product": a * (2.0 * n**3 / g + 2.0 * squares * n),
                "calls": a * g * (10.0 + (problem.n_folds if squares > n else 0)),
            },
            size=n,
            peak_bytes=problem.itemsize
            * (n**2 * (1.0 + 3.0 / g) + 3.0 * g * n * problem.n_targets),
        )


def leave_two_out(
    gram: Gram,
    targets: Array,
    alphas: np.ndarray,
    folds: Folds,
    groups: Sequence[np.ndarray],
    *,
    weights: Array | None,
    bias: bool,
) -> np.ndarray:
    """Prediction of every row by the model without its fold and without a group of other folds.

    Parameters
    ----------
    alphas : array of shape (t,)
        One ridge a target, each > 0.
    folds : Folds
        Each row in one fold, which trains on all others.
    groups : sequence of index arrays
        Numbers of the folds of each group; without any, a row's own fold alone is left out.

    Returns
    -------
    array of shape (len(groups), n, t)
        NaN for the rows of the group itself, and for rows of weight zero.
    """
    namespace, n = gram.namespace, gram.shape[0]
    predictions = np.full((len(groups), n, int(targets.shape[1])), np.nan)
    for alpha in np.unique(alphas):
        columns = np.flatnonzero(alphas == alpha)
        y = _columns(namespace, targets, columns)
        slopes = smoother(gram, float(alpha), weights, bias)
        residuals = _residuals(namespace, slopes, y, folds, groups)
        predictions[:, :, columns] = namespace.to_numpy(y)[None, :, :] - residuals
    if gram.fixed_columns() is not None:
        _fit_without_shortcut(
            predictions, gram, targets, alphas, folds, groups=groups, weights=weights, bias=bias
        )
    return predictions


def _fit_without_shortcut(
    predictions: np.ndarray,
    gram: Gram,
    targets: Array,
    alphas: np.ndarray,
    folds: Folds,
    *,
    groups: Sequence[np.ndarray],
    weights: Array | None,
    bias: bool,
) -> None:
    """Predict folds again whose training rows hardly determine the unpenalised columns."""
    namespace = gram.namespace
    counts = np.ones(folds.n_rows) if weights is None else namespace.to_numpy(weights)
    counted = np.flatnonzero(counts > 0)
    roots = namespace.asarray(np.sqrt(counts[counted]), gram.like)
    space = unpenalised_columns(gram.restricted(counted), roots, bias=bias)
    assert space is not None
    basis = np.zeros((folds.n_rows, space.rank))
    basis[counted] = namespace.to_numpy(space.basis)
    least = 0.5 / math.sqrt(folds.n_rows)
    for g, group in enumerate(groups):
        gone = np.concatenate([np.empty(0, dtype=int), *(folds.test[k] for k in group)])
        for k in np.setdiff1d(np.arange(len(folds)), group):
            test = folds.test[k]
            out = np.concatenate([gone, test])
            if 1.0 - float(np.linalg.norm(basis[out], ord=2)) ** 2 >= least:
                continue
            train = np.setdiff1d(counted, out)
            system = RidgeSystem(
                gram.restricted(train),
                namespace.take_rows(targets, train),
                alphas,
                None if weights is None else namespace.take_rows(weights, train),
                bias,
            )
            model = SOLVERS["cholesky"].solve(system)
            values = gram.block(test, train) @ model.dual_coef
            values = namespace.to_numpy(with_unpenalised(gram, test, values, model))
            predictions[g, test] = np.where(counts[test, None] > 0, values, np.nan)


def _residuals(
    namespace: Namespace, slopes: Smoother, y: Array, folds: Folds, groups: Sequence[np.ndarray]
) -> np.ndarray:
    n, t = int(y.shape[0]), int(y.shape[1])
    D = slopes.regular
    own = D @ slopes.centred(namespace.take_rows(y, slopes.rows))
    place = np.full(n, -1)
    place[slopes.rows] = np.arange(len(slopes.rows))
    tested = [place[rows][place[rows] >= 0] for rows in folds.test]
    residuals = np.full((len(groups), n, t), np.nan)
    for g, group in enumerate(groups):
        own_folds = set(group.tolist())
        gone = np.concatenate([np.empty(0, dtype=int), *(tested[k] for k in group)])
        others = [rows for k, rows in enumerate(tested) if k not in own_folds and len(rows)]
        across = namespace.take_rows(D, gone)
        solved, left = across, own
        if len(gone):
            factor = _factor(namespace, _columns(namespace, across, gone))
            solved = factor.solve(across)
            left = own - across.T @ factor.solve(namespace.take_rows(own, gone))
        if folds.leave_one_out:
            others = [np.concatenate(others)]
        for rows in others:
            across_rows = _columns(namespace, across, rows)
            solved_rows = _columns(namespace, solved, rows)
            wrong = namespace.take_rows(left, rows)
            if folds.leave_one_out:
                diagonal = namespace.take_rows(namespace.diagonal(D)[:, None], rows)
                errors = wrong / (
                    diagonal - namespace.xp.sum(across_rows * solved_rows, axis=0)[:, None]
                )
            else:
                block = _columns(namespace, namespace.take_rows(D, rows), rows)
                block = block - across_rows.T @ solved_rows
                errors = _factor(namespace, block).solve(wrong)
            residuals[g, slopes.rows[rows]] = _finite(namespace, errors)
    return residuals


def _columns(namespace: Namespace, a: Array, columns: np.ndarray) -> Array:
    return namespace.xp.take(a, namespace.indices(columns, a), axis=1)


def _finite(namespace: Namespace, errors: Array) -> np.ndarray:
    if not namespace.all_finite(errors):
        raise NumericalError(
            "predictions of models without two folds are NaN or infinite: use a larger alpha, or "
            "scale the columns of X"
        )
    return namespace.to_numpy(errors)


def _factor(namespace: Namespace, block: Array) -> Factor:
    storage = namespace.copy(block)

    def refill(matrix: Array) -> None:
        matrix[:, :] = block

    return factorise(namespace, storage, refill)

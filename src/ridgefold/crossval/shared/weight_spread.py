"""How unlike weights may be before a shortcut loses more digits than exact methods may.

Two things go wrong, and both are known before anything is computed.

*Rows of little weight.* Errors of ỹ_k = √w_k·y_k that are c·√n·eps·max√w, the same for every row
of K̃, make one of c·√(n·w_max/w_k)·eps in y_k; c is about 2 to 10 (measured with 29 to 400 rows). Up
to w_max/w_k = n that is no more than the 10n·eps that exact methods are held to. Eigenvectors and
bands have such errors; a Cholesky factor has none, because every step of it goes through a scaling
of rows and columns. Where such a row is held out alone there is another way (`shared.shortcut`).

*Folds that hold nearly all the weight*, with a bias. Cs = 0 for the inverse C of the centred
system, so that C_kk is singular but for the share ρ of all weight that the training rows hold, and
the fold loses c·√n·eps/ρ, with c about 2 (measured). Up to ρ = 1/(2√n) that is less than 10n·eps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ridgefold.crossval.shared.folds import Folds
from ridgefold.kernels import Gram
from ridgefold.linalg.unpenalised import Unpenalised
from ridgefold.records import Problem
from ridgefold.solvers.base import unpenalised_columns


@dataclass(frozen=True)
class WeightSpread:
    """How unlike the weights of n rows are."""

    n_rows: int
    range: float = 1.0
    """The largest weight over the smallest that is not zero."""
    least_training_share: float = 1.0
    """The smallest share of all weight that the training rows of a fold hold."""

    @staticmethod
    def of(weights: np.ndarray | None, n_rows: int, folds: Folds | None) -> WeightSpread:
        """From weights of which one at least is positive."""
        if weights is None:
            return WeightSpread(n_rows)
        weights = np.asarray(weights, dtype=np.float64)
        largest = float(weights.max())
        with np.errstate(over="ignore"):
            ratio = float(largest / np.min(weights[weights > 0]))
        if folds is None or not folds.complement:
            return WeightSpread(n_rows, ratio)
        shares = weights / largest
        tested = np.add.reduceat(shares[folds.stacked], [run.start for run in folds.runs])
        left = max(0.0, 1.0 - float(tested.max()) / float(shares.sum()))
        return WeightSpread(n_rows, ratio, left)

    @staticmethod
    def in_problem(problem: Problem) -> WeightSpread:
        return WeightSpread(problem.n_rows, problem.weight_range, problem.least_training_share)

    @property
    def most_alike(self) -> float:
        """The largest weight over that of a row to which errors of every row of K̃ do no harm."""
        return float(self.n_rows)

    @property
    def alike(self) -> bool:
        """Whether errors that are the same for every row of K̃ do no harm."""
        return self.range <= self.most_alike

    @property
    def least_share_with_bias(self) -> float:
        """The share that training rows must hold where C is that of a system with a bias."""
        return 0.5 / math.sqrt(self.n_rows)

    def enough_in_training(self, bias: bool, fixed: bool = False) -> bool:
        """`fixed`: whether there are unpenalised columns beside the bias."""
        alone = not (bias or fixed)
        return alone or self.least_training_share >= self.least_share_with_bias


def share_of_training(gram: Gram, folds: Folds, weights: np.ndarray | None, *, bias: bool) -> float:
    """`WeightSpread.least_training_share` where there are unpenalised columns beside the bias."""
    kept, roots, part = np.arange(folds.n_rows), None, gram
    if weights is not None:
        kept = np.flatnonzero(weights > 0)
        roots = gram.namespace.asarray(np.sqrt(weights[kept]), gram.like)
        part = gram if len(kept) == folds.n_rows else gram.restricted(kept)
    space = unpenalised_columns(part, roots, bias=bias)
    return 1.0 if space is None else least_training_share_of(space, folds, kept)


def least_training_share_of(space: Unpenalised, folds: Folds, kept: np.ndarray) -> float:
    """The smallest share of any direction Q of the unpenalised columns in a fold's training rows.

    That is the smallest eigenvalue of I − Q_kᵀQ_k; of a bias, the share of all weight. `kept` are
    the rows of positive weight, which the space is of.
    """
    basis = space.namespace.to_numpy(space.basis).astype(np.float64)
    if folds.leave_one_out:
        return max(0.0, 1.0 - float(np.max(np.sum(basis * basis, axis=1), initial=0.0)))
    place = np.full(folds.n_rows, -1)
    place[kept] = np.arange(len(kept))
    least = 1.0
    for k, test in enumerate(folds.test):
        if folds.train is None:
            gone = place[test]
        else:
            gone = place[np.setdiff1d(np.arange(folds.n_rows), folds.training_rows(k))]
        own = basis[gone[gone >= 0]]
        if len(own):
            least = min(least, 1.0 - float(np.linalg.norm(own, ord=2)) ** 2)
    return max(0.0, least)


def needs_like_weights(problem: Problem) -> str | None:
    """The reason shared by methods whose errors are the same for every row of K̃."""
    if WeightSpread.in_problem(problem).alike or one_by_one(problem):
        return None
    return (
        f"the largest weight is {problem.weight_range:.1e} times the smallest, and beyond "
        f"{problem.n_rows} times, the number of rows, this method loses digits of the predictions "
        "of rows with little weight that are held out with others (refit and block_recursive do "
        "not)"
    )


def one_by_one(problem: Problem) -> bool:
    """Whether every fold is a single row."""
    return all(fold.test == 1 for fold in problem.folds)


def kernel_values_for_light_rows(problem: Problem) -> float:
    """What predicting rows of little weight from the coefficients takes in kernel values."""
    if WeightSpread.in_problem(problem).alike or not one_by_one(problem):
        return 0.0
    return problem.n_alphas * float(problem.n_rows) ** 2


def needs_weight_in_training(problem: Problem) -> str | None:
    """The reason shared by methods that take C_kk from the inverse of a system with a bias."""
    spread = WeightSpread.in_problem(problem)
    if spread.enough_in_training(problem.bias, problem.fixed > 0):
        return None
    if problem.fixed:
        return (
            f"the training rows of a fold hold a share of {problem.least_training_share:.1e} of an "
            "unpenalised column, or of what columns beside it leave of it, where this method needs "
            f"{spread.least_share_with_bias:.1e} to keep its digits (refit does not)"
        )
    return (
        f"a fold is trained on rows with a share of {problem.least_training_share:.1e} of all "
        f"weight, where this method with a bias needs {spread.least_share_with_bias:.1e} to keep "
        "its digits (refit and block_recursive do not)"
    )

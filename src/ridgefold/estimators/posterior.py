"""The posterior of a fitted model: factorised when it is first asked for, and kept in memory.

A fit keeps no factor of K + αI: its n² numbers would be most of every model file, and few models
are asked for a standard deviation. The rows, targets and weights are kept anyway. So the factor is
made again at the first question, at about the cost of the fit, and stays with the estimator until
it is fitted anew; it is in no model file, pickle or copy. All is computed in float64, whatever the
rows are in: a variance is a difference of near numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from ridgefold.errors import BudgetError, InvalidInputError, UnsupportedInputError
from ridgefold.estimators.facts import class_columns, to_numpy
from ridgefold.estimators.fixed_columns import numbers_of_fixed
from ridgefold.exact.posterior import Posterior, posterior
from ridgefold.kernels import Kernel, KernelGram, PrecomputedGram
from ridgefold.kernels.gram import columns_of
from ridgefold.linalg import Array, Namespace, namespace_of
from ridgefold.linalg.threads import threads
from ridgefold.options import search_of
from ridgefold.planning import available_resources, device_of, plan_only
from ridgefold.records import Cost, Problem, StepRecord

if TYPE_CHECKING:
    from ridgefold.estimators.base import KernelModel

_KEPT = "_kept_posterior"
_STEP = "a factor for standard deviations, kept in memory"


@dataclass(frozen=True)
class FittedRows:
    """The training rows of positive weight, as the posterior needs them: in float64."""

    namespace: Namespace
    rows: np.ndarray | None
    """Which rows these are; None if all."""
    X: Array
    """Of a precomputed kernel, its matrix."""
    targets: Array
    """Of shape (n, t); of classes, columns of ±1."""
    weights: Array | None
    basis: Array
    """The unpenalised columns F, of shape (n, q)."""

    def gram(self, kernel: Kernel | str) -> KernelGram | PrecomputedGram:
        """The kernel matrix of these rows."""
        if isinstance(kernel, Kernel):
            return KernelGram(kernel, self.X)
        return PrecomputedGram(self.X)


def fitted_rows(model: KernelModel) -> FittedRows:
    """The rows, targets and weights of the fit; a typed error where the model has not kept them."""
    if getattr(model, "compression_bound_", None) is not None:
        raise InvalidInputError(
            "a compressed model has kept too few rows for variances and likelihoods: ask the "
            "model that it came from"
        )
    if not (hasattr(model, "y_fit_") and hasattr(model, "weights_fit_")):
        raise InvalidInputError(
            "this model is from a file without the targets and weights of its rows, which "
            "variances and likelihoods need: fit it again"
        )
    if hasattr(model, "search") and search_of(model).average_folds:
        raise UnsupportedInputError(
            "with search.average_folds=True the model is the mean of those of the folds, which "
            "has no posterior: fit with average_folds=False"
        )
    namespace = namespace_of(model._model.intercept)
    double, like = namespace.double(), model._model.intercept
    t = int(like.shape[0])
    if hasattr(model, "classes_"):
        targets = class_columns(to_numpy(model.y_fit_), t)
    else:
        targets = to_numpy(model.y_fit_).reshape(-1, t)
    X, weights, rows = model.X_fit_, model.weights_fit_, None
    precomputed = not isinstance(model.kernel_, Kernel)
    if weights is not None:
        numbers = to_numpy(weights).astype(np.float64)
        if not np.all(numbers > 0):
            rows = np.flatnonzero(numbers > 0)
            targets, numbers = targets[rows], numbers[rows]
            X = X[rows] if scipy.sparse.issparse(X) else namespace.take_rows(X, rows)
            if precomputed:
                X = namespace.xp.take(X, namespace.indices(rows, X), axis=1)
        weights = namespace.asarray(numbers, like, double)
    return FittedRows(
        namespace,
        rows,
        in_double(X),
        namespace.asarray(targets.astype(np.float64), like, double),
        weights,
        unpenalised(model, X),
    )


def unpenalised(model: KernelModel, X: Array) -> Array:
    """F of some rows, in float64: a column of ones if there is a bias.

    With `fixed` columns F is in coordinates that are orthonormal on the rows of the fit: the same
    functions, without digits lost to columns far from zero or alike.
    """
    like = model._model.intercept
    namespace = namespace_of(like)
    shape = (int(X.shape[0]), 1 if model.fit_intercept else 0)
    ones = namespace.ones(shape, like, namespace.double())
    effects = getattr(model, "fixed_effects_", None)
    if effects is None:
        return ones
    fixed = namespace.astype(columns_of(X, effects.columns), namespace.double())
    columns = namespace.xp.concat([ones, fixed], axis=1)
    return columns @ namespace.asarray(effects.transform, like, namespace.double())


def slopes_of_unpenalised(model: KernelModel, columns: np.ndarray) -> Array:
    """∂F/∂x_j for some columns j of X, of shape (q, len(columns)): the same at every row."""
    like = model._model.intercept
    namespace = namespace_of(like)
    effects = getattr(model, "fixed_effects_", None)
    q = int(bool(model.fit_intercept)) if effects is None else effects.transform.shape[1]
    found = np.zeros((q, len(columns)))
    if effects is not None:
        own = effects.transform[len(effects.transform) - len(effects.columns) :]
        for place, column in enumerate(columns.tolist()):
            if column in effects.columns:
                found[:, place] = own[effects.columns.index(column)]
    return namespace.asarray(found, like, namespace.double())


def in_double(X: Array) -> Array:
    """Rows in float64; those that are in it already are not copied."""
    if scipy.sparse.issparse(X):
        return X.astype(np.float64, copy=False)
    namespace = namespace_of(X)
    return namespace.astype(X, namespace.double())


def ridges(model: KernelModel) -> np.ndarray:
    """The ridge of every target, shape (t,)."""
    t = int(model._model.intercept.shape[0])
    return np.broadcast_to(np.ravel(np.asarray(model._ridge(), dtype=np.float64)), (t,))


def by_ridge(model: KernelModel) -> Iterator[tuple[float, np.ndarray]]:
    """The distinct ridges, each with the targets that have it."""
    alphas = ridges(model)
    for alpha in np.unique(alphas):
        yield float(alpha), np.flatnonzero(alphas == alpha)


def posterior_of(
    model: KernelModel,
    alpha: float,
    known: FittedRows,
    *,
    kernel: Kernel | str | None = None,
    copies: int = 0,
) -> Posterior:
    """The posterior for one ridge; that of the last one asked for is kept.

    `copies` of the factor are going to be made by what is asked of it.
    """
    kernel = model.kernel_ if kernel is None else kernel
    kept = model.__dict__.get(_KEPT, (None, None))
    present = kept[:2] == (kernel, alpha)
    n = int(known.targets.shape[0])
    require_memory(
        model, 8.0 * n**2 * (copies + (not present)), f"the factor of {n:,} training rows"
    )
    if present:
        return kept[2]  # type: ignore[no-any-return]
    model.__dict__.pop(_KEPT, None)
    resources = available_resources(model.memory_budget, device=device_of(known.targets))
    problem = Problem(
        n_rows=n,
        n_columns=int(known.X.shape[1]),
        n_targets=int(known.targets.shape[1]),
        bias=bool(model.fit_intercept),
        fixed=len(numbers_of_fixed(model)),
        weighted=known.weights is not None,
    )
    plan = plan_only("posterior", "cholesky", _Factor(), problem, resources)
    began = time.perf_counter()
    with threads(resources.threads):
        found = posterior(known.gram(kernel), alpha, known.weights, known.basis)
    seconds = time.perf_counter() - began
    model.__dict__[_KEPT] = (
        kernel,
        alpha,
        found,
        StepRecord(_STEP, plan, "cholesky", seconds, None),
    )
    return found


class _Factor:
    """What the factor of K + alpha·I costs, which stays in memory."""

    may_give_up = False
    last_resort = False

    def can_run(self, problem: Problem) -> str | None:
        return None

    def cost(self, problem: Problem) -> Cost:
        n = float(problem.n_rows)
        return Cost({"kernel": 0.5 * n**2, "cholesky": n**3 / 3.0}, 8.0 * n**2, n)


def factor_record(model: KernelModel) -> tuple[StepRecord, ...]:
    """What the factor that is in memory took, if there is one."""
    return tuple(model.__dict__.get(_KEPT, ())[3:])


def require_memory(model: KernelModel, needed: float, what: str) -> None:
    """A refusal before the work where it does not fit the memory budget."""
    device = device_of(model._model.intercept)
    budget = available_resources(model.memory_budget, device=device).memory_bytes
    if needed > budget:
        raise BudgetError(
            f"{what} takes {needed / 1e9:.3g} GB and the budget is {budget / 1e9:.3g} GB: raise "
            "memory_budget (set_params does, without a new fit), fit to fewer rows, or fit in "
            "cells (PartitionedKernelRidge)"
        )


def forget_posterior(model: KernelModel) -> None:
    """Drop the factor of an earlier fit."""
    model.__dict__.pop(_KEPT, None)


def without_posterior(state: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a model but for what can be computed again."""
    return {name: value for name, value in state.items() if name != _KEPT}

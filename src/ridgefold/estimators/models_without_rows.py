"""Rows of an exact model, predicted by the models that have not seen them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from ridgefold.errors import BudgetError, InvalidInputError
from ridgefold.estimators.effect_curves import Decisions, WithEffectCurves
from ridgefold.estimators.facts import class_columns, to_numpy
from ridgefold.estimators.fixed_columns import numbers_of_fixed
from ridgefold.estimators.importances import WithImportances
from ridgefold.estimators.stacked import decided, sum_of, weighted
from ridgefold.estimators.validation import check_alpha
from ridgefold.kernels import Kernel
from ridgefold.linalg import Array, namespace_of
from ridgefold.options import compute_of
from ridgefold.planning import available_resources
from ridgefold.planning.amounts import in_bytes
from ridgefold.records import FittedModel, Intervals
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.fold_models import fold_models
from ridgefold.selection.held_out_predictions import shuffled_folds
from ridgefold.selection.importances import HeldOutSample
from ridgefold.selection.path_tasks import gram_of

if TYPE_CHECKING:
    from ridgefold.estimators.base import KernelModel

_FOLDS = 5
"""Folds of a model that has kept none."""


class LeavesRowsOut(WithImportances, WithEffectCurves):
    """What an exact model knows of its own rows without them."""

    def _held_out_sample(  # type: ignore[misc]
        self: KernelModel, max_rows: int, random: np.random.Generator
    ) -> HeldOutSample:
        check_is_fitted(self, "X_fit_")
        targets = _fitted_targets(self)
        n = len(targets)
        weights = np.ones(n) if self._weights is None else self._weights.astype(np.float64)
        rows = np.flatnonzero(weights > 0)
        if len(rows) < 2:
            raise InvalidInputError("rows are left out of models of 2 or more, got one row")
        if len(rows) > max_rows:
            rows = np.sort(random.choice(rows, size=max_rows, replace=False))
        X = self.X_fit_[rows] if scipy.sparse.issparse(self.X_fit_) else _taken(self.X_fit_, rows)
        X = _dense(X, self.memory_budget)
        predict, how = self._left_out(rows)
        return HeldOutSample(X, targets[rows], weights[rows], predict, how)

    def _rows_for_curves(  # type: ignore[misc]
        self: KernelModel, max_rows: int, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self, "X_fit_")
        require_rows(self)
        n = int(self.X_fit_.shape[0])
        weights = np.ones(n) if self._weights is None else self._weights.astype(np.float64)
        rows = np.flatnonzero(weights > 0)
        if len(rows) > max_rows:
            rows = np.sort(random.choice(rows, size=max_rows, replace=False))
        X = self.X_fit_[rows] if scipy.sparse.issparse(self.X_fit_) else _taken(self.X_fit_, rows)
        return _dense(X, self.memory_budget), weights[rows]

    def _with_folds(self: KernelModel) -> Decisions:  # type: ignore[misc]
        predictor = self._predictor()
        if not self._can_leave_rows_out():
            return lambda X: (_numbers(self, predictor(_as_fitted(self, X), self._model)), None)
        model, groups, _ = _models_without(self)
        t = int(self._model.intercept.shape[0])

        def decide(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            new = _as_fitted(self, X)
            whole = _numbers(self, predictor(new, self._model))
            values = predictor(new, model)
            if groups is None:  # jackknife+: changes by one row each
                kept: Intervals = self.intervals_
                changes = to_numpy(values).astype(np.float64)
                residuals = to_numpy(kept.residuals)
                return whole, whole[:, None, :] - changes[:, :, None] * residuals[None, :, :]
            folds = range(int(values.shape[1]) // t)
            parts = [_numbers(self, values[:, k * t : (k + 1) * t]) for k in folds]
            return whole, np.stack(parts, axis=1)

        return decide

    def _left_out(  # type: ignore[misc]
        self: KernelModel, rows: np.ndarray
    ) -> tuple[Callable[[np.ndarray], np.ndarray], str]:
        """Predictions of changed versions of training rows without them; and how, in words."""
        model, groups, how = _models_without(self)
        predict = _one_model_a_row if groups is None else _one_model_a_fold
        return predict(self, model, rows, groups), how

    def _can_leave_rows_out(self: KernelModel) -> bool:  # type: ignore[misc]
        return (
            keeps_rows(self)
            and hasattr(self, "y_fit_")
            and int(self.X_fit_.shape[0]) > 1
            and (self._weights is not None or not self.plan_.problem.weighted)
            and bool(np.all(np.asarray(self._ridge(), dtype=np.float64) > 0))
        )

    def _target_summary(self: KernelModel) -> np.ndarray:  # type: ignore[misc]
        targets = _fitted_targets(self)
        weights = np.ones(len(targets)) if self._weights is None else self._weights
        if hasattr(self, "classes_"):
            codes = to_numpy(self.y_fit_)
            counts = np.bincount(codes, weights, minlength=len(self.classes_))
            return np.asarray(counts / weights.sum())
        return spread_of(targets, weights)


def spread_of(targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The standard deviation of every target."""
    shares = np.asarray(weights, dtype=np.float64) / np.sum(weights, dtype=np.float64)
    targets = targets.astype(np.float64)
    return np.asarray(np.sqrt(shares @ (targets - shares @ targets) ** 2))


# -- the models ------------------------------------------------------------------------------


def _models_without(model: KernelModel) -> tuple[FittedModel, np.ndarray | None, str]:
    """Models without some rows, the fold of every row (None: one model a row), and in words."""
    kept: Intervals | None = getattr(model, "intervals_", None)
    n = int(model.X_fit_.shape[0])
    if kept is not None and kept.method == "jackknife+":
        return kept.model, None, "leave-one-out"
    if kept is not None:
        counted = np.arange(n) if model._weights is None else np.flatnonzero(model._weights > 0)
        groups = np.full(n, -1)
        groups[counted] = kept.groups
        n_folds = int(kept.groups.max()) + 1
        return kept.model, groups, f"{n_folds}-fold cross-validation"
    classes = to_numpy(model.y_fit_) if hasattr(model, "classes_") else None
    folds = shuffled_folds(n, _FOLDS, classes)
    groups = np.empty(n, dtype=int)
    for k, rows in enumerate(folds.test):
        groups[rows] = k
    like = model._model.dual_coef
    namespace = namespace_of(like)
    weights = None if model._weights is None else namespace.asarray(model._weights, like)
    targets = namespace.asarray(_fitted_targets(model), like)
    data = TrainingData(namespace, model.X_fit_, model.y_fit_, weights)
    without = []
    for kernel, alphas, share, offset in _members(model):
        one = fold_models(
            data,
            targets,
            gram_of(kernel, model.X_fit_, numbers_of_fixed(model)),
            alphas,
            folds,
            bias=bool(model.fit_intercept),
            solver=compute_of(model).solver,
            tolerance=model._tolerance(data),
            memory_budget=model.memory_budget,
        )
        if share is not None:
            one = weighted(one, np.tile(share, len(folds)), np.tile(offset, len(folds)))
        without.append(one)
    words = f"the kernel and ridge of the model, fitted without each of {len(folds)} folds"
    return sum_of(without), groups, words


def _members(
    model: KernelModel,
) -> Sequence[tuple[Kernel | str, np.ndarray, np.ndarray | None, np.ndarray]]:
    """Kernel, ridges, weights (None: one) and offset of what the model adds up."""
    t = int(model._model.intercept.shape[0])
    nothing = np.zeros(t)
    stack = getattr(model, "stack_", None)
    if stack is None:
        return [(model.kernel_, check_alpha(model._ridge(), t), None, nothing)]
    return [
        (each.kernel, each.alpha, each.weight, stack.offset if place == 0 else nothing)
        for place, each in enumerate(stack.members)
    ]


# -- their predictions -----------------------------------------------------------------------


def _one_model_a_fold(
    model: KernelModel, without: FittedModel, rows: np.ndarray, groups: np.ndarray | None
) -> Callable[[np.ndarray], np.ndarray]:
    assert groups is not None
    t = int(model._model.intercept.shape[0])
    predictor, own = model._predictor(), groups[rows]
    folds = [(np.flatnonzero(own == k), int(k)) for k in np.unique(own)]
    of_fold = {k: columns_of(without, np.arange(k * t, (k + 1) * t)) for _, k in folds}

    def predict(X: np.ndarray) -> np.ndarray:
        out = np.empty((len(X), t))
        for places, k in folds:
            out[places] = _numbers(model, predictor(_as_fitted(model, X[places]), of_fold[k]))
        return out

    return predict


def _one_model_a_row(
    model: KernelModel, without: FittedModel, rows: np.ndarray, groups: np.ndarray | None
) -> Callable[[np.ndarray], np.ndarray]:
    """f(x) − r_i·g_i(x); see `exact.leave_one_out`."""
    kept: Intervals = model.intervals_
    counted = np.arange(int(model.X_fit_.shape[0]))
    if model._weights is not None:
        counted = np.flatnonzero(model._weights > 0)
    places = np.searchsorted(counted, rows)
    changes = columns_of(without, places)
    residuals = to_numpy(kept.residuals)[places]
    predictor = model._predictor()

    def predict(X: np.ndarray) -> np.ndarray:
        new = _as_fitted(model, X)
        slopes = np.diagonal(to_numpy(predictor(new, changes)))
        whole = to_numpy(predictor(new, model._model))
        return np.asarray(whole - slopes[:, None] * residuals, dtype=np.float64)

    return predict


def columns_of(model: FittedModel, columns: np.ndarray) -> FittedModel:
    """Some of the functions of a model."""
    xp = namespace_of(model.dual_coef).xp
    places = namespace_of(model.dual_coef).indices(columns, model.dual_coef)

    def taken(a: Array | None, axis: int) -> Array | None:
        return None if a is None else xp.take(a, places, axis=axis)

    return replace(
        model,
        dual_coef=taken(model.dual_coef, 1),
        intercept=taken(model.intercept, 0),
        primal_coef=taken(model.primal_coef, 1),
        fixed_coef=taken(model.fixed_coef, 1),
        certificate=None,
        further=tuple(columns_of(each, columns) for each in model.further),
    )


def _numbers(model: KernelModel, values: Array) -> np.ndarray:
    """Of stacks of classes, decision values from log-odds."""
    stack = getattr(model, "stack_", None)
    if stack is not None and stack.log_odds:
        values = decided(values)
    return to_numpy(values).astype(np.float64)


# -- the rows --------------------------------------------------------------------------------


def _fitted_targets(model: KernelModel) -> np.ndarray:
    """What the model was fitted to, shape (n, t); a typed error where that is not known."""
    require_rows(model)
    if not hasattr(model, "y_fit_") or (model.plan_.problem.weighted and model._weights is None):
        raise InvalidInputError(
            "the model comes from a file of an older version, which lacks the targets or the "
            "weights of its rows: fit and save it again"
        )
    t = int(model._model.intercept.shape[0])
    y = to_numpy(model.y_fit_)
    if hasattr(model, "classes_"):
        return class_columns(y, t)
    return y.reshape(len(y), -1)


def keeps_rows(model: KernelModel) -> bool:
    """Whether the model has the rows that it was fitted to, as rows of columns."""
    return isinstance(model.kernel_, Kernel) and not hasattr(model, "compression_bound_")


def require_rows(model: KernelModel) -> None:
    """The model keeps the rows that it was fitted to."""
    if not isinstance(model.kernel_, Kernel):
        raise InvalidInputError(
            'a model with kernel="precomputed" knows no columns: fit with a kernel object on the '
            "rows themselves"
        )
    if hasattr(model, "compression_bound_"):
        raise InvalidInputError(
            "a compressed model keeps few of the rows that it was fitted to: ask the model that "
            "it came from"
        )


def _taken(X: Array, rows: np.ndarray) -> Array:
    return namespace_of(X).take_rows(X, rows)


def _dense(X: Array, memory_budget: Any) -> np.ndarray:
    """Some rows as a NumPy matrix."""
    if not scipy.sparse.issparse(X):
        return to_numpy(X)
    needed, budget = 4.0 * 8 * np.prod(X.shape), available_resources(memory_budget).memory_bytes
    if needed > budget:
        raise BudgetError(
            f"{X.shape[0]} rows of {X.shape[1]:,} columns take {in_bytes(needed)} with all their "
            f"zeros, and the budget is {in_bytes(budget)}: give a smaller max_rows"
        )
    return np.asarray(X.toarray())


def _as_fitted(model: KernelModel, X: np.ndarray) -> Array:
    """Rows in the library and on the device of those of the fit."""
    if scipy.sparse.issparse(model.X_fit_):
        return scipy.sparse.csr_array(X)
    return namespace_of(model.X_fit_).asarray(X, model.X_fit_)

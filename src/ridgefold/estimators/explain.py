"""Say how something would be computed, from shapes alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ridgefold.cells.explain_cell_fit import explain_cell_fit
from ridgefold.errors import InvalidInputError
from ridgefold.estimators.cross_validated import CrossValidatedModel
from ridgefold.estimators.fixed_columns import resolve_fixed
from ridgefold.estimators.kernel_ridge_cv import KernelRidgeCV
from ridgefold.estimators.partitioned_base import PartitionedModel
from ridgefold.kernels import Kernel, KernelSettings, resolve_kernel
from ridgefold.metric import FAMILIES
from ridgefold.metric.metric import families_of
from ridgefold.planning import (
    Explanation,
    available_resources,
    device_named,
    explain_plans,
)
from ridgefold.records import Problem
from ridgefold.runtime import foresee_all
from ridgefold.selection.fit_steps import fold_shapes
from ridgefold.selection.grids import (
    DECADES_BELOW,
    alphas_over,
    check_alphas,
    made_up_rows,
    number_of_kernels,
    widths_from_data,
)
from ridgefold.selection.learned_grid import families_to_learn, is_automatic


def explain(
    estimator: Any = None,
    *,
    n_samples: int | None = None,
    n_features: int | None = None,
    n_targets: int = 1,
    dtype: Any = np.float64,
    memory_budget: Any = None,
    time_budget: float | None = None,
    n_workers: int | None = None,
    device: str | None = None,
) -> Explanation:
    """Which methods would run, what they would cost, and why not others.

    Parameters
    ----------
    estimator : estimator, optional
        A fitted one explains its fit; of another, the settings count. :class:`KernelRidgeCV` if
        not given.
    n_samples, n_features, n_targets : int
        Shapes of the data that there would be.
    dtype : float32 or float64
    memory_budget, time_budget : optional
        Instead of the estimator's own.
    n_workers : int, optional
        For partitioned models: worker processes of a cluster, each with the memory budget. If not
        given, those of the cluster that the estimator names as its executor, if it names one.
    device : str, optional
        Plan for this device of torch, as "cuda", by its rates and its free memory. One that is not
        here is taken for an NVIDIA H200, and needs a memory budget.

    Returns
    -------
    explanation : Explanation
        Prints as text; `to_json()` gives JSON, and notebooks show it as HTML.

    Examples
    --------
    >>> import ridgefold
    >>> print(ridgefold.explain(n_samples=500, n_features=4, memory_budget="1GB"))
    ... # doctest: +ELLIPSIS
    choosing kernel and alpha: 500 rows, 4 columns, 5 folds, 25 ridge values, 7 kernels, float64
    ...
    """
    model = KernelRidgeCV() if estimator is None else estimator
    if (hasattr(model, "plan_") or hasattr(model, "run_record_")) and n_samples is None:
        return model.explain()
    rows, columns = _count("n_samples", n_samples), _count("n_features", n_features)
    if hasattr(model, "explain_shape"):
        targets = _count("n_targets", n_targets)
        shape = (rows, columns, targets)
        explanation: Explanation = model.explain_shape(*shape, memory_budget, time_budget)
        return explanation
    budget = getattr(model, "memory_budget", "auto") if memory_budget is None else memory_budget
    seconds = getattr(model, "time_budget", None) if time_budget is None else time_budget
    resources = available_resources(budget, seconds, device_named(device))
    fit = _fit_problem(model, rows, columns, _count("n_targets", n_targets), dtype)
    if isinstance(model, PartitionedModel):
        workers = None if n_workers is None else _count("n_workers", n_workers)
        return explain_cell_fit(model, fit, resources, workers)
    known = fit
    if isinstance(model, CrossValidatedModel):
        known = _search_problem(model, fit)
    return explain_plans(foresee_all(model._steps(), known, resources))


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        way_out = (
            "" if value is not None else ": give n_samples and n_features, or a fitted estimator"
        )
        raise InvalidInputError(f"{name} must be a whole number >= 1, got {value!r}{way_out}")
    return int(value)


def _fit_problem(model: Any, rows: int, columns: int, targets: int, dtype: Any) -> Problem:
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise InvalidInputError(f"dtype must be float32 or float64, got {np.dtype(dtype)}")
    if _learns(model):
        kernel = next(
            iter(families_of(families_to_learn(model.kernel, model.kernel_params)).values())
        )
    else:
        kernel = _first("kernel", model.kernel)
    if is_automatic(kernel):
        kernel = next(iter(FAMILIES.values()))
    given = isinstance(kernel, str) and kernel == "precomputed"
    resolved = None if given else _kernel(model, kernel, columns)
    return Problem(
        n_rows=rows,
        n_columns=columns,
        n_targets=targets,
        itemsize=np.dtype(dtype).itemsize,
        feature_dimension=None if resolved is None else resolved.feature_dimension(columns),
        bias=bool(model.fit_intercept),
        fixed=_fixed(getattr(model, "fixed", None), columns),
        kernel="given" if resolved is None else resolved.evaluation,
        semidefinite=resolved is not None and resolved.semidefinite,
    )


def _fixed(fixed: Any, columns: int) -> int:
    """How many unpenalised columns are asked for; by name they need no table to be counted."""
    listed = isinstance(fixed, (list, tuple, np.ndarray))
    named = listed and any(isinstance(each, str) for each in fixed)
    return len(fixed) if named else len(resolve_fixed(fixed, columns, None))


def _kernel(model: Any, kernel: Any, columns: int) -> Kernel:
    parameters = model.kernel_params
    if isinstance(kernel, str) and isinstance(parameters, Mapping):
        parameters = {
            # Of length scales a list holds several to choose from, a tuple one a column.
            name: value
            if name == "length_scale" and not isinstance(value, list)
            else _first(name, value)
            for name, value in parameters.items()
        }
    settings = KernelSettings(
        gamma=_first("gamma", model.gamma),
        degree=getattr(model, "degree", 3),
        coef0=getattr(model, "coef0", 1),
        parameters=parameters,
    )
    return resolve_kernel(kernel, settings, columns)


def _first(name: str, value: Any) -> Any:
    """The first of several, which stands for all of them."""
    if not isinstance(value, (list, tuple, np.ndarray)):
        return value
    if len(value) == 0:
        raise InvalidInputError(f"{name} is an empty list: give at least one value")
    return value[0]


def _search_problem(model: CrossValidatedModel, fit: Problem) -> Problem:
    n, cv = fit.n_rows, model.cv
    alphas = None if model.alpha is None else check_alphas(model.alpha)
    count = _number_of_folds(cv, n)
    decades = DECADES_BELOW[fit.itemsize]  # below the largest eigenvalue, about n
    if not 2 <= count <= n:
        raise InvalidInputError(f"cv={cv!r} needs at least 2 folds and no more than rows ({n})")
    return replace(
        fit,
        n_alphas=alphas_over(decades + 1) if alphas is None else len(np.unique(alphas)),
        smallest_alpha=n * 10.0**-decades if alphas is None else float(alphas.min()),
        largest_alpha=float(n) if alphas is None else float(alphas.max()),
        n_kernels=_kernels_to_try(model, fit.n_columns),
        folds=fold_shapes(n, count),
    )


def _learns(model: Any) -> bool:
    """Whether kernels come from what is learned, not from a grid."""
    return isinstance(model, CrossValidatedModel) and model._learning() is not None


def _kernels_to_try(model: CrossValidatedModel, n_columns: int) -> int:
    """How many kernels a grid holds; of a learned metric its step foresees them."""
    if _learns(model):
        return 1
    settings = {"gamma": model.gamma, "kernel_params": model.kernel_params}
    if not is_automatic(model.kernel):
        return number_of_kernels(model.kernel, settings, n_columns)
    rows = made_up_rows(n_columns)
    return sum(len(widths_from_data(each, rows).candidates) for each in FAMILIES.values())


def _number_of_folds(cv: Any, n: int) -> int:
    """How many folds a `cv` makes of n rows, without the rows."""
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        return int(cv)
    if isinstance(cv, str) and cv == "loo":
        return n
    if isinstance(cv, Sequence) and not isinstance(cv, str):
        return len(cv)
    if hasattr(cv, "get_n_splits"):
        nothing = np.broadcast_to(0.0, (n, 1))
        try:
            return int(cv.get_n_splits(nothing))
        except (TypeError, ValueError, AttributeError) as error:
            raise InvalidInputError(
                f"cv={cv!r} does not say how many folds it makes of {n} rows ({error}): give a "
                "number of folds"
            ) from None
    raise InvalidInputError(
        f'cv must be a number of folds, "loo", a splitter or a list of splits, got {cv!r}'
    )

"""Models that combine kernels: the members of a stack are weighted and added up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ridgefold.errors import ModelFileError
from ridgefold.estimators.stored_values import require_kernel
from ridgefold.kernels import Kernel
from ridgefold.linalg import Array, namespace_of
from ridgefold.records import FittedModel, Stack
from ridgefold.selection.stack.weights import decisions_of


def weighted(model: FittedModel, weights: np.ndarray, offset: np.ndarray) -> FittedModel:
    """w·f + b for every column of a model."""
    namespace = namespace_of(model.dual_coef)
    factors = namespace.asarray(weights, model.dual_coef)
    primal = model.primal_coef
    return FittedModel(
        model.dual_coef * factors[None, :],
        model.intercept * factors + namespace.asarray(offset, model.dual_coef),
        None if primal is None else primal * factors[None, :],
        fixed_coef=None if model.fixed_coef is None else model.fixed_coef * factors[None, :],
    )


def sum_of(models: list[FittedModel]) -> FittedModel:
    """The models of all members as one."""
    return replace(models[0], further=tuple(models[1:]))


def decided(total: Array) -> Array:
    """Decision values from summed log-odds, in their array library."""
    namespace = namespace_of(total)
    return namespace.asarray(decisions_of(namespace.to_numpy(total).astype(np.float64)), total)


def require_stack(stack: Stack, model: FittedModel, rows: Any) -> None:
    """A stored stack that fits the model beside it."""
    t = model.intercept.shape[0]
    everyone = (*stack.members, *stack.left_out)
    good = (
        len(stack.members) == 1 + len(model.further)
        and all(_one_a_target(v, t) for each in everyone for v in (each.alpha, each.weight))
        and stack.offset.shape == (t,)
        and stack.offset.dtype == np.float64
        and bool(np.all(np.isfinite(stack.offset)))
    )
    if not good:
        raise ModelFileError("model.state.stack does not fit the model")
    for each in everyone:
        if isinstance(each.kernel, Kernel):
            require_kernel(each.kernel, rows, "model.state.stack")


def _one_a_target(values: Any, t: int) -> bool:
    return (
        type(values) is np.ndarray
        and values.dtype == np.float64
        and values.shape == (t,)
        and bool(np.all(np.isfinite(values) & (values >= 0)))
    )

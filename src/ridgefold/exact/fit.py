"""Solve the system of all rows by the planned method."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ridgefold.crossval import Progress
from ridgefold.errors import NumericalError
from ridgefold.linalg import Array
from ridgefold.linalg.threads import threads
from ridgefold.planning import plan_fit
from ridgefold.records import FittedModel, Plan, Problem, Resources
from ridgefold.runtime.step import MeasuredStep, Work
from ridgefold.solvers import SOLVERS, RidgeSystem


@dataclass
class SystemWork(Work):
    """The system of all rows, and the model that solves it."""

    system: RidgeSystem
    limits: Resources
    model: FittedModel | None = None

    def __post_init__(self) -> None:
        self.like = self.system.gram.like

    def resources(self) -> Resources:
        return self.limits


@dataclass(frozen=True)
class Fit(MeasuredStep[Problem, SystemWork]):
    """One model of all rows."""

    name = "fitting"
    solver: str = "auto"

    def cost(self, known: Problem, resources: Resources) -> Plan:
        return plan_fit(known, resources, self.solver)

    def run(self, known: Problem, plan: Plan, work: SystemWork, progress: Progress) -> Problem:
        work.model = run_fit(plan, work.system)
        return known


def run_fit(plan: Plan, system: RidgeSystem) -> FittedModel:
    """Solve `system` by the planned method; rows of weight zero take no part."""
    namespace = system.namespace
    rows = _rows_with_weight(system)
    if rows is None:
        model = _solve(plan, system)
    else:
        weights = system.weights
        assert weights is not None
        part = replace(
            system,
            gram=system.gram.restricted(rows),
            targets=namespace.take_rows(system.targets, rows),
            weights=namespace.take_rows(weights, rows),
        )
        model = _solve(plan, part)
        model = replace(model, dual_coef=_spread(system, model.dual_coef, rows))
    if not (namespace.all_finite(model.dual_coef) and namespace.all_finite(model.intercept)):
        raise NumericalError(
            "the solution holds NaN or infinite coefficients: values overflowed on the way; "
            "scale the columns of X and the targets, or use a larger alpha"
        )
    return model


def _solve(plan: Plan, system: RidgeSystem) -> FittedModel:
    with threads(plan.resources.threads):
        return SOLVERS[plan.method].solve(system)


def _rows_with_weight(system: RidgeSystem) -> np.ndarray | None:
    """Indices of the rows that count, or None if all do."""
    if system.weights is None:
        return None
    weights = system.namespace.to_numpy(system.weights)
    return None if np.all(weights > 0) else np.flatnonzero(weights > 0)


def _spread(system: RidgeSystem, values: Array, rows: np.ndarray) -> Array:
    """Rows of `values` at their places among all rows, zero elsewhere."""
    namespace, n = system.namespace, system.targets.shape[0]
    source = np.full(n, len(rows))
    source[rows] = np.arange(len(rows))
    padded = namespace.xp.concat([values, namespace.zeros((1, values.shape[1]), values)], axis=0)
    return namespace.take_rows(padded, source)

"""Cross-validate one kernel over its ridge values, by the planned method or its fallbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

import numpy as np

from ridgefold.crossval import METHODS, Deadline, Folds, HeldOut, Judge, Progress, no_progress
from ridgefold.errors import BudgetError, MethodGaveUpError, NumericalError
from ridgefold.executors.interruption import look_between_tasks
from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.linalg.threads import threads
from ridgefold.planning import plan_cross_validation
from ridgefold.planning.amounts import in_bytes, in_seconds
from ridgefold.records import Plan, Problem, Resources
from ridgefold.runtime.step import MeasuredStep, Work


@dataclass
class PathWork(Work):
    """One kernel and its ridge values, and the folds that are held out."""

    gram: Gram
    folds: Folds
    targets: Array
    alphas: np.ndarray
    weights: Array | None
    bias: bool
    limits: Resources
    report: Callable[[], AbstractContextManager[Progress]] = lambda: nullcontext(no_progress)
    deadline: Deadline | None = None
    new_judge: Callable[[], Judge | None] = lambda: None
    """Makes who says which ridge values still matter, for every attempt anew."""
    held_out: HeldOut | None = None
    """What comes of it."""

    def __post_init__(self) -> None:
        self.like = self.gram.like

    def resources(self) -> Resources:
        return self.limits

    def progress(self, name: str) -> AbstractContextManager[Progress]:
        return self.report()


@dataclass(frozen=True)
class CrossValidateKernel(MeasuredStep[Problem, PathWork]):
    """Held-out predictions of one kernel for all its ridge values."""

    name: str
    requested: str = "auto"

    def cost(self, known: Problem, resources: Resources) -> Plan:
        return plan_cross_validation(known, resources, self.requested)

    def run(self, known: Problem, plan: Plan, work: PathWork, progress: Progress) -> Problem:
        work.held_out = run_cross_validation(
            plan,
            work.gram,
            work.folds,
            work.targets,
            work.alphas,
            weights=work.weights,
            bias=work.bias,
            progress=progress,
            judge=work.new_judge(),
            deadline=work.deadline,
        )
        return known

    def method_of(self, work: PathWork, plan: Plan) -> str:
        return plan.method if work.held_out is None else work.held_out.method


@contextmanager
def giving_up_is_a_budget_error(method: str, resources: Resources) -> Iterator[None]:
    """Turn giving up into a `BudgetError` where the method was chosen here: others would do if the
    budgets held them."""
    try:
        yield
    except MethodGaveUpError as error:
        if method != "auto":
            raise
        limits = f"memory_budget={in_bytes(resources.memory_bytes)}"
        if resources.seconds is not None:
            limits += f" and what is left of time_budget, {in_seconds(resources.seconds)}"
        raise BudgetError(
            f"{str(error).split(': use')[0]}; every other method that fits {limits} gave up too: "
            "raise these, fit on fewer rows, or use PartitionedKernelRidge"
        ) from None


def run_cross_validation(
    plan: Plan,
    gram: Gram,
    folds: Folds,
    targets: Array,
    alphas: np.ndarray,
    *,
    weights: Array | None = None,
    bias: bool = False,
    progress: Progress = no_progress,
    judge: Judge | None = None,
    deadline: Deadline | None = None,
) -> HeldOut:
    """Held-out predictions of every fold for every α that the judge, if there is one, keeps.

    If the planned method gives up, the plan's fallbacks run in their order, as far as a deadline
    leaves time for them.
    """
    gave_up = ""

    def looked(share: float) -> None:
        look_between_tasks()
        progress(share)

    watched: Progress = looked
    for name, is_last in _in_order(plan):
        method = METHODS[name]
        if deadline is not None:
            _require_time(plan, name, gave_up, deadline)
            watched = deadline.watching(looked, f"cross-validation by {name}")
        try:
            with threads(plan.resources.threads):
                state = method.prepare(gram, folds, weights, bias)
                result = method.held_out(state, targets, alphas, watched, judge)
                result = replace(result, method=name)
            break
        except MethodGaveUpError as error:
            if is_last:
                raise
            gave_up = str(error)
    progress(1.0)  # methods that converge do not know beforehand when they are done
    computed = result.predictions
    if result.kept is not None:
        some = result.kept if result.open is None else result.kept | result.open
        computed = gram.namespace.take_rows(computed, np.flatnonzero(some))
    if not gram.namespace.all_finite(computed):
        raise NumericalError(
            "held-out predictions are NaN or infinite: values overflowed on the way; scale the "
            "columns of X and the targets, or use larger alphas"
        )
    return result


def _in_order(plan: Plan) -> list[tuple[str, bool]]:
    names = [plan.method, *plan.fallbacks]
    return [(name, name == names[-1]) for name in names]


def _require_time(plan: Plan, name: str, gave_up: str, deadline: Deadline) -> None:
    """What can be stopped on the way is tried; what cannot is begun only if it will be done."""
    needed = 0.0 if METHODS[name].may_give_up else plan.seconds_at_most
    if gave_up and not deadline.has_time_for(needed):
        raise BudgetError(
            f"{gave_up.split(': use', maxsplit=1)[0]}; what then would do, {name}, is predicted to "
            f"take {needed:.3g} s, and of time_budget={deadline.budget:g} s there are "
            f"{deadline.left:.3g} s left: raise time_budget, fit on fewer rows, or use "
            "PartitionedKernelRidge"
        )

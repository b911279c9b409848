"""From a problem to a result: plan, run, measure; if memory runs out all the same, plan again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from ridgefold import notices
from ridgefold.errors import BudgetError, MethodGaveUpError
from ridgefold.linalg import Array
from ridgefold.linalg.namespace import is_out_of_memory
from ridgefold.planning.words import in_bytes, in_seconds
from ridgefold.records import Plan, Problem, Resources, Step
from ridgefold.runtime.meter import Reading, metered

Result = TypeVar("Result")
MakePlan = Callable[[Problem, Resources, str], Plan]


def run_planned(
    name: str,
    make_plan: MakePlan,
    run: Callable[[Plan], Result],
    *,
    problem: Problem,
    resources: Resources,
    requested: str,
    like: Array,
) -> tuple[Result, Step]:
    """The result of the planned method, and the record of the step.

    A plan is checked against the budget before anything large is allocated. If an allocation fails
    nevertheless (others use the memory too), a second plan gets half of what the first one needed.
    Warnings are kept in the record, and given as they would have been. `like` is an array of the
    data: memory is measured where it is.
    """
    plan = make_plan(problem, resources, requested)
    found = _attempt(run, plan, like)
    if found is None:
        plan = make_plan(problem, with_less(resources, plan), requested)
        found = _attempt(run, plan, like)
    if found is None:
        raise no_memory(name, plan)
    (result, messages), reading = found
    method = getattr(result, "method", "") or plan.method
    return result, Step(name, plan, method, reading.seconds, reading.peak_bytes, messages)


def _attempt(
    run: Callable[[Plan], Result], plan: Plan, like: Array
) -> tuple[tuple[Result, tuple[str, ...]], Reading] | None:
    """What a plan gives, measured; None if there was no memory for it.

    What a failed attempt had taken is free again when this returns, as nothing refers to its
    frames any longer.
    """
    try:
        return metered(lambda: _with_warnings(run, plan), like)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return None


def with_less(resources: Resources, failed: Plan) -> Resources:
    """What a second plan may take when the system had no memory for the first."""
    return replace(resources, memory_bytes=failed.cost.peak_bytes / 2)


def no_memory(name: str, plan: Plan) -> BudgetError:
    """What is said when there was none for the second plan either."""
    return BudgetError(
        f"{name}: the system gave no memory for {plan.method} "
        f"({in_bytes(plan.cost.peak_bytes)} were planned): free some, set memory_budget, "
        "or fit on fewer rows"
    )


@contextmanager
def giving_up_is_a_budget_error(method: str, resources: Resources) -> Iterator[None]:
    """Where the method is chosen here, others would do if the budgets held them."""
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


def _with_warnings(run: Callable[[Plan], Result], plan: Plan) -> tuple[Result, tuple[str, ...]]:
    """What a plan gives, and what it warned of; the warnings are passed on."""
    with notices.collected() as found:
        result = run(plan)
    notices.give(found)
    return result, tuple(dict.fromkeys(each.message for each in found))

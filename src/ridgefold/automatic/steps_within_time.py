"""Go through the list of steps within a time: run them, or foresee what would be run.

`runtime.step` has the same two walks for fits that either end or are refused. Here a step for which
there is no time is left out, and the next one is planned with what is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ridgefold.automatic.known import AutomaticWork, Candidate, Known
from ridgefold.automatic.steps import (
    AutomaticStep,
    FitKernel,
    automatic_steps,
    waiting_kernels,
)
from ridgefold.errors import BudgetError, InvalidInputError, NumericalError
from ridgefold.executors.interruption import looking
from ridgefold.planning.amounts import in_seconds
from ridgefold.records import Plan, Resources, StepRecord

_PROMISED_SHARE, _PROMISED_SECONDS = 1.15, 0.9
"""A fit ends within so many budgets, and so much more."""
_PUTTING_TOGETHER = 0.05
"""Share of the budget that is kept for what comes after the last candidate."""


@dataclass(frozen=True)
class Outcome:
    """What became of one step."""

    description: str
    """What the step was to do or to fit."""
    plan: Plan | None
    record: StepRecord | None
    """None if the step was not run, or did not end."""
    candidate: Candidate | None
    """The candidate that it made, if it made one."""
    seconds: float
    why_not: str = ""
    """Why it was not run, or failed."""


def run_steps(known: Known, work: AutomaticWork) -> tuple[Outcome, ...]:
    """Run the steps for which there is time, each within the time that is left."""
    outcomes: list[Outcome] = []
    with looking(work.time.look):
        for step in automatic_steps():
            left = work.time.left - _PUTTING_TOGETHER * work.time.budget
            known = replace(known, left=left)
            if step.needed(known):
                outcome, known = _run(step, known, work)
                outcomes.append(outcome)
    return tuple(outcomes)


def _run(step: AutomaticStep, known: Known, work: AutomaticWork) -> tuple[Outcome, Known]:
    """Run one step; without time or memory for it, what it would have fitted is left out."""
    count, begun, waiting = len(work.candidates), work.time.passed, len(work.kernels)
    try:
        plan = step.cost(known, work.resources())
    except BudgetError as error:
        if not work.candidates:
            raise
        known, description = step.passed_over(known, work)
        return Outcome(description, None, None, None, 0.0, str(error)), known
    fits_kernel = bool(known.waiting) and isinstance(step, FitKernel)
    description = work.kernels[0].description if fits_kernel else step.name
    try:
        after, record = step.perform(known, work, plan)
    except (BudgetError, NumericalError, InvalidInputError) as error:
        if not work.candidates:
            raise
        if isinstance(step, FitKernel) and len(work.kernels) == waiting:
            work.kernels = work.kernels[1:]
        after = replace(known, waiting=waiting_kernels(work))
        return Outcome(description, plan, None, None, work.time.passed - begun, str(error)), after
    passed = work.time.passed - begun
    kind = step.kind(plan)
    after = after.measured(kind, plan.seconds / known.pace(kind), passed)
    made = work.candidates[-1] if len(work.candidates) > count else None
    if made is not None:
        description = made.description
    return Outcome(description, plan, record, made, passed), after


def foreseen(known: Known, resources: Resources) -> list[tuple[str, Plan | BudgetError]]:
    """The plan of every step that would run, or its refusal, if predictions are right."""
    plans: list[tuple[str, Plan | BudgetError]] = []
    known = replace(known, left=known.left * (1.0 - _PUTTING_TOGETHER))
    for step in automatic_steps():
        if not step.needed(known):
            continue
        try:
            plan = step.cost(known, resources)
        except BudgetError as refusal:
            plans.append((step.name, refusal))
            known, _ = step.passed_over(known, None)
            continue
        plans.append((step.name, plan))
        known = replace(step.foresee(known), left=known.left - plan.seconds)
    return plans


def require_least_time(known: Known, budget: float, seconds: float, resources: Resources) -> None:
    """Refuse a budget in which not even a linear model can be had; `seconds` have passed."""
    linear = automatic_steps()[0]
    needed = seconds + linear.cost(known, resources).seconds
    if needed > _PROMISED_SHARE * budget + _PROMISED_SECONDS:
        raise BudgetError(
            f"time_budget={in_seconds(budget)} is too short for {known.problem.n_rows:,} rows of "
            f"{known.problem.n_columns:,} columns: the least that would do is "
            f"time_budget={math.ceil(needed)}"
        )

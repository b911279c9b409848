"""A step of a fit that keeps to a time: it is left out where there is no time for it.

What it would have fitted is left out with it, and the next step is planned with what is left.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

from ridgefold.automatic.automatic_work import (
    AutomaticProblem,
    AutomaticWork,
    Candidate,
    WaitingKernel,
)
from ridgefold.errors import BudgetError, InvalidInputError, NumericalError
from ridgefold.records import Plan, StepRecord
from ridgefold.runtime.step import MeasuredStep


@dataclass(frozen=True)
class Outcome:
    """What became of one step."""

    description: str
    """What the step was to do or to fit."""
    plan: Plan | None
    candidate: Candidate | None
    """The candidate that it made, if it made one."""
    seconds: float
    why_not: str = ""
    """Why it was not run, or failed."""


class AutomaticStep(MeasuredStep[AutomaticProblem, AutomaticWork]):
    """A step that knows what kind of work it is."""

    @abstractmethod
    def kind(self, plan: Plan) -> str:
        """The kind of work that a plan is."""

    def describes(self, work: AutomaticWork) -> str:
        """What it is going to do or to fit."""
        return self.name

    def let_go(self, work: AutomaticWork) -> None:
        """Drop what it would have fitted."""

    def passed_over(self, known: AutomaticProblem) -> AutomaticProblem:
        """What is known after there was no time for the step."""
        return known

    def after(self, known: AutomaticProblem, plan: Plan | None) -> AutomaticProblem:
        if plan is None:
            return self.passed_over(known)
        return replace(self.foresee(known), left=known.left - plan.seconds)

    def carry_out(
        self, known: AutomaticProblem, work: AutomaticWork
    ) -> tuple[AutomaticProblem, tuple[StepRecord, ...]]:
        """Run it within the time that is left; without a model so far, errors are errors."""
        count, begun, waiting = len(work.candidates), work.time.passed, len(work.kernels)
        description = self.describes(work)
        try:
            plan = self.cost(known, work.resources())
        except BudgetError as error:
            if not work.candidates:
                raise
            work.outcomes.append(Outcome(description, None, None, 0.0, str(error)))
            self.let_go(work)
            return self.passed_over(known), ()
        try:
            after, record = self.perform(known, work, plan)
        except (BudgetError, NumericalError, InvalidInputError) as error:
            if not work.candidates:
                raise
            passed = work.time.passed - begun
            work.outcomes.append(Outcome(description, plan, None, passed, str(error)))
            if len(work.kernels) == waiting:
                self.let_go(work)
            return replace(known, waiting=waiting_kernels(work)), ()
        passed, kind = work.time.passed - begun, self.kind(plan)
        made = work.candidates[-1] if len(work.candidates) > count else None
        if made is not None:
            description = made.description
        work.outcomes.append(Outcome(description, plan, made, passed))
        return after.measured(kind, plan.seconds / known.pace(kind), passed), (record,)


def waiting_kernels(work: AutomaticWork) -> tuple[WaitingKernel, ...]:
    """The kernels that are found and not yet fitted, as plans see them."""
    return tuple(WaitingKernel(k.kernel.evaluation, k.itemsize(work)) for k in work.kernels)

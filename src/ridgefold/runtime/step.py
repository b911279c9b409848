"""The steps of a fit: what each will cost beside how it is done, and the one way to run them.

A fit is a list of steps. `foresee_all` goes through the list and asks every step for its plan;
`perform_all` goes through the same list and does every step. Two things pass from step to step:

- `known`: shapes and settings, without data, from which the next step is planned. A step that is
  explained foresees what will be known after it, one that is done says what is. It is a `Problem`
  for exact models, a `CellProblem` for cells, and an `AutomaticProblem` for automatic fits.
- `work`, a `Work`: the data, and what has been computed from them. Plans never see it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Generic, TypeVar

from ridgefold import notices
from ridgefold.crossval import Progress, no_progress
from ridgefold.errors import BudgetError
from ridgefold.linalg import Array
from ridgefold.linalg.namespace import is_out_of_memory
from ridgefold.planning.amounts import in_bytes
from ridgefold.records import Plan, Resources, StepRecord
from ridgefold.runtime.meter import Meter


class Work(ABC):
    """The data of one fit, and what its steps have computed from them so far."""

    like: Array = None
    """An array of the data: memory is measured where it is."""

    @abstractmethod
    def resources(self) -> Resources:
        """What the next step may use."""

    def up_to_date(self, known: Any) -> Any:
        """What is known, with what has changed since, as the time that is left."""
        return known

    def progress(self, name: str) -> AbstractContextManager[Progress]:
        """Where a step reports how far it is."""
        return nullcontext(no_progress)


AnyProblem = TypeVar("AnyProblem")
AnyWork = TypeVar("AnyWork", bound=Work)


class Step(ABC, Generic[AnyProblem, AnyWork]):
    """One entry of the list that is a fit: it can be planned, and it can be carried out."""

    name: str
    """What it is for, in words."""

    def title(self, known: AnyProblem) -> str:
        """Its name with what is known of it, for people."""
        return self.name

    def needed(self, known: AnyProblem) -> bool:
        """Whether there is anything to do, given what is known before it."""
        return True

    @abstractmethod
    def cost(self, known: AnyProblem, resources: Resources) -> Plan:
        """How it will be done within some resources, and at what cost; or a refusal."""

    def foresee(self, known: AnyProblem) -> AnyProblem:
        """What will likely be known afterwards, from shapes and settings alone."""
        return known

    def after(self, known: AnyProblem, plan: Plan | None) -> AnyProblem:
        """What will likely be known after such a plan, or after a refusal."""
        return self.foresee(known)

    @abstractmethod
    def carry_out(
        self, known: AnyProblem, work: AnyWork
    ) -> tuple[AnyProblem, tuple[StepRecord, ...]]:
        """Do it; returns what is known then, and a record of what it took.

        A step that does several things, each planned by itself from the data, as the kernels of a
        search, returns a record of every one.
        """


class MeasuredStep(Step[AnyProblem, AnyWork]):
    """A step that is one computation: planned, run, measured, and run again with less memory if
    there was not enough."""

    @abstractmethod
    def run(self, known: AnyProblem, plan: Plan, work: AnyWork, progress: Progress) -> AnyProblem:
        """Do as planned; what comes of it goes into `work`, and what is known now comes back."""

    def method_of(self, work: AnyWork, plan: Plan) -> str:
        """What really did it, where that may be another than the planned one."""
        return plan.method

    def perform(
        self, known: AnyProblem, work: AnyWork, plan: Plan | None = None
    ) -> tuple[AnyProblem, StepRecord]:
        """Plan, run, measure; if the system gives no memory, plan and run again with less.

        A plan is checked against the budget before anything large is allocated. If an allocation
        fails nevertheless (others use the memory too), a second plan gets half of what the first
        one needed. Warnings are kept in the record, and given as they would have been. `plan` is
        the first one, where it was made before.
        """
        if plan is None:
            plan = self.cost(known, work.resources())
        done = self._attempt(known, plan, work)
        if done is None:
            plan = self._smaller(known, plan)
            done = self._attempt(known, plan, work)
        if done is None:
            raise _no_memory(self.title(known), plan)
        return done

    def carry_out(
        self, known: AnyProblem, work: AnyWork
    ) -> tuple[AnyProblem, tuple[StepRecord, ...]]:
        known, record = self.perform(known, work)
        return known, (record,)

    def _smaller(self, known: AnyProblem, failed: Plan) -> Plan:
        """A plan with half of the memory that the failed one needed."""
        less = replace(failed.resources, memory_bytes=failed.cost.peak_bytes / 2)
        try:
            return self.cost(known, less)
        except BudgetError:
            raise _no_memory(self.title(known), failed) from None

    def _attempt(
        self, known: AnyProblem, plan: Plan, work: AnyWork
    ) -> tuple[AnyProblem, StepRecord] | None:
        """What a plan gives, measured; None if there was no memory for it.

        What a failed attempt had taken is free again when this returns, as nothing refers to its
        frames any longer.
        """
        try:
            with (
                Meter(work.like) as meter,
                notices.collected() as given,
                work.progress(self.name) as progress,
            ):
                after = self.run(known, plan, work, progress)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            return None
        notices.give(given)
        messages = tuple(dict.fromkeys(each.message for each in given))
        method, title = self.method_of(work, plan), self.title(known)
        return after, StepRecord(title, plan, method, meter.seconds, meter.peak_bytes, messages)


def perform_all(
    steps: Iterable[Step[AnyProblem, AnyWork]], known: AnyProblem, work: AnyWork
) -> tuple[AnyProblem, tuple[StepRecord, ...]]:
    """Go through the list and do it; returns what is known at the end, and what it took."""
    records: list[StepRecord] = []
    for step in steps:
        known = work.up_to_date(known)
        if step.needed(known):
            known, further = step.carry_out(known, work)
            records += further
    return known, tuple(records)


def foresee_all(
    steps: Iterable[Step[AnyProblem, AnyWork]], known: AnyProblem, resources: Resources
) -> list[tuple[str, Plan | BudgetError]]:
    """Go through the same list without doing it: the plan of every step, or its refusal."""
    plans: list[tuple[str, Plan | BudgetError]] = []
    for step in steps:
        if not step.needed(known):
            continue
        plan: Plan | BudgetError
        try:
            plan = step.cost(known, resources)
        except BudgetError as refusal:
            plan = refusal
        plans.append((step.title(known), plan))
        known = step.after(known, plan if isinstance(plan, Plan) else None)
    return plans


def _no_memory(name: str, plan: Plan) -> BudgetError:
    """What is said when nothing less can be planned, or there is no memory for that either."""
    return BudgetError(
        f"{name}: the system gave no memory for {plan.method} "
        f"({in_bytes(plan.cost.peak_bytes)} were planned): free some, set memory_budget, "
        "or fit on fewer rows"
    )

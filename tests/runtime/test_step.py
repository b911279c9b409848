"""One way to run a step: planned, measured, tried once more with less, warnings passed on."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from ridgefold.errors import BudgetError, ConditionWarning, InvalidInputError
from ridgefold.notices import warn
from ridgefold.records import Cost, Plan, Problem, Resources
from ridgefold.runtime import MeasuredStep, Work, foresee_all, perform_all

PROBLEM = Problem(n_rows=100, n_columns=2)


@dataclass
class Purse(Work):
    """So much memory is really there, whatever plans say."""

    really: float
    spent: list[str] = field(default_factory=list)

    def resources(self):
        return Resources(memory_bytes=1000.0)


class Spend(MeasuredStep):
    """Spends half of what it may, as a rich person would, or little."""

    name = "spending"

    def cost(self, known, resources):
        method, needed = ("rich", 800.0) if resources.memory_bytes >= 800 else ("modest", 100.0)
        if needed > resources.memory_bytes:
            raise BudgetError("nothing is as cheap as that")
        return Plan(PROBLEM, resources, method, Cost({}, needed), 1.0, ())

    def foresee(self, known):
        return known + 1

    def run(self, known, plan, work, progress):
        if plan.cost.peak_bytes > work.really:
            raise MemoryError
        work.spent.append(plan.method)
        return known + 1


class Warn(Spend):
    name = "warning"

    def needed(self, known):
        return known % 2 == 1

    def run(self, known, plan, work, progress):
        warn("look out", ConditionWarning)
        return known + 1


def test_a_step_that_has_its_memory_runs_as_planned():
    work = Purse(really=1000.0)
    known, record = Spend().perform(0, work)
    assert (known, work.spent, record.plan.method, record.name) == (1, ["rich"], "rich", "spending")
    assert record.seconds >= 0


def test_a_failed_allocation_is_tried_once_more_with_half():
    work = Purse(really=500.0)
    _, record = Spend().perform(0, work)
    assert work.spent == ["modest"]
    assert record.plan.resources.memory_bytes == 400.0


@pytest.mark.parametrize("really", [50.0, 0.0])
def test_a_second_failure_is_a_budget_error(really):
    with pytest.raises(BudgetError, match="spending: the system gave no memory for modest"):
        Spend().perform(0, Purse(really))


def test_a_step_that_knows_nothing_smaller_says_what_it_planned():
    class Proud(Spend):
        def cost(self, known, resources):
            if resources.memory_bytes < 800:
                raise BudgetError("never")
            return super().cost(known, resources)

    with pytest.raises(BudgetError, match="the system gave no memory for rich"):
        Proud().perform(0, Purse(500.0))


def test_other_errors_are_passed_on_at_once():
    class Wrong(Spend):
        def run(self, known, plan, work, progress):
            work.spent.append("tried")
            raise InvalidInputError("no")

    work = Purse(1000.0)
    with pytest.raises(InvalidInputError):
        Wrong().perform(0, work)
    assert work.spent == ["tried"]


def test_warnings_are_kept_and_given():
    with pytest.warns(ConditionWarning, match="look out"):
        _, record = Warn().perform(1, Purse(1000.0))
    assert record.warnings == ("look out",)


@pytest.mark.filterwarnings("ignore:look out")
def test_the_list_that_is_foreseen_is_the_list_that_is_performed():
    steps, work = [Spend(), Warn(), Warn(), Spend()], Purse(1000.0)
    known, records = perform_all(steps, 0, work)
    plans = foresee_all(steps, 0, work.resources())
    assert known == 3
    names = ["spending", "warning", "spending"]  # after the second nothing is to be warned of
    assert [record.name for record in records] == [name for name, _ in plans] == names


def test_a_refusal_stands_in_the_list_in_place_of_a_plan():
    ((name, refusal),) = foresee_all([Spend()], 0, Resources(memory_bytes=10.0))
    assert name == "spending"
    assert isinstance(refusal, BudgetError)

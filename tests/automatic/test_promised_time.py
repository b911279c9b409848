"""Budgets that somebody named go by the clock, automatic ones by the time that a process gets."""

from __future__ import annotations

import time

import pytest

from ridgefold.automatic.promised_time import PromisedTime, TimeOfThisProcess


class Clocks:
    """A clock on the wall and that of a process, both set by hand."""

    def __init__(self) -> None:
        self.wall = self.own = 100.0

    def made(self) -> TimeOfThisProcess:
        return TimeOfThisProcess(lambda: self.wall, lambda: self.own)


@pytest.mark.parametrize(
    ("wall", "own", "counted"),
    [(10.0, 10.0, 10.0), (10.0, 5.0, 5.0), (10.0, 19.0, 10.0), (10.0, 1.0, 2.5)],
    ids=["an idle machine", "a busy one", "two threads", "a very busy one"],
)
def test_time_of_a_process_goes_slower_where_others_work(wall, own, counted):
    clocks = Clocks()
    clock = clocks.made()
    clocks.wall += wall
    clocks.own += own
    assert clock() == pytest.approx(counted)


def test_only_automatic_budgets_of_one_process_go_by_its_time():
    def kind(budget, clock=time.monotonic, alone=True):
        return type(PromisedTime.of(budget, clock, alone=alone).clock)

    assert kind("auto") is TimeOfThisProcess
    assert kind(5.0) is not TimeOfThisProcess
    assert kind("auto", alone=False) is not TimeOfThisProcess
    assert kind("auto", clock=lambda: 0.0) is not TimeOfThisProcess

"""Limits are kept before anything large is allocated, and running out of memory is survived."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ridgefold import KernelRidge, KernelRidgeCV, cross_val_path
from ridgefold.errors import BudgetError, InvalidInputError
from ridgefold.runtime import Meter
from ridgefold.solvers import SOLVERS

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 3))
Y = X[:, 0] + 0.1 * RNG.standard_normal(200)


def test_time_and_memory_are_measured():
    with Meter() as meter:
        assert np.ones(4_000_000).sum() == 4e6
    assert meter.seconds > 0


def in_another_process(program):
    return subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout


LINUX = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say")


@LINUX
def test_memory_beyond_what_was_held_is_measured():
    program = (
        "import numpy as np; from ridgefold.runtime import Meter\n"
        "with Meter() as meter:\n    np.ones(4_000_000).sum()\n"
        "print(meter.peak_bytes)"
    )
    assert 3.1e7 < float(in_another_process(program)) < 4e7


@LINUX
def test_measuring_leaves_the_high_water_mark_of_the_process_to_others():
    """A mark that others set high stays; what a step holds below it is measured all the same."""
    program = """
import time
import numpy as np
from ridgefold.runtime import Meter

def mark():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

def work():
    held = np.ones(4_000_000)
    until = time.monotonic() + 1.0  # below the mark memory is looked at now and then
    while time.monotonic() < until:
        np.linalg.eigvalsh(np.eye(200))
    return held[0]

np.ones(20_000_000)
before = mark()
with Meter() as meter:
    work()
print(before, mark(), meter.peak_bytes)
"""
    before, after, peak = map(float, in_another_process(program).split())
    assert after >= before > 1.6e5
    assert 3.1e7 < peak < 5e7


def test_a_refusal_allocates_nothing_and_leaves_the_model_as_it_was():
    model = KernelRidge(kernel="rbf", memory_budget="150kB")
    big = np.zeros((3000, 2))
    with pytest.raises(BudgetError, match=r"no solver fits memory_budget=0\.15 MB"):
        model.fit(big, big[:, 0])
    assert not hasattr(model, "plan_")


@pytest.mark.parametrize("value", [0, -1, "1s", True, float("inf")])
def test_a_time_budget_must_be_a_number_of_seconds(value):
    with pytest.raises(InvalidInputError, match="time_budget must be a number of seconds"):
        KernelRidge(time_budget=value).fit(X, Y)


def test_a_search_that_would_take_too_long_is_refused():
    with pytest.raises(BudgetError, match="time_budget="):
        KernelRidgeCV(time_budget=1e-6).fit(X, Y)
    with pytest.raises(BudgetError, match="time_budget"):
        cross_val_path(X, Y, time_budget=1e-6)


def test_a_failed_allocation_is_planned_again_with_less(monkeypatch):
    """The first solver finds no memory; the second plan gets half, and another solver does it."""
    cholesky, tried = SOLVERS["cholesky"], []

    def fail(system):
        tried.append(system.targets.shape[0])
        raise MemoryError

    monkeypatch.setattr(cholesky, "solve", fail, raising=False)
    n = 3400
    rows = np.random.default_rng(1).standard_normal((n, 2))
    model = KernelRidge(alpha=1.0, kernel="rbf", gamma=0.5).fit(rows, rows[:, 0])
    assert tried == [n]
    assert model.plan_.method == "conjugate_gradient"


def test_two_failed_allocations_are_a_typed_error_and_the_model_is_unchanged(monkeypatch):
    def fail(system):
        raise MemoryError

    for solver in SOLVERS.values():
        monkeypatch.setattr(solver, "solve", fail, raising=False)
    rows = np.random.default_rng(1).standard_normal((3400, 2))
    model = KernelRidge()
    with pytest.raises(BudgetError, match=r"the system gave no memory|no solver fits"):
        model.fit(rows, rows[:, 0])
    assert vars(model) == vars(KernelRidge())

"""A memory budget is kept by the whole call, as seen from outside the process, or refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "outside_sampler.py"
BESIDE = 2e6
"""What Python and the code of libraries take beside arrays; the pages say so."""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the system does not say what a process holds"
)


def looked_at(kind, size):
    shown = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, str(PROGRAM), kind, size], capture_output=True, text=True, check=True
    ).stdout
    return [json.loads(line) for line in shown.splitlines()]


def require_kept(found):
    over = [case for case in found if case["peak"] > case["budget"] + BESIDE]
    assert not over
    assert not [case for case in found if case["error"] not in ("", "BudgetError")]


def test_every_estimator_keeps_its_memory_budget_or_refuses():
    found = looked_at("budget", "small")
    require_kept(found)
    refused = {case["name"] for case in found if case["error"]}
    assert "one cell" in refused
    assert {"cells", "given pair", "one fit", "averaged cells"}.isdisjoint(refused)
    # A refusal comes before the work.
    assert all(case["peak"] < case["budget"] / 2 for case in found if case["name"] == "one cell")


@pytest.mark.full
def test_every_estimator_keeps_every_memory_budget_or_refuses():
    require_kept(looked_at("budget", "full"))


def test_under_a_limit_of_the_process_errors_are_typed():
    found = looked_at("limit", "small")
    assert not [case for case in found if case["error"] not in ("", "BudgetError")]
    assert any(case["error"] for case in found)


@pytest.mark.full
def test_under_any_limit_of_the_process_errors_are_typed():
    found = looked_at("limit", "full")
    assert not [case for case in found if case["error"] not in ("", "BudgetError")]

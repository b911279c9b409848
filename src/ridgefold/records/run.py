"""What was run, and what it really cost."""

from __future__ import annotations

from dataclasses import dataclass

from ridgefold.records.kinds import Amount
from ridgefold.records.plan import Plan


@dataclass(frozen=True)
class StepRecord:
    """One planned computation, with its cost as measured."""

    name: str
    """What it was for, in words."""
    plan: Plan
    method: str
    """The method that did it: the planned one, or a fallback."""
    seconds: Amount
    peak_bytes: Amount | None
    """Memory beyond what was held before; None where the system does not say."""
    warnings: tuple[str, ...] = ()
    """What was warned of on the way."""


@dataclass(frozen=True)
class RunRecord:
    """All steps of a fit, in order."""

    steps: tuple[StepRecord, ...]

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

"""What was run, and what it cost as measured."""

from __future__ import annotations

from dataclasses import dataclass

from ridgefold.records.kinds import Amount
from ridgefold.records.plan import Plan


@dataclass(frozen=True)
class StepRecord:
    """One planned computation, with its cost as measured."""

    name: str
    """The purpose of the step, in words."""
    plan: Plan
    method: str
    """The method that ran: the planned one, or a fallback."""
    seconds: Amount
    peak_bytes: Amount | None
    """Memory beyond what was held before; None where the system does not say."""
    warnings: tuple[str, ...] = ()
    """The texts of the warnings that the step raised."""


@dataclass(frozen=True)
class RunRecord:
    """All steps of a fit, in order."""

    steps: tuple[StepRecord, ...]

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

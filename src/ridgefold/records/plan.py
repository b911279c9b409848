"""What was decided, and what was not and why."""

from __future__ import annotations

from dataclasses import dataclass

from ridgefold.records.cost import Cost
from ridgefold.records.problem import Problem
from ridgefold.records.resources import Resources


@dataclass(frozen=True)
class Rejection:
    """A method that was not chosen, and the reason in words."""

    method: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """The method chosen for a problem, with its predicted cost."""

    problem: Problem
    resources: Resources
    method: str
    cost: Cost
    seconds: float
    rejected: tuple[Rejection, ...]
    seconds_at_most: float = 0.0
    """What it takes if the method gives up, and so do all but the last of the fallbacks."""
    fallbacks: tuple[str, ...] = ()
    """What runs instead, in this order, if the method finds that the data do not suit it."""

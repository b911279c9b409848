"""What was decided, and what was not and why."""

from __future__ import annotations

from dataclasses import dataclass

from ridgefold.records.cost import Cost
from ridgefold.records.kinds import Limit
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
    """What was to be computed: shapes and settings."""
    resources: Resources
    """The memory, time and threads that it may take."""
    method: str
    """The name of the method or solver."""
    cost: Cost
    """Its work and memory."""
    seconds: Limit
    """Its predicted time."""
    rejected: tuple[Rejection, ...]
    """The others, with the reason."""
    seconds_at_most: Limit = 0.0
    """What it takes if the method gives up, and so do all but the last of the fallbacks."""
    fallbacks: tuple[str, ...] = ()
    """What runs instead, in this order, if the method finds that the data do not suit it."""
    where: str = ""
    """Where it runs, in words that follow "on"; empty for this process."""
    moves: str = ""
    """What is read, sent and written for that, in words."""

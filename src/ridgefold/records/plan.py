"""What a computation may use, how it is planned, and what it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ridgefold.records.kinds import Amount, Count, Limit
from ridgefold.records.problem import Problem


@dataclass(frozen=True)
class Cost:
    """Work by kind, and the bytes alive at the worst moment."""

    flops: Mapping[str, Amount]
    """Floating-point operations of kind product, cholesky, inverse, eigendecomposition (9n³ is
    one), band_reduction, band_cholesky; besides, kernel (values of the kernel), memory (bytes
    moved) and calls (steps that cost time however small they are)."""
    peak_bytes: Amount
    size: Amount = 1000.0
    """Rows of the matrices that most of the work is done on: small ones are slower."""


@dataclass(frozen=True)
class Resources:
    """Limits of the machine, or those the user has set."""

    memory_bytes: Limit
    seconds: Limit | None = None
    """Time that may be taken; None for as long as it takes."""
    threads: Count = 1
    """Threads of the linear algebra library."""
    device: str | None = None
    """Name of the accelerator that works, whose memory it is; None for the processor."""


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

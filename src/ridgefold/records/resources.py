"""What a computation may use."""

from __future__ import annotations

from dataclasses import dataclass

from ridgefold.records.kinds import Count, Limit


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

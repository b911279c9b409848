"""What a computation may use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Resources:
    """Limits of the machine, or those the user has set."""

    memory_bytes: float
    seconds: float | None = None
    """Time that may be taken; None for as long as it takes."""
    threads: int = 1
    """Threads of the linear algebra library."""
    device: str | None = None
    """Name of the accelerator that works, whose memory it is; None for the processor."""

"""Time and memory of a piece of work."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ridgefold.linalg import Array, namespace_of

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")

Result = TypeVar("Result")


@dataclass(frozen=True)
class Reading:
    """What a piece of work took."""

    seconds: float
    peak_bytes: float | None
    """Memory beyond what was held at the start; None where the system does not say."""


def metered(work: Callable[[], Result], like: Array = None) -> tuple[Result, Reading]:
    """Do the work, and say what it took: of the memory that holds `like`, an array."""
    namespace = namespace_of(like)
    on_device = like is not None and namespace.accelerator(like) is not None
    before = namespace.held_after_reset(like) if on_device else _held_after_reset()
    started = time.perf_counter()
    result = work()
    if on_device:
        namespace.wait(like)
    seconds = time.perf_counter() - started
    peak = namespace.peak_bytes(like) if on_device else _status("VmHWM")
    more = None if before is None or peak is None else max(0.0, peak - before)
    return result, Reading(seconds, more)


def _held_after_reset() -> float | None:
    """The memory held now, with the high-water mark put back to it."""
    try:
        _RESET.write_text("5")
    except OSError:
        return None
    return _status("VmRSS")


def _status(entry: str) -> float | None:
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith(f"{entry}:"):
                return float(line.split()[1]) * 1024
    except OSError:
        pass
    return None

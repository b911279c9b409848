"""Time and memory of a piece of work.

A process has one high-water mark of memory, which belongs to all that runs in it: it is read and
never put back. Where work raises the mark, that says exactly how much the work took. Where the mark
stood higher before, what was held is looked at every few milliseconds, which may miss a moment.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ridgefold.linalg import Array, Namespace, namespace_of

_STATUS, _PAGES = Path("/proc/self/status"), Path("/proc/self/statm")
_SECONDS_BETWEEN_LOOKS = 0.005
"""A matrix large enough to matter is held for longer; looking so often takes 0.3% of a core."""


class Meter:
    """What is done while the context lasts, in the memory that holds `like`, an array."""

    seconds: float
    """Known afterwards, as is the memory."""
    peak_bytes: float | None
    """Memory beyond what was held at the start; None where the system does not say."""

    def __init__(self, like: Array = None) -> None:
        namespace = namespace_of(like)
        on_device = like is not None and namespace.accelerator(like) is not None
        self._memory: _DeviceMemory | _ProcessMemory = (
            _DeviceMemory(namespace, like) if on_device else _ProcessMemory()
        )

    def __enter__(self) -> Meter:
        self._memory.__enter__()
        self._started = time.perf_counter()
        return self

    def __exit__(self, *raised: object) -> None:
        if raised[0] is None:
            self._memory.wait()
        self.seconds = time.perf_counter() - self._started
        self._memory.__exit__(*raised)
        self.peak_bytes = self._memory.most_beyond_start


class _DeviceMemory:
    """The most memory that a device holds while the context lasts."""

    most_beyond_start: float | None = None
    """Known afterwards; None where the device does not say."""

    def __init__(self, namespace: Namespace, like: Array) -> None:
        self._namespace, self._like = namespace, like

    def __enter__(self) -> _DeviceMemory:
        self._before = self._namespace.held_after_reset(self._like)
        return self

    def wait(self) -> None:
        """Until the device has done what it was told."""
        self._namespace.wait(self._like)

    def __exit__(self, *raised: object) -> None:
        peak = self._namespace.peak_bytes(self._like)
        if self._before is not None and peak is not None:
            self.most_beyond_start = max(0.0, peak - self._before)


class _ProcessMemory:
    """The most memory that this process holds while the context lasts."""

    most_beyond_start: float | None = None
    """Known afterwards; None where the system does not say."""

    def __enter__(self) -> _ProcessMemory:
        _give_back()
        self._mark, self._start = _status("VmHWM"), _status("VmRSS")
        self._seen = self._start
        self._done = threading.Event()
        self._looking: threading.Thread | None = None
        if self._start is not None and _held_now() is not None:
            looking = threading.Thread(target=self._look, daemon=True)
            with suppress(RuntimeError, MemoryError):  # no room for one under a limit
                looking.start()
                self._looking = looking
        return self

    def wait(self) -> None:
        """The processor has done what it was told when a call returns."""

    def __exit__(self, *raised: object) -> None:
        self._done.set()
        if self._looking is not None:
            self._looking.join()
        if self._start is None or self._seen is None:
            return
        mark = _status("VmHWM")
        risen = mark is not None and self._mark is not None and mark > self._mark
        most = mark if risen and mark is not None else self._seen
        self.most_beyond_start = max(0.0, most - self._start)

    def _look(self) -> None:
        while not self._done.wait(_SECONDS_BETWEEN_LOOKS):
            held = _held_now()
            if held is not None and self._seen is not None:
                self._seen = max(self._seen, held)


def _give_back() -> None:
    """Memory that was let go before goes back to the system, where that can be asked for.

    The C library keeps blocks of up to 32 MB, and a matrix that is a little larger than the one
    before does not fit in its place: two would be held where one is.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@functools.lru_cache(maxsize=1)
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        found = ctypes.CDLL(None).malloc_trim  # glibc has it
    except (OSError, AttributeError, TypeError):
        return None
    found.argtypes, found.restype = [ctypes.c_size_t], ctypes.c_int
    trim: Callable[[int], int] = found
    return trim


def _held_now() -> float | None:
    """The resident memory; a look takes 15 microseconds."""
    try:
        return float(_PAGES.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError, AttributeError):
        return None


def _status(entry: str) -> float | None:
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith(f"{entry}:"):
                return float(line.split()[1]) * 1024
    except OSError:
        pass
    return None

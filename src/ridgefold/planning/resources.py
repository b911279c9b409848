"""How much memory may be used: the user's limit, or a share of what is free."""

from __future__ import annotations

import functools
import math
import os
import re
from pathlib import Path
from typing import Any

from ridgefold.errors import InvalidInputError
from ridgefold.planning.devices import Device
from ridgefold.records import Resources

_UNITS = {
    "": 1,
    "b": 1,
    **{
        f"{letter}{suffix}": base**power
        for power, letter in enumerate("kmgt", start=1)
        for suffix, base in (("", 1000), ("b", 1000), ("ib", 1024))
    },
}
_SHARE_OF_FREE_MEMORY = 0.7
"""What ``memory_budget="auto"`` takes of the free memory: the rest is for other processes."""
_FALLBACK_BYTES = 2e9
"""Free memory, where the system does not say: hardly any machine has less."""


def parse_memory(value: Any, name: str = "memory_budget") -> float:
    """Bytes from a number or a text such as "2GB", "512 MiB"."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-z]*)\s*", value.lower())
        if match and match[2] in _UNITS:
            try:
                return parse_memory(float(match[1]) * _UNITS[match[2]], name)
            except ValueError:
                pass
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise InvalidInputError(
        f'{name} must be "auto", a number of bytes or a text such as "2GB", got {value!r}'
    )


def available_resources(
    memory_budget: Any = "auto", time_budget: Any = None, device: Device | None = None
) -> Resources:
    """What a computation may use, given the arguments `memory_budget` and `time_budget`.

    On a device, "auto" is a share of the memory that is free there.
    """
    if isinstance(memory_budget, str) and memory_budget == "auto":
        memory = _SHARE_OF_FREE_MEMORY * (_free_memory() if device is None else _free_on(device))
    else:
        memory = parse_memory(memory_budget)
    if time_budget is not None and (
        isinstance(time_budget, (bool, str)) or not 0 < time_budget < math.inf
    ):
        raise InvalidInputError(
            f"time_budget must be a number of seconds > 0 or None, got {time_budget!r}"
        )
    seconds = None if time_budget is None else float(time_budget)
    if device is not None:
        return Resources(memory_bytes=memory, seconds=seconds, device=device.name)
    return Resources(memory_bytes=memory, seconds=seconds, threads=thread_count())


def _free_on(device: Device) -> float:
    if device.free_bytes is None:
        raise InvalidInputError(
            f"how much memory {device.name!r} has free is not known, as torch has no such device "
            'here or cannot say: give memory_budget, as "100GB"'
        )
    return device.free_bytes


@functools.lru_cache(maxsize=1)
def thread_count() -> int:
    """Threads that the linear algebra library will use: never more than there are cores."""
    from threadpoolctl import threadpool_info

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(1, int(min([cores or 1, *pools])))


def _free_memory() -> float:
    """The least of what the machine has free and what limits of this process and of its control
    group leave."""
    amounts = [_machine_free(), _process_limit_left(), *_control_group_free()]
    return min((a for a in amounts if a is not None), default=_FALLBACK_BYTES)


def _machine_free() -> float | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (ValueError, OSError, AttributeError):
        return None


def _process_limit_left() -> float | None:
    """What a limit of the address space (``ulimit -v``) leaves; None if there is none."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return max(0.0, float(limit) - pages * resource.getpagesize())


def _control_group_free() -> list[float]:
    """Limits of containers, which the host's figures do not show."""
    groups = (
        ("/sys/fs/cgroup", "memory.max", "memory.current"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    )
    free = []
    for folder, limit, used in groups:
        try:
            left = float(Path(f"{folder}/{limit}").read_text())
            left -= float(Path(f"{folder}/{used}").read_text())
        except (OSError, ValueError):  # no such file, or "max"
            continue
        free.append(max(0.0, left + _cached_files(f"{folder}/memory.stat")))
    return free


def _cached_files(path: str) -> float:
    """Bytes of file cache that count as used but are given up when memory is asked for."""
    try:
        for line in Path(path).read_text().splitlines():
            if line.startswith("inactive_file "):
                return float(line.split()[1])
    except OSError:
        pass
    return 0.0

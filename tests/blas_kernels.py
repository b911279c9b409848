"""Which kernels of OpenBLAS there are for this processor, and which one is loaded.

OpenBLAS has other code for every kind of processor, which rounds otherwise; OPENBLAS_CORETYPE names
the kind to take. What passes with one and fails with another depends on rounding.
"""

from __future__ import annotations

import sys
from pathlib import Path

from threadpoolctl import threadpool_info

NEEDS = {"Nehalem": "sse4_2", "Sandybridge": "avx", "Haswell": "avx2", "SkylakeX": "avx512f"}
"""Kernels from the slowest to the fastest, and what a processor must have for each."""
_ALIKE = {"zen": "haswell"}
"""Kinds of processors that take the kernels of another one."""


def processor_flags() -> set[str]:
    """What the processor has; nothing where the system does not say."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return set(next((line.split(":")[1] for line in lines if line.startswith("flags")), "").split())


def usable() -> list[str]:
    flags = processor_flags()
    return [kernel for kernel, flag in NEEDS.items() if flag in flags]


def loaded() -> set[str]:
    """The kernels of the OpenBLAS libraries of NumPy and SciPy, in small letters."""
    import numpy.linalg  # noqa: F401
    import scipy.linalg  # noqa: F401

    found = {
        library["architecture"].lower()
        for library in threadpool_info()
        if library.get("internal_api") == "openblas"
    }
    return {_ALIKE.get(kernel, kernel) for kernel in found}


def another() -> str | None:
    """The fastest kernel but the machine's own and those above it; None if there is none."""
    own = loaded()
    others = [kernel for kernel in usable() if kernel.lower() not in own and kernel != "SkylakeX"]
    return others[-1] if own and others else None


def what_is_wrong(asked: str) -> str | None:
    """Why tests do not run with the kernel that was asked for; None if they do."""
    if loaded() == {_ALIKE.get(asked.lower(), asked.lower())}:
        return None
    found = ", ".join(sorted(loaded())) or "no OpenBLAS"
    return (
        f"OPENBLAS_CORETYPE={asked} asks for one kernel of OpenBLAS, but NumPy and SciPy have "
        f"loaded {found}: tests would not show what they are to show"
    )


if __name__ == "__main__":
    sys.stdout.write(" ".join(usable()) if sys.argv[1] == "usable" else another() or "")

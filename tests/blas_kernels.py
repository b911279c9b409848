"""Which kernels of OpenBLAS there are for this processor, and which one is loaded.

OpenBLAS has other code for every kind of processor, which rounds otherwise; OPENBLAS_CORETYPE names
the kind to take. What passes with one and fails with another depends on rounding.
"""

from __future__ import annotations

import sys

import numpy.linalg  # noqa: F401 (its OpenBLAS may be another one than SciPy's)

from ridgefold.planning.blas_kernels import ALIKE, loaded_kernels, processor_flags

NEEDS = {"Nehalem": "sse4_2", "Sandybridge": "avx", "Haswell": "avx2", "SkylakeX": "avx512f"}
"""Kernels from the slowest to the fastest, and what a processor must have for each."""


def usable() -> list[str]:
    return [kernel for kernel, flag in NEEDS.items() if flag in processor_flags()]


def another() -> str | None:
    """The fastest kernel but the machine's own and those above it; None if there is none."""
    own = loaded_kernels()
    others = [kernel for kernel in usable() if kernel.lower() not in own and kernel != "SkylakeX"]
    return others[-1] if own and others else None


def what_is_wrong(asked: str) -> str | None:
    """Why tests do not run with the kernel that was asked for; None if they do."""
    if loaded_kernels() == {ALIKE.get(asked.lower(), asked.lower())}:
        return None
    names = ", ".join(sorted(loaded_kernels())) or "no OpenBLAS"
    return (
        f"OPENBLAS_CORETYPE={asked} asks for one kernel of OpenBLAS, but NumPy and SciPy have "
        f"loaded {names}: tests would not show what they are to show"
    )


if __name__ == "__main__":
    sys.stdout.write(" ".join(usable()) if sys.argv[1] == "usable" else another() or "")

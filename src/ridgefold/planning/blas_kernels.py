"""Which kernels of OpenBLAS are loaded, and whether others would be faster on this processor.

OpenBLAS has other code for every kind of processor, and takes it by the processor's name. On some
it chooses too low: AMD's with AVX-512 get the AVX2 code of Haswell. OPENBLAS_CORETYPE, set before
Python starts, names the code to take, so another one can only be tried in another process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CORETYPE = "OPENBLAS_CORETYPE"
NEEDS = {"Haswell": "avx2", "SkylakeX": "avx512f"}
"""Kernels worth trying, and what a processor must have for each; older ones are never faster."""
ALIKE = {"zen": "haswell"}
"""Kinds of processors that take the kernels of another one."""
WORTH_SAYING = 1.1
"""Kernels that are faster by less than this factor are not mentioned: it may be noise."""
_SECONDS_TO_TRY = 60
"""A process that has not measured a few products by then is not waited for."""

_MEASURE = """
import json, sys, time
import numpy as np, scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits
loaded = [each.get("architecture", "") for each in threadpool_info()
          if each.get("internal_api") == "openblas"]
n = int(sys.argv[1])
rows = np.random.default_rng(0).standard_normal((n, n))
spent = {}
with threadpool_limits(1):
    matrix = rows @ rows.T + n * np.eye(n)
    work = {"product": lambda: rows @ rows,
            "cholesky": lambda: scipy.linalg.cholesky(matrix, lower=True, check_finite=False)}
    for name, call in work.items():
        times = []
        for _ in range(6):
            started = time.process_time()
            call()
            times.append(time.process_time() - started)
        spent[name] = max(min(times), 1e-9)
print(json.dumps({"loaded": loaded, "seconds": spent}))
"""


@dataclass(frozen=True)
class FasterKernel:
    """Kernels of OpenBLAS that do the same work in less time than those that are loaded."""

    name: str
    """What to set OPENBLAS_CORETYPE to."""
    loaded: str
    """The kernels that are used now."""
    factors: dict[str, float]
    """How many times as fast matrix products and Cholesky factorisations are."""

    @property
    def factor(self) -> float:
        """The geometric mean of both."""
        product, cholesky = self.factors["product"], self.factors["cholesky"]
        return float((product * cholesky) ** 0.5)

    def __str__(self) -> str:
        return (
            f"OpenBLAS runs its {self.loaded} kernels here. With {CORETYPE}={self.name} in the "
            "environment, set before Python starts, matrix products were "
            f"{self.factors['product']:.2f} times as fast, and Cholesky factorisations "
            f"{self.factors['cholesky']:.2f} times"
        )


def loaded_kernels() -> frozenset[str]:
    """The kinds of processors whose code OpenBLAS runs in this process, in small letters."""
    import scipy.linalg  # noqa: F401 (its OpenBLAS may be another one than NumPy's)
    from threadpoolctl import threadpool_info

    found = (
        str(each.get("architecture", "")).lower()
        for each in threadpool_info()
        if each.get("internal_api") == "openblas"
    )
    return frozenset(ALIKE.get(kernel, kernel) for kernel in found if kernel)


def processor_flags() -> frozenset[str]:
    """What the processor has; nothing where the system does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    flags = next((line.split(":")[1] for line in lines if line.startswith("flags")), "")
    return frozenset(flags.split())


def usable_kernels() -> tuple[str, ...]:
    """Kernels worth trying that this processor can run; none where the system does not say."""
    flags = processor_flags()
    return tuple(kernel for kernel, flag in NEEDS.items() if flag in flags)


def faster_kernel(rows: int = 800) -> FasterKernel | None:
    """Other kernels of OpenBLAS that are clearly faster here, if there are any.

    Each is measured in a process of its own, the one that is loaded too, by the best of six
    products and factorisations of matrices of so many rows on one thread.
    """
    own = loaded_kernels()
    others = [kernel for kernel in usable_kernels() if kernel.lower() not in own]
    if len(own) != 1 or not others:
        return None
    base = _measured(os.environ.get(CORETYPE), rows)
    if base is None:
        return None
    best: FasterKernel | None = None
    for kernel in others:
        seconds = _measured(kernel, rows)
        if seconds is None:
            continue
        factors = {name: base[name] / seconds[name] for name in base}
        found = FasterKernel(kernel, next(iter(own)).capitalize(), factors)
        if found.factor >= max(WORTH_SAYING, 0.0 if best is None else best.factor):
            best = found
    return best


def _measured(kernel: str | None, rows: int) -> dict[str, float] | None:
    """Seconds of each kind of work in a process with some kernel; None if it could not be had."""
    environment = {key: value for key, value in os.environ.items() if key != CORETYPE}
    if kernel is not None:
        environment[CORETYPE] = kernel
    try:
        done = subprocess.run(  # noqa: S603 (this interpreter, and a text of ours)
            [sys.executable, "-c", _MEASURE, str(rows)],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=_SECONDS_TO_TRY,
        )
        answer = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    loaded = {ALIKE.get(str(each).lower(), str(each).lower()) for each in answer["loaded"]}
    if kernel is not None and loaded != {ALIKE.get(kernel.lower(), kernel.lower())}:
        return None  # an OpenBLAS without this code runs another one, and says nothing
    return {str(name): float(seconds) for name, seconds in answer["seconds"].items()}

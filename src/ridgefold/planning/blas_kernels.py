"""Which kernels of OpenBLAS are loaded, and whether others would be faster on this processor.

OpenBLAS has other code for every kind of processor, and takes it by the processor's name. On some
it chooses too low: AMD's with AVX-512 get the AVX2 code of Haswell. OPENBLAS_CORETYPE, set before
Python starts, names the code to take, so another one can only be tried in another process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ridgefold.linalg.threads import threads

CORETYPE = "OPENBLAS_CORETYPE"
NEEDS = {"Haswell": "avx2", "SkylakeX": "avx512f"}
"""Kernels worth trying, and what a processor must have for each; older ones are never faster."""
ALIKE = {"zen": "haswell"}
"""Kinds of processors that take the kernels of another one."""
WORTH_SAYING = 1.1
"""Kernels that are faster by less than this factor are not mentioned: it may be noise."""
_SECONDS_TO_TRY = 60
"""A process that has not measured a few products by then is not waited for."""


def _measure(rows: int) -> tuple[frozenset[str], dict[str, float]]:
    """The kernels that are loaded, and the seconds of each kind of work, the best of six."""
    import scipy.linalg

    values = np.random.default_rng(0).standard_normal((rows, rows))
    matrix = values @ values.T + rows * np.eye(rows)
    work: dict[str, Callable[[], object]] = {
        "product": lambda: values @ values,
        "cholesky": lambda: scipy.linalg.cholesky(matrix, lower=True, check_finite=False),
    }
    best: dict[str, float] = {}
    with threads(1):
        for name, call in work.items():
            seconds = []
            for _ in range(6):
                started = time.process_time()
                call()
                seconds.append(time.process_time() - started)
            best[name] = max(min(seconds), 1e-9)
    return loaded_kernels(), best


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
    from concurrent.futures import TimeoutError as TookTooLong
    from concurrent.futures.process import BrokenProcessPool

    from joblib.externals.loky import ProcessPoolExecutor

    seconds: dict[str, float]
    pool = ProcessPoolExecutor(max_workers=1, env={CORETYPE: kernel or ""})
    try:
        loaded, seconds = pool.submit(_measure, rows).result(timeout=_SECONDS_TO_TRY)
    except (OSError, TookTooLong, BrokenProcessPool):
        return None
    finally:
        pool.shutdown(wait=True, kill_workers=True)
    if kernel is not None and loaded != {ALIKE.get(kernel.lower(), kernel.lower())}:
        return None  # an OpenBLAS without this code runs another one, and says nothing
    return seconds

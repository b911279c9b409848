"""Measure this machine, once, and remember.

Rates are kept in the user's cache folder, one file for each machine, number of threads and version
of the libraries. The file is written whole or not at all, so that processes that start together
each measure for themselves and the last one's figures stay. A file that cannot be read is measured
anew; where nothing can be written, nothing is.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import scipy

from ridgefold.kernels import RBF, KernelGram, Laplacian
from ridgefold.linalg import Array, numpy_namespace
from ridgefold.linalg.banded import bandwidth_for, factorise_band, reduce_to_band
from ridgefold.planning.rates import DEFAULT_RATES, Points, Rates
from ridgefold.planning.resources import thread_count
from ridgefold.storage.atomic import written_whole

SIZES = (200, 1200)
_COLUMNS = 8
_LEAST_SECONDS = 0.02
"""Short work is repeated until it has taken this long."""
_VARIABLE = "RIDGEFOLD_RATES"
"""Set to "default" to use the built-in rates, or to the path of a file of rates."""


def calibrate() -> Rates:
    """Measure how fast this machine does each kind of work, and use that from now on.

    Takes a few seconds. Plans predict times, and choose between methods, by these rates; without
    a calibration, built-in rates of an ordinary core are used until a long computation is planned.

    Examples
    --------
    >>> import ridgefold
    >>> rates = ridgefold.calibrate()  # doctest: +SKIP
    """
    rates = measure()
    with suppress(OSError):  # a read-only home: measured again next time
        _write(_cache_file(), rates)
    machine_rates.cache_clear()
    _measured_here.append(rates)
    return rates


_measured_here: list[Rates] = []


@functools.lru_cache(maxsize=1)
def machine_rates() -> Rates | None:
    """The rates of this machine, if it has been calibrated; None otherwise."""
    chosen = os.environ.get(_VARIABLE, "")
    if chosen == "default":
        return DEFAULT_RATES
    if chosen:
        return read(Path(chosen))
    if _measured_here:
        return _measured_here[-1]
    return read(_cache_file())


def known_rates() -> Rates:
    """The rates of this machine, or the built-in ones."""
    return machine_rates() or DEFAULT_RATES


# -- measuring ---------------------------------------------------------------------------


def measure() -> Rates:
    """Rates of every kind of work at two sizes."""
    found: dict[str, list[tuple[float, float]]] = {}
    for n in SIZES:
        for kind, rate in _at(n).items():
            found.setdefault(kind, []).append((float(n), rate))
    by_kind: dict[str, Points] = {kind: tuple(points) for kind, points in found.items()}
    return Rates({**by_kind, "calls": DEFAULT_RATES.by_kind["calls"]})


def _at(n: int) -> dict[str, float]:
    namespace = numpy_namespace()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, _COLUMNS))
    rbf, laplacian = KernelGram(RBF(3.0), X), KernelGram(Laplacian(3.0), X)
    matrix = rbf.full()
    namespace.add_to_diagonal_in_place(matrix, 1.0)
    space, out = np.empty_like(matrix), np.empty_like(matrix)
    vectors = rng.standard_normal((5, n))

    def refilled() -> Array:
        space[...] = matrix
        return space

    copying = _seconds(refilled)
    product = _seconds(lambda: np.matmul(matrix, matrix, out=out))
    factor = refilled()
    namespace.cholesky_in_place(factor)
    factorised = factor.copy()

    def invert() -> None:
        space[...] = factorised
        namespace.inverse_from_cholesky_in_place(space)

    band = reduce_to_band(namespace, matrix.copy(), bandwidth_for(n)).band
    width = bandwidth_for(n)
    n3, entries = float(n) ** 3, float(n) ** 2
    pure = {
        "product": 2.0 * n3 / product,
        "cholesky": n3 / 3.0 / _less(_seconds(lambda: _cholesky(refilled())), copying),
        "inverse": 2.0 * n3 / 3.0 / _less(_seconds(invert), copying),
        "eigendecomposition": 9.0
        * n3
        / _less(_seconds(lambda: namespace.eigh_in_place(refilled())), copying),
        "band_reduction": 4.0
        / 3.0
        * n3
        / _less(_seconds(lambda: reduce_to_band(namespace, refilled(), width)), copying),
        "band_cholesky": n * float(width) ** 2 / _seconds(lambda: factorise_band(band, 0.1)),
        "memory": 8.0 * entries / _seconds(lambda: vectors @ matrix),
    }
    distances = 2.0 * entries * _COLUMNS / pure["product"]
    exponential = _less(_seconds(lambda: rbf.write_block(_ALL, _ALL, out)), distances)
    absolute = _less(_seconds(lambda: laplacian.write_block(_ALL, _ALL, out)), exponential)
    return {**pure, "exp": entries / exponential, "manhattan": _COLUMNS * entries / absolute}


_ALL = slice(None)


def _cholesky(matrix: np.ndarray) -> None:
    numpy_namespace().cholesky_in_place(matrix)


def _less(total: float, part: float) -> float:
    """A difference of times that noise cannot make absurd."""
    return max(total - part, 0.2 * total)


def _seconds(work: Callable[[], object]) -> float:
    """The least time of one call, over at least two.

    On one thread processor time: what other processes take meanwhile does not count.
    """
    clock = time.process_time if thread_count() == 1 else time.perf_counter
    least, spent, calls = float("inf"), 0.0, 0
    while calls < 2 or spent < _LEAST_SECONDS:
        started = clock()
        work()
        took = clock() - started
        least, spent, calls = min(least, took), spent + took, calls + 1
    return max(least, 1e-9)


# -- remembering -------------------------------------------------------------------------


def _cache_file() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    machine = [
        platform.node(),
        platform.machine(),
        platform.processor(),
        str(os.cpu_count()),
        str(thread_count()),
        np.__version__,
        scipy.__version__,
    ]
    key = hashlib.sha256("\n".join(machine).encode()).hexdigest()[:16]
    return Path(folder) / "ridgefold" / f"rates-{key}.json"


def _write(path: Path, rates: Rates) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.write(json.dumps(rates.by_kind, indent=1).encode())


def read(path: Path) -> Rates | None:
    """Rates from a file; None if it is missing or not what was written."""
    try:
        stored = json.loads(path.read_text())
        by_kind = {
            str(kind): tuple((float(size), float(rate)) for size, rate in points)
            for kind, points in stored.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    rates = [rate for points in by_kind.values() for _, rate in points]
    if set(by_kind) != set(DEFAULT_RATES.by_kind) or not all(0 < r < 1e18 for r in rates):
        return None
    return Rates(by_kind) if all(by_kind.values()) else None

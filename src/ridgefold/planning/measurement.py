"""Measure how fast this machine, or a device in it, does each kind of work."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ridgefold.kernels import RBF, KernelGram, Laplacian
from ridgefold.linalg import Array, Namespace, namespace_of, numpy_namespace
from ridgefold.linalg.banded import bandwidth_for, factorise_band, reduce_to_band
from ridgefold.planning.rates import DEFAULT_RATES, Points, Rates
from ridgefold.planning.resources import thread_count

SIZES = (200, 1200, 2400)
"""Beyond the largest, an ordinary core becomes no faster."""
DEVICE_SIZES = (1000, 4000, 10_000)
"""Devices need larger matrices to be busy; the largest only where products take no time."""
_FAST = 1e13
"""Operations a second of products, from which on the largest size is measured too."""
_COLUMNS = 8
"""Columns of the rows whose kernel values are timed: about as many as an ordinary table has."""
_VECTORS, _DEVICE_VECTORS = 5, 32
"""Vectors that a matrix is multiplied with in one pass over it, here and on a device."""
_LEAST_SECONDS = 0.02
"""Short work is repeated until it has taken this long."""
_LONG_SECONDS = 0.25
"""A first call that takes this many seconds is not repeated: getting ready is little of it."""
_SMALL = 50
"""Rows of matrices so small that a call takes longer than its arithmetic."""
_MATRICES = 6.0
"""Matrices in memory at once, at most. Sizes at which a device does not hold them are left out."""


@dataclass(frozen=True)
class _Bench:
    """A processor or a device, the library that works on it, and a clock."""

    namespace: Namespace
    like: Array
    vectors: int
    clock: Callable[[], float]
    long: float = float("inf")
    """A first call that takes this many seconds is not repeated. On devices every call is, as they
    get ready during the first."""

    def seconds(self, work: Callable[[], object]) -> float:
        """The least time of one call, over at least two unless the first takes long."""
        least, spent, calls = float("inf"), 0.0, 0
        while spent < (_LEAST_SECONDS if calls >= 2 else self.long):
            started = self.clock()
            work()
            took = self.clock() - started
            least, spent, calls = min(least, took), spent + took, calls + 1
        return max(least, 1e-9)


def measure() -> Rates:
    """Rates of the processor, for every kind of work, at a few sizes.

    Where one thread works, its processor time is taken: what other processes do does not count.
    """
    return _measured(_processor(), SIZES, 0.55)


def measure_quickly() -> Rates:
    """The same in a second or two: the largest size, which takes most of the time, is left out.

    Beyond the others, rates are taken to rise as the built-in ones do.
    """
    *small, largest = SIZES
    rates = _measured(_processor(), tuple(small), 0.55)
    by_kind: dict[str, Points] = {}
    for kind, points in rates.by_kind.items():
        size, rate = points[-1]
        rise = DEFAULT_RATES.at(kind, largest) / DEFAULT_RATES.at(kind, size)
        by_kind[kind] = points if kind == "calls" else (*points, (float(largest), rate * rise))
    return Rates(by_kind, rates.single_precision)


def _processor() -> _Bench:
    clock = time.process_time if thread_count() == 1 else time.perf_counter
    return _Bench(numpy_namespace(), np.zeros(1), _VECTORS, clock, _LONG_SECONDS)


def measure_device(like: Array) -> Rates:
    """Rates of the device that holds `like`; every time is taken when the device is done."""
    namespace = namespace_of(like)

    def clock() -> float:
        namespace.wait(like)
        return time.perf_counter()

    bench = _Bench(namespace, like, _DEVICE_VECTORS, clock)
    free = namespace.free_bytes(like)
    sizes = [n for n in DEVICE_SIZES if free is None or _MATRICES * 8.0 * n**2 <= free]
    sizes = sizes or [DEVICE_SIZES[0]]
    middle = sizes[-2] if len(sizes) == len(DEVICE_SIZES) else None
    if middle is not None and 2.0 * middle**3 / _product(bench, middle) < _FAST:
        sizes.pop()
    single = _product(bench, sizes[-1], namespace.xp.float32) / _product(bench, sizes[-1])
    rates = _measured(bench, tuple(sizes), single)
    return Rates({**rates.by_kind, "calls": ((float(_SMALL), _calls(bench)),)}, single)


def _measured(bench: _Bench, sizes: tuple[int, ...], single: float) -> Rates:
    """Rates for every kind of work at some sizes; `single` is the share of time in float32."""
    measured: dict[str, list[tuple[float, float]]] = {}
    for n in sizes:
        for kind, rate in _at(n, bench).items():
            measured.setdefault(kind, []).append((float(n), rate))
    by_kind: dict[str, Points] = {kind: tuple(points) for kind, points in measured.items()}
    return Rates({**by_kind, "calls": DEFAULT_RATES.by_kind["calls"]}, single)


def _calls(bench: _Bench) -> float:
    """Steps a second on matrices so small that nothing but the call takes time."""
    namespace = bench.namespace
    matrix = namespace.ones((_SMALL, _SMALL), bench.like)
    namespace.add_to_diagonal_in_place(matrix, 1.0)

    def step() -> None:
        factor = namespace.copy(matrix)
        namespace.cholesky_in_place(factor)
        namespace.solve_cholesky(factor, matrix)

    return 1.0 / bench.seconds(step)


def _product(bench: _Bench, n: int, dtype: object = None) -> float:
    """Seconds of a product of two matrices."""
    a, b = (bench.namespace.ones((n, n), bench.like, dtype) for _ in range(2))
    out = bench.namespace.empty((n, n), bench.like, dtype)
    return bench.seconds(lambda: bench.namespace.multiply_transposed(a, b, out))


def _at(n: int, bench: _Bench) -> dict[str, float]:
    """Operations a second for every kind of work, on matrices of n rows."""
    namespace = bench.namespace
    rng = np.random.default_rng(0)
    X = namespace.asarray(rng.standard_normal((n, _COLUMNS)), bench.like)
    rbf, laplacian = KernelGram(RBF(3.0), X), KernelGram(Laplacian(3.0), X)
    matrix = rbf.full()
    namespace.add_to_diagonal_in_place(matrix, 1.0)
    space, out = namespace.copy(matrix), namespace.empty((n, n), matrix)
    vectors = namespace.asarray(rng.standard_normal((bench.vectors, n)), bench.like)

    def refilled() -> Array:
        space[...] = matrix
        return space

    copying = bench.seconds(refilled)
    product = bench.seconds(lambda: namespace.multiply_transposed(matrix, space, out))
    namespace.cholesky_in_place(refilled())
    factorised = namespace.copy(space)

    def invert() -> None:
        space[...] = factorised
        namespace.inverse_from_cholesky_in_place(space)

    def less_copying(work: Callable[[], object]) -> float:
        return _less(bench.seconds(work), copying)

    width = bandwidth_for(n)
    n3, entries = float(n) ** 3, float(n) ** 2
    inverse = less_copying(invert)
    band = reduce_to_band(namespace, refilled(), width).band
    pure = {
        "product": 2.0 * n3 / product,
        "cholesky": n3 / 3.0 / less_copying(lambda: namespace.cholesky_in_place(refilled())),
        "inverse": 2.0 * n3 / 3.0 / inverse,
        "eigendecomposition": 9.0 * n3 / less_copying(lambda: namespace.eigh_in_place(refilled())),
        "band_reduction": 4.0
        / 3.0
        * n3
        / less_copying(lambda: reduce_to_band(namespace, refilled(), width)),
        # A band is factorised by the processor, wherever the matrix is.
        "band_cholesky": n * float(width) ** 2 / bench.seconds(lambda: factorise_band(band, 0.1)),
        "memory": 8.0 * entries / bench.seconds(lambda: vectors @ matrix),
    }
    distances = 2.0 * entries * _COLUMNS / pure["product"]
    exponential = _less(bench.seconds(lambda: rbf.write_block(_ALL, _ALL, out)), distances)
    absolute = _less(bench.seconds(lambda: laplacian.write_block(_ALL, _ALL, out)), exponential)
    return {**pure, "exp": entries / exponential, "manhattan": _COLUMNS * entries / absolute}


_ALL = slice(None)


def _less(total: float, part: float) -> float:
    """A difference of times that noise cannot make absurd."""
    return max(total - part, 0.2 * total)

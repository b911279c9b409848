"""Keep the linear algebra library to the threads that were planned."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from threadpoolctl import LibController, ThreadpoolController

_LOCK = Lock()
_active: list[int] = []
"""The counts that threads of this process ask for now: BLAS has one setting for them all."""
_before: list[tuple[LibController, int]] = []
"""Every BLAS library, with the number of threads it used before any count was asked for."""


@functools.lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """The libraries loaded now. Importing a module may load one, so they are counted with it."""
    return ThreadpoolController()


def _libraries() -> list[LibController]:
    libraries: list[LibController] = (
        _controller(len(sys.modules)).select(user_api="blas").lib_controllers
    )
    return libraries


@contextmanager
def threads(count: int) -> Iterator[None]:
    """A context in which BLAS, and OpenMP in this thread, use at most `count` threads.

    Where several threads are in such a context at once, the smallest count holds for BLAS until the
    last of them has left: a sum must not change its order because another prediction has ended.
    """
    with _LOCK:
        if not _active:
            _before[:] = [(library, library.num_threads) for library in _libraries()]
        _active.append(count)
        _set()
    try:
        openmp = _controller(len(sys.modules)).select(user_api="openmp")
        more = any(library.num_threads > count for library in openmp.lib_controllers)
        with openmp.limit(limits=count if more else None):
            yield
    finally:
        with _LOCK:
            _active.remove(count)
            _set()


def _set() -> None:
    for library, before in _before:
        count = min([before, *_active])
        if library.num_threads != count:
            library.set_num_threads(count)

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
"""What is asked for now, by all threads of this process: BLAS has one setting for them all."""
_before: list[tuple[LibController, int]] = []
"""Every BLAS library with its setting when nothing was asked for."""


@functools.lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """Looked for anew when modules were imported, which may have brought a library."""
    return ThreadpoolController()


def _libraries() -> list[LibController]:
    found: list[LibController] = (
        _controller(len(sys.modules)).select(user_api="blas").lib_controllers
    )
    return found


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
        wanted = min([before, *_active])
        if library.num_threads != wanted:
            library.set_num_threads(wanted)

"""Keep the linear algebra library to the threads that were planned."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from threadpoolctl import LibController, ThreadpoolController

_LOCK = Lock()
_active: list[int] = []
"""What is asked for now, by all threads of this process: BLAS has one setting for them all."""
_before: list[int] = []
"""The setting of every library when nothing was asked for."""


@functools.lru_cache(maxsize=1)
def _libraries() -> list[LibController]:
    found: list[LibController] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


@contextmanager
def threads(count: int) -> Iterator[None]:
    """A context in which BLAS uses at most `count` threads.

    Where several threads are in such a context at once, the smallest count holds until the last of
    them has left: a sum must not change its order because another prediction has ended.
    """
    with _LOCK:
        if not _active:
            _before[:] = [library.num_threads for library in _libraries()]
        _active.append(count)
        _set()
    try:
        yield
    finally:
        with _LOCK:
            _active.remove(count)
            _set()


def _set() -> None:
    for library, before in zip(_libraries(), _before, strict=True):
        wanted = min([before, *_active])
        if library.num_threads != wanted:
            library.set_num_threads(wanted)

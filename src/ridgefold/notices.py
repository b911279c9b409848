"""Warnings, given and collected without touching what belongs to the whole process.

`warnings.catch_warnings` exchanges the filters of the process: of two threads that do so at once,
one puts back what the other has set, and it stays. So the library's own warnings are collected
here, by a list that only the context of its collector sees (`contextvars`), and filters are not
touched. Warnings of other libraries cannot be told apart without filters; those that mean nothing
are left out one thread at a time.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ridgefold.errors import RidgefoldWarning


@dataclass(frozen=True)
class Notice:
    """A warning that has not been given yet."""

    message: str
    category: type[RidgefoldWarning]


_collector: ContextVar[list[Notice] | None] = ContextVar("ridgefold_notices", default=None)
_FILTERS = threading.RLock()


def warn(message: str, category: type[RidgefoldWarning]) -> None:
    """Warn the caller of the library; or whoever collects warnings on the way to it."""
    collected = _collector.get()
    if collected is None:
        warnings.warn(message, category, stacklevel=_levels_to_the_caller())
    else:
        collected.append(Notice(message, category))


@contextmanager
def collected() -> Iterator[list[Notice]]:
    """A context whose warnings are put into a list instead of being given."""
    found: list[Notice] = []
    token = _collector.set(found)
    try:
        yield found
    finally:
        _collector.reset(token)


def give(notices: Iterable[Notice]) -> None:
    """Give warnings that were collected."""
    for notice in notices:
        warn(notice.message, notice.category)


@contextmanager
def without_foreign(category: type[Warning] = Warning, message: str = "") -> Iterator[None]:
    """A context without the warnings of another library that begin with a message.

    Filters are the process's: one thread at a time changes them, and puts them back. Keep it short.
    """
    with _FILTERS, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message, category=category)
        yield


def _levels_to_the_caller() -> int:
    """How many frames above `warn` the line stands that has called the library."""
    level, found = 1, 2
    frame = sys._getframe(1)
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").startswith("ridgefold"):
            found = level + 1
        level, frame = level + 1, frame.f_back
    return found

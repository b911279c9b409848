"""Work that is given up when its time is over: who has it done says what to look at between tasks.

The look belongs to the context of the caller (`contextvars`), as collected warnings do, and is
taken in the process and thread that gathers results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_look: ContextVar[Callable[[], None] | None] = ContextVar("ridgefold_look", default=None)


@contextmanager
def looking(look: Callable[[], None]) -> Iterator[None]:
    """A context in which `look` is called between tasks; what it raises ends them."""
    token = _look.set(look)
    try:
        yield
    finally:
        _look.reset(token)


def look_between_tasks() -> None:
    """Called by executors before every task that they begin, or result that they take."""
    look = _look.get()
    if look is not None:
        look()

"""One task after the other, in this thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ridgefold.executors.base import Executor, Result


class Serial(Executor):
    """No workers."""

    @property
    def place(self) -> str:
        return "this process, one thread"

    def map(
        self,
        task: Callable[[Any], Result],
        items: Sequence[Any],
        keys: Sequence[str] | None = None,
    ) -> Iterator[Result]:
        from threadpoolctl import threadpool_limits

        for item in items:
            with threadpool_limits(1):
                result = task(item)
            yield result

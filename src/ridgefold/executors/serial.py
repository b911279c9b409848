"""One task after the other, in this thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ridgefold.executors.base import Executor, Result
from ridgefold.linalg.threads import threads


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
        for item in items:
            with threads(1):
                result = task(item)
            yield result

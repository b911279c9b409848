"""One task after the other, in this thread."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from ridgefold.executors.base import Executor, Keys, Result, Task
from ridgefold.linalg.threads import threads


class Serial(Executor):
    """Tasks run one after the other in this thread, each with one BLAS thread."""

    @property
    def place(self) -> str:
        return "this process, one thread"

    def _map(self, task: Task[Result], items: Sequence[Any], keys: Keys) -> Generator[Result]:
        for item in items:
            with threads(1):
                result = task(item)
            yield result

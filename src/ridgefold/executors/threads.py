"""Threads of this process: nothing is copied; what holds Python's lock does not run at once."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from ridgefold.executors.base import Executor, Keys, Result, Task, until_left
from ridgefold.linalg.threads import threads


class Threads(Executor):
    """joblib's threads, with BLAS held to one thread each."""

    concurrent_here = True

    @property
    def place(self) -> str:
        return f"{self.n_workers} threads of this process"

    def _map(self, task: Task[Result], items: Sequence[Any], keys: Keys) -> Generator[Result]:
        from joblib import Parallel, delayed

        with threads(1):
            work = Parallel(
                n_jobs=self.n_workers, backend="threading", batch_size=1, return_as="generator"
            )
            yield from until_left(work(delayed(task)(item) for item in items))

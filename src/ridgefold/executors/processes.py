"""Processes: large arrays are shared as memory maps, results are copied back."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from ridgefold.errors import WorkerLostError
from ridgefold.executors.base import Executor, Keys, Result, Task, until_left
from ridgefold.linalg.threads import threads

_SECONDS_BETWEEN_LOOKS = 1.0
"""A worker looks this often whether the process that started it is still there."""


class Processes(Executor):
    """joblib's loky processes, each with one BLAS thread."""

    @property
    def place(self) -> str:
        return f"{self.n_workers} processes of this machine"

    def _map(self, task: Task[Result], items: Sequence[Any], keys: Keys) -> Generator[Result]:
        from joblib import Parallel, delayed, parallel_config

        # One worker is this process, for joblib.
        with threads(1), parallel_config("loky", n_jobs=self.n_workers, inner_max_num_threads=1):
            try:
                work = Parallel(batch_size=1, return_as="generator")
                yield from until_left(
                    work(delayed(_AsLongAsItsDriver(task))(item) for item in items)
                )
            except BrokenProcessPool as error:
                raise WorkerLostError(
                    f"a process that worked on a task died ({str(error).splitlines()[0]}): it may "
                    "have needed more memory than there is; use fewer processes (n_jobs), or a "
                    "smaller memory_budget"
                ) from None


class _AsLongAsItsDriver:
    """The task, in a process that ends soon after the one that started it.

    Loky's processes wait five minutes for work, and finish a task, after their driver was killed.
    """

    def __init__(self, task: Callable[[Any], Any]) -> None:
        self._task, self._driver = task, os.getpid()

    def __call__(self, item: Any) -> Any:
        if os.getpid() != self._driver:
            _end_with_the_parent()
        return self._task(item)


@functools.cache
def _end_with_the_parent() -> None:
    parent = os.getppid()

    def watch() -> None:
        # Who has lost its parent gets another one (on POSIX; elsewhere this never ends).
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="ridgefold-parent").start()

"""Processes: large arrays are shared as memory maps, results are copied back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from ridgefold.errors import WorkerLostError
from ridgefold.executors.base import Executor, Result
from ridgefold.linalg.threads import threads


class Processes(Executor):
    """joblib's loky processes, each with one BLAS thread."""

    @property
    def place(self) -> str:
        return f"{self.n_workers} processes of this machine"

    def map(
        self,
        task: Callable[[Any], Result],
        items: Sequence[Any],
        keys: Sequence[str] | None = None,
    ) -> Iterator[Result]:
        from joblib import Parallel, delayed, parallel_config

        # One worker is this process, for joblib.
        with threads(1), parallel_config("loky", n_jobs=self.n_workers, inner_max_num_threads=1):
            try:
                yield from Parallel(batch_size=1, return_as="generator")(
                    delayed(task)(item) for item in items
                )
            except BrokenProcessPool as error:
                raise WorkerLostError(
                    f"a process that worked on a task died ({str(error).splitlines()[0]}): it may "
                    "have needed more memory than there is; use fewer processes (n_jobs), or a "
                    "smaller memory_budget"
                ) from None

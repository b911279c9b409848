"""What users may ask of where work is done, as an executor."""

from __future__ import annotations

import copy
import sys
from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.executors import EXECUTORS, Dask, Executor

_CLIENT = ("submit", "scheduler_info", "nthreads")
"""What a client of Dask has."""


def executor_of(executor: Any, n_jobs: Any, verbose: int = 0) -> Executor:
    """The executor by its name; "auto" is serial for one worker, else processes.

    With `verbose` it says on stderr what it waits for.
    """
    found = _executor_of(executor, n_jobs)
    if verbose:
        found.say = _on_stderr
    return found


def _on_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _executor_of(executor: Any, n_jobs: Any) -> Executor:
    from joblib import effective_n_jobs

    if n_jobs is not None and (
        isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0
    ):
        raise InvalidInputError(
            "compute.n_jobs must be a whole number other than 0 (-1: all cores), or None, got "
            f"{n_jobs!r}"
        )
    if isinstance(executor, Dask):
        return copy.copy(executor)  # which a fit may hold a client in
    if isinstance(executor, str) and executor.startswith(("tcp://", "tls://")):
        return Dask(address=executor)
    if not isinstance(executor, str) and all(hasattr(executor, name) for name in _CLIENT):
        return Dask(client=executor)
    if not isinstance(executor, str) or executor not in ("auto", *EXECUTORS):
        raise InvalidInputError(
            f"compute.executor must be one of auto, {', '.join(EXECUTORS)}, a distributed.Client, "
            "the address of a Dask scheduler (tcp://…, tls://…), or ridgefold.executors.Dask(…), "
            f"got {executor!r}"
        )
    workers = 1 if n_jobs is None else int(effective_n_jobs(n_jobs))
    if executor == "auto":
        executor = "serial" if workers == 1 else "processes"
    return EXECUTORS[executor](workers)

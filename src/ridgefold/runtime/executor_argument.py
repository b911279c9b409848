"""What users may pass as `executor` and `n_jobs`."""

from __future__ import annotations

import copy
import sys
from typing import Any, Self

import numpy as np
from sklearn.base import clone

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
            f"n_jobs must be a whole number other than 0 (-1: all cores), or None, got {n_jobs!r}"
        )
    if isinstance(executor, Dask):
        return copy.copy(executor)  # which a fit may hold a client in
    if isinstance(executor, str) and executor.startswith(("tcp://", "tls://")):
        return Dask(address=executor)
    if not isinstance(executor, str) and all(hasattr(executor, name) for name in _CLIENT):
        return Dask(client=executor)
    if not isinstance(executor, str) or executor not in ("auto", *EXECUTORS):
        raise InvalidInputError(
            f"executor must be one of auto, {', '.join(EXECUTORS)}, a distributed.Client, the "
            "address of a Dask scheduler (tcp://…, tls://…), or ridgefold.executors.Dask(…), got "
            f"{executor!r}"
        )
    workers = 1 if n_jobs is None else int(effective_n_jobs(n_jobs))
    if executor == "auto":
        executor = "serial" if workers == 1 else "processes"
    return EXECUTORS[executor](workers)


class SharesExecutor:
    """For estimators whose `executor` may be a client: clones use the same one."""

    executor: Any

    def __sklearn_clone__(self) -> Self:
        """As scikit-learn clones, but for a client of a cluster, which nothing can copy."""
        arguments = self.get_params(deep=False)  # type: ignore[attr-defined]
        twin = type(self)(
            **{
                name: value if name == "executor" else clone(value, safe=False)
                for name, value in arguments.items()
            }
        )
        for name in ("_metadata_request", "_sklearn_output_config"):
            if hasattr(self, name):
                setattr(twin, name, copy.deepcopy(getattr(self, name)))
        return twin

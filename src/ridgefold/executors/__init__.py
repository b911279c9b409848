"""Where independent tasks run. One file a way; a new one is a line here."""

from ridgefold.executors.base import Caller, Executor
from ridgefold.executors.dask import Dask
from ridgefold.executors.processes import Processes
from ridgefold.executors.serial import Serial
from ridgefold.executors.threads import Threads

EXECUTORS: dict[str, type[Executor]] = {
    "dask": Dask,
    "processes": Processes,
    "serial": Serial,
    "threads": Threads,
}
"""Every name that `executor=` takes, apart from "auto"."""

__all__ = ["EXECUTORS", "Caller", "Dask", "Executor", "Processes", "Serial", "Threads"]

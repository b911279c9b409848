"""A Dask cluster: tasks are small, name their rows by files, and write results to files.

Workers and this process must see the same folders (a shared file system). A task is known by
its key, is run again where a worker is lost, and never holds data: what is lost is the work of
the tasks that were running. Nothing else of ridgefold imports Dask.
"""

from __future__ import annotations

import contextlib
import copy
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from ridgefold.errors import ClusterError, RidgefoldError, WorkerLostError
from ridgefold.executors.base import Executor, Result
from ridgefold.linalg.threads import threads

_RETRIES = 3
_WAITING_A_WORKER = 4
"""Tasks that are handed out ahead of time, for every worker."""
_FEWEST_WAITING = 16
_SECONDS_TO_CONNECT = 20


class Dask(Executor):
    """Workers of a cluster, each with one BLAS thread.

    Parameters
    ----------
    n_workers : int
        Processes of a cluster on this machine that lives as long as the work does; unless
    client : distributed.Client, optional
        is given, or
    address : str, optional
        of a scheduler, as tcp://… or tls://….
    """

    remote = True

    def __init__(
        self, n_workers: int = 1, *, client: Any = None, address: str | None = None
    ) -> None:
        super().__init__(n_workers)
        self._given, self._address = client, address
        self._own = client is None and address is None
        """True if the cluster is one of this machine, made here."""
        self._most: int | None = None
        """Tasks that may run at once, if that is less than there are workers."""
        self._understood: set[tuple[str, str]] = set()
        """Clients and kinds of tasks whose workers have shown that they can load them."""

    @property
    def place(self) -> str:
        if self._address is not None:
            return f"the workers of the Dask cluster at {self._address}"
        return f"{self.n_workers} workers of this machine" if self._own else "a Dask cluster"

    @property
    def standing(self) -> bool:
        if self._given is not None:
            return bool(self._given.status == "running")  # it may have been closed
        return self._address is not None

    def at_most(self, n_workers: int) -> Self:
        # Workers of a cluster have memory of their own.
        if not self._own or n_workers >= self.n_workers:
            return self
        fewer = copy.copy(self)
        fewer.n_workers = fewer._most = max(1, n_workers)
        return fewer

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        if self._given is not None:
            yield
            return
        with self._client() as client:
            self._given = client
            try:
                yield
            finally:
                self._given = None

    def workers_now(self) -> int:
        if self._given is None:
            return self.n_workers
        return max(1, len(self._given.nthreads()))

    def map(
        self,
        task: Callable[[Any], Result],
        items: Sequence[Any],
        keys: Sequence[str] | None = None,
    ) -> Iterator[Result]:
        if not items:
            return
        with self._client() as client:
            _require_workers(client)
            kind = (client.id, repr(task))
            if kind not in self._understood:
                _require_understanding(client, task, items[0])
                self._understood.add(kind)
            yield from _results(client, task, items, keys, self._most)

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        try:
            from distributed import Client
        except ModuleNotFoundError:
            raise ClusterError(
                "Dask is not installed: pip install 'ridgefold[cluster]', or use "
                'executor="processes"'
            ) from None
        if self._given is not None:
            yield self._given
        elif self._address is not None:
            try:
                client = Client(self._address, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
            except (OSError, TimeoutError, ValueError) as error:
                raise ClusterError(
                    f"there is no Dask scheduler at {self._address!r} ({error}): start one, or "
                    "check the address"
                ) from None
            with client:
                yield client
        else:
            with local_cluster(self.n_workers) as client:
                yield client


@contextlib.contextmanager
def local_cluster(n_workers: int) -> Iterator[Any]:
    """A client of worker processes on this machine: loopback only, no dashboard."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        # The pages of a dashboard are not served; the ports that remain are loopback's.
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
        silence_logs=50,
        memory_limit=0,
    )
    try:
        with Client(cluster, set_as_default=False) as client:
            yield client
    finally:
        # A worker that is slow to end has been killed by then: the results are there.
        with contextlib.suppress(TimeoutError):
            cluster.close()


class _OneThread:
    """The task, with BLAS held to one thread where it runs.

    An error of ours would come again however often the task is run: it is a result.
    """

    def __init__(self, task: Callable[[Any], Any]) -> None:
        self._task = task

    def __call__(self, item: Any) -> Any:

        with threads(1):
            try:
                return self._task(item)
            except RidgefoldError as error:
                return _Raised(error)


class _Raised:
    """An error on its way back."""

    def __init__(self, error: RidgefoldError) -> None:
        self.error = error


def _require_workers(client: Any) -> None:
    if client.scheduler_info(n_workers=-1)["workers"]:
        return
    try:
        client.wait_for_workers(1, timeout=_SECONDS_TO_CONNECT)
    except TimeoutError:
        raise ClusterError(
            f"the scheduler at {client.scheduler.address} has no workers, and none came within "
            f"{_SECONDS_TO_CONNECT:g} s: start some (dask worker {client.scheduler.address})"
        ) from None


def _require_understanding(client: Any, task: Callable[[Any], Any], item: Any) -> None:
    """Have every worker load what it will be sent: one that cannot would be asked for ever.

    Bytes reach any worker; only what is in them needs ridgefold, or modules of the user.
    """
    from distributed.protocol.pickle import dumps

    # Workers that are lost meanwhile answer with other errors, and are none of this check's.
    answers = client.run(_loaded, dumps((task, item)), on_error="return")
    for worker, answer in answers.items():
        if isinstance(answer, (ImportError, AttributeError)):
            raise ClusterError(
                f"the worker at {worker} cannot load what it is to do ({answer}): install there "
                "the same version of ridgefold, and the modules that your kernels come from"
            )


def _loaded(pickled: bytes) -> None:
    from distributed.protocol.pickle import loads

    loads(pickled)


def _results(
    client: Any,
    task: Callable[[Any], Result],
    items: Sequence[Any],
    keys: Sequence[str] | None,
    most: int | None,
) -> Iterator[Result]:
    """Results in order, with a bounded number of tasks under way."""
    run = _OneThread(task)
    ahead = most or max(_FEWEST_WAITING, _WAITING_A_WORKER * len(client.nthreads()))
    under_way: deque[Any] = deque()
    try:
        for number, item in enumerate(items):
            key = None if keys is None else keys[number]
            under_way.append(client.submit(run, item, key=key, retries=_RETRIES, pure=False))
            if len(under_way) >= ahead:
                yield _result(under_way.popleft())
        while under_way:
            yield _result(under_way.popleft())
    finally:
        for future in under_way:
            future.cancel()


def _result(future: Any) -> Any:
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    try:
        for _ in range(_RETRIES):
            try:
                return _taken(future.result())
            except KilledWorker:
                # Whatever waited at workers that died is blamed; a task that kills them itself
                # counts its tries and says so.
                future.retry()
        return _taken(future.result())
    except KilledWorker as error:
        raise WorkerLostError(
            f"the workers that ran {future.key!r} died, one after the other ({error}): it may need "
            "more memory than they have, or crash; see the workers' logs"
        ) from None
    except (CancelledError, CommClosedError) as error:
        raise ClusterError(
            f"the scheduler was lost while {future.key!r} was under way ({error}): see its log; "
            "with a run_dir, the same call goes on with what is finished"
        ) from None
    except FileNotFoundError as error:
        raise ClusterError(
            f"a worker does not see {error.filename!r}: workers and this process need the same "
            "files; give a run_dir, and data, on a file system that they share"
        ) from None
    finally:
        future.release()


def _taken(result: Any) -> Any:
    if isinstance(result, _Raised):
        raise result.error
    return result

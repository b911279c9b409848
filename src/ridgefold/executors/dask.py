"""A Dask cluster: tasks are small, name their rows by files, and write results to files.

Workers and this process must see the same folders (a shared file system). A task is known by
its key, is run again where a worker is lost, and never holds data: what is lost is the work of
the tasks that were running. Where all workers are lost, others are waited for, but not for ever.
Nothing else of ridgefold imports Dask.
"""

from __future__ import annotations

import contextlib
import copy
import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Self

from ridgefold.errors import (
    ClusterError,
    InvalidInputError,
    NoWorkersError,
    RidgefoldError,
    WorkerLostError,
)
from ridgefold.executors.base import Executor, Keys, Result, Task
from ridgefold.linalg.threads import threads

_RETRIES = 3
"""Times that Dask runs a task again after its worker was lost: more losses are the task's doing."""
_WAITING_A_WORKER = 4
"""Tasks handed out ahead of time for every worker, so that none waits for this process."""
_FEWEST_WAITING = 16
"""Tasks handed out ahead of time at least: workers may join a small cluster while it works."""
_SECONDS_TO_CONNECT = 20
"""A scheduler that does not answer for so long is not there, or not reachable."""
SECONDS_WITHOUT_WORKERS = 60.0
"""How long to wait for workers by default: a nanny brings a worker back within seconds, and whoever
waits for a cluster that is gone wants to know it within a minute. Queues may need longer."""
_SECONDS_BETWEEN_LOOKS = 1.0
"""How often to look whether there are workers, while a result is waited for."""
_SECONDS_BETWEEN_WORDS = 10.0
"""How often to say what is waited for."""


class Dask(Executor):
    """Workers of a Dask cluster, each with one BLAS thread, as an `executor` of an estimator.

    A client or an address may be given as `executor` directly; this class is for those who want
    to wait longer, or less long, for workers.

    Parameters
    ----------
    n_workers : int, default=1
        Without a client and an address: how many workers to start on this machine, for as long
        as the work takes.
    client : distributed.Client, optional
        Of a cluster that is there.
    address : str, optional
        Of a scheduler, as tcp://… or tls://….
    wait_for_workers : float, default=60
        Seconds without any worker, at the beginning or because all were lost, after which the
        work is given up with a :class:`~ridgefold.errors.NoWorkersError`. A lost worker that a
        nanny looks after is back within seconds; workers of a queue or of an adaptive cluster
        may take minutes. With ``float("inf")`` they are waited for as long as it takes.
    """

    remote = True

    def __init__(
        self,
        n_workers: int = 1,
        *,
        client: Any = None,
        address: str | None = None,
        wait_for_workers: float = SECONDS_WITHOUT_WORKERS,
    ) -> None:
        super().__init__(n_workers)
        if client is not None and address is not None:
            raise InvalidInputError(
                f"client={client!r} and address={address!r} are two clusters: give one of them"
            )
        self.wait_for_workers = _checked(wait_for_workers)
        self._given, self._address = client, address
        self._own = client is None and address is None
        """True if the cluster is one of this machine, made here."""
        self._most: int | None = None
        """Tasks that may run at once, if that is less than there are workers."""
        self._understood: set[tuple[str, str]] = set()
        """Clients and kinds of tasks whose workers have shown that they can load them."""

    def __repr__(self) -> str:
        where = repr(self.n_workers)
        if not self._own:
            given = ("client", self._given) if self._address is None else ("address", self._address)
            where = f"{given[0]}={given[1]!r}"
        return f"Dask({where}, wait_for_workers={self.wait_for_workers:g})"

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

    def waiting(self, seconds: float) -> Self:
        """The same, with another wait for workers."""
        other = copy.copy(self)
        other.wait_for_workers = _checked(seconds)
        return other

    def at_most(self, n_workers: int) -> Self:
        # Workers of a cluster have memory of their own.
        if not self._own or n_workers >= self.n_workers:
            return self
        fewer = copy.copy(self)
        fewer.n_workers = fewer._most = max(1, n_workers)
        return fewer

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        given = self._given
        with self._client() as client:
            self._given = client
            try:
                with super().held():
                    yield
            finally:
                self._given = given

    def workers_now(self) -> int:
        if self._own and self._given is None:
            return self.n_workers
        with self._client() as client:
            return max(1, _count_of_workers(client))

    def _map(self, task: Task[Result], items: Sequence[Any], keys: Keys) -> Generator[Result]:
        if not items:
            return
        with self._client() as client:
            watch = _Watch(client, self.wait_for_workers, self.say)
            watch.until_there_are_workers()
            kind = (client.id, repr(task))
            if kind not in self._understood:
                _require_understanding(client, task, items[0])
                self._understood.add(kind)
            yield from _results(watch, task, items, keys, self._most)

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

    An error of the library would be raised again however often Dask repeats the task, so it is
    returned as a result.
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
    """An error of the library, returned by a worker to be raised here."""

    def __init__(self, error: RidgefoldError) -> None:
        self.error = error


def _checked(seconds: Any) -> float:
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not number or not seconds >= 0:
        raise InvalidInputError(
            'wait_for_workers must be a number of seconds >= 0 (float("inf"): for ever), got '
            f"{seconds!r}"
        )
    return float(seconds)


class _Watch:
    """Waits for results and for workers, and gives up where there are none for too long."""

    def __init__(self, client: Any, seconds: float, say: Callable[[str], None]) -> None:
        self.client, self._seconds, self._say = client, seconds, say
        self._none_since: float | None = None
        self._said_at = -math.inf

    def until_there_are_workers(self) -> int:
        """How many there are, as soon as there are any."""
        while (workers := self.look()) == 0:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        return workers

    def result_of(self, future: Any) -> Any:
        """What a task gives, or the error that it ended with."""
        pause = _SECONDS_BETWEEN_LOOKS
        while True:
            try:
                result = future.result(timeout=pause)
            except TimeoutError:
                if future.status == "error":  # then it is the task's own
                    raise
                # Seldom where workers are busy for long; and a result may be slow to arrive.
                busy = self.look() > 0
                pause = min(2 * pause, _SECONDS_BETWEEN_WORDS) if busy else _SECONDS_BETWEEN_LOOKS
            else:
                if self._none_since is not None:  # a worker came, and was done, between two looks
                    self._are_there(max(1, _count_of_workers(self.client)))
                return result

    def look(self) -> int:
        """How many workers there are; an error where there have been none for too long."""
        lost = self.client.status == "connecting"  # Dask itself tries for a while
        workers = 0 if lost else _count_of_workers(self.client)
        now = time.monotonic()
        if workers:
            self._are_there(workers)
            return workers
        if self._none_since is None:
            self._none_since = now
        waited = now - self._none_since
        if waited >= self._seconds:
            raise _lost(self.client) if lost else self._no_workers(waited)
        if now - self._said_at >= _SECONDS_BETWEEN_WORDS:
            self._said_at = now
            self._say(
                f"waiting for {'the scheduler' if lost else 'workers'}: none since {waited:.0f} s, "
                f"gives up at {self._seconds:g} s"
            )
        return 0

    def _are_there(self, workers: int) -> None:
        if self._none_since is not None:
            self._say(f"there are workers: {workers}")
        self._none_since, self._said_at = None, -math.inf

    def _no_workers(self, waited: float) -> NoWorkersError:
        address = _address_of(self.client)
        return NoWorkersError(
            f"the scheduler at {address} has had no workers for {waited:.0f} s: start some (dask "
            f"worker {address}) and {_GO_ON}; if yours take longer to come, wait for them, by "
            "Compute(executor=ridgefold.executors.Dask(…, wait_for_workers=600)), or "
            "--wait-for-workers 600"
        )


_GO_ON = "call again, which with a run_dir goes on with what is finished"


def _count_of_workers(client: Any) -> int:
    try:
        with _reached(client):
            return len(client.nthreads())
    except OSError as error:
        raise _lost(client, error) from None


def _address_of(client: Any) -> str:
    return str(getattr(client.scheduler, "address", "an unknown address"))


@contextlib.contextmanager
def _reached(client: Any) -> Iterator[None]:
    """Turn the errors of a lost connection into ones that say so."""
    from distributed import CancelledError
    from distributed.comm import CommClosedError

    if client.status in _CLOSED:
        raise _closed()
    try:
        yield
    except (CancelledError, CommClosedError) as error:
        raise (_closed() if client.status in _CLOSED else _lost(client, error)) from None
    except Exception:
        if client.status in _CLOSED:  # it has errors of several types for that
            raise _closed() from None
        raise


_CLOSED = ("closing", "closed")


def _lost(client: Any, error: BaseException | None = None) -> ClusterError:
    why = "" if error is None else f" ({(str(error).splitlines() or [type(error).__name__])[-1]})"
    return ClusterError(
        f"the scheduler at {_address_of(client)} was lost{why}: see its log, start it again, and "
        f"{_GO_ON}"
    )


def _closed() -> ClusterError:
    return ClusterError(
        "the client of the Dask cluster is closed, by this process or because its scheduler was "
        'gone: open one, as distributed.Client("tcp://…"), or give the address of the scheduler '
        f"as executor, and {_GO_ON}"
    )


def _require_understanding(client: Any, task: Callable[[Any], Any], item: Any) -> None:
    """Have every worker load a task: Dask would send it for ever to one that cannot.

    The pickled task is sent as bytes, which reach any worker; loading it needs ridgefold, and the
    modules that the user's kernels come from.
    """
    from distributed.protocol.pickle import dumps

    # Workers that are lost meanwhile answer with other errors, and are none of this check's.
    with _reached(client):
        errors = client.run(_loaded, dumps((task, item)), on_error="return")
    for worker, error in errors.items():
        if isinstance(error, (ImportError, AttributeError)):
            raise ClusterError(
                f"the worker at {worker} cannot load what it is to do ({error}): install there "
                "the same version of ridgefold, and the modules that your kernels come from"
            )


def _loaded(pickled: bytes) -> None:
    from distributed.protocol.pickle import loads

    loads(pickled)


def _results(
    watch: _Watch,
    task: Callable[[Any], Result],
    items: Sequence[Any],
    keys: Sequence[str] | None,
    most: int | None,
) -> Iterator[Result]:
    """Results in order, with a bounded number of tasks under way, and none once this is left."""
    client, run = watch.client, _OneThread(task)
    ahead = most or max(_FEWEST_WAITING, _WAITING_A_WORKER * watch.until_there_are_workers())
    under_way: deque[Any] = deque()
    try:
        for number, item in enumerate(items):
            key = None if keys is None else keys[number]
            with _reached(client):
                under_way.append(client.submit(run, item, key=key, retries=_RETRIES, pure=False))
            if len(under_way) >= ahead:
                yield _first_result(watch, under_way)
        while under_way:
            yield _first_result(watch, under_way)
    finally:
        if under_way and client.status == "running":
            # What the scheduler cannot be told any more, it has forgotten.
            with contextlib.suppress(OSError, ClusterError), _reached(client):
                client.cancel(list(under_way))


def _first_result(watch: _Watch, under_way: deque[Any]) -> Any:
    """The result of the first task, which counts as under way until it is here."""
    future = under_way[0]
    result = _result(watch, future)
    under_way.popleft()
    future.release()
    if isinstance(result, _Raised):
        raise result.error
    return result


def _result(watch: _Watch, future: Any) -> Any:
    from distributed import KilledWorker

    tries = 0
    while True:
        tries += 1
        try:
            with _reached(watch.client):
                return watch.result_of(future)
        except KilledWorker as error:
            # Whatever waited at workers that died is blamed; a task that kills them itself
            # counts its tries and says so.
            if tries <= _RETRIES:
                future.retry()
                continue
            raise WorkerLostError(
                f"the workers that ran {future.key!r} died, one after the other ({error}): it may "
                "need more memory than they have, or crash; see the workers' logs"
            ) from None
        except FileNotFoundError as error:
            raise ClusterError(
                f"a worker does not see {error.filename!r}: workers and this process need the same "
                "files; give a run_dir, and data, on a file system that they share"
            ) from None

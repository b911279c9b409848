"""What every executor promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar

from ridgefold.executors.interruption import look_between_tasks

Result = TypeVar("Result")
Task = Callable[[Any], Result]
Keys = Sequence[str] | None
"""What a cluster knows tasks by, one key an item."""
KeyOf = Callable[[str], str]
"""Gives the key of a task from the name it has within a step of the work."""


def same_name(name: str) -> str:
    """Keys where nobody else has tasks."""
    return name


def _say_nothing(_: str) -> None: ...


class Executor(ABC):
    """Runs a function on items, some at a time, each on one BLAS thread.

    Results come back in the order of the items and do not depend on the number of workers.
    At most a few results wait to be taken, so memory stays bounded when the caller takes them
    one by one. A task is a function of a module and its items are plain data, so that both can
    be sent elsewhere.
    """

    apart = True
    """False if the caller itself does the tasks: they may then use its progress bar, and take
    arrays of any library."""
    remote = False
    """True if tasks run in processes that share nothing with this one but files."""
    concurrent_here = False
    """True if several tasks run at the same time in this process, and share its state."""

    def __init__(self, n_workers: int = 1) -> None:
        self.n_workers = n_workers
        self.say: Callable[[str], None] = _say_nothing
        """Called with a line of text whenever the executor waits for something."""
        self._begun: list[Generator[Any]] | None = None
        """The results of every call of `map` since workers are held; None while none are held."""

    @property
    def standing(self) -> bool:
        """True if the workers are there anyway, and nobody has to start them."""
        return False

    @property
    @abstractmethod
    def place(self) -> str:
        """Where tasks run, in words that follow "on"; empty for the caller."""

    def threads(self, planned: int) -> int:
        """BLAS threads of a task that was planned with so many."""
        return 1

    def at_most(self, n_workers: int) -> Self:
        """This executor with at most so many workers, where workers share this machine's memory."""
        return self if n_workers >= self.n_workers else type(self)(max(1, n_workers))

    def workers_now(self) -> int:
        """The number of workers; of a cluster, the number at this moment."""
        return self.n_workers

    @contextmanager
    def held(self) -> Iterator[None]:
        """A context in which workers stay between calls of `map`, where starting them takes
        time; when it is left, whatever the reason, nothing is under way."""
        before, self._begun = self._begun, []
        try:
            yield
        finally:
            for results in self._begun:
                results.close()
            self._begun = before

    def map(self, task: Task[Result], items: Sequence[Any], keys: Keys = None) -> Iterator[Result]:
        """task(item) for every item, in order.

        `keys` name the tasks, the same ones for the same work; where tasks run elsewhere, they
        are known there by them.
        """
        results = _looked_at(self._map(task, items, keys))
        if self._begun is not None:
            self._begun.append(results)
        return results

    @abstractmethod
    def _map(self, task: Task[Result], items: Sequence[Any], keys: Keys) -> Generator[Result]:
        """What `map` does; closing the generator ends what is under way."""


def _looked_at(results: Generator[Result]) -> Generator[Result]:
    """The same results; whoever waits for them may end them between two."""
    try:
        look_between_tasks()
        for result in results:
            yield result
            look_between_tasks()
    finally:
        results.close()


class _LeftEarly(Exception):
    """Thrown into a generator of joblib to end it: joblib warns where it is simply closed."""


def until_left(results: Generator[Result]) -> Generator[Result]:
    """Results of joblib. Leaving them early ends the tasks under way, without joblib's warning."""
    try:
        for result in results:  # noqa: UP028 - closing is not to be passed on
            yield result
    except GeneratorExit:
        with suppress(_LeftEarly):
            results.throw(_LeftEarly())
        raise


class Caller(Executor):
    """The caller does one task after the other, with as many threads as were planned.

    A search that was not asked to use workers runs this way.
    """

    apart = False

    @property
    def place(self) -> str:
        return ""

    def threads(self, planned: int) -> int:
        return planned

    def _map(self, task: Task[Result], items: Sequence[Any], keys: Keys) -> Generator[Result]:
        yield from map(task, items)

"""What every executor promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

Result = TypeVar("Result")


class Executor(ABC):
    """Runs a function on items, some at a time, each on one BLAS thread.

    Results come back in the order of the items and do not depend on the number of workers.
    At most a few results wait to be taken, so memory stays bounded when the caller takes them
    one by one. A task is a function of a module and its items are plain data, so that both can
    be sent elsewhere.
    """

    remote = False
    """True if tasks run in processes that see nothing but files of this one."""

    def __init__(self, n_workers: int = 1) -> None:
        self.n_workers = n_workers

    @abstractmethod
    def map(
        self,
        task: Callable[[Any], Result],
        items: Sequence[Any],
        keys: Sequence[str] | None = None,
    ) -> Iterator[Result]:
        """task(item) for every item, in order.

        `keys` name the tasks, the same ones for the same work; where tasks run elsewhere, they
        are known there by them.
        """

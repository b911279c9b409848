"""One loop over workers that goes on where it was stopped: of kernels, of cells, of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ridgefold.executors import Executor
from ridgefold.executors.base import KeyOf
from ridgefold.storage.run_directory import NoRunDirectory, Piece, Run, RunDirectory

Item = TypeVar("Item")
Result = TypeVar("Result")


def _begin_at_once(items: Sequence[Any]) -> None: ...


def resumable_map(
    executor: Executor,
    task: Callable[[Item], Result],
    items: Sequence[Item],
    names: Sequence[str],
    run: Run,
    *,
    key_of: KeyOf | None = None,
    begin: Callable[[Sequence[Item]], None] = _begin_at_once,
) -> Iterator[Result]:
    """task(item) for every item, in order, wherever the executor says.

    In a run directory every result becomes a file of its name, and what is there already is read
    instead of being made again. Without one results are sent back, and `key_of` says how tasks are
    known to a cluster. `begin` is told the items that are yet to be done, before the first of them.
    """
    if isinstance(run, NoRunDirectory):
        key = run.key if key_of is None else key_of
        begin(items)
        yield from executor.map(task, items, [key(name) for name in names])
        return
    for piece in finished_pieces(executor, task, items, names, run, begin=begin):
        yield piece.read()


def finished_pieces(
    executor: Executor,
    task: Callable[[Item], Result],
    items: Sequence[Item],
    names: Sequence[str],
    run: RunDirectory,
    *,
    begin: Callable[[Sequence[Item]], None] = _begin_at_once,
) -> Iterator[Piece]:
    """The files of a run directory that hold task(item) for every item, as they are finished."""
    missing = [k for k, name in enumerate(names) if not run.is_whole(name)]
    begin([items[k] for k in missing])
    to_do = [(items[k], run.piece(names[k])) for k in missing]
    made = executor.map(_Keeping(task), to_do, [run.key(names[k]) for k in missing])
    waiting = set(missing)
    for k, name in enumerate(names):
        if k in waiting:
            run.record(name, next(made))
        else:
            run.reused.append(name)
        yield run.piece(name)


@dataclass(frozen=True)
class _Keeping:
    """A task that writes its result to a file, wherever it is done."""

    task: Callable[[Any], Any]

    def __call__(self, to_do: tuple[Any, Piece]) -> str:
        """Do the task for an item, and write the result; returns the SHA-256 of the file."""
        item, piece = to_do
        return piece.made(lambda: self.task(item))

"""What every file of rows can do: name its columns, be read whole, or a block at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ridgefold.errors import TableError

Share = Callable[[float], None]
"""Is told how much of a file has been read, from 0 to 1."""


class TableFile(ABC):
    """One file of rows."""

    types_are_declared = True
    """False where types are guessed from the cells, as in CSV: text may be meant as numbers."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def names(self) -> list[str]:
        """Names of the columns, in order."""

    @abstractmethod
    def read(self, columns: Sequence[str], texts: Collection[str] = ()) -> Any:
        """The whole pyarrow table, or some of its columns; those in `texts` as they are written."""

    @abstractmethod
    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], share: Share
    ) -> Iterator[Any]:
        """Some columns, a block of rows at a time; `types` where they are known.

        A column that should be numbers is text in the blocks in which a cell is none: who reads
        it decides what to do about that cell.
        """

    def places(self, rows: Sequence[int]) -> list[str]:
        """Where rows stand in the file, for messages; `rows` ascends from 0."""
        return [f"row {row + 1}" for row in rows]

    def once(self, names: list[str]) -> list[str]:
        """Names that stand for one column each."""
        if twice := called_twice(names):
            raise self.error(twice)
        return names

    def error(self, problem: object) -> TableError:
        return TableError(f"{str(self.path)!r} cannot be read as a table: {problem}")


def called_twice(names: Sequence[str]) -> str:
    """Names that several columns have, in words."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    return f"two columns are called {', '.join(map(repr, twice))}" if twice else ""


def first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:300] or type(error).__name__

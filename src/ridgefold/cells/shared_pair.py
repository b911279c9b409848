"""One pair of kernel and ridge for all cells, by the leave-one-out error pooled over some.

A search asks for one pair at a time. Every cell that is looked at answers by a
task of its own, so that workers answer together; their scores are pooled here, in the order of
the cells. So the choice is the same wherever the tasks run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgefold.cells.cell_rows import Batch, CellRows, number_of, rows_of, spaced
from ridgefold.cells.local_fit import CellSystem
from ridgefold.cells.local_search import (
    FEWEST_ROWS,
    Choice,
    best_of,
    search,
    search_near,
)
from ridgefold.cells.stacked_fit import cell_on
from ridgefold.executors import Executor
from ridgefold.executors.base import KeyOf, same_name
from ridgefold.kernels import Kernel
from ridgefold.records import CELL_SEARCH, Cells, CellSearch, Grid


def choose_pair(
    training: CellRows,
    cells: Cells,
    grid: Grid,
    executor: Executor,
    *,
    bias: bool,
    fixed: tuple[int, ...] = (),
    device: str | None = None,
    key_of: KeyOf = same_name,
    good_start: bool = False,
    limits: CellSearch = CELL_SEARCH,
) -> Grid:
    """One pair for all cells, by the leave-one-out error pooled over some of them: a grid's start.

    First on some rows of the cores of a few cells; then, where cores are larger than that, from
    there on all of their rows, or as many as `limits` say; of kernels without an order, for the
    ridge alone. With `good_start` the grid starts where cells of another size ended, and a near
    search looks around, in small steps. Of several grids it is the best at each of these.
    """
    if not grid.is_choice:
        return grid
    m = number_of(cells)
    numbers = np.unique(np.linspace(0, m - 1, min(m, limits.pilots)).astype(np.intp)).tolist()

    def pool(name: str, one: Grid, some: list[int], most: int) -> _Pool:
        pilots = [
            _Pilot(training.batch(cells, slice(c, c + 1)), most, one.kernels, (bias, fixed), device)
            for c in some
        ]
        return _Pool(name, tuple(some), tuple(pilots), one.alphas, executor, key_of)

    def widely(number: int, one: Grid) -> Choice:
        return search(pool(f"wide-{number}", one, numbers, limits.pilot_rows).pair, one)

    def near_its_start(number: int, one: Grid) -> Choice:
        if not (one.ordered or len(one.kernels) == 1):
            return widely(number, one)
        near = pool(f"near-{number}", one, _spread(numbers), limits.near_rows)
        return search_near(near.pair, replace(one, stride=1))

    if good_start:
        return best_of(grid, near_its_start)
    grid = best_of(grid, widely)
    overlap = cells.weights is not None
    cores = {c: limits.core_rows(len(rows_of(cells, c)), overlap=overlap) for c in numbers}
    large = [c for c in numbers if cores[c] > 1.25 * limits.pilot_rows]
    if not large:
        return grid

    def on_more_rows(number: int, one: Grid) -> Choice:
        near = pool(f"more-{number}", one, _spread(large), limits.more_rows)
        return search_near(near.pair, one)

    return best_of(grid, on_more_rows)


def _spread(numbers: list[int]) -> list[int]:
    """A few of these cells, evenly spaced."""
    return [numbers[place] for place in spaced(len(numbers), CELL_SEARCH.near_pilots)]


class _Pilot:
    """One cell that answers, with at most so many rows of its core; they are read where it does."""

    def __init__(
        self,
        cell: Batch,
        most: int,
        kernels: tuple[Kernel, ...],
        unpenalised: tuple[bool, tuple[int, ...]],
        device: str | None,
    ) -> None:
        """`unpenalised`: whether there is a bias, and the numbers of other such columns."""
        self._given = (cell, most, kernels, unpenalised, device)
        self._system: CellSystem | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _Pilot, self._given

    @property
    def system(self) -> CellSystem | None:
        """Made once where the pilot is, as distances serve every width; None of too few rows.

        A task that is sent to another process takes none along: it makes its own.
        """
        if self._system is None:
            cell, most, kernels, (bias, fixed), device = self._given
            data = cell.data(0).core()
            if len(data.X) > most:
                data = data.taken(spaced(len(data.X), most))
            if device is not None:
                data = cell_on(data, device)
            self._system = CellSystem(data, kernels, bias=bias, fixed=fixed)
        return self._system if self._system.n_rows >= FEWEST_ROWS else None


@dataclass(frozen=True)
class _Question:
    """What one cell is asked."""

    pilot: _Pilot
    kernel: int
    alpha: float


Answer = tuple[int, float]
"""The rows of a cell that count, and its score."""


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _score(question: _Question) -> Answer | None:
    """One pair, by one inverse; nothing from too few rows."""
    system = question.pilot.system
    if system is None:
        return None
    return system.n_counted, system.score(question.kernel, question.alpha)


@dataclass(frozen=True)
class _Pool:
    """Some cells whose answers are averaged, each counting by its rows."""

    name: str
    """Of the search that asks: tasks of another ask the same of other rows."""
    numbers: tuple[int, ...]
    pilots: tuple[_Pilot, ...]
    alphas: np.ndarray
    executor: Executor
    key_of: KeyOf

    def pair(self, kernel: int, alpha: int) -> float:
        """The score of one pair; infinite if no cell has rows enough to tell."""
        questions = [_Question(pilot, kernel, float(self.alphas[alpha])) for pilot in self.pilots]
        name = f"{self.name}-pair-{kernel}-{alpha}"
        keys = [self.key_of(f"{name}-cell-{number}") for number in self.numbers]
        told = [found for found in self.executor.map(_score, questions, keys) if found is not None]
        if not told:
            return np.inf
        sizes, scores = np.array(told, dtype=np.float64).T
        return float(sizes @ scores / sizes.sum())

"""One pair of kernel and ridge for all cells, by the leave-one-out error pooled over a few of them.

A search asks for the score of one pair at a time. Each of those few cells, the pilots, scores it
in a task of its own, so that workers do so side by side; the scores are pooled here, in the order
of the cells. So the choice is the same wherever the tasks run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.cells.cell_rows import Batch, RowsByCell, number_of, rows_of, spaced
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
    training: RowsByCell,
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
    """The grid, starting at the pair with the least leave-one-out error pooled over a few cells.

    The search goes over a sample of the core rows of these cells first. Where cores are larger, it
    goes on from that pair with all core rows, or as many as `limits` say; for kernels that are not
    ordered by width, only the ridge then changes. With `good_start` the grid starts where cells of
    another size ended, and only pairs near by are tried, in small steps. If there are several
    grids, each is searched and the best one is returned.
    """
    if not grid.is_choice:
        return grid
    m = number_of(cells)
    numbers = np.unique(np.linspace(0, m - 1, min(m, limits.pilots)).astype(np.intp)).tolist()

    def pool(name: str, one: Grid, some: list[int], most: int) -> _Pool:
        pilots = [
            _Pilot(training.batch(cells, (c,)), most, one.kernels, (bias, fixed), device)
            for c in some
        ]
        return _Pool(name, tuple(some), tuple(pilots), one.alphas, executor, key_of)

    def widely(number: int, one: Grid) -> Choice:
        return search(pool(f"wide-{number}", one, numbers, limits.pilot_rows).pair, one)

    def near_its_start(number: int, one: Grid) -> Choice:
        if not (one.ordered or len(one.kernels) == 1):
            return widely(number, one)
        near = pool(f"near-{number}", one, _spread(numbers), limits.near_rows)
        return search_near(near.pair, one)

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
class _ScoreTask:
    """The task of scoring one pair on one pilot."""

    pilot: _Pilot
    kernel: int
    alpha: float


CellScore = tuple[int, float]
"""The number of rows of a cell that count, and its score."""


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _score(task: _ScoreTask) -> CellScore | None:
    """Score one pair by one inverse; None if the cell has too few rows."""
    system = task.pilot.system
    if system is None:
        return None
    return system.n_counted, system.score(task.kernel, task.alpha)


@dataclass(frozen=True)
class _Pool:
    """Pilots whose scores are averaged, each weighted by its number of rows."""

    name: str
    """The name of the search, by which its tasks are told from those of another one."""
    numbers: tuple[int, ...]
    pilots: tuple[_Pilot, ...]
    alphas: np.ndarray
    executor: Executor
    key_of: KeyOf

    def pair(self, kernel: int, alpha: int) -> float:
        """The score of one pair; infinite if no cell has rows enough to tell."""
        tasks = [_ScoreTask(pilot, kernel, float(self.alphas[alpha])) for pilot in self.pilots]
        name = f"{self.name}-pair-{kernel}-{alpha}"
        keys = [self.key_of(f"{name}-cell-{number}") for number in self.numbers]
        scored = [score for score in self.executor.map(_score, tasks, keys) if score is not None]
        if not scored:
            return np.inf
        sizes, scores = np.array(scored, dtype=np.float64).T
        return float(sizes @ scores / sizes.sum())

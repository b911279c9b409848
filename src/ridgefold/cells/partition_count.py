"""How many cells: as many as cost at most a stated loss of accuracy.

Larger cells are more accurate and cost more, n·(n/m)² operations for all of them. So cells of
256 rows are tried first, then twice as many, and so on, and every size is scored by the
leave-one-out error of the combined model, which the cells give exactly (residuals of a row in
its cells, weighted by its shares, which sum to 1). When doubling gains less than half the
stated loss it stops, and the smallest size within the stated loss of the best is taken.

All cells of a size share one pair of kernel and ridge while sizes are compared, even if each will
choose its own: that takes one inverse a cell instead of eleven, and what own pairs gain is
gained at every size.

On large data this happens in a few regions, the rows nearest to a random row: sizes are
compared on the same rows, so that a few thousand residuals tell errors apart that differ by a
percent. Above 300,000 rows no cells of more than 512 rows are tried.

For averages over random cells, Zhang, Duchi and Wainwright (JMLR 16, 2015) say that the loss is
negligible while m ≲ N/γ², γ = tr K(K + αI)⁻¹ the effective dimension: that is the first guess, and
four times as many cells are where the search begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgefold.cells.cell_rows import RowsByCell, RowsToFit, number_of
from ridgefold.cells.cut import Partitioner
from ridgefold.cells.held_out_errors import held_out_errors
from ridgefold.cells.local_fit import FitSettings
from ridgefold.cells.run_cells import run_cells
from ridgefold.cells.shared_pair import choose_pair
from ridgefold.executors import Executor
from ridgefold.executors.base import KeyOf, same_name
from ridgefold.linalg.blocks import row_blocks
from ridgefold.records import CELL_SEARCH, Cells, CellTrial, Grid, LocalModels

_REPEATS = 2.0
"""Rows of a cell with those that it shares, in parts of its own, at most."""
_FEWEST_TRIED = 32
"""Cells of fewer rows are not tried, however little memory there is."""


@dataclass(frozen=True)
class TriedCells:
    """Cells that were tried, with the models fitted in them."""

    cells: Cells
    models: LocalModels
    residuals: np.ndarray
    """Leave-one-out residuals, aligned with ``cells.rows``."""


@dataclass(frozen=True)
class CountChoice:
    """The number of cells that was chosen, the trials behind it, and a good pair to begin with."""

    n_cells: int
    trials: tuple[CellTrial, ...]
    grid: Grid
    cells: Cells | None
    """The chosen cells, if they were tried on all rows."""
    fitted: TriedCells | None
    """The chosen cells with their models, if these are already as a fit would make them."""


HandOut = Callable[[str, RowsToFit], RowsByCell]
"""Gives the rows of a region, known by a name, as tasks get them."""


def as_they_are(name: str, training: RowsToFit) -> RowsByCell:
    """Rows in memory, for tasks of this machine."""
    return training


@dataclass(frozen=True)
class _Region:
    """A region: rows on which sizes of cells are compared."""

    name: str
    training: RowsToFit
    """Its rows in memory."""
    handed: RowsByCell
    """Its rows in the form that tasks get them in."""


def regions(X: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """All rows if they are few, else the rows nearest to each of some random rows."""
    n = X.shape[0]
    if n <= CELL_SEARCH.regions * CELL_SEARCH.region_rows:
        return [np.arange(n)]
    row_numbers = []
    for pivot in rng.choice(n, CELL_SEARCH.regions, replace=False):
        row_numbers.append(nearest_rows(X, np.asarray(X[int(pivot)]), CELL_SEARCH.region_rows))
    return row_numbers


def nearest_rows(X: Any, centre: np.ndarray, count: int) -> np.ndarray:
    """The `count` rows nearest to a point, in ascending order; of equals, the first."""
    best, rows, worst = np.empty(0), np.empty(0, dtype=np.int64), np.inf
    for some in row_blocks(X.shape[0], X.itemsize * X.shape[1], float(1 << 24)):
        difference = X[some] - centre[None, :]
        squares = np.einsum("ij,ij->i", difference, difference)
        near = np.flatnonzero(squares <= worst)
        best, rows = np.concatenate([best, squares[near]]), np.append(rows, near + some.start)
        first = np.lexsort((rows, best))[:count]
        best, rows = best[first], rows[first]
        worst = best[-1] if len(best) == count else np.inf
    return np.sort(rows)


def choose_count(
    training: RowsToFit,
    partitioner: Partitioner,
    overlap: float,
    grid: Grid,
    executor: Executor,
    *,
    loss: float,
    rng: np.random.Generator,
    settings: FitSettings,
    hand_out: HandOut = as_they_are,
    key_of: KeyOf = same_name,
) -> CountChoice:
    """The number of cells for `route` and `blend`, fitted as `settings` say.

    Where all rows were tried, the cells of the chosen size come back with it, and their models
    if all share a pair and each is one fit. Cells that are tried are tasks of the executor;
    `hand_out` says how they get their rows.
    """
    n = training.X.shape[0]
    parts: list[_Region] = []
    for number, rows in enumerate(regions(training.X, rng)):
        name, part = f"region-{number}", training.taken(rows)
        parts.append(_Region(name, part, hand_out(name, part)))
    smallest = min(part.training.X.shape[0] for part in parts)
    trials: list[CellTrial] = []
    starts = [[grid] * len(parts)]
    tried: list[TriedCells] = []
    most_rows = settings.limits.most_cell_rows
    size = _smallest_within(most_rows, overlap)
    many = n > CELL_SEARCH.many_rows
    largest = CELL_SEARCH.largest_of_many if many else CELL_SEARCH.largest_tried
    while size <= largest and (not trials or _count(smallest, trials[-1].cell_rows) > 1):
        cut = [
            partitioner.fit(part.training.X, _count(part.training.X.shape[0], size), overlap, rng)
            for part in parts
        ]
        within = max(int(np.diff(cells.offsets).max()) for cells in cut) <= most_rows
        if not within and size > _FEWEST_TRIED:
            if trials:
                break
            size = max(_FEWEST_TRIED, size // 2)
            continue
        measured = [
            _measure(
                part,
                cells,
                replace(settings, grid=start),
                executor,
                size=size,
                key_of=key_of,
                good_start=bool(trials),
            )
            for part, cells, start in zip(parts, cut, starts[-1], strict=True)
        ]
        squares, count = (sum(values) for values in zip(*(m.scored for m in measured), strict=True))
        error = math.sqrt(squares / count) if count else 0.0
        tried.append(measured[-1].fitted)
        trials.append(CellTrial(size, error))
        starts.append([m.grid for m in measured])
        before = min((trial.error for trial in trials[:-1]), default=math.inf)
        if error == 0.0 or error > before * (1.0 - loss / 2):
            break
        size *= 2
    best = min(trial.error for trial in trials)
    chosen = next(i for i, trial in enumerate(trials) if trial.error <= (1.0 + loss) * best)
    n_cells = _count(n, trials[chosen].cell_rows)
    known = tried[chosen] if smallest == n and chosen < len(tried) else None
    return CountChoice(
        n_cells,
        tuple(trials),
        starts[1 + min(chosen, len(tried) - 1)][-1],
        None if known is None else known.cells,
        None if settings.choose else known,
    )


def _smallest_within(most_rows: float, overlap: float) -> int:
    """Rows of the first cells that are tried: fewer than usual where memory holds no such cell."""
    size = CELL_SEARCH.smallest_tried
    while size > _FEWEST_TRIED and size * (_REPEATS if overlap > 0 else 1.0) > most_rows:
        size //= 2
    return size


def _count(n_rows: int, cell_rows: int) -> int:
    """How many cells of a size there are."""
    return max(1, round(n_rows / cell_rows))


@dataclass(frozen=True)
class _Measured:
    """The outcome of one size on one region."""

    grid: Grid
    """The grid, starting at the pair that suits this size."""
    scored: tuple[float, float]
    """The sum of squares of leave-one-out residuals, and their number."""
    fitted: TriedCells


def _measure(
    part: _Region,
    cells: Cells,
    settings: FitSettings,
    executor: Executor,
    *,
    size: int,
    key_of: KeyOf,
    good_start: bool,
) -> _Measured:
    """Cells of `size` rows of a region, all with the pair that suits them best."""

    def key(name: str) -> str:
        return key_of(f"{part.name}-size-{size}-{name}")

    grid = choose_pair(
        part.handed,
        cells,
        settings.grid,
        executor,
        bias=settings.bias,
        fixed=settings.fixed,
        device=settings.device,
        key_of=key,
        good_start=good_start,
        limits=settings.limits,
    )
    alike = replace(
        settings,
        grid=grid,
        choose=False,
        held_out=True,
        trial=settings.choose,
    )
    ones = np.ones(number_of(cells))
    models, residuals = run_cells(part.handed, cells, alike, ones, executor, key_of=key)
    assert residuals is not None
    off, counts = held_out_errors(part.training, cells, models, residuals, clip=settings.clip)
    counts = np.broadcast_to(counts[:, None], off.shape)
    known = np.isfinite(off) & (counts > 0)
    counts = counts[known]
    scored = float(counts @ off[known] ** 2), float(counts.sum())
    return _Measured(grid, scored, TriedCells(cells, models, residuals))


Scorer = Callable[[int], float]


def choose_count_of_average(
    score: Scorer, first_guess: int, n_rows: int, loss: float, most_rows: float = math.inf
) -> tuple[int, tuple[CellTrial, ...]]:
    """The number of random cells, from the held-out error of their mean, `score(m)`.

    Starts at four times the guess and halves m, that is doubles the cells, until this gains
    less than half the stated loss, or cells would have more than `most_rows`.
    """
    trials: list[CellTrial] = []
    counts: list[int] = []
    m = int(min(max(1, 4 * first_guess), max(1, n_rows // 32)))
    m = max(m, math.ceil(n_rows / most_rows))
    while True:
        trials.append(CellTrial(max(1, n_rows // m), score(m)))
        counts.append(m)
        small_gain = len(trials) > 1 and trials[-1].error > trials[-2].error * (1.0 - loss / 2)
        halved = max(1, m // 2)
        too_large = n_rows // halved > CELL_SEARCH.largest_tried or n_rows > halved * most_rows
        if m == 1 or small_gain or too_large:
            break
        m = halved
    best = min(trial.error for trial in trials)
    chosen = next(i for i, trial in enumerate(trials) if trial.error <= (1.0 + loss) * best)
    return counts[chosen], tuple(trials)


def effective_dimension(eigenvalues: np.ndarray, alpha: float) -> float:
    """γ = tr K(K + αI)⁻¹ from the eigenvalues of K."""
    values = np.maximum(eigenvalues, 0.0)
    return float(np.sum(values / (values + alpha)))

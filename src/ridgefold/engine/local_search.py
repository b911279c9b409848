"""Choose kernel and ridge in cells by leave-one-out, with few of the grid's kernels.

The kernels of a grid stand in the order of their widths. The error as a function of the width
(with the best ridge for each) mostly falls and then rises, so the search walks downhill from a good
start to both sides, by `Grid.stride` widths at a time, and stops when two in a row are worse: five
to eight eigendecompositions instead of one for every width, and widths beyond the ends of an
ordinary grid can be reached. Widths in between are for searches near a good pair.

Searches are generators: they yield what they want scored, are sent the scores and return the
choice. So one search can be answered by one cell, and those of many cells together.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgefold.engine.local_fit import CellSystem
from ridgefold.records import CELL_SEARCH, Grid


@dataclass(frozen=True)
class Choice:
    """The pair that won: positions in the grid, and its score."""

    kernel: int
    alpha: int
    score: float


FEWEST_ROWS = 8
"""Cells of fewer rows take the shared choice: so few residuals say nothing."""


KernelSearch = Generator[int, np.ndarray, Choice]
"""Yields kernels, and is sent the scores of all alphas with each (lower is better)."""
PairSearch = Generator[tuple[int, int], float, Choice]
"""Yields pairs of kernel and alpha, and is sent the score of each."""


def search(scores_of: Callable[[int], np.ndarray], grid: Grid) -> Choice:
    """The best pair, with `scores_of(kernel)` the scores of all alphas (lower is better)."""
    return _answered(search_kernels(grid), scores_of)


def _answered(steps: Generator[Any, Any, Choice], answer: Callable[[Any], Any]) -> Choice:
    """The choice of one search, whose questions are answered as they come."""
    try:
        question = next(steps)
        while True:
            question = steps.send(answer(question))
    except StopIteration as done:
        choice: Choice = done.value
        return choice


def answered_together(
    searches: Sequence[Generator[Any, Any, Choice]],
    answers: Callable[[dict[int, Any]], Mapping[int, Any]],
) -> list[Choice]:
    """The choices of several searches, whose questions are answered a round at a time.

    `answers` gets one question of every search that goes on, by its number.
    """
    choices: dict[int, Choice] = {}
    questions: dict[int, Any] = {number: next(steps) for number, steps in enumerate(searches)}
    while questions:
        following: dict[int, Any] = {}
        for number, reply in answers(questions).items():
            try:
                following[number] = searches[number].send(reply)
            except StopIteration as done:
                choices[number] = done.value
        questions = following
    return [choices[number] for number in range(len(searches))]


_FAR = 2
"""Widths beyond the best that are looked at, in steps: there may be a valley behind a ridge."""


def search_kernels(grid: Grid) -> KernelSearch:
    """Walk downhill in width from the grid's start; of kernels without an order, all."""
    known: dict[int, Choice] = {}

    def note(kernel: int, scores: np.ndarray) -> Choice:
        best = int(np.argmin(scores))
        known[kernel] = Choice(kernel, best, float(scores[best]))
        return known[kernel]

    if not grid.ordered:
        for kernel in range(len(grid.kernels)):
            note(kernel, (yield kernel))
    else:
        first = note(grid.start, (yield grid.start))
        for step in (grid.stride, -grid.stride):
            # Either side from the start: ever smaller gains towards one end may hide the other.
            best, kernel = first, grid.start + step
            while 0 <= kernel < len(grid.kernels) and abs(kernel - best.kernel) <= _FAR * abs(step):
                following = note(kernel, (yield kernel))
                if following.score < best.score:
                    best = following
                kernel += step
    # Ties go to the first in the order of the grid.
    winner = min(known.values(), key=lambda choice: (choice.score, choice.kernel))
    if not np.isfinite(winner.score):
        return Choice(grid.start, grid.start_alpha, winner.score)
    return winner


def has_own_choice(grid: Grid, n_rows: int) -> bool:
    """Whether a cell of so many rows looks for a pair of its own."""
    return grid.is_choice and FEWEST_ROWS <= n_rows <= CELL_SEARCH.largest_searched


def search_cell(system: CellSystem, grid: Grid) -> Choice:
    """The best pair for one cell's core: of all, or near the start if kernels are in order."""
    if not has_own_choice(grid, system.n_rows):
        return Choice(grid.start, grid.start_alpha, np.nan)
    core = system.core()
    if grid.ordered:
        return search_near(
            lambda k, j: core.score(k, float(grid.alphas[j])), grid, CELL_SEARCH.own_pairs
        )
    return search(lambda kernel: core.scores(kernel, grid.alphas), grid)


_MOVES = ((0, 1), (0, -1), (1, -1), (-1, 1), (1, 0), (-1, 0))
"""Steps in width and ridge; wider kernels want smaller ridges, so the valley runs aslant."""


def _moves(stride: int) -> tuple[tuple[int, int], ...]:
    """Wide steps first; then those in between."""
    wide = tuple((stride * width, ridge) for width, ridge in _MOVES)
    return wide if stride == 1 else (*wide, *((w, r) for w, r in _MOVES if w))


_WORTH_MOVING = 0.995
"""A pair of a cell's own must lower the error by this factor: smaller gains are noise."""


def search_near(
    score_of: Callable[[int, int], float], grid: Grid, most: int = CELL_SEARCH.pairs
) -> Choice:
    """A better pair near the grid's start; `score_of(kernel, alpha)` is asked `most` times."""
    return _answered(search_pairs(grid, most), lambda pair: score_of(*pair))


def search_pairs(grid: Grid, most: int = CELL_SEARCH.pairs) -> PairSearch:
    """A better pair near the grid's start, one pair at a time, scoring at most `most`.

    For when one eigendecomposition a width, as dear as seven inverses, is too much: the start is
    good already. Moves to the first neighbour that is better and goes on in that direction.
    """
    known: dict[tuple[int, int], float] = {}

    def is_new(pair: tuple[int, int]) -> bool:
        inside = 0 <= pair[0] < len(grid.kernels) and 0 <= pair[1] < len(grid.alphas)
        return inside and pair not in known and len(known) < most

    at = (grid.start, grid.start_alpha)
    known[at] = yield at
    moved = True
    while moved:
        moved = False
        for width, ridge in _moves(grid.stride):
            if width and not grid.ordered:
                continue
            while True:
                pair = (at[0] + width, at[1] + ridge)
                if is_new(pair):
                    known[pair] = yield pair
                if not known.get(pair, np.inf) < _WORTH_MOVING * known[at]:
                    break
                at = pair
                moved = True
    return Choice(*at, known[at])


def starting_at(grid: Grid, choice: Choice) -> Grid:
    """The same grid, to be searched from a pair that was good elsewhere."""
    return replace(grid, start=choice.kernel, start_alpha=choice.alpha)

"""Choose kernel and ridge in cells by leave-one-out, with few of the grid's kernels.

The kernels of a grid stand in the order of their widths. The error as a function of the width
(with the best ridge for each) mostly falls and then rises, so the search walks downhill from a good
start to both sides and stops when a width is worse. The best ridge moves little from one
width to the next, so that some four or five of them are looked at.

Searches are generators: they yield what they want scored, are sent the scores and return the
choice. So one search can be answered by one cell, and those of many cells together.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgefold.cells.local_fit import CellSystem
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


def search(score_of: Callable[[int, int], float], grid: Grid) -> Choice:
    """The best pair, with `score_of(kernel, alpha)` the score of one (lower is better)."""
    return _answered(search_widely(grid), lambda pair: score_of(*pair))


def search_with_all_ridges(scores_of: Callable[[int], np.ndarray], grid: Grid) -> Choice:
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
        for step in (1, -1):
            # Either side from the start: ever smaller gains towards one end may hide the other.
            best, kernel = first, grid.start + step
            while 0 <= kernel < len(grid.kernels):
                following = note(kernel, (yield kernel))
                if not following.score < best.score:
                    break
                best, kernel = following, kernel + step
    # Ties go to the first in the order of the grid.
    winner = min(known.values(), key=lambda choice: (choice.score, choice.kernel))
    if not np.isfinite(winner.score):
        return Choice(grid.start, grid.start_alpha, winner.score)
    return winner


_RIDGES_APART = 3
"""Places between the ridge values that a first look goes through: factors of ten."""


class _RidgeWalk:
    """The best ridge of one kernel after another, looking only at those that may be the best.

    For the first kernel every third value is looked at, and then what is beside the best. For each
    further one it is a walk downhill, from where the best ones of its neighbours lead.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._best: dict[int, int] = {}

    def scores(self, kernel: int) -> Generator[tuple[int, int], float, np.ndarray]:
        """Of every ridge value; infinite where nothing was looked at."""
        scores, seen, at = np.full(self._count, np.inf), set[int](), -1
        following = self._first(kernel)
        while following:
            for alpha in following:
                scores[alpha] = yield kernel, alpha
            seen.update(following)
            at = int(np.argmin(scores))
            beside = {max(at - 1, 0), min(at + 1, self._count - 1)}
            following = sorted(beside - seen)
        self._best[kernel] = at
        return scores

    def _first(self, kernel: int) -> list[int]:
        """Where to begin."""
        if not self._best:
            return list(range(min(_RIDGES_APART // 2, self._count - 1), self._count, _RIDGES_APART))
        near, *others = sorted(self._best, key=lambda known: abs(known - kernel))
        at = self._best[near]
        if others and (others[0] < near) == (near < kernel):
            steps = (kernel - near) / (near - others[0])
            at += round(steps * (at - self._best[others[0]]))
        return [min(max(at, 0), self._count - 1)]


def search_widely(grid: Grid) -> PairSearch:
    """The walk over kernels with, for each, one over ridges: one pair at a time."""
    kernels, ridges = search_kernels(grid), _RidgeWalk(len(grid.alphas))
    kernel = next(kernels)
    while True:
        scores = yield from ridges.scores(kernel)
        try:
            kernel = kernels.send(scores)
        except StopIteration as done:
            choice: Choice = done.value
            return choice


def has_own_choice(grid: Grid, n_rows: int) -> bool:
    """Whether a cell of so many rows looks for a pair of its own."""
    return grid.is_choice and FEWEST_ROWS <= n_rows <= CELL_SEARCH.largest_searched


def search_cell(system: CellSystem, grid: Grid) -> Choice:
    """The best pair for one cell's core: of all, or near the start if kernels are in order."""
    if not has_own_choice(grid, system.n_rows):
        return Choice(grid.start, grid.start_alpha, np.nan)
    core = system.core()

    def score(kernel: int, alpha: int) -> float:
        return core.score(kernel, float(grid.alphas[alpha]))

    return search_near(score, grid) if grid.ordered else search(score, grid)


_MOVES = ((0, 1), (0, -1), (1, -1), (-1, 1), (1, 0), (-1, 0))
"""Steps in width and ridge; wider kernels want smaller ridges, so the valley runs aslant."""


_WORTH_MOVING = 0.995
"""A pair of a cell's own must lower the error by this factor: smaller gains are noise."""


def search_near(
    score_of: Callable[[int, int], float], grid: Grid, most: int = CELL_SEARCH.pairs
) -> Choice:
    """A better pair near the grid's start; `score_of(kernel, alpha)` is asked `most` times."""
    return _answered(search_pairs(grid, most), lambda pair: score_of(*pair))


def search_pairs(grid: Grid, most: int = CELL_SEARCH.pairs) -> PairSearch:
    """A better pair near the grid's start, one pair at a time, scoring at most `most`.

    For when the start is good already. Moves to the first neighbour that is better and goes on in
    that direction.
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
        for width, ridge in _MOVES:
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


_CLOSE = 1.1**2
"""Kernels whose mean squared error is less than this, in parts of the least, may yet be the best
for larger cells."""


def best_of(grid: Grid, look: Callable[[int, Grid], Choice]) -> Grid:
    """Of a grid and those beside it, the one with the best pair, which it starts at.

    `look` finds the best pair of each, by its number; of equals the first is taken. Those that come
    close stay beside it, starting at theirs.
    """
    looked = [(look(number, each), each) for number, each in enumerate(grid.each)]
    looked.sort(key=lambda pair: pair[0].score)
    limit = _CLOSE * looked[0][0].score
    best, *others = (starting_at(each, choice) for choice, each in looked if choice.score <= limit)
    return replace(best, others=tuple(others))


def starting_at(grid: Grid, choice: Choice) -> Grid:
    """The same grid, to be searched from a pair that was good elsewhere."""
    return replace(grid, start=choice.kernel, start_alpha=choice.alpha)

"""Searches over widths and ridges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ridgefold.cells.local_search import (
    Choice,
    best_of,
    has_own_choice,
    search,
    search_near,
    search_with_all_ridges,
)
from ridgefold.records import CELL_SEARCH, Grid


def grid(start=6, start_alpha=3):
    return Grid(tuple(range(13)), np.logspace(-3, 3, 7), start, start_alpha, True)


def valley(kernel, alpha):
    """Errors that fall towards one pair."""
    return lambda k, j: 1.0 + 0.1 * abs(k - kernel) + 0.1 * abs(j - alpha)


def test_a_first_look_walks_downhill_and_asks_nothing_twice():
    asked = []

    def watched(kernel, alpha):
        asked.append((kernel, alpha))
        return valley(9, 2)(kernel, alpha)

    choice = search(watched, grid())
    assert (choice.kernel, choice.alpha) == (9, 2)
    assert {kernel for kernel, _ in asked} == {5, 6, 7, 8, 9, 10}
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("slant", [-1, 0, 1])
def test_ridges_are_followed_from_one_width_to_the_next(slant):
    """The best ridge moves with the width; few of those that could be asked for are."""
    alphas, asked = 25, []
    wide = Grid(tuple(range(13)), np.logspace(-6, 6, alphas), 6, 12, True)

    def score(kernel, alpha):
        asked.append((kernel, alpha))
        return 1.0 + 0.01 * (kernel - 3) ** 2 + 0.02 * (alpha - 12 - slant * (kernel - 6)) ** 2

    choice = search(score, wide)
    assert (choice.kernel, choice.alpha) == (3, 12 - 3 * slant)
    widths = len({kernel for kernel, _ in asked})
    assert len(asked) <= alphas / 3 + 4 * widths + 2


@pytest.mark.parametrize("n_alphas", [1, 2, 3, 5])
def test_every_ridge_of_a_few_can_win(n_alphas):
    for best in range(n_alphas):
        few = Grid(tuple(range(3)), np.logspace(-3, 3, n_alphas), 1, 0, False)
        choice = search(lambda k, j, best=best: 1.0 + k + abs(j - best), few)
        assert (choice.kernel, choice.alpha) == (0, best)


def test_scores_that_are_not_finite_leave_the_start():
    choice = search(lambda k, j: np.inf, grid())
    assert (choice.kernel, choice.alpha) == (6, 3)


def test_where_all_ridges_come_at_once_the_walk_is_the_same():
    def all_ridges(kernel):
        return np.array([valley(9, 2)(kernel, j) for j in range(7)])

    assert search_with_all_ridges(all_ridges, grid()) == search(valley(9, 2), grid())


def test_small_gains_to_the_wide_end_do_not_hide_the_narrow_side():
    values = 1.0 - 1e-6 * np.arange(13)
    values[[4, 5]] = 0.2, 0.6
    assert search(lambda k, j: values[k], grid()).kernel == 4


@pytest.mark.parametrize("best", [5, 7])
def test_a_near_search_finds_the_pair_beside_its_start(best):
    choice = search_near(valley(best, 3), grid(), most=20)
    assert (choice.kernel, choice.alpha) == (best, 3)


def test_every_neighbour_is_looked_at_once():
    asked = []
    flat = search_near(lambda k, j: asked.append((k, j)) or 1.0, grid(), most=20)
    assert (flat.kernel, flat.alpha) == (6, 3)
    assert sorted(asked) == sorted({(6, 3), (6, 4), (6, 2), (7, 2), (5, 4), (7, 3), (5, 3)})


def test_a_near_search_stays_within_what_it_may_ask():
    asked = []
    search_near(lambda k, j: asked.append((k, j)) or 1.0, grid(), most=5)
    assert len(asked) == 5


def test_cells_with_few_rows_and_large_ones_take_the_shared_pair():
    largest = CELL_SEARCH.largest_searched
    assert [has_own_choice(grid(), n) for n in (7, 8, largest, largest + 1)] == [
        False,
        True,
        True,
        False,
    ]


def test_the_best_of_several_grids_keeps_those_that_come_close():
    scores = {0: 2.0, 1: 1.0, 2: 1.2, 3: 1.3}
    several = replace(grid(), others=tuple(grid(start=k) for k in (1, 2, 3)))
    assert [each.start for each in several.each] == [6, 1, 2, 3]
    found = best_of(several, lambda number, each: Choice(number + 5, number, scores[number]))
    assert (found.start, found.start_alpha) == (6, 1)
    assert [(each.start, each.start_alpha) for each in found.others] == [(7, 2)]
    assert found.each[0].others == ()

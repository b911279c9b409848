"""Searches over widths and ridges: wide steps first, then those in between."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold.engine.local_search import has_own_choice, search, search_near
from ridgefold.records import CELL_SEARCH, Grid


def grid(stride=2, start=6, start_alpha=3):
    return Grid(tuple(range(13)), np.logspace(-3, 3, 7), start, start_alpha, True, stride)


def valley(kernel, alpha):
    """Errors that fall towards one pair."""
    return lambda k, j: 1.0 + 0.1 * abs(k - kernel) + 0.1 * abs(j - alpha)


def scores(score):
    return lambda k: np.array([score(k, j) for j in range(7)])


def test_a_first_look_goes_in_wide_steps():
    asked = []

    def watched(kernel):
        asked.append(kernel)
        return scores(valley(9, 2))(kernel)

    choice = search(watched, grid())
    assert choice.kernel in (8, 10)
    assert choice.alpha == 2
    assert all(kernel % 2 == 0 for kernel in asked)


@pytest.mark.parametrize("behind", [2, 10])
def test_a_first_look_sees_a_valley_behind_a_ridge(behind):
    values = np.full(13, 2.0)
    values[[6, 8 if behind > 6 else 4, behind]] = 1.0, 1.5, 0.5
    assert search(lambda k: np.full(7, values[k]), grid()).kernel == behind


def test_small_gains_to_the_wide_end_do_not_hide_the_narrow_side():
    values = 1.0 - 1e-6 * np.arange(13)
    values[[2, 4]] = 0.2, 0.6
    assert search(lambda k: np.full(7, values[k]), grid()).kernel == 2


@pytest.mark.parametrize("best", [5, 7])
def test_a_near_search_ends_between_wide_steps(best):
    choice = search_near(valley(best, 3), grid(), most=20)
    assert (choice.kernel, choice.alpha) == (best, 3)


def test_with_a_stride_of_one_every_neighbour_is_looked_at_once():
    asked = []
    flat = search_near(lambda k, j: asked.append((k, j)) or 1.0, grid(stride=1), most=20)
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

"""How cells are put into stacks, and searches side by side."""

from __future__ import annotations

import math

import numpy as np

from ridgefold.cells.cell_rows import batches_of
from ridgefold.cells.local_search import (
    answered_together,
    search,
    search_near,
    search_pairs,
    search_widely,
)
from ridgefold.cells.stacked_fit import padded, stacks_of
from ridgefold.records import Grid


def square(n):
    return 8.0 * n**2


def test_every_cell_is_in_one_stack_of_similar_sizes():
    sizes = np.random.default_rng(0).integers(1, 900, 200).tolist()
    stacks = stacks_of(sizes, square, math.inf)
    assert sorted(np.concatenate(stacks).tolist()) == list(range(200))
    for stack in stacks:
        assert min(sizes[k] for k in stack) >= 0.85 * max(sizes[k] for k in stack)


def test_stacks_stay_within_the_memory():
    sizes = [100] * 50 + [90] * 50
    stacks = stacks_of(sizes, square, 8.0 * 100**2 * 7.5)
    assert {len(stack) for stack in stacks[:-1]} == {7, 9}  # of 100 rows, and of 90
    assert [len(stack) for stack in stacks_of(sizes, square, 1.0)] == [1] * 100


def test_devices_get_larger_batches():
    sizes = [500] * 1000
    assert len(batches_of(sizes)) > 10 * len(batches_of(sizes, stacked=True))
    assert batches_of(sizes, stacked=True)[-1].stop == 1000


def test_padding_is_zero():
    out = padded([np.ones((2, 3)), np.ones((4, 3))], 4)
    assert out.shape == (2, 4, 3)
    assert out[0, 2:].sum() == 0.0
    assert out.sum() == 18.0


def grid(ordered):
    return Grid(tuple(range(9)), np.geomspace(1e-3, 1.0, 7), 4, 3, ordered)


def test_searches_together_choose_as_each_does_alone():
    """Valleys at different places: some searches end sooner than others."""
    valleys = [(k, j) for k in (0, 4, 8) for j in (0, 3, 6)]

    def score(valley, pair):
        return 1.0 + (pair[0] - valley[0]) ** 2 + 0.5 * (pair[1] - valley[1]) ** 2

    for ordered in (True, False):
        one = grid(ordered)
        together = answered_together(
            [search_pairs(one, 8) for _ in valleys],
            lambda asked: {k: score(valleys[k], pair) for k, pair in asked.items()},
        )
        alone = [search_near(lambda k, j, v=v: score(v, (k, j)), one, 8) for v in valleys]
        assert together == alone
        together = answered_together(
            [search_widely(one) for _ in valleys],
            lambda asked: {k: score(valleys[k], pair) for k, pair in asked.items()},
        )
        assert together == [search(lambda k, j, v=v: score(v, (k, j)), one) for v in valleys]
        assert [(c.kernel, c.alpha) for c in together] == valleys


def test_no_searches_have_no_choices():
    assert answered_together([], lambda asked: {}) == []

"""Errors are followed where they differ, and not where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold.selection.local_noise import local_noise


def drawn(m: int, seed: int, spread) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    places = rng.uniform(-2, 2, size=(m, 3))
    return places, spread(places) * rng.normal(size=m)


def test_errors_that_grow_are_followed():
    places, errors = drawn(800, 0, lambda x: 0.2 + np.abs(x[:, 0]))
    noise = local_noise([places[:, 1:2], places], errors, np.ones(800))
    assert noise is not None
    assert noise.space == 1
    new, _ = drawn(500, 1, lambda x: np.ones(len(x)))
    truth = 0.2 + np.abs(new[:, 0])
    assert np.corrcoef(noise.at(new), truth)[0, 1] > 0.8


def test_errors_that_are_alike_are_seldom_thought_to_differ():
    found = [
        local_noise([x, x[:, :1]], errors, np.ones(200))
        for x, errors in (drawn(200, seed, lambda x: np.ones(len(x))) for seed in range(40))
    ]
    assert sum(each is not None for each in found) <= 6


def test_far_from_all_rows_errors_are_those_of_all_rows():
    places, errors = drawn(400, 2, lambda x: 0.1 + (x[:, 0] > 0))
    noise = local_noise([places], errors, np.ones(400))
    assert noise is not None
    far = noise.at(np.full((1, 3), 1e6))[0]
    assert far == pytest.approx(np.mean(np.abs(errors)))


def test_a_weight_of_two_is_the_row_twice_but_for_its_own_place():
    places, errors = drawn(300, 3, lambda x: 0.1 + (x[:, 0] > 0))
    weights = np.where(np.arange(300) < 100, 2.0, 1.0)
    one = local_noise([places], errors, 4 * weights)
    other = local_noise([places], errors, weights)
    assert one is not None
    assert other is not None
    np.testing.assert_allclose(one.at(places), other.at(places), rtol=1e-12)


@pytest.mark.parametrize("m", [0, 1, 59])
def test_few_rows_tell_nothing(m):
    places, errors = drawn(m, 4, lambda x: 0.1 + (x[:, 0] > 0))
    assert local_noise([places], errors, np.ones(m)) is None


def test_no_errors_at_all_tell_nothing():
    places, _ = drawn(100, 5, lambda x: np.ones(len(x)))
    assert local_noise([places], np.zeros(100), np.ones(100)) is None
    _, errors = drawn(100, 5, lambda x: np.ones(len(x)))
    assert local_noise([np.zeros((100, 2))], errors, np.ones(100)) is None

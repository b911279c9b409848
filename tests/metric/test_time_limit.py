"""A limit of time is kept by foresight: what would end too late is not begun."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ridgefold import LSSVMRegressorCV, MetricLearning, Search, explain
from ridgefold.metric import candidates
from ridgefold.metric.time_limit import TimeLimit


class Clock:
    """Moves on by so many seconds whenever it is looked at."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.now, self.seconds = 0.0, seconds

    def __call__(self) -> float:
        self.now += self.seconds
        return self.now


def after_an_evaluation(rows: int, seconds: float, limit: float) -> tuple[TimeLimit, Clock]:
    clock = Clock()
    timed = TimeLimit(limit, clock)
    with timed.measured(rows):
        clock.now += seconds
    return timed, clock


def test_an_evaluation_is_begun_where_it_is_likely_to_end_in_time():
    timed, clock = after_an_evaluation(400, 0.1, 1.0)
    assert timed.has_time_for(400)
    assert timed.has_time_for(800)  # about 0.57 s of the 0.9 s that are left
    assert not timed.has_time_for(1200)
    clock.now = 0.95
    assert not timed.has_time_for(400)
    assert timed.has_time_for(200)
    clock.now = 1.0
    assert not timed.has_time_for(1)


def test_rows_are_as_many_as_half_of_what_is_left_allows():
    timed, _ = after_an_evaluation(400, 0.01, 10.0)
    rows = timed.rows_for(8)
    assert 8 * 0.01 * (rows / 400) ** 2.5 < 0.5 * timed.left
    assert timed.rows_for(80) < rows
    assert TimeLimit(None).rows_for(8) == math.inf
    assert TimeLimit(None).has_time_for(10**9)


def few(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("seconds", [0.5, 1.0, 4.0])
def test_the_race_ends_in_time_however_slow_the_machine_is(seconds):
    X, y = few(300, 5)
    clock = Clock(0.01)
    made = candidates(X, y, rotate=True, seconds=seconds, clock=clock)
    assert made
    assert clock.now <= 1.15 * seconds + 0.5


def test_learning_again_shares_the_time_with_learning_once():
    def promised(asked, stack):
        model = LSSVMRegressorCV(kernel="auto", metric=asked, search=Search(stack=stack))
        steps = explain(model, n_samples=60, n_features=12).steps
        return sum(each["predicted_seconds"] for each in steps if "learning" in each["step"])

    for stack in (False, True):
        whole = promised(MetricLearning(), stack)
        assert promised(MetricLearning(seconds=0.2 * whole), stack) == pytest.approx(0.2 * whole)

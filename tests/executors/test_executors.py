"""Results come in order and are the same wherever they are computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import ridgefold.executors
from ridgefold.executors import EXECUTORS, Caller

HERE = [name for name in EXECUTORS if not EXECUTORS[name].remote]
FOLDER = Path(ridgefold.executors.__file__).parent


def total(item):
    return float(np.sum(item @ item.T))


def blas_threads(_):
    return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]


def fail(item):
    raise ValueError(f"item {item}")


def test_every_file_is_registered():
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "base", "interruption"}
    assert files == set(EXECUTORS)


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_items(name, workers):
    items = [np.full((3, 3), float(i)) for i in range(7)]
    results = list(EXECUTORS[name](workers).map(total, items))
    assert results == [total(item) for item in items]


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("workers", [1, 2])
def test_every_task_has_one_blas_thread(name, workers):
    with threadpool_limits(2):
        for threads in EXECUTORS[name](workers).map(blas_threads, [0, 1]):
            assert set(threads) <= {1}


@pytest.mark.parametrize("name", HERE)
def test_errors_of_tasks_reach_the_caller(name):
    with pytest.raises(ValueError, match="item 3"):
        list(EXECUTORS[name](2).map(fail, [3]))


@pytest.mark.parametrize("name", HERE)
def test_no_items_give_no_results(name):
    assert list(EXECUTORS[name](2).map(total, [])) == []


def test_without_an_executor_the_caller_works_with_the_threads_that_are_planned():
    caller, seen = Caller(), []
    results = caller.map(seen.append, [1, 2])
    assert seen == []  # one task after the other, as results are taken
    next(results)
    assert seen == [1]
    assert not caller.apart
    assert caller.place == ""
    assert caller.threads(8) == 8


@pytest.mark.parametrize("name", EXECUTORS)
def test_workers_have_one_thread_and_a_place(name):
    executor = EXECUTORS[name](2)
    assert executor.apart
    assert executor.place
    assert executor.threads(8) == 1

"""A loop over workers goes on where it was stopped, and gives what it would have given at once."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold.executors import Processes, Serial, Threads
from ridgefold.runtime import finished_pieces, resumable_map
from ridgefold.storage.run_directory import NoRunDirectory, RunDirectory

NAMES = [f"steps/item-{k}" for k in range(5)]
EXECUTORS = [Serial(), Threads(2), Processes(2)]


def squares(number):
    return np.arange(number) ** 2


def as_lists(results):
    return [result.tolist() for result in results]


EXPECTED = [squares(k).tolist() for k in range(5)]


@pytest.mark.parametrize("executor", EXECUTORS, ids=lambda e: type(e).__name__)
def test_results_are_the_same_with_and_without_a_folder(executor, tmp_path):
    free = resumable_map(executor, squares, range(5), NAMES, NoRunDirectory())
    assert as_lists(free) == EXPECTED
    with RunDirectory(tmp_path / "run", {}).opened() as run:
        kept = resumable_map(executor, squares, range(5), NAMES, run)
        assert as_lists(kept) == EXPECTED
        assert (run.made, run.reused) == (NAMES, [])


def test_what_was_done_before_a_stop_is_not_done_again(tmp_path):
    with RunDirectory(tmp_path / "run", {}).opened() as run:
        results = resumable_map(Serial(), squares, range(5), NAMES, run)
        first = [next(results), next(results)]
        assert as_lists(first) == EXPECTED[:2]
        results.close()
    begun = []
    with RunDirectory(tmp_path / "run", {}).opened() as run:
        again = resumable_map(Serial(), squares, range(5), NAMES, run, begin=begun.extend)
        assert as_lists(again) == EXPECTED
        assert (run.reused, run.made) == (NAMES[:2], NAMES[2:])
    assert begun == [2, 3, 4]


def test_a_result_that_was_damaged_is_made_again(tmp_path):
    with RunDirectory(tmp_path / "run", {}).opened() as run:
        list(resumable_map(Serial(), squares, range(5), NAMES, run))
        path = run.piece(NAMES[3]).path
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    with RunDirectory(tmp_path / "run", {}).opened() as run:
        pieces = finished_pieces(Serial(), squares, range(5), NAMES, run)
        assert as_lists(piece.read() for piece in pieces) == EXPECTED
        assert run.made == [NAMES[3]]


def test_an_error_of_a_task_keeps_what_came_before_it(tmp_path):
    def fail_at_three(number):
        if number == 3:
            raise ZeroDivisionError
        return squares(number)

    with (
        RunDirectory(tmp_path / "run", {}).opened() as run,
        pytest.raises(ZeroDivisionError),
    ):
        list(resumable_map(Serial(), fail_at_three, range(5), NAMES, run))
    with RunDirectory(tmp_path / "run", {}).opened() as run:
        assert as_lists(resumable_map(Serial(), squares, range(5), NAMES, run)) == EXPECTED
        assert run.reused == NAMES[:3]

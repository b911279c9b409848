"""BLAS has one setting for a whole process: contexts that overlap must not undo each other."""

import pytest

from ridgefold.linalg import threads as module
from ridgefold.linalg.threads import threads


class Library:
    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads

    def set_num_threads(self, count: int) -> None:
        self.num_threads = count


@pytest.fixture
def library(monkeypatch):
    library = Library(8)
    monkeypatch.setattr(module, "_libraries", lambda: [library])
    return library


def test_the_setting_holds_inside_and_is_restored(library):
    with threads(2):
        assert library.num_threads == 2
    assert library.num_threads == 8


def test_one_that_leaves_first_does_not_free_the_other(library):
    first, second = threads(1), threads(1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert library.num_threads == 1
    second.__exit__(None, None, None)
    assert library.num_threads == 8


def test_the_smallest_count_holds(library):
    with threads(4):
        with threads(2):
            assert library.num_threads == 2
        assert library.num_threads == 4
        with threads(6):
            assert library.num_threads == 4


def test_more_than_there_are_changes_nothing(library):
    with threads(16):
        assert library.num_threads == 8


def test_an_error_inside_restores_it(library):
    with pytest.raises(ZeroDivisionError), threads(1):
        _ = 1 / 0
    assert library.num_threads == 8

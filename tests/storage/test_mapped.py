"""Rows of a mapped file are those that were asked for, however they are read."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold.errors import TableError
from ridgefold.storage import mapped
from ridgefold.storage.mapped import MappedRows, flush, new_array

X = np.random.default_rng(0).standard_normal((3000, 4))


@pytest.fixture
def rows(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    return MappedRows.of(np.load(tmp_path / "rows.npy", mmap_mode="r"))


@pytest.mark.parametrize("window", [64, 4096, 1 << 22], ids=["narrow", "some", "all"])
@pytest.mark.parametrize("worth", [0, 100, 1 << 14], ids=["one by one", "near ones", "together"])
@pytest.mark.parametrize(
    "numbers",
    [
        [0],
        [2999, 0, 5, 5, 4],
        range(100, 200),
        range(0, 3000, 7),
        np.random.default_rng(1).integers(0, 3000, 500),
        [],
    ],
    ids=["one", "mixed", "neighbours", "spaced", "random", "none"],
)
def test_rows_by_their_numbers(numbers, window, worth, rows, monkeypatch):
    monkeypatch.setattr(mapped, "_WINDOW_BYTES", window)
    monkeypatch.setattr(mapped, "_WORTH_ONE_READ", worth)
    numbers = np.asarray(numbers, dtype=np.intp)
    np.testing.assert_array_equal(rows[numbers], X[numbers])


def test_rows_by_slices_and_masks(rows):
    np.testing.assert_array_equal(rows[5:9], X[5:9])
    np.testing.assert_array_equal(rows[::-500], X[::-500])
    np.testing.assert_array_equal(rows[X[:, 0] > 1], X[X[:, 0] > 1])
    np.testing.assert_array_equal(rows[-1:], X[-1:])


def test_a_file_that_was_cut_off_is_noticed(rows):
    rows.path.write_bytes(rows.path.read_bytes()[:-8])
    for numbers in ([2999], [2990, 2999], np.arange(0, 3000, 2999)):
        with pytest.raises(TableError, match="ends too early"):
            rows[np.asarray(numbers)]


def test_what_is_written_to_a_map_is_in_the_file_once_it_is_flushed(tmp_path):
    array = new_array(tmp_path / "a.npy", (3, 2), np.float64)
    array[:] = 7.0
    flush(array[1:])
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.full((3, 2), 7.0))
    flush(X)

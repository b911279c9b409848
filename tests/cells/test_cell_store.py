"""Rows on disk in the order of their cells."""

from __future__ import annotations

import numpy as np

from ridgefold.cells.cell_store import StoredRows
from ridgefold.storage.run_directory import Piece


def written(folder, n, columns):
    block = {
        "offsets": np.array([0, n]),
        "rows": np.arange(n),
        "targets": np.zeros((n, 1)),
        "X": np.arange(float(n * columns)).reshape(n, columns),
    }
    Piece(folder / "0000000.piece", "a run", "rows/0000000").write(block)
    return StoredRows(folder, 1, 1), block["X"]


def test_a_file_that_took_the_place_of_another_is_read_as_it_is_now(tmp_path):
    first, X = written(tmp_path, 10, 3)
    assert np.array_equal(first.read(0, 1, ("X",))[0]["X"], X)
    (tmp_path / "0000000.piece").unlink()
    second, X = written(tmp_path, 7, 2)
    assert second.offsets().tolist() == [0, 7]
    assert np.array_equal(second.read(0, 1, ("X",))[0]["X"], X)

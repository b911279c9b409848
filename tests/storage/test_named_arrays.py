"""Arrays by name come back as they were, and those in files stay where they are."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse

from ridgefold.errors import TableError
from ridgefold.storage.named_arrays import named, named_matrix

X = np.random.default_rng(0).standard_normal((50, 3))


@pytest.mark.parametrize(
    "array",
    [X, np.asfortranarray(X), X[::2], X[:, 0], X.astype(np.float32), np.arange(7), np.empty(0)],
    ids=["C", "Fortran", "strided", "vector", "float32", "integers", "empty"],
)
def test_an_array_comes_back_with_its_values_type_and_order(array, tmp_path):
    found = named(array, tmp_path, "a").read()
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)
    assert found.flags.f_contiguous == (
        array.flags.f_contiguous or not (array.flags.c_contiguous or array.ndim == 2)
    )


def test_a_part_of_a_mapped_file_is_named_and_not_copied(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")[10:30]
    folder = tmp_path / "copies"
    folder.mkdir()
    found = named(rows, folder, "X")
    assert list(folder.iterdir()) == []
    assert found.path == tmp_path / "rows.npy"
    np.testing.assert_array_equal(found.read(), X[10:30])


def test_what_is_sent_holds_no_data(tmp_path):
    large = np.zeros((100_000, 3))
    assert len(pickle.dumps(named(large, tmp_path, "X"))) < 1000


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("filled", [True, False])
def test_sparse_rows_come_back_as_they_were(kind, filled, tmp_path):
    matrix = kind(np.where(X > 1, X, 0.0) if filled else np.zeros_like(X))
    found = named_matrix(matrix, tmp_path, "X")
    again = found.read()
    assert type(again) is kind
    assert found.nbytes >= matrix.data.nbytes
    np.testing.assert_array_equal(again.toarray(), matrix.toarray())


def test_a_file_that_was_cut_off_is_not_read(tmp_path):
    found = named(X, tmp_path, "X")
    found.path.write_bytes(found.path.read_bytes()[:-8])
    with pytest.raises(TableError, match="ends too early"):
        found.read()

"""Tiles give the factor that LAPACK gives, and touch nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from cases import symmetric_matrix
from ridgefold.linalg import numpy_namespace
from ridgefold.linalg.blas_pointers import pointers_for
from ridgefold.linalg.tiled_cholesky import TILE, WORTH_IT, tiled_cholesky_in_place


def factor(matrix):
    a = np.array(matrix)
    return a, tiled_cholesky_in_place(a, pointers_for(a.dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 5, TILE, TILE + 1, 2 * TILE + 77])
def test_the_factor_is_lapacks_and_the_other_triangle_is_left_alone(n, dtype):
    matrix = symmetric_matrix(n, 10.0).astype(dtype)
    upper = np.triu_indices(n, 1)
    matrix[upper] = np.nan
    lower, found = factor(matrix)
    assert found
    assert np.isnan(lower[upper]).all()
    full = np.tril(lower).astype(np.float64)
    matrix[upper] = matrix.T[upper]
    error = np.abs(full @ full.T - matrix).max() / np.abs(matrix).max()
    assert error <= max(n, 10) * np.finfo(dtype).eps


@pytest.mark.parametrize("row", [3, TILE + 3])
def test_a_matrix_that_is_not_positive_definite_is_named_so(row):
    matrix = np.eye(TILE + 10)
    matrix[row, row] = -1.0
    assert not factor(matrix)[1]


def test_the_namespace_uses_tiles_where_they_save_memory(monkeypatch):
    import ridgefold.linalg.numpy_routines as routines

    sizes = []

    def noted(a, pointers):
        sizes.append(len(a))
        return tiled_cholesky_in_place(a, pointers)

    monkeypatch.setattr(routines, "tiled_cholesky_in_place", noted)
    for n in (TILE, WORTH_IT.start):
        assert numpy_namespace().cholesky_in_place(np.eye(n))
    assert sizes == [WORTH_IT.start]

"""What a partial factor leaves of a matrix is what it says."""

import numpy as np
import pytest

from ridgefold.kernels import RBF, Matern
from ridgefold.kernels.gram import KernelGram


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("width", [0.01, 0.02, 0.05, 0.1, 0.5])
def test_grown_to_the_end_it_leaves_rounding_error(width, dtype):
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (900, 1)).astype(dtype)
    gram = KernelGram(RBF(width), X)
    partial = gram.partial_cholesky()
    while partial.grow(40):
        pass
    rows = np.asarray(partial.factor_rows(), dtype=np.float64)
    left = np.asarray(gram.full(), dtype=np.float64) - rows.T @ rows
    assert np.max(np.abs(left)) <= 3 * partial.floor
    assert np.linalg.norm(left, 2) <= partial.trace + partial.rounding


def test_rounding_of_narrow_kernels_raises_the_floor_and_only_theirs():
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (900, 1))
    eps = np.finfo(np.float64).eps
    floors = {}
    for width in (0.02, 0.5):
        partial = KernelGram(RBF(width), X).partial_cholesky()
        while partial.grow(40):
            pass
        floors[width] = partial.floor / eps
    assert floors[0.5] == 32.0
    assert 100.0 < floors[0.02] < 20.0 * (0.5 / 0.02) ** 2


def test_a_factor_of_full_rank_is_whole():
    X = np.random.default_rng(1).uniform(size=(150, 3))
    gram = KernelGram(Matern(0.3, nu=0.5), X)
    partial = gram.partial_cholesky()
    while partial.grow(40):
        pass
    rows = partial.factor_rows()
    assert partial.rank == 150
    np.testing.assert_allclose(rows.T @ rows, gram.full(), atol=1e-14)

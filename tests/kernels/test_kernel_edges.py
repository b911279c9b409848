"""What a kernel makes of rows far away, warped or sparse."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from ridgefold import KernelRidge
from ridgefold.errors import KernelDomainError
from ridgefold.kernels import RBF, Matern, Sobolev, Warped
from ridgefold.records import Quantile, Standardise


def rows(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)


def test_a_far_row_moves_no_other_prediction():
    X, y = rows(80)
    model = KernelRidge(0.1, kernel=Matern(1.0, nu=0.5)).fit(X, y)
    new = rows(20, seed=1)[0]
    with_far = model.predict(np.vstack([new, np.full((1, 3), 1e8)]))[:-1]
    np.testing.assert_allclose(with_far, model.predict(new), rtol=1e-9)
    twice = np.repeat(X[:3], 2, axis=0) + 1e3
    K = Matern(1.0, nu=0.5)(twice)
    assert K[0, 1] == K[2, 3] == K[4, 5] == 1.0


def test_a_warped_kernel_sees_warped_rows():
    X = np.linspace(0.1, 0.9, 20)[:, None]
    with pytest.raises(KernelDomainError):
        Warped(Sobolev(), [Standardise(0.5, 0.1)])(X)
    K = Warped(Sobolev(), [Quantile((-3.0, 3.0), (0.0, 1.0))])(X - 0.5)
    assert np.isfinite(K).all()


def test_sparse_whole_numbers_are_taken_as_dense_ones_are():
    whole = np.array([[1, 2], [0, 1]])
    np.testing.assert_allclose(RBF()(scipy.sparse.csr_array(whole)), RBF()(whole))

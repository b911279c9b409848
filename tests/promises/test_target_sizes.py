"""Targets of any size are fitted as others are, or refused by name: squares have an end."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold import (
    Compute,
    KernelRidge,
    KernelRidgeCV,
    LSSVMRegressorCV,
    PartitionedLSSVMRegressor,
    cross_val_path,
)
from ridgefold.errors import InvalidInputError

rng = np.random.default_rng(0)
X = rng.standard_normal((80, 2))
Y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(80)
CHOOSING = {
    "KernelRidgeCV": lambda y: KernelRidgeCV(kernel="rbf").fit(X, y),
    "LSSVMRegressorCV": lambda y: LSSVMRegressorCV().fit(X, y),
    "PartitionedKernelRidge": lambda y: PartitionedLSSVMRegressor(n_partitions=2).fit(X, y),
    "cross_val_path": lambda y: cross_val_path(X, y, alpha=[0.1, 1.0]),
}


@pytest.mark.parametrize("size", [1e-310, 1e-170, 1e-150, 1e150, 1e156, 1e300])
@pytest.mark.parametrize("name", CHOOSING)
def test_targets_whose_squares_are_no_numbers_are_refused_where_models_are_chosen(name, size):
    with pytest.raises(InvalidInputError, match=r"targets in y go up to .*pass y / "):
        CHOOSING[name](Y * size)


@pytest.mark.parametrize("size", [2.0**-450, 2.0**450])
def test_the_choice_does_not_depend_on_the_size_of_targets(size):
    near, far = (KernelRidgeCV(kernel="rbf").fit(X, y) for y in (Y, size * Y))
    assert near.best_params_ == far.best_params_
    np.testing.assert_allclose(far.predict(X) / size, near.predict(X), rtol=1e-9)


def test_targets_of_no_weight_may_have_any_size_where_scores_do_not_count_them():
    y, rows = np.append(Y, 1e300), np.vstack([X, X[:1]])
    weights = np.append(np.ones(80), 0.0)
    model = PartitionedLSSVMRegressor(n_partitions=2, random_state=0).fit(rows, y, weights)
    assert np.all(np.abs(model.predict(X)) < 10.0)
    with pytest.raises(InvalidInputError, match="targets in y go up to"):
        KernelRidgeCV([0.1, 1.0], kernel="rbf").fit(rows, y, sample_weight=weights)


@pytest.mark.parametrize("size", [2.0**-1000, 2.0**-600, 2.0**600, 2.0**1000])
@pytest.mark.parametrize("solver", ["cholesky", "eigendecomposition", "conjugate_gradient"])
def test_a_given_model_is_fitted_and_compressed_at_any_size(solver, size):
    near, far = (
        KernelRidge(1e-3, kernel="rbf", compute=Compute(solver=solver)).fit(X, y)
        for y in (Y, size * Y)
    )
    np.testing.assert_allclose(far.predict(X) / size, near.predict(X), rtol=0, atol=1e-8)
    few, far_few = near.compress(9), far.compress(9)
    assert far_few.compression_bound_ / size == pytest.approx(few.compression_bound_, rel=1e-3)
    off = np.abs(far_few.predict(X) - far.predict(X)).max()
    assert 0 < off <= far_few.compression_bound_


def test_targets_on_disk_are_looked_at_too(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", 1e156 * Y)
    with pytest.raises(InvalidInputError, match="targets in y go up to"):
        PartitionedLSSVMRegressor(n_partitions=2).fit(tmp_path / "X.npy", tmp_path / "y.npy")

"""Rows in which a huge number stands for "unknown": all others are predicted as without them."""

from __future__ import annotations

import numpy as np
import pytest

from namespaces import LIBRARIES, to_numpy
from ridgefold import (
    KernelRidge,
    KernelRidgeCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    PartitionedLSSVMRegressor,
)
from ridgefold.kernels import RBF, Laplacian, Matern

SHARES = [0.01, 0.1, 0.3, 0.5]
FILLS = [1e3, 1e6, 1e9, 1e12]
KERNELS = {"rbf": RBF(1.0), "matern 1/2": Matern(1.0, nu=0.5), "laplacian": Laplacian(2.0)}


def filled(share, fill, *, n=300, columns=(1,), seed=0):
    """Rows, targets, and which rows have all of their values."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, 3))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * generator.standard_normal(n)
    whole = np.ones(n, dtype=bool)
    for column in columns:
        unknown = generator.random(n) < share
        X[unknown, column] = fill
        whole &= ~unknown
    return X, y, whole


NEW = np.random.default_rng(9).standard_normal((50, 3))


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", KERNELS)
def test_whole_rows_are_predicted_as_without_the_filled_ones(name, share, fill):
    """Between the two the kernel is zero: the systems have nothing to do with each other."""
    columns = (1,) if share in (0.1, 0.5) else (0, 2)
    X, y, whole = filled(share, fill, n=200, columns=columns)
    kernel = KERNELS[name]
    model = KernelRidge(1e-3, kernel=kernel).fit(X, y)
    alone = KernelRidge(1e-3, kernel=kernel).fit(X[whole], y[whole])
    np.testing.assert_allclose(model.predict(NEW), alone.predict(NEW), atol=1e-8)


@pytest.mark.parametrize("library", LIBRARIES)
def test_whole_rows_are_predicted_alike_in_every_library(library):
    X, y, _ = filled(0.3, 1e9)
    convert = LIBRARIES[library]
    model = KernelRidge(1e-3, kernel=RBF(1.0)).fit(convert(X), convert(y))
    expected = KernelRidge(1e-3, kernel=RBF(1.0)).fit(X, y).predict(NEW)
    np.testing.assert_allclose(to_numpy(model.predict(convert(NEW))), expected, atol=1e-9)


@pytest.mark.parametrize("estimator", [LSSVMRegressor, LSSVMRegressorCV, KernelRidgeCV])
@pytest.mark.parametrize("share", SHARES)
def test_a_huge_fill_value_is_as_good_as_one_that_is_just_far(estimator, share):
    """At 100 length scales the kernel is zero too, and no digits were ever lost."""
    near, y, _ = filled(share, 100.0)
    grid = {"alpha": [1e-3, 1e-2, 1e-1]} if estimator.__name__.endswith("CV") else {}
    expected = estimator(kernel=RBF(1.0), **grid).fit(near, y).predict(NEW)
    for fill in (1e9, -1e12):
        X, y, _ = filled(share, fill)
        model = estimator(kernel=RBF(1.0), **grid).fit(X, y)
        np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-8)


@pytest.mark.parametrize("partition", ["tree", "principal", "kmeans"])
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_cells_predict_whole_rows_well_beside_filled_ones(partition, share):
    X, y, _ = filled(share, 1e9, n=1200)
    model = PartitionedLSSVMRegressor(partition, n_partitions=6, random_state=0).fit(X, y)
    error = model.predict(NEW) - np.sin(2.0 * NEW[:, 0])
    assert np.sqrt(np.mean(error**2)) < 0.12, np.abs(error).max()


def test_learned_scales_do_not_suffer_from_filled_rows():
    X, y, _ = filled(0.3, 1e9)
    model = KernelRidgeCV(kernel="matern32", cv=5, metric="learned").fit(X, y)
    error = model.predict(NEW) - np.sin(2.0 * NEW[:, 0])
    assert np.sqrt(np.mean(error**2)) < 0.12

"""A kernel matrix that is given must be one: methods read either triangle of it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from cases import rows, targets
from namespaces import LIBRARIES
from ridgefold import (
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    cross_val_path,
)
from ridgefold.errors import InvalidInputError
from ridgefold.kernels import RBF

X = rows(60)
Y = targets(X)
K = np.asarray(RBF(1.0)(X))
LABELS = (Y > 0).astype(int)


def cross_validate(K, y):
    return cross_val_path(K, y, kernel="precomputed", alpha=[0.1, 1.0], cv=3)


FITS = {
    "KernelRidge": lambda K: KernelRidge(kernel="precomputed").fit(K, Y),
    "KernelRidgeCV": lambda K: KernelRidgeCV([0.1], kernel="precomputed").fit(K, Y),
    "LSSVMRegressor": lambda K: LSSVMRegressor(kernel="precomputed").fit(K, Y),
    "LSSVMRegressorCV": lambda K: LSSVMRegressorCV([0.1], kernel="precomputed").fit(K, Y),
    "LSSVMClassifier": lambda K: LSSVMClassifier(kernel="precomputed").fit(K, LABELS),
    "LSSVMClassifierCV": lambda K: LSSVMClassifierCV([0.1], kernel="precomputed").fit(K, LABELS),
    "cross_val_path": lambda K: cross_validate(K, Y),
}


def changed(K, i, j, by):
    out = K.copy()
    out[i, j] += by
    return out


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("place", [(3, 40), (40, 3)], ids=["above", "below"])
def test_a_matrix_that_is_not_symmetric_is_refused_with_the_place(name, place):
    i, j = place
    asymmetric = changed(changed(K, 20, 10, 1e-3), i, j, 0.25)
    shown = rf"X\[40, 3\] is {asymmetric[40, 3]:.9g} and X\[3, 40\] is {asymmetric[3, 40]:.9g}"
    with pytest.raises(InvalidInputError, match=rf"symmetric, but {shown}.*\(X \+ X\.T\) / 2"):
        FITS[name](asymmetric)


@pytest.mark.parametrize("n", [1, 2, 500, 1000])
def test_it_is_seen_wherever_it_is(n):
    matrix = np.eye(n)
    y = np.ones(n)
    KernelRidge(kernel="precomputed").fit(matrix, y)
    for i, j in {(n - 1, 0), (n // 2, n // 3), (n - 1, max(n - 2, 0))} - {(0, 0)}:
        with pytest.raises(InvalidInputError, match=rf"X\[{i}, {j}\] is 1e-09 and"):
            KernelRidge(kernel="precomputed").fit(changed(matrix, i, j, 1e-9), y)


@pytest.mark.parametrize("library", LIBRARIES)
def test_matrices_of_other_libraries_too(library):
    convert = LIBRARIES[library]
    KernelRidge(kernel="precomputed").fit(convert(K), convert(Y))
    with pytest.raises(InvalidInputError, match=r"X\[7, 5\]"):
        KernelRidge(kernel="precomputed").fit(convert(changed(K, 7, 5, 0.1)), convert(Y))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_of_products_is_no_asymmetry(dtype):
    """Products of matrices round the same sum of 5,000 terms in different orders."""
    features = np.random.default_rng(0).standard_normal((60, 5000)).astype(dtype)
    order = np.random.default_rng(1).permutation(5000)
    products = features @ features.T
    products[np.triu_indices(60, 1)] = (
        np.ascontiguousarray(features[:, order]) @ np.ascontiguousarray(features.T[order])
    )[np.triu_indices(60, 1)]
    assert np.any(products != products.T)
    KernelRidge(kernel="precomputed").fit(products, Y.astype(dtype))


def test_looking_takes_little_memory():
    n = 1500
    matrix = changed(np.eye(n), 1200, 300, 0.5)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInputError, match=r"X\[1200, 300\]"):
            KernelRidge(kernel="precomputed").fit(matrix, np.ones(n))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < matrix.nbytes / 2

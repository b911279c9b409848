"""Kernels on some columns, and kernels of categories."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from namespaces import LIBRARIES, to_numpy
from ridgefold import Compute, KernelRidge, LSSVMClassifier, LSSVMRegressorCV
from ridgefold.errors import InvalidInputError, UnsupportedInputError
from ridgefold.kernels import RBF, Categorical, Columns, Laplacian, Linear, Matern

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(60, 3))
CODES = RNG.integers(0, 4, size=(60, 2)).astype(float)
X = np.column_stack([NUMBERS, CODES])
ONE_HOT = [(CODES[:, [j]] == np.arange(4)).astype(float) for j in range(2)]
Y = np.sin(2 * NUMBERS[:, 0]) + (CODES[:, 0] == 2.0) * NUMBERS[:, 1] + (CODES[:, 1] == 1.0)


def differ(codes: np.ndarray) -> np.ndarray:
    return (codes[:, None] != codes[None, :]).astype(float)


def test_a_factor_for_every_column_in_which_rows_differ():
    expected = np.exp(-differ(CODES[:, 0]) / 0.7) * np.exp(-differ(CODES[:, 1]) / 2.0)
    np.testing.assert_allclose(Categorical((0.7, 2.0))(CODES), expected, rtol=1e-14)
    np.testing.assert_allclose(
        Categorical(gamma=0.5)(CODES), np.exp(-(CODES[:, None] != CODES).sum(axis=2) / 2.0)
    )
    assert np.linalg.eigvalsh(expected).min() > -1e-12


@pytest.mark.parametrize("kernel", [RBF(1.5), Laplacian(2.0), Matern(nu=0.5), Linear()])
def test_a_kernel_on_columns_is_that_of_the_columns(kernel):
    np.testing.assert_allclose(Columns(kernel, [2, 0])(X), kernel(X[:, [2, 0]]), atol=1e-14)
    np.testing.assert_allclose(Columns(kernel, [1])(X[:5], X), kernel(X[:5, 1:2], X[:, 1:2]))


@pytest.mark.parametrize("family", [RBF, Laplacian])
def test_one_hot_columns_of_one_scale_are_a_factor_of_a_product(family):
    """What `scale_groups` gives: one scale for the columns of a category."""
    scales = (0.8, 2.5)
    wide = np.column_stack([NUMBERS, *ONE_HOT])
    joint = family((1.0, 2.0, 3.0, *[scales[0]] * 4, *[scales[1]] * 4))(wide)
    of_code = [s * s if family is RBF else s / 2 for s in scales]
    product = Columns(family((1.0, 2.0, 3.0)), [0, 1, 2]) * Columns(Categorical(of_code), [3, 4])
    np.testing.assert_allclose(product(X), joint, atol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries_agree(library):
    kernel = Columns(Matern(2.0, nu=1.5), [0, 2]) * Columns(Categorical((1.0, 0.5)), [3, 4])
    np.testing.assert_allclose(to_numpy(kernel(LIBRARIES[library](X))), kernel(X), atol=1e-14)


@pytest.mark.parametrize("bias", [False, True])
def test_models_of_a_product_are_those_of_its_matrix(bias):
    kernel = Columns(RBF(1.5), [0, 1, 2]) * Columns(Categorical((1.0, 3.0)), [3, 4])
    targets, weights = np.column_stack([Y, -Y + 1.0]), np.linspace(0.5, 2.0, 60)
    model = KernelRidge(0.1, kernel=kernel, fit_intercept=bias).fit(X, targets, weights)
    given = KernelRidge(0.1, kernel="precomputed", fit_intercept=bias)
    given.fit(kernel(X), targets, weights)
    np.testing.assert_allclose(model.predict(X), given.predict(kernel(X)), atol=1e-10)
    labels = np.where(Y > 0, "high", "low")
    classes = LSSVMClassifier(0.1, kernel=kernel).fit(X, labels)
    assert classes.score(X, labels) > 0.95


def test_a_search_chooses_between_products():
    kernels = [
        Columns(RBF(1.5), [0, 1, 2]) * Columns(Categorical(scale), [3, 4])
        for scale in (1e-3, 1.0, 1e3)
    ]
    model = LSSVMRegressorCV(kernel=kernels).fit(X, NUMBERS[:, 0] + 2.0 * (CODES[:, 0] == 2.0))
    assert model.kernel_ == kernels[1]
    assert model.plan_.problem.n_columns == 5


def test_sparse_rows_are_taken_where_the_kernel_takes_them():
    kernel = Columns(RBF(1.5), [0, 4])
    np.testing.assert_allclose(kernel(scipy.sparse.csr_array(X)), kernel(X), atol=1e-12)
    with pytest.raises(UnsupportedInputError, match="Categorical kernel cannot take sparse"):
        Categorical()(scipy.sparse.csr_array(X))


def test_finite_features_are_those_of_the_columns():
    model = KernelRidge(
        0.1, kernel=Columns(Linear(), [0, 3]), compute=Compute(solver="primal")
    ).fit(X, Y)
    dual = KernelRidge(0.1, kernel=Linear()).fit(X[:, [0, 3]], Y)
    np.testing.assert_allclose(model.predict(X), dual.predict(X[:, [0, 3]]), atol=1e-10)
    assert model.plan_.problem.columns_left_out == 3


def test_bad_columns_are_named():
    for columns in ([], [0, 0], [-1], [0.5], "ab", 3, [True]):
        with pytest.raises(InvalidInputError, match="columns must be different whole numbers"):
            Columns(RBF(), columns)
    with pytest.raises(InvalidInputError, match="kernel must be a kernel"):
        Columns("rbf", [0])
    with pytest.raises(InvalidInputError, match=r"sees column 7 \(counted from 0\), but X has 5"):
        Columns(RBF(), [0, 7])(X)

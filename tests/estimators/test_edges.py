"""Estimators at the edges of what they take."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ridgefold
from ridgefold import (
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    PartitionedLSSVMRegressor,
    RidgefoldRegressor,
)
from ridgefold.errors import InvalidInputError, SingularSystemWarning, UnsupportedInputError
from ridgefold.kernels import RBF


def rows(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("length", [2, 9])
def test_arguments_of_another_length_than_the_table_are_named(length):
    X, y = rows(4)
    model = RidgefoldRegressor(model=KernelRidge())
    with pytest.raises(InvalidInputError, match="sample_weight must be a number or hold one for"):
        model.fit(X, y, sample_weight=np.ones(length))
    with pytest.raises(InvalidInputError, match="y must hold one target for each row"):
        model.fit(X, np.ones(length))


def test_a_missing_number_among_categories_is_missing_and_nothing_else():
    table = np.array([[0.0, 1.0], [1.0, np.nan], [2.0, 2.0], [3.0, 1.0]])
    model = RidgefoldRegressor(model=KernelRidge(), columns={"x1": "category"})
    model.fit(table, np.array([0.0, 2.0, 1.0, 5.0]))
    names = [name for name in model.columns_.feature_names if name.startswith("x1")]
    assert len(names) == 3  # two levels, and missing
    assert not any("nan" in name.lower() for name in names)


def test_an_indefinite_kernel_is_not_compressed():
    X, y = rows()
    with pytest.warns(SingularSystemWarning):
        model = KernelRidge(0.1, kernel="additive_chi2").fit(np.abs(X), y)
    with pytest.raises(UnsupportedInputError, match="positive semi-definite"):
        model.compress(10)


def test_a_model_of_weights_is_compressed_within_its_bound():
    X, _ = rows(1000, 5)
    y = X @ np.arange(1.0, 6.0)
    model = KernelRidge(alpha=1e-12).fit(X, y)
    small = model.compress(5)
    new = rows(50, 5, seed=1)[0]
    error = np.abs(small.predict(new) - model.predict(new))
    assert np.all(error <= small.compression_bound_ * np.linalg.norm(new, axis=1) * (1 + 1e-6))
    assert model.compress(3, tol=1e200).compression_bound_ >= 0


def test_labels_keep_their_type_beside_tensors():
    X = torch.randn(10, 2, dtype=torch.float32, generator=torch.Generator().manual_seed(0))
    labels = np.repeat([16777216, 16777217], 5)  # one number in float32
    model = LSSVMClassifier().fit(X, labels)
    assert model.classes_.tolist() == [16777216, 16777217]
    assert not model.predict(X).dtype.is_floating_point


def test_tensors_that_record_gradients_are_taken_as_numbers():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(20, 3, generator=generator, dtype=torch.float64).requires_grad_()
    y = torch.randn(20, generator=generator, dtype=torch.float64).requires_grad_()
    model = KernelRidge(0.1, kernel="rbf").fit(X, y)
    plain = KernelRidge(0.1, kernel="rbf").fit(X.detach(), y.detach())
    assert torch.equal(model.predict(X), plain.predict(X.detach()))
    assert not model.predict(X).requires_grad
    assert not RBF()(X).requires_grad


def test_probabilities_asked_for_after_the_fit_need_another():
    X, y = rows()
    model = LSSVMClassifier().fit(X, y > 0).set_params(probability=True)
    with pytest.raises(InvalidInputError, match="fit again"):
        model.predict_proba(X)


def test_arguments_of_the_wrong_kind_are_named():
    X, y = rows()
    with pytest.raises(InvalidInputError, match="kernel_params must be a dict"):
        KernelRidge(kernel="rbf", kernel_params=5).fit(X, y)
    with pytest.raises(InvalidInputError, match="dtype must be float32 or float64"):
        ridgefold.explain(n_samples=100, n_features=3, dtype=np.float16)
    with pytest.raises(InvalidInputError, match="gamma is an empty list"):
        ridgefold.explain(KernelRidgeCV(kernel="rbf", gamma=[]), n_samples=100, n_features=3)


@pytest.mark.parametrize("size", [1e20, 1e-20])
def test_cells_of_huge_or_tiny_float32_rows_are_those_of_ordinary_ones(size):
    X, y = rows(120)
    single = X.astype(np.float32)
    arguments = {"n_partitions": 2, "alpha": [0.1, 1.0], "cells__clip": False}
    plain = (
        PartitionedLSSVMRegressor(kernel=[RBF(1.0), RBF(2.0)])
        .set_params(**arguments)
        .fit(single, y)
    )
    scaled = PartitionedLSSVMRegressor(kernel=[RBF(size), RBF(2 * size)]).set_params(**arguments)
    found = scaled.fit(single * np.float32(size), y).predict(single * np.float32(size))
    np.testing.assert_allclose(found, plain.predict(single), rtol=1e-3, atol=1e-3)

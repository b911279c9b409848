"""Rows unlike all that a model has seen are told; rows like those it has seen are not."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import ridgefold
from ridgefold import (
    CellOptions,
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifierCV,
    LSSVMRegressorCV,
    PartitionedKernelRidge,
    PartitionedLSSVMClassifier,
    RidgefoldRegressor,
)
from ridgefold.errors import InvalidInputError

RNG = np.random.default_rng(3)
N = 600
X = RNG.normal(size=(N, 3))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.1 * RNG.normal(size=N)
ALIKE = RNG.normal(size=(3000, 3))
MODELS = {
    "linear": KernelRidge(0.1),
    "polynomial": KernelRidge(0.1, kernel="polynomial"),
    "rbf": KernelRidgeCV(),
    "laplacian": KernelRidgeCV(kernel="laplacian"),
    "learned": LSSVMRegressorCV(metric="learned"),
    "classes": LSSVMClassifierCV(),
    "cells": PartitionedKernelRidge(n_partitions=5),
    "routed": PartitionedKernelRidge(n_partitions=5, combine="route"),
    "learned cells": PartitionedKernelRidge(n_partitions=3, metric="learned"),
    "average": PartitionedKernelRidge("random", 3, "average"),
    "refined": PartitionedKernelRidge(n_partitions=2, alpha=0.1, cells=CellOptions(refine=2)),
    "cells of classes": PartitionedLSSVMClassifier(n_partitions=4),
}


@pytest.mark.parametrize("name", MODELS)
def test_far_rows_are_outside_and_rows_alike_are_not(name):
    model = MODELS[name].fit(X, Y > 0 if "classes" in name else Y)
    far = ALIKE[:6].copy()
    far[np.arange(6), [0, 1, 2] * 2] = [22, 22, 22, -22, -22, -22]  # deviations
    assert model.is_outside(far).all()
    assert not model.is_outside(X).any()
    assert model.is_outside(ALIKE).mean() < 0.005


@pytest.mark.parametrize("cells", [False, True])
def test_a_gap_within_the_ranges_of_all_columns_is_outside(cells):
    angle = np.linspace(0, 2 * np.pi, 500)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    model = PartitionedKernelRidge(n_partitions=2) if cells else KernelRidgeCV()
    model.fit(ring, angle)
    on_it = np.column_stack([np.cos(angle + 0.003), np.sin(angle + 0.003)])
    assert model.is_outside([[0.0, 0.0], [0.4, -0.3]]).all()
    assert not model.is_outside(on_it).any()


@pytest.mark.parametrize("cells", [False, True])
def test_rows_of_no_weight_have_not_been_seen(cells):
    far = np.full((1, 3), 30.0)
    rows, weights = np.concatenate([X, far]), np.append(np.ones(N), 0.0)
    model = PartitionedKernelRidge(n_partitions=2) if cells else KernelRidgeCV()
    assert model.fit(rows, np.append(Y, 0.0), weights).is_outside(far).all()
    assert not model.fit(rows, np.append(Y, 0.0)).is_outside(far).any()


def test_units_and_a_constant_column_do_not_matter():
    units = np.array([1e-9, 1e9, 1.0])
    model = KernelRidge(0.1, kernel="laplacian", gamma=0.3).fit(X, Y)
    expected = model.is_outside(3 * ALIKE)
    rows = np.column_stack([X, np.full(N, 1e8)])
    other = np.column_stack([3 * ALIKE, np.full(len(ALIKE), 1e8 + 1e-8)])
    model = KernelRidge(0.1, kernel="laplacian", gamma=0.3).fit(rows, Y)
    np.testing.assert_array_equal(model.is_outside(other), expected)
    scaled = LSSVMRegressorCV(metric="learned").fit(X * units, Y)
    plain = LSSVMRegressorCV(metric="learned").fit(X, Y)
    found = scaled.is_outside(3 * ALIKE * units)
    assert np.mean(found == plain.is_outside(3 * ALIKE)) > 0.99


def test_a_table_is_asked_as_a_table():
    table = pd.DataFrame({"size": X[:, 0], "colour": np.where(X[:, 1] > 0, "red", "blue")})
    model = RidgefoldRegressor(model=KernelRidgeCV()).fit(table, Y)
    new = pd.DataFrame({"size": [0.0, 40.0, np.nan], "colour": ["red", "red", "blue"]})
    assert model.is_outside(new).tolist() == [False, True, False]


def test_a_model_from_a_file_or_another_process_says_the_same(tmp_path):
    model = PartitionedKernelRidge(n_partitions=3).fit(X, Y)
    expected = model.is_outside(2 * ALIKE)
    assert 0.01 < expected.mean() < 0.99
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(ridgefold.load(tmp_path / "m").is_outside(2 * ALIKE), expected)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - written on this line
    np.testing.assert_array_equal(again.is_outside(2 * ALIKE), expected)
    model.fit(2 * X, Y)  # another fit, other surroundings
    assert model.is_outside(2 * ALIKE).mean() < 0.005


def test_sparse_rows_are_asked_as_dense_ones():
    dense = X * (np.abs(X) > 0.5)
    new = 2 * ALIKE * (np.abs(ALIKE) > 0.5)
    one = KernelRidge(0.1, kernel="rbf").fit(dense, Y).is_outside(new)
    other = KernelRidge(0.1, kernel="rbf").fit(scipy.sparse.csr_array(dense), Y)
    np.testing.assert_array_equal(other.is_outside(scipy.sparse.csr_array(new)), one)


def test_models_that_do_not_know_their_rows_say_so():
    compressed = KernelRidge(0.1, kernel="rbf").fit(X, Y).compress(10)
    with pytest.raises(InvalidInputError, match="a compressed model keeps few of the rows"):
        compressed.is_outside(X)
    given = KernelRidge(0.1, kernel="precomputed").fit(X @ X.T, Y)
    with pytest.raises(InvalidInputError, match="knows no columns"):
        given.is_outside(X @ X.T)

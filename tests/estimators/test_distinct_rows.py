"""Equal rows are found, and rows that differ in whatever bit are kept apart."""

from __future__ import annotations

import numpy as np
import pytest

from cases import rows
from ridgefold.cells.distinct_rows import distinct_rows

Y = rows(60, 1, seed=1)


def groups_of(X, weights=None):
    found = distinct_rows(X, Y[: len(X)], weights)
    return None if found is None else found.group_of


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("columns", [1, 3, 300])
def test_equal_rows_are_one_group(dtype, order, columns):
    X = rows(60, columns, seed=2).astype(dtype)
    assert groups_of(X.copy(order=order)) is None
    X[50:] = X[10:20]
    found = groups_of(X.copy(order=order))
    np.testing.assert_array_equal(found[50:], found[10:20])
    assert len(np.unique(found)) == 50


def test_rows_that_differ_less_than_their_sum_is_rounded_are_two():
    X = rows(60, 5, seed=3)
    X[:, 0] += 1e12
    X[30:] = X[:30]
    X[30:40, 4] = np.nextafter(X[30:40, 4], np.inf)
    found = groups_of(X)
    assert len(np.unique(found)) == 40
    assert not np.any(found[30:40] == found[:10])
    np.testing.assert_array_equal(found[40:], found[10:30])


def test_rows_whose_sums_overflow_are_told_apart():
    X = rows(60, 5, seed=4)
    X[:, 0], X[:, 1] = 1.7e308, 1.7e308
    X[20:40, 1] = -1.7e308
    assert groups_of(X) is None
    X[59] = X[21]
    assert len(np.unique(groups_of(X))) == 59


def test_zeros_of_either_sign_are_equal():
    X = np.zeros((4, 3))
    X[1] = -0.0
    X[2, 1] = 1.0
    X[3] = np.where(X[2] == 0.0, -0.0, X[2])
    np.testing.assert_array_equal(groups_of(X) == groups_of(X)[0], [True, True, False, False])


def test_order_of_distinct_rows_does_not_tell_weights_from_repetitions():
    X = rows(60, 12, seed=5)
    X[:, :9] = np.round(X[:, :9])  # the columns that rows are ordered by have ties
    X[:, 10] += 1e12
    X[20:30] = X[:10]
    X[20:30, 11] = np.nextafter(X[20:30, 11], np.inf)  # and so have sums
    counts = 1 + np.arange(60) % 3
    weighted = distinct_rows(X, Y, counts.astype(float))
    repeated = distinct_rows(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0), None)
    np.testing.assert_array_equal(weighted.X, repeated.X)
    np.testing.assert_array_equal(weighted.weights, repeated.weights)
    np.testing.assert_array_equal(np.repeat(weighted.group_of, counts), repeated.group_of)


def test_rows_of_weight_zero_take_no_part():
    X = rows(60, 3, seed=6)
    X[1] = X[0]
    weights = np.full(60, 0.5)
    weights[1] = 0.0
    found = distinct_rows(X, Y, weights)
    assert found.group_of[1] == -1
    np.testing.assert_array_equal(found.X, np.delete(X, 1, axis=0))

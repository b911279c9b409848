"""Kernels on transformed columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kurtosis

from namespaces import LIBRARIES, to_numpy
from ridgefold.errors import InvalidInputError
from ridgefold.kernels import RBF, Laplacian, Warped
from ridgefold.linalg import namespace_of
from ridgefold.metric import TRANSFORMS
from ridgefold.records import Quantile, SignedLog, Standardise

RNG = np.random.default_rng(0)
X = np.column_stack(
    [RNG.normal(5.0, 2.0, 50), np.exp(3 * RNG.normal(size=50)), RNG.uniform(size=50)]
)
COLUMNS = (
    Standardise(5.0, 2.0),
    SignedLog(1.0, 0.5, 2.0),
    Quantile((0.0, 0.3, 1.0), (-1.0, 0.5, 1.0)),
)


def by_hand(rows: np.ndarray) -> np.ndarray:
    u = (rows[:, 1] - 1.0) / 0.5
    return np.column_stack(
        [
            (rows[:, 0] - 5.0) / 2.0,
            np.sign(u) * np.log1p(np.abs(u)) / 2.0,
            np.interp(rows[:, 2], [0.0, 0.3, 1.0], [-1.0, 0.5, 1.0]),
        ]
    )


@pytest.mark.parametrize("kernel", [RBF(1.5), Laplacian((1.0, 2.0, 3.0))])
def test_values_are_those_of_the_transformed_rows(kernel):
    warped = Warped(kernel, COLUMNS)
    np.testing.assert_allclose(warped(X), kernel(by_hand(X)), atol=1e-13)
    beyond = X[:5].copy()
    beyond[:, 2] += 7.0
    np.testing.assert_allclose(warped(beyond, X), kernel(by_hand(beyond), by_hand(X)), atol=1e-13)


@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries_agree(library):
    warped = Warped(RBF(1.5), COLUMNS)
    np.testing.assert_allclose(to_numpy(warped(LIBRARIES[library](X))), warped(X), atol=1e-13)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_fitted_transforms_give_columns_of_unit_spread(name):
    shares = np.full(50, 1 / 50)
    columns = [TRANSFORMS[name](X[:, j], shares) for j in range(3)]
    out = Warped(RBF(), columns).transform(namespace_of(X), X)
    np.testing.assert_allclose(out.std(axis=0), 1.0, rtol=0.02)
    assert np.all(np.diff(out[np.argsort(X[:, 1]), 1]) >= 0)
    if name != "standardise":
        assert kurtosis(out[:, 1]) < kurtosis(X[:, 1])


@pytest.mark.parametrize("name", TRANSFORMS)
def test_constant_columns_and_two_values_can_be_transformed(name):
    shares = np.full(8, 1 / 8)
    for column in (np.full(8, 3.0), np.repeat([0.0, 1.0], [7, 1])):
        out = Warped(RBF(), [TRANSFORMS[name](column, shares)]).transform(
            namespace_of(column), column[:, None]
        )
        assert np.all(np.isfinite(out))
        assert len(np.unique(out)) == len(np.unique(column))


def test_bad_columns_are_named():
    for columns, message in (
        ([Standardise(spread=0.0)], "spread must be > 0"),
        ([SignedLog(unit=-1.0)], "unit must be > 0"),
        ([Quantile((0.0,), (1.0,))], "at least two"),
        ([Quantile((0.0, 0.0), (0.0, 1.0))], "must increase"),
        (["log"], "columns must hold"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            Warped(RBF(), columns)
    with pytest.raises(InvalidInputError, match="kernel must be a kernel"):
        Warped("rbf", COLUMNS)
    with pytest.raises(InvalidInputError, match="transforms 3 columns but X has 2"):
        Warped(RBF(), COLUMNS)(X[:, :2])

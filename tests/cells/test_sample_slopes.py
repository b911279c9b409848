"""In which directions targets change."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold.cells.cell_rows import RowsToFit
from ridgefold.cells.local_fit import CellSystem
from ridgefold.cells.sample_slopes import mean_slopes
from ridgefold.kernels import RBF
from ridgefold.records import Grid

rng = np.random.default_rng(0)
X = rng.standard_normal((400, 5))
NOISE = 0.05 * rng.standard_normal(400)


def grid(*widths, alphas=(1e-3, 1e-2, 1e-1, 1.0)):
    kernels = tuple(RBF(width) for width in widths or (1.0, 2.0, 4.0, 8.0, 16.0))
    return Grid(kernels, np.array(alphas), len(kernels) // 2, min(1, len(alphas) - 1), True)


IN_DOUBLE = grid(2.0, alphas=(5e-5,))
"""With tr K/α = 4e6, more than coefficients are made in single precision for."""


def slopes_of(targets, rows=X, weights=None, choices=None):
    targets = targets[:, None] if targets.ndim == 1 else targets
    return mean_slopes(rows, targets, weights, choices or grid())


def matrix(found):
    return found.directions @ np.diag(found.squares) @ found.directions.T


def test_a_function_of_one_direction_is_steep_in_it_alone():
    u = np.array([1.0, -2.0, 0.0, 0.0, 2.0]) / 3.0
    found = slopes_of(np.sin(X @ u) + NOISE)
    assert abs(found.directions[:, 0] @ u) > 0.99
    assert found.squares[0] > 4.8
    assert found.squares.sum() == pytest.approx(5.0)
    np.testing.assert_allclose(found.directions.T @ found.directions, np.eye(5), atol=1e-12)


@pytest.mark.parametrize(("alpha", "off"), [(0.1, 0.1), (5e-5, 1e-6)])
def test_slopes_are_the_mean_of_gradients_of_a_fit(alpha, off):
    """Against differences of its predictions.

    With tr K/α = 2e3 coefficients are made in single precision, and promised to five percent, their
    squares to ten; with 4e6 in double precision.
    """
    y = (np.sin(X[:, 0]) * X[:, 1] + NOISE)[:, None]
    found = slopes_of(y, choices=grid(2.0, alphas=(alpha,)))
    rows, scaled = X - X.mean(axis=0), (y - y.mean()) / y.std()
    data = RowsToFit(rows, scaled, None, None)
    fit = CellSystem(data, (RBF(2.0),), bias=True).fit(0, alpha, held_out=False)

    def predicted(new):
        return (RBF(2.0)(new, rows) @ fit.dual_coef)[:, 0]

    step = 1e-4 * np.eye(5)
    gradients = np.stack([predicted(rows + e) - predicted(rows - e) for e in step])
    G = gradients @ gradients.T
    G *= 5 / np.trace(G)
    assert np.linalg.norm(matrix(found) - G) <= off * np.linalg.norm(G)


def test_rows_far_from_the_origin_and_in_other_units_change_nothing():
    y = np.sin(X[:, 0]) + NOISE
    near = matrix(slopes_of(y, choices=IN_DOUBLE))
    far = slopes_of(1e6 * y + 1e7, X + 1e4, choices=IN_DOUBLE)
    np.testing.assert_allclose(matrix(far), near, atol=1e-5)


def test_targets_count_alike_whatever_their_units():
    y = np.stack([np.sin(X[:, 0]), 1e5 * np.sin(X[:, 1])], axis=1) + NOISE[:, None]
    found = matrix(slopes_of(y))
    assert found[0, 0] == pytest.approx(found[1, 1], rel=0.2)
    assert found[2, 2] < 0.05 * found[0, 0]


def test_an_offset_of_targets_changes_nothing():
    y = np.sin(X[:, 0]) + NOISE
    near, far = (matrix(slopes_of(each, choices=IN_DOUBLE)) for each in (y, y + 1e9))
    # The targets themselves lose all but seven digits.
    np.testing.assert_allclose(far, near, atol=1e-5)


@pytest.mark.parametrize("count", [30, 500])
def test_of_many_targets_principal_components_stand_for_all(count):
    y = np.sin(2 * X[:, :2]) @ rng.standard_normal((2, count)) + NOISE[:, None]
    found = np.diag(matrix(slopes_of(y)))
    assert found[:2].sum() > 0.9 * found.sum()


def test_rows_without_weight_have_no_say():
    there = rng.random(400) < 0.6
    y = np.where(there, np.sin(2 * X[:, 0]) + NOISE, 1e200)
    found = slopes_of(y, weights=there.astype(float))
    assert abs(found.directions[0, 0]) > 0.98
    alone = slopes_of(y[there], X[there], np.ones(there.sum()))
    np.testing.assert_array_equal(found.directions, alone.directions)


def test_more_columns_than_rows_keep_the_steepest_directions():
    wide = rng.standard_normal((60, 200))
    u = np.zeros(200)
    u[3] = 1.0
    found = slopes_of(wide @ u, wide, choices=grid(20.0, 40.0))
    assert found.directions.shape[0] == 200
    assert found.directions.shape[1] <= 32
    assert np.argmax(np.abs(found.directions[:, 0])) == 3
    np.testing.assert_allclose(
        found.directions.T @ found.directions, np.eye(found.directions.shape[1]), atol=1e-8
    )


@pytest.mark.parametrize(
    ("rows", "targets", "weights"),
    [
        (X, np.full(400, 3.7), None),
        (X[:5], NOISE[:5], None),
        (X, NOISE, np.zeros(400)),
        (np.ones((50, 2)), NOISE[:50], None),
    ],
    ids=["constant targets", "few rows", "no weights", "equal rows"],
)
def test_where_there_is_nothing_to_tell_there_are_none(rows, targets, weights):
    assert slopes_of(targets, rows, weights) is None

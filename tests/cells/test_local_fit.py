"""One cell: what was scored is not solved again, what its core is, and singular systems."""

from __future__ import annotations

import numpy as np
import pytest

from cases import least_squares, rows
from namespaces import EVERYWHERE, to_numpy
from ridgefold.cells import local_fit
from ridgefold.cells.cell_rows import RowsToFit
from ridgefold.cells.local_fit import CellSystem
from ridgefold.cells.local_search import search_cell
from ridgefold.kernels import RBF, Linear, Polynomial
from ridgefold.linalg import namespace_of
from ridgefold.records import CELL_SEARCH, Grid

X = rows(40, 3, seed=1)
Y = rows(40, 2, seed=2)
KERNELS = (RBF(1.0), RBF(3.0))


def system(weights=None):
    return CellSystem(RowsToFit(X, Y, weights, None), KERNELS, bias=True)


@pytest.mark.parametrize("weights", [None, np.arange(40.0) % 3])
def test_a_fit_after_scoring_is_the_fit_without(weights):
    scored = system(weights)
    for kernel in (0, 1):
        for alpha in (0.1, 1.0):
            scored.score(kernel, alpha)
    found, expected = (s.fit(1, 0.1, held_out=True) for s in (scored, system(weights)))
    for name in ("dual_coef", "intercept", "residuals"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert (found.kernel, found.alpha) == (1, 0.1)


def test_a_pair_that_was_scored_is_solved_once(monkeypatch):
    solved = []
    once = local_fit.leave_one_out

    def counted(*arguments, **settings):
        solved.append(arguments[3])
        return once(*arguments, **settings)

    monkeypatch.setattr(local_fit, "leave_one_out", counted)
    cell = system()
    cell.score(0, 0.5)
    cell.fit(0, 0.5, held_out=True)
    cell.score(0, 0.5)
    assert solved == [0.5]
    cell.fit(1, 0.5, held_out=True)
    assert solved == [0.5, 0.5]


@pytest.mark.parametrize("held_out", [False, True])
def test_weights_of_one_are_no_weights_and_of_zero_no_rows(held_out):
    found, expected = (s.fit(0, 0.1, held_out=held_out) for s in (system(np.ones(40)), system()))
    np.testing.assert_array_equal(found.dual_coef, expected.dual_coef)
    np.testing.assert_array_equal(found.intercept, expected.intercept)
    some = np.arange(40) % 4 > 0
    found = system(some.astype(float)).fit(0, 0.1, held_out=held_out)
    fewer = CellSystem(RowsToFit(X[some], Y[some], None, None), KERNELS, bias=True)
    expected = fewer.fit(0, 0.1, held_out=held_out)
    np.testing.assert_array_equal(found.dual_coef[some], expected.dual_coef)
    assert not np.any(found.dual_coef[~some])
    if held_out:
        np.testing.assert_array_equal(found.residuals[some], expected.residuals)


N_LARGE = 400
CORE, FEWEST = CELL_SEARCH.core_rows(N_LARGE, overlap=True), CELL_SEARCH.fewest_core_rows


def large(shares, weights=None, *, weighted_scores=False):
    X, targets = rows(N_LARGE, 3, seed=3), rows(N_LARGE, 1, seed=4)
    return RowsToFit(X, targets, weights, shares, weighted_scores)


def shares_of_core(core):
    """1 for these rows, less for all others."""
    return np.where(np.isin(np.arange(N_LARGE), core), 1.0, 0.25)


def test_the_core_are_the_rows_with_the_largest_shares_in_their_order():
    wanted = np.sort(np.random.default_rng(0).permutation(N_LARGE)[:CORE])
    data = large(shares_of_core(wanted), np.arange(1.0, N_LARGE + 1), weighted_scores=True)
    core = data.core()
    assert FEWEST < CORE < N_LARGE
    np.testing.assert_array_equal(core.X, data.X[wanted])
    np.testing.assert_array_equal(core.targets, data.targets[wanted])
    np.testing.assert_array_equal(core.weights, data.weights[wanted])
    np.testing.assert_array_equal(core.shares, np.ones(CORE))
    np.testing.assert_array_equal(core.counts(), wanted + 1.0)


def test_rows_of_weight_zero_come_last_into_the_core():
    weights = (np.arange(N_LARGE) % 4 > 0).astype(float)
    core = large(np.where(weights > 0, 0.5, 1.0), weights).core()
    assert np.all(core.weights > 0)
    few = (np.arange(N_LARGE) < 20).astype(float)
    assert np.sum(large(np.full(N_LARGE, 0.5), few).core().weights) == 20


@pytest.mark.parametrize(("n", "shares"), [(N_LARGE, None), (FEWEST, np.full(FEWEST, 0.5))])
def test_cells_that_do_not_overlap_or_are_small_are_all_core(n, shares):
    data = RowsToFit(rows(n, 3, seed=3), rows(n, 1, seed=4), None, shares)
    assert data.core() is data
    whole = CellSystem(data, KERNELS, bias=True)
    assert whole.core() is whole


def test_the_core_of_a_cell_is_that_of_its_rows_elsewhere():
    torch = pytest.importorskip("torch")
    data = large(shares_of_core(np.arange(CORE)))
    there = RowsToFit(torch.as_tensor(data.X), torch.as_tensor(data.targets), None, data.shares)
    core = there.core()
    np.testing.assert_array_equal(namespace_of(core.X).to_numpy(core.X), data.core().X)


def test_a_cell_chooses_by_its_core_and_is_fitted_on_all_rows():
    """Rows outside of it have no say in the pair, but in the model."""
    wanted, rng = np.arange(CORE), np.random.default_rng(0)
    X = rng.standard_normal((N_LARGE, 2))
    y = np.sin(X[:, :1]) + 0.1 * rng.standard_normal((N_LARGE, 1))
    y[CORE:] = rng.standard_normal((N_LARGE - CORE, 1))
    kernels = tuple(RBF(width) for width in (0.25, 0.5, 1.0, 2.0, 4.0))
    grid = Grid(kernels, np.array([1e-3, 1e-2, 1e-1, 1.0, 10.0]), 2, 2, ordered=True)
    data = RowsToFit(X, y, None, shares_of_core(wanted))
    cell = CellSystem(data, kernels, bias=True)
    alone = CellSystem(RowsToFit(X[wanted], y[wanted], None, None), kernels, bias=True)
    choice = search_cell(cell, grid)
    assert choice == search_cell(alone, grid)
    fit = cell.fit(choice.kernel, float(grid.alphas[choice.alpha]), held_out=True)
    assert np.all(fit.dual_coef != 0.0)


LOW_RANK = {
    "linear": (Linear(), X),
    "quadratic": (
        Polynomial(2, coef0=0.0),
        np.stack([X[:, i] * X[:, j] for i in range(3) for j in range(i + 1)], axis=1),
    ),
}
"""Kernels and the columns of which they are inner products, of fewer than there are rows."""
OFF = {np.float64: 1e-11, np.float32: 1e-3}


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", OFF)
@pytest.mark.parametrize("weights", [None, np.arange(40.0) % 3], ids=["equal", "weighted"])
@pytest.mark.parametrize("name", LOW_RANK)
@pytest.mark.parametrize("held_out", [False, True])
def test_a_cell_with_a_ridge_below_rounding_is_least_squares_with_an_intercept(
    library, dtype, weights, name, held_out
):
    convert, (kernel, features) = EVERYWHERE[library], LOW_RANK[name]
    Z, y = X.astype(dtype), (Y + 5.0).astype(dtype)
    given = None if weights is None else convert(weights.astype(dtype))
    cell = CellSystem(RowsToFit(convert(Z), convert(y), given, None), (kernel,), bias=True)
    fit = cell.fit(0, 1e-15, held_out=held_out)
    slopes, intercept = least_squares(features, y, weights)
    predicted = kernel(X) @ to_numpy(fit.dual_coef) + to_numpy(fit.intercept)
    np.testing.assert_allclose(predicted, features @ slopes + intercept, rtol=0, atol=OFF[dtype])
    if held_out:
        for i in range(40):
            rest = np.delete(np.arange(40), i)
            some = None if weights is None else weights[rest]
            slopes, intercept = least_squares(features[rest], y[rest], some)
            expected = y[i] - features[i] @ slopes - intercept
            np.testing.assert_allclose(
                to_numpy(fit.residuals)[i], expected, rtol=0, atol=OFF[dtype]
            )

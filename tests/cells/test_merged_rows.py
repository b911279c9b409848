"""Scores of merged rows that leave out one given row at a time."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold import PartitionedLSSVMClassifier, PartitionedLSSVMRegressor
from ridgefold.cells.average_search import error_of_average
from ridgefold.cells.cell_rows import RowsToFit
from ridgefold.cells.distinct_rows import distinct_rows
from ridgefold.cells.local_fit import CellSystem, FitSettings
from ridgefold.cells.stacked_fit import CellStack
from ridgefold.executors import Serial
from ridgefold.kernels import RBF
from ridgefold.records import Cells, Grid

KERNELS = (RBF(0.7), RBF(2.0))
PAIRS = [(0, 1e-3), (0, 0.3), (1, 1e-2), (1, 5.0)]


def draws(n_rows=120, n_places=30, n_targets=2, seed=0):
    """Noisy targets at a few places, each of which is seen several times."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n_places, 2))[rng.integers(n_places, size=n_rows)]
    y = np.sin(2 * X[:, :1]) * [1.0, -2.0][:n_targets] + rng.normal(size=(n_rows, n_targets))
    return X, y


def as_cells(X, y, weights=None, shares_of=None, *, weighted_scores=False):
    """The same rows as one cell, as they are and merged."""
    merged = distinct_rows(X, y, weights)
    shares = (None, None) if shares_of is None else (shares_of(X), shares_of(merged.X))
    return (
        RowsToFit(X, y, weights, shares[0], weighted_scores),
        RowsToFit(
            merged.X, merged.targets, merged.weights, shares[1], weighted_scores, merged.members
        ),
    )


def some_weights(n):
    return np.random.default_rng(1).uniform(0.2, 3.0, n)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("weighted_scores", [False, True])
def test_scores_of_merged_rows_are_those_of_the_rows_as_they_are(bias, weighted, weighted_scores):
    X, y = draws()
    given, merged = as_cells(
        X,
        y,
        some_weights(len(X)) if weighted else None,
        lambda rows: 0.5 + 0.2 * rows[:, 0],
        weighted_scores=weighted_scores and weighted,
    )
    one, other = (CellSystem(data, KERNELS, bias=bias) for data in (given, merged))
    for kernel, alpha in PAIRS:
        assert one.score(kernel, alpha) == pytest.approx(other.score(kernel, alpha), rel=1e-6)


def test_a_score_is_the_mean_over_refits_without_each_given_row():
    X, y = draws(n_rows=60, n_places=12, n_targets=1)
    _, merged = as_cells(X, y)
    kernel, alpha = KERNELS[0], 0.3
    errors = []
    for i in range(len(X)):
        rest = np.delete(np.arange(len(X)), i)
        K = kernel(X[rest]) + alpha * np.eye(len(rest))
        ones = np.linalg.solve(K, np.ones(len(rest)))
        bias = ones @ y[rest, 0] / ones.sum()
        dual = np.linalg.solve(K, y[rest, 0] - bias)
        errors.append(y[i, 0] - kernel(X[i : i + 1], X[rest])[0] @ dual - bias)
    score = CellSystem(merged, KERNELS, bias=True).score(0, alpha)
    assert score == pytest.approx(np.mean(np.square(errors)), rel=1e-8)


def test_cores_and_pilots_take_the_members_of_their_rows_along():
    X, y = draws(n_rows=900, n_places=300)
    given, merged = as_cells(X, y)
    some = np.array([5, 17, 200])
    part = merged.taken(some)
    rows = np.flatnonzero((X[:, None] == merged.X[some][None]).all(axis=2).any(axis=1))
    assert len(part.members.weights) == len(rows)
    one = CellSystem(given.taken(rows), KERNELS, bias=True)
    other = CellSystem(part, KERNELS, bias=True)
    assert one.score(1, 0.1) == pytest.approx(other.score(1, 0.1), rel=1e-8)


def test_sizes_are_compared_by_rows_left_out_one_at_a_time():
    X, y = draws(n_rows=1500, n_places=700, n_targets=1)
    settings = {"alpha": 0.1, "kernel_params": {"length_scale": 0.7}, "cells__clip": False}
    model = PartitionedLSSVMRegressor(intervals="jackknife+").set_params(**settings).fit(X, y[:, 0])
    n = len(np.unique(X, axis=0))
    taken = next(t for t in model.trials_ if round(n / t.cell_rows) == model.n_partitions_)
    error = np.sqrt(np.mean(model.held_out_residuals_**2))
    assert taken.error == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_of_an_average_leaves_out_one_given_row_at_a_time(weighted):
    rng = np.random.default_rng(0)
    X = np.tile(rng.uniform(-2, 2, (60, 2)), (3, 1))  # so that cells have their share of both
    y = np.sin(2 * X[:, :1]) + rng.normal(size=(180, 2))
    weights = some_weights(180) if weighted else None
    merged = distinct_rows(X, y, weights)
    halves = [np.arange(0, 60, 2), np.arange(1, 60, 2)]
    same = [np.flatnonzero(np.isin(merged.group_of, half)) for half in halves]
    found = [
        error_of_average(
            training,
            Cells(np.concatenate(rows), np.array([0, size // 2, size]), None, {}),
            (RBF(0.7), 2.0),
            Serial(),
            rng=np.random.default_rng(0),
            bias=True,
        )
        for rows, size, training in (
            (same, 180, RowsToFit(X, y, weights)),
            (
                halves,
                60,
                RowsToFit(merged.X, merged.targets, merged.weights, members=merged.members),
            ),
        )
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_stacked_scores_are_those_of_cells_alone():
    pytest.importorskip("torch")
    cells = [as_cells(*draws(seed=seed, n_places=20 + 3 * seed))[1] for seed in range(3)]
    grid = Grid(KERNELS, np.array([0.01, 1.0]), 0, 0, ordered=True)
    settings = FitSettings(grid, True, True, True, False, np.zeros(2), device="cpu")
    found = CellStack(cells, settings, "cpu").scores_of_pairs(dict.fromkeys(range(3), (1, 1)))
    for number, cell in enumerate(cells):
        alone = CellSystem(cell, KERNELS, bias=True).score(1, 1.0)
        assert found[number] == pytest.approx(alone, rel=1e-4)  # which are for comparison


@pytest.mark.parametrize("copied", [False, True])
def test_rows_with_one_x_are_draws_if_their_targets_differ_and_else_copies(copied):
    X, y = draws()
    if copied:
        y = np.sin(X)
    assert distinct_rows(X, y, None).are_draws is not copied


def test_effects_of_places_that_are_seen_often_are_learned():
    rng = np.random.default_rng(0)
    places = rng.permutation(80)[:, None].astype(float)
    effect = rng.normal(size=80)
    seen = rng.integers(80, size=4000)
    X, y = places[seen], effect[seen] + 0.5 * rng.normal(size=4000)
    model = PartitionedLSSVMRegressor().fit(X, y)
    assert np.sqrt(np.mean((model.predict(places) - effect) ** 2)) < 0.15
    clear = np.abs(effect) > 0.3
    labels = PartitionedLSSVMClassifier().fit(X, y > 0).predict(places[clear])
    assert np.mean(labels == (effect[clear] > 0)) > 0.9

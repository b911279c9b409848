"""Sizes of cells are compared with one pair for all cells, and own pairs come afterwards."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from ridgefold import CellOptions, PartitionedLSSVMRegressor
from ridgefold.cells import held_out_errors as held_out
from ridgefold.cells import partition_count
from ridgefold.records import CELL_SEARCH


def problem(n=1200):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (n, 3))
    rough = np.where(X[:, 0] > 0, np.sin(12 * X[:, 1]), 0.0)
    return X, rough + 0.5 * rng.standard_normal(n)


@pytest.fixture
def tried(monkeypatch):
    """The settings with which cells are fitted while sizes are compared."""
    seen = []
    run_cells = partition_count.run_cells

    def watched(training, cells, settings, factors, executor, **others):
        seen.append(settings)
        return run_cells(training, cells, settings, factors, executor, **others)

    monkeypatch.setattr(partition_count, "run_cells", watched)
    return seen


def test_cells_share_a_pair_while_sizes_are_compared_and_choose_their_own_afterwards(tried):
    X, y = problem()
    model = PartitionedLSSVMRegressor().fit(X, y)
    assert len(tried) == len(model.trials_)
    assert all(settings.held_out and not settings.choose for settings in tried)
    pairs = set(zip(model.alpha_, (k.length_scale for k in model.kernels_), strict=True))
    assert model.n_partitions_ > 1
    assert len(pairs) > 1


def test_models_that_share_a_pair_are_those_that_were_tried():
    X, y = problem()
    model = PartitionedLSSVMRegressor(
        intervals="jackknife+", cells=CellOptions(tuning="shared")
    ).fit(X, y)
    trial = next(t for t in model.trials_ if round(len(y) / t.cell_rows) == model.n_partitions_)
    assert trial.cell_rows >= CELL_SEARCH.smallest_tried
    error = np.sqrt(np.mean(model.held_out_residuals_**2))
    assert error == pytest.approx(trial.error, rel=1e-12)


def test_the_next_size_starts_where_the_last_one_ended(monkeypatch):
    starts = []
    choose_pair = partition_count.choose_pair

    def watched(training, cells, grid, executor, **settings):
        found = choose_pair(training, cells, grid, executor, **settings)
        begun, ended = ((each.start, each.start_alpha) for each in (grid, found))
        starts.append((begun, settings["good_start"], ended))
        return found

    monkeypatch.setattr(partition_count, "choose_pair", watched)
    X, y = problem()
    PartitionedLSSVMRegressor().fit(X, y)
    assert len(starts) > 1
    assert [good for _, good, _ in starts] == [False] + [True] * (len(starts) - 1)
    for (_, _, ended), (begun, _, _) in itertools.pairwise(starts):
        assert begun == ended


@pytest.mark.parametrize("n", [300, 500, 600, 760, 1100])
def test_one_cell_of_all_rows_is_tried_once(n):
    model = PartitionedLSSVMRegressor().fit(*problem(n))
    counts = [max(1, round(n / trial.cell_rows)) for trial in model.trials_]
    assert counts.count(1) <= 1
    assert sorted(counts, reverse=True) == counts


def test_sizes_are_doubled_while_that_gains():
    model = PartitionedLSSVMRegressor().fit(*problem(3000))
    errors = [trial.error for trial in model.trials_]
    assert len(errors) > 1
    for k in range(1, len(errors) - 1):
        assert errors[k] <= (1 - CellOptions().tolerance / 2) * min(errors[:k])


@pytest.mark.parametrize("n", [300, 3200])
def test_targets_that_are_all_the_same_are_learned_by_the_first_cells_tried(n):
    X, _ = problem(n)
    model = PartitionedLSSVMRegressor().fit(X, np.ones(n))
    assert [trial.error for trial in model.trials_] == [0.0]
    assert np.allclose(model.predict(X), 1.0)


def smaller(monkeypatch, **numbers):
    monkeypatch.setattr(partition_count, "CELL_SEARCH", replace(CELL_SEARCH, **numbers))


def test_of_many_rows_only_small_cells_are_tried(monkeypatch):
    smaller(monkeypatch, smallest_tried=32, largest_tried=256, many_rows=500, largest_of_many=64)
    X, y = problem(600)
    model = PartitionedLSSVMRegressor().fit(X, X @ [1.0, 2.0, 3.0] + 0.0 * y)
    assert max(trial.cell_rows for trial in model.trials_) <= 64


def test_regions_are_the_nearest_rows_of_random_ones(monkeypatch):
    smaller(monkeypatch, region_rows=40)
    X = np.random.default_rng(1).standard_normal((500, 2))
    found = partition_count.regions(X, np.random.default_rng(0))
    pivots = np.random.default_rng(0).choice(500, 2, replace=False)
    assert len(found) == 2
    for rows, pivot in zip(found, pivots, strict=True):
        distances = np.linalg.norm(X - X[pivot], axis=1)
        assert rows.tolist() == np.sort(np.argsort(distances)[:40]).tolist()
    assert partition_count.regions(X[:80], np.random.default_rng(0))[0].tolist() == list(range(80))


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_of_rows_at_the_same_distance_the_first_are_nearest(monkeypatch, block):
    blocks = partition_count.row_blocks
    monkeypatch.setattr(partition_count, "row_blocks", lambda n, *_: blocks(n, 1, block))
    X = np.array([[0.0], [1.0], [-1.0], [1.0], [5.0], [-1.0]])
    assert partition_count.nearest_rows(X, np.zeros(1), 3).tolist() == [0, 1, 2]
    assert partition_count.nearest_rows(X, np.zeros(1), 99).tolist() == list(range(6))


def test_rows_of_weight_zero_count_in_no_score(monkeypatch):
    X, y = problem(600)
    seen = []
    measure = partition_count._measure

    def watched(part, *others, **settings):
        found = measure(part, *others, **settings)
        seen.append((part.training, found.scored))
        return found

    monkeypatch.setattr(partition_count, "_measure", watched)
    weights = np.ones(600)
    weights[::10] = 0.5
    PartitionedLSSVMRegressor().fit(X, y, weights)
    training, (_, count) = seen[0]
    assert count == weights.sum()
    ignored = np.where(np.arange(600) % 10 == 0, 0.0, 1.0)
    once = replace(training, weights=ignored, weighted_scores=False)
    assert once.scored(slice(0, 600)).counts.sum() == 540
    shown = replace(training, weights=ignored)
    assert shown.scored(slice(0, 600)).counts.tolist() == ignored.tolist()
    wild = np.where(ignored[:, None] > 0, training.targets, 1e9)
    clipped = held_out._clipped(wild, 1e6 * np.ones_like(wild), ignored > 0)
    assert np.abs(clipped[ignored > 0]).max() < 20


@pytest.mark.parametrize(("n", "fewest"), [(4000, 2), (1500, 1)])
def test_cells_of_averages_are_doubled_up_to_the_largest_that_are_measured(n, fewest):
    asked = []

    def score(m):
        asked.append(m)
        return float(m)  # every halving of their number gains

    count, trials = partition_count.choose_count_of_average(score, 8, n, loss=0.02)
    assert count == asked[-1] == fewest
    assert all(trial.cell_rows <= CELL_SEARCH.largest_tried for trial in trials)
    assert asked == sorted(asked, reverse=True)


def test_averages_stop_when_a_doubling_gains_little():
    asked = []
    count, _ = partition_count.choose_count_of_average(
        lambda m: asked.append(m) or 1.0, 8, 4000, loss=0.02
    )
    assert asked == [32, 16]
    assert count == 32

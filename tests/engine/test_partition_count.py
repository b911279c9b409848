"""Sizes of cells are compared with one pair for all cells, and own pairs come afterwards."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ridgefold import PartitionedKernelRidge
from ridgefold.engine import partition_count
from ridgefold.records import CELL_SEARCH, CellTrial


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
    model = PartitionedKernelRidge().fit(X, y)
    assert len(tried) == sum(trial.measured for trial in model.trials_)
    assert all(settings.held_out and not settings.choose for settings in tried)
    pairs = set(zip(model.alpha_, (k.length_scale for k in model.kernels_), strict=True))
    assert model.n_partitions_ > 1
    assert len(pairs) > 1


def test_models_that_share_a_pair_are_those_that_were_tried():
    X, y = problem()
    model = PartitionedKernelRidge(tuning="shared", intervals="jackknife+").fit(X, y)
    trial = next(t for t in model.trials_ if round(len(y) / t.cell_rows) == model.n_partitions_)
    assert trial.cell_rows >= CELL_SEARCH.smallest_tried
    error = np.sqrt(np.mean(model.held_out_residuals_**2))
    assert error == pytest.approx(trial.error, rel=1e-12)


def test_the_next_size_starts_where_the_last_one_ended(monkeypatch):
    starts = []
    choose_pair = partition_count.choose_pair

    def watched(training, cells, grid, executor, **settings):
        choice = choose_pair(training, cells, grid, executor, **settings)
        starts.append(((grid.start, grid.start_alpha), settings["good_start"], choice))
        return choice

    monkeypatch.setattr(partition_count, "choose_pair", watched)
    X, y = problem()
    PartitionedKernelRidge().fit(X, y)
    assert len(starts) > 1
    assert [good for _, good, _ in starts] == [False] + [True] * (len(starts) - 1)
    for (_, _, ended), (begun, _, _) in itertools.pairwise(starts):
        assert begun == (ended.kernel, ended.alpha)


@pytest.mark.parametrize("n", [300, 500, 600, 760, 1100])
def test_one_cell_of_all_rows_is_tried_once(n):
    model = PartitionedKernelRidge().fit(*problem(n))
    counts = [max(1, round(n / trial.cell_rows)) for trial in model.trials_]
    assert counts.count(1) <= 1
    assert sorted(counts, reverse=True) == counts


def test_gains_of_larger_cells_are_extrapolated_a_little_smaller_each():
    trials = [CellTrial(256 * 2**k, 0.97**k, measured=True) for k in range(4)]
    further = partition_count._extrapolated(trials, 6000, loss=0.02)
    assert [trial.cell_rows for trial in further] == [4096, 6000]
    errors = [trials[-1].error, *(trial.error for trial in further)]
    gains = [1 - after / before for before, after in itertools.pairwise(errors)]
    assert 0.03 > gains[0] > gains[1] > 0.02
    assert not any(trial.measured for trial in further)


def test_errors_that_do_not_fall_are_not_extrapolated():
    trials = [CellTrial(256 * 2**k, error, measured=True) for k, error in enumerate([1, 0.9, 0.95])]
    assert partition_count._extrapolated(trials, 6000, loss=0.02) == []

"""The error of an average of cells, row by row."""

import numpy as np
import pytest

from ridgefold.cells.average_search import _draw, _errors_of_average
from ridgefold.cells.cell_rows import RowsToFit, ScoredRows
from ridgefold.cells.cut import PARTITIONERS
from ridgefold.executors import Serial
from ridgefold.kernels import RBF

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 2))
Y = np.sin(X[:, :1]) + 0.1 * rng.standard_normal((60, 1))
WEIGHTS = rng.uniform(0.1, 3.0, 60)


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_count_by_their_weights_only_where_that_is_asked_for(weighted):
    training = RowsToFit(X, Y, WEIGHTS, weighted_scores=weighted)
    cells = PARTITIONERS["random"].fit(X, 3, 0.0, np.random.default_rng(1))
    counts = training.scored(slice(0, 60)).counts

    def errors(sample):
        rows = np.asarray(sample)
        return _errors_of_average(
            training,
            cells,
            RBF(1.0),
            np.array([0.1, 1.0]),
            Serial(),
            sample=ScoredRows(rows, Y[rows], WEIGHTS[rows], counts[rows], None),
            bias=True,
            device=None,
        )

    by_row = np.stack([errors([row]) for row in range(60)])
    expected = np.average(by_row, axis=0, weights=WEIGHTS if weighted else None)
    np.testing.assert_allclose(errors(range(60)), expected, rtol=1e-12)


@pytest.mark.parametrize(("targets", "expected"), [(1, 2000), (3, 666), (50, 500)])
def test_pairs_are_told_apart_by_some_thousand_targets(targets, expected):
    many = RowsToFit(np.zeros((3000, 1)), np.zeros((3000, targets)), None)
    drawn = _draw(many, np.random.default_rng(0)).rows
    assert len(drawn) == len(np.unique(drawn)) == expected
    few = RowsToFit(np.zeros((30, 1)), np.zeros((30, targets)), None)
    assert np.array_equal(_draw(few, np.random.default_rng(0)).rows, np.arange(30))


def test_rows_without_weight_are_not_held_out():
    weights = np.tile([0.0, 1.0], 20)
    training = RowsToFit(np.zeros((40, 1)), np.zeros((40, 1)), weights)
    assert np.array_equal(_draw(training, np.random.default_rng(0)).rows, np.arange(1, 40, 2))

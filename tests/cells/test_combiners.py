"""Who predicts what, and with which ridge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ridgefold.cells.combine
from ridgefold.cells.combine import COMBINERS, cell_alpha
from ridgefold.cells.cut import PARTITIONERS

FOLDER = Path(ridgefold.cells.combine.__file__).parent


def test_every_file_is_registered():
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "base"}
    assert files == set(COMBINERS)


def test_the_ridge_follows_the_papers_rules():
    assert cell_alpha(COMBINERS["average"], 8.0, 25, 100) == 2.0
    assert cell_alpha(COMBINERS["route"], 8.0, 25, 100) == 8.0
    assert cell_alpha(COMBINERS["blend"], 8.0, 25, 100) == 8.0


@pytest.mark.parametrize("combine", COMBINERS)
@pytest.mark.parametrize("partition", PARTITIONERS)
def test_the_weights_of_every_row_sum_to_one(combine, partition):
    partitioner, combiner = PARTITIONERS[partition], COMBINERS[combine]
    if combiner.needs_space and not partitioner.in_space:
        pytest.skip("rejected by the estimators")
    X = np.random.default_rng(0).standard_normal((120, 2))
    cells = partitioner.fit(X, 5, 0.5 if combiner.overlaps else 0.0, np.random.default_rng(0))
    m = len(cells.offsets) - 1
    assignment = combiner.assign(partitioner, cells.router, m, X)
    total = np.zeros(len(X))
    for cell in range(m):
        rows, weights = assignment.of_cell(cell)
        total[rows] += weights
    assert np.allclose(total, 1.0)

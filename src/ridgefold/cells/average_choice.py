"""How many cells an average has, and the pair of kernel and ridge for their mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ridgefold.cells.average_search import error_of_average, search_average
from ridgefold.cells.cell_rows import RowsToFit
from ridgefold.cells.checked_arguments import CellArguments
from ridgefold.cells.partition_count import choose_count_of_average, effective_dimension
from ridgefold.executors import Executor
from ridgefold.kernels import KernelGram
from ridgefold.records import Grid

_ROWS_A_CELL = 512
"""Rows of each cell while a pair is chosen, where the number of cells is not given."""
_DIMENSION_ROWS = 500
"""Rows whose spectrum tells the effective dimension, which only has to be right to a factor."""


def first_number(options: CellArguments, n_rows: int, most_rows: float = math.inf) -> int:
    """The number of cells with which a pair is chosen, none of more than `most_rows`."""
    usual = max(1, round(n_rows / _ROWS_A_CELL), math.ceil(n_rows / most_rows))
    return min(n_rows, options.n_cells or usual)


def choose_average(
    training: RowsToFit,
    options: CellArguments,
    grid_of: Callable[[np.ndarray], Grid],
    rng: np.random.Generator,
    *,
    most_rows: float,
    executor: Executor,
) -> dict[str, Any]:
    """Cells, grid (which starts at the pair), trials and effective dimension.

    `grid_of` gives the kernels and ridges for all rows from some of them.
    """
    X, n = training.X, training.X.shape[0]
    sample = np.sort(rng.choice(n, min(n, _DIMENSION_ROWS), replace=False))
    cells = options.partitioner.fit(X, first_number(options, n, most_rows), 0.0, rng)
    grid = search_average(
        training,
        cells,
        grid_of(sample),
        executor,
        rng,
        bias=options.bias,
        fixed=options.fixed,
        device=options.device,
    )
    kernel, alpha = grid.kernels[grid.start], float(grid.alphas[grid.start_alpha])
    gram = KernelGram(kernel, np.asarray(X[sample], dtype=np.float64)).full()
    dimension = effective_dimension(np.linalg.eigvalsh(gram), alpha * len(sample) / n)
    found = {"cells": cells, "grid": grid, "trials": (), "dimension": dimension}
    if options.n_cells is not None:
        return found
    seed = int(rng.integers(2**31))

    def score(m: int) -> float:
        split = options.partitioner.fit(X, m, 0.0, np.random.default_rng(seed))
        error = error_of_average(
            training,
            split,
            (kernel, alpha),
            executor,
            rng=np.random.default_rng(seed + 1),  # the same rows for every m
            bias=options.bias,
            fixed=options.fixed,
            device=options.device,
        )
        return float(np.sqrt(error))

    guess = max(1, int(n / max(dimension, 1.0) ** 2))
    m, trials = choose_count_of_average(score, guess, n, options.tolerance, most_rows)
    cells = options.partitioner.fit(X, m, 0.0, np.random.default_rng(seed))
    return {**found, "cells": cells, "trials": trials}

"""In which lengths cells are cut: learned scales of columns, and mean slopes of the targets.

Both are found on a sample of the rows, before anything is cut.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ridgefold.cells.cell_grid import SAMPLE_ROWS, grid_asked, rbf_grid
from ridgefold.cells.cell_rows import spaced
from ridgefold.cells.sample_slopes import mean_slopes
from ridgefold.errors import InvalidInputError, NumericalError
from ridgefold.kernels import RBF
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.metric import learn_metric
from ridgefold.metric.descent import SCALE_BOUNDS
from ridgefold.options import metric_of
from ridgefold.records import CELL_SEARCH, CellSearch, Grid, Slopes
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.learned_grid import AUTO, is_automatic
from ridgefold.selection.learning_optimism import widening_by_learning

_LEARNING_ROWS = 6000


def learned_scales(
    model: Any,
    data: TrainingData,
    targets: np.ndarray,
    rng: np.random.Generator,
    max_rows: int,
    *,
    fixed: tuple[int, ...] = (),
) -> list[np.ndarray]:
    """One scale a column, from at most so many rows; and, if there are any, factors of the errors
    that intervals are made of.

    `fixed` are numbers of unpenalised columns. Cells know no columns but those that distances are
    made of, so that none of these is left out: it has the longest scale there is.
    """
    n, asked = data.X.shape[0], metric_of(model)
    groups = None if asked is None else asked.groups
    some = np.sort(rng.choice(n, min(n, _LEARNING_ROWS), replace=False))
    family = grid_asked(model, data, some[:SAMPLE_ROWS], n).kernels[0]
    if not isinstance(family, DistanceKernel):
        raise InvalidInputError(
            'metric="learned" needs one kernel of distances (rbf, matern, laplacian, '
            f"rational_quadratic), got kernel={model.kernel!r}"
        )
    learn = partial(
        learn_metric,
        family=AUTO if is_automatic(model.kernel) else family,
        bias=bool(model.fit_intercept),
        fixed=fixed,
        max_rows=max_rows,
        random_state=int(rng.integers(2**31 - 1)),
        scale_groups=groups,
        # A kernel with a scale of its own for every column needs them all.
        leave_out=not isinstance(family.length_scale, tuple),
    )
    X, y = np.ascontiguousarray(data.X[some]), targets[some]
    weights = None if data.weights is None else data.weights[some]
    learned = learn(X, y, weights=weights)
    widening = None
    if getattr(model, "intervals", None) is not None:
        widening = widening_by_learning(
            X,
            y,
            weights,
            learned,
            learn,
            bias=bool(model.fit_intercept),
            fixed=fixed,
            scale_groups=groups,
        )
    scales = np.array(learned.length_scales)
    for j in fixed:
        if not np.isfinite(scales[j]):
            spread = float(np.std(X[:, j], dtype=np.float64))
            scales[j] = SCALE_BOUNDS[1] * (spread if spread > 0 else 1.0)
    return [scales, *([] if widening is None else [widening])]


def sample_slopes(
    model: Any,
    data: TrainingData,
    targets: np.ndarray,
    rng: np.random.Generator,
    limits: CellSearch = CELL_SEARCH,
) -> Slopes | None:
    """In which directions targets change; None if that is unknown.

    In float64, whatever the rows are: cells should not depend on that.
    """
    n, columns = data.X.shape
    count = limits.rows_for_slopes(int(n), int(columns))
    some = np.sort(rng.choice(n, count, replace=False))
    X, y = (np.asarray(a[some], dtype=np.float64) for a in (data.X, targets))
    counted = None if data.weights is None else np.asarray(data.weights[some], dtype=np.float64)
    grid = _given_pair(model, data, some)
    if grid is None:
        few = X[spaced(len(X), CELL_SEARCH.slope_pair_rows)]
        grid = rbf_grid(replace(data, X=few, weights=None))
        if counted is not None:  # ridges of this grid are for weights about 1
            counted = counted / counted.mean()
    try:
        return mean_slopes(X, y, counted, grid)
    except NumericalError:  # the cells can do without
        return None


def _given_pair(model: Any, data: TrainingData, rows: np.ndarray) -> Grid | None:
    """The kernel and ridge of all cells, if they are given, the kernel RBF of one width."""
    if model.alpha is None:
        return None
    grid = grid_asked(model, data, rows, len(rows))
    kernel = grid.kernels[0]
    one_width = isinstance(kernel, RBF) and not isinstance(kernel.length_scale, tuple)
    return grid if one_width and not grid.is_choice else None

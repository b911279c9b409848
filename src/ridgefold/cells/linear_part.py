"""A linear model of all rows under the cells, which learn what it leaves.

A column that acts in the same way everywhere would have to be learned again by every cell, from
its few hundred rows. So a linear function of the columns, brought to unit spread, is fitted to
all rows first, with the ridge of the least exact leave-one-out error, and cells are cut, tuned and
fitted to y − f(x). It is kept where that lowers the leave-one-out error of a few regions that are
as large as cells, with the pair of kernel and ridge that suits each side best.

Leave-one-out residuals of the cells leave a row out of its cells, not out of the linear part: that
has one coefficient a column, and a row's part in it is its leverage h_i, p/n on average. With R_i
what the cells without row i leave of the linear functions, the exact residual differs by
h_i-weighted R_i times the linear part's own residual, hence by less than h_i/(1 − h_i) of that.
`_ROWS_A_COLUMN` keeps it small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ridgefold.cells.cell_grid import cell_grid, chooses_widths
from ridgefold.cells.cell_rows import RowsToFit
from ridgefold.cells.checked_arguments import CellArguments, asks_for_columns
from ridgefold.cells.computed_rows import ComputedRows, in_metric, scaled_rows
from ridgefold.cells.feature_ridge import FeatureRidge, blocks_of
from ridgefold.cells.local_fit import CellSystem
from ridgefold.cells.local_search import search
from ridgefold.cells.partition_count import nearest_rows
from ridgefold.errors import NumericalError
from ridgefold.linalg import namespace_of
from ridgefold.linalg.threads import threads
from ridgefold.options.cell_options import ALWAYS
from ridgefold.records import CELL_SEARCH, CellSearch, Grid, LinearPart
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.limits import limits_of

_ROWS_A_COLUMN = 50
""""auto" asks for so many rows a column: a row's part in the linear model, which residuals of rows
left out do not leave out, is then 2% on average."""
_MOST_COLUMNS = 512
"""With more columns, sums over all rows take longer than the cells."""
_KERNELS = ("rbf", "laplacian")
"""A smooth kernel and a rough one: what suits the targets need not suit what is left of them."""
_NO_SETTINGS = {"gamma": None, "kernel_params": None}
_BEYOND = 0.25
"""Columns of new rows count up to so far beyond the range of the fit, as a share of that range:
a slip of the keyboard must not make a prediction of its own size."""
_LEAST_EXPLAINED = 0.05
"""A linear model that explains less than this share of the variance of every target is looked at no
further: it has hardly any slope that cells would have to learn."""
_LEAST_GAIN = 0.02
"""The linear part is kept if it lowers the mean square in the regions by this share. Smaller gains
are within what chance does to the pairs of kernel and ridge."""


def looks_for_linear_part(model: Any, options: CellArguments, n_rows: int, n_columns: int) -> bool:
    """Whether a fit looks at a linear part: if it shall have one, or held-out errors may decide."""
    if options.linear_part in (None, ALWAYS):
        return options.linear_part == ALWAYS
    enough = n_columns <= _MOST_COLUMNS and n_rows >= _ROWS_A_COLUMN * (n_columns + 1)
    # Who fixes the ridge, the widths or columns without penalty knows which model it is to be.
    free = model.alpha is None and not asks_for_columns(model)
    free = free and chooses_widths(model, n_columns)
    return options.bias and enough and free


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def fit_linear_part(training: RowsToFit) -> LinearPart | None:
    """The linear model of all rows with the best ridge; None where numbers overflow."""
    with threads(1):
        mean, spread, lowest, highest = _ranges(training.X)
        varies = spread > 0
        if not (varies.any() and np.all(np.isfinite(spread)) and np.all(np.isfinite(mean))):
            return None
        scale = np.where(varies, spread, 1.0)

        def features(some: slice) -> np.ndarray:
            X = np.asarray(training.X[some], dtype=np.float64)[:, varies]
            return np.asarray((X - mean[varies]) / scale[varies])

        try:
            fits = FeatureRidge(training, features, int(varies.sum()), int(varies.sum()))
            alpha = fits.best_alpha
        except NumericalError:
            return None
    solved = fits.axes @ (fits.right / (fits.values + alpha)[:, None])
    coefficients = np.zeros((len(spread), solved.shape[1]))
    coefficients[varies] = solved / scale[varies, None]
    centre = np.where(varies, mean, 0.0)
    centre[varies] += fits.mean * scale[varies]
    intercept = fits.y_mean - centre @ coefficients
    more = _BEYOND * (highest - lowest)
    part = LinearPart(coefficients, intercept, lowest - more, highest + more)
    known = (coefficients, intercept, part.lowest, part.highest)
    return part if all(np.all(np.isfinite(array)) for array in known) else None


def _ranges(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard deviation, least and largest value of every column."""
    n, d = X.shape
    lowest, highest, total = np.full(d, np.inf), np.full(d, -np.inf), np.zeros(d)
    for some in blocks_of(n, d):
        block = np.asarray(X[some], dtype=np.float64)
        lowest, highest = (
            np.minimum(lowest, block.min(axis=0)),
            np.maximum(highest, block.max(axis=0)),
        )
        total += block.sum(axis=0)
    mean, squares = total / n, np.zeros(d)
    for some in blocks_of(n, d):
        squares += np.sum((np.asarray(X[some], dtype=np.float64) - mean) ** 2, axis=0)
    spread = np.sqrt(squares / n)
    # Rounding of the mean alone spreads a constant column.
    return mean, np.where(highest > lowest, spread, 0.0), lowest, highest


@np.errstate(over="ignore", invalid="ignore")
def linear_values(part: LinearPart, X: Any) -> np.ndarray:
    """f(x) of rows, shape (rows, t), with their columns kept to the range of the fit."""
    X = np.clip(np.asarray(X, dtype=np.float64), part.lowest, part.highest)
    return np.asarray(X @ part.coefficients + part.intercept)


def with_linear_part(part: LinearPart, X: Any, values: np.ndarray) -> np.ndarray:
    """What cells predict for rows, with the linear part added."""
    whole = values + linear_values(part, X)
    if part.least is not None and part.most is not None:
        whole = np.clip(whole, part.least, part.most)
    return np.asarray(whole, dtype=values.dtype)


def add_linear_slopes(part: LinearPart, X: Any, values: np.ndarray, slopes: np.ndarray) -> None:
    """Slopes of cells, shape (rows, columns, t), become those of the whole model, in place.

    Zero beyond the range of a column for the linear part, and for both where `values`, the
    predictions, are kept to the limits of the whole model.
    """
    inside = (part.lowest <= X) & (part.highest >= X)
    slopes += inside[:, :, None] * part.coefficients
    if part.least is not None and part.most is not None:
        kept = (values <= part.least) | (values >= part.most)
        slopes *= ~kept[:, None, :]


def with_limits(part: LinearPart, targets: Any, residuals: np.ndarray | None) -> LinearPart:
    """With predictions of the whole model kept near the targets, as those of cells are.

    Beyond all targets only where leave-one-out errors are as small as those of functions without
    noise.
    """
    n, t = targets.shape
    least, most = np.full(t, np.inf), np.full(t, -np.inf)
    squares = np.full(t, 0.0 if residuals is not None else np.inf)
    for some in blocks_of(n, t):
        y = np.asarray(targets[some], dtype=np.float64)
        least, most = np.minimum(least, y.min(axis=0)), np.maximum(most, y.max(axis=0))
    if residuals is not None:
        for some in blocks_of(len(residuals), t):
            squares += np.nansum(np.square(residuals[some], dtype=np.float64), axis=0)
        squares /= len(residuals)
    low, high = limits_of(least[None, :], most[None, :], np.sqrt(squares)[None, :])
    return replace(part, least=low[0], most=high[0])


def left_to_cells(targets: Any, X: Any, part: LinearPart) -> ComputedRows:
    """y − f(x), computed when rows are taken: for targets that lie in files."""
    return ComputedRows((targets, X), partial(_left, part=part), int(targets.shape[1]))


def _left(targets: np.ndarray, X: np.ndarray, part: LinearPart) -> np.ndarray:
    return np.asarray(targets - linear_values(part, X), dtype=targets.dtype)


@dataclass(frozen=True)
class Task:
    """What cells would have to learn: targets, and the scales that distances are measured in."""

    targets: Any
    scales: np.ndarray
    """One a column, infinite for those that are left out."""


def lowers_errors(
    training: RowsToFit,
    given: Task,
    left: Task,
    *,
    bias: bool,
    rng: np.random.Generator,
    limits: CellSearch = CELL_SEARCH,
) -> bool:
    """Whether cells would be off by less if they learned what a linear part has `left`.

    By leave-one-out in a few regions, which are as near each other in the scales of either.
    """
    pivots = rng.choice(training.X.shape[0], limits.linear_regions, replace=False)
    count = min(limits.linear_region_rows, limits.pilot_rows)
    scores = np.zeros(2)
    for number, pivot in enumerate(pivots.tolist()):
        near = scaled_rows(training.X, (given, left)[number % 2].scales)
        rows = nearest_rows(near, near[pivot], count)
        region = training.taken(rows)
        for j, task in enumerate((given, left)):
            scores[j] += _best_score(
                replace(
                    region,
                    X=in_metric(region.X, task.scales),
                    targets=np.asarray(task.targets[rows]),
                ),
                bias=bias,
            )
    return bool(scores[1] <= (1.0 - _LEAST_GAIN) * scores[0])


def explains_enough(targets: Any, left: Any) -> bool:
    """Whether a linear part explains so much of some target that it may help cells."""
    n, t = targets.shape
    sums, squares = np.zeros((2, t)), np.zeros((2, t))
    for some in blocks_of(n, 2 * t):
        # From the first row: a large mean would take the digits.
        for j, values in enumerate((targets, left)):
            block = np.asarray(values[some], dtype=np.float64)
            origin = np.asarray(values[:1], dtype=np.float64)
            sums[j] += (block - origin).sum(axis=0)
            squares[j] += ((block - origin) ** 2).sum(axis=0)
    given, rest = squares / n - (sums / n) ** 2
    return bool(np.any(rest <= (1.0 - _LEAST_EXPLAINED) * given))


def spreads_of(X: Any) -> np.ndarray:
    """The standard deviation of every column as its scale, infinite for those that do not vary."""
    _, spread, _, _ = _ranges(X)
    return np.where(spread > 0, spread, np.inf)


def _best_score(part: RowsToFit, *, bias: bool) -> float:
    """The least leave-one-out mean square over some widths and ridges, of two kernels."""
    data = part.taken(np.arange(len(part.X)))
    found = []
    for kernel in _KERNELS:
        asked = TrainingData(namespace_of(), data.X, data.targets, None)
        grid = cell_grid(kernel, _NO_SETTINGS, None, asked)
        system = CellSystem(data, grid.kernels, bias=bias)
        found.append(search(partial(_score, system, grid), grid).score)
    return min(found)


def _score(system: CellSystem, grid: Grid, kernel: int, alpha: int) -> float:
    return system.score(kernel, float(grid.alphas[alpha]))

"""Choose kernel and ridge for the mean of models of random cells.

A cell's own leave-one-out error would choose the ridge that suits n/m rows; the mean needs the
one that suits n. So the error of the mean itself is scored, on a sample of rows: for row i of
cell c, with f_c⁻ⁱ the model of cell c without row i,

    f̄⁻ⁱ(x_i) = (f_c⁻ⁱ(x_i) + Σ_{c' ≠ c} f_{c'}(x_i))/m,

exact leave-one-out for the averaged model. One eigendecomposition a cell and width serves
every ridge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.cells.cell_rows import RowsToFit, ScoredRows, number_of, rows_of
from ridgefold.cells.local_fit import CellSystem
from ridgefold.cells.local_search import Choice, best_of, search_with_all_ridges
from ridgefold.executors import Executor
from ridgefold.kernels import Kernel, KernelGram
from ridgefold.kernels.gram import columns_of
from ridgefold.linalg import Array, namespace_of
from ridgefold.linalg.namespace import on_device
from ridgefold.linalg.unpenalised import (
    rows_that_keep_the_rank,
    unpenalised_space,
    without_penalty,
)
from ridgefold.records import Cells, Grid

_SAMPLED_TARGETS = 2000
"""Held-out targets from which pairs are told apart. The mean of many cells is closer to the truth
than its targets by far, so that their noise decides if they are few: on four draws of 8,000 rows of
a noisy function on a line, the mean with the pair that 500 chose was 1.4 to 1.8 times as far off as
with that of 2,000."""
_FEWEST_SAMPLED_ROWS = 500
"""Rows of that sample, however many targets a row has."""


@dataclass(frozen=True)
class _Task:
    training: RowsToFit
    rows: np.ndarray
    sample: ScoredRows
    kernel: Kernel
    alphas: np.ndarray
    bias: bool
    fixed: tuple[int, ...] = ()
    device: str | None = None


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _predict_sample(task: _Task) -> np.ndarray:
    """Predictions of the sample by one cell for every alpha, shape (a, sample, t).

    Rows of the sample that lie in the cell are predicted by the model without them.
    """
    training = task.training
    rows = task.rows
    roots = None
    if training.weights is not None:
        rows = rows[training.weights[rows] > 0]
        roots = np.sqrt(training.weights[rows])
    t, a = training.targets.shape[1], len(task.alphas)
    out = np.zeros((a, len(task.sample.rows), t))
    if len(rows) == 0:
        return out

    def placed(array: np.ndarray) -> Array:
        return on_device(np.ascontiguousarray(array, dtype=np.float64), task.device)

    y, alphas = placed(training.targets[rows]), placed(task.alphas)
    namespace, xp = namespace_of(y), namespace_of(y).xp
    gram = KernelGram(task.kernel, placed(training.X[rows]))
    X_new = placed(training.X[task.sample.rows])
    K, across = gram.full(), gram.against(X_new).block()
    s = None if roots is None else placed(roots)
    space = unpenalised_space(
        namespace,
        columns_of(placed(training.X[rows]), task.fixed) if task.fixed else None,
        s,
        bias=task.bias,
        n_rows=len(rows),
        like=y,
    )
    if s is not None:
        K = K * s[:, None] * s[None, :]
        across = across * s[None, :]
        y = y * s[:, None]
    values, vectors = namespace.eigh_in_place(K)
    values = xp.where(values > 0.0, values, xp.zeros_like(values))
    filters = 1.0 / (values[None, :] + alphas[:, None])  # (a, n)
    coefficients = vectors @ (filters[:, :, None] * (vectors.T @ y)[None, :, :])  # (a, n, t)
    diagonal = filters @ (vectors * vectors).T  # (a, n)
    predictions = across @ coefficients
    if space is not None:
        along = vectors @ (filters[:, :, None] * (vectors.T @ space.basis)[None, :, :])
        solved = xp.concat([coefficients, along], axis=2)
        coefficients, coordinates, diagonal = without_penalty(xp, solved, space.basis, diagonal)
        columns = columns_of(X_new, task.fixed) if task.fixed else None
        predictions = across @ coefficients + space.at(columns, len(X_new)) @ coordinates
    out = np.array(namespace.to_numpy(predictions))
    coefficients, diagonal = namespace.to_numpy(coefficients), namespace.to_numpy(diagonal)
    sample = task.sample
    place = np.searchsorted(rows, sample.rows)
    own = (place < len(rows)) & (rows[np.minimum(place, len(rows) - 1)] == sample.rows)
    at = place[own]
    residuals = coefficients[:, at] / diagonal[:, at, None]
    if roots is not None:
        residuals = residuals / roots[None, at, None]
    if task.fixed and space is not None:
        _leave_out_what_keeps_the_rank(
            task, rows, at, rows_that_keep_the_rank(namespace, space), residuals
        )
    if sample.members is not None:
        some = sample.members.taken(np.flatnonzero(own))
        kept = task.alphas[:, None] * diagonal[:, at]
        residuals = np.stack(
            [some.residuals(k[:, None] * r, r) for k, r in zip(kept, residuals, strict=True)]
        )
    out[:, own] = sample.targets[own][None] - residuals
    return out


def _leave_out_what_keeps_the_rank(
    task: _Task, rows: np.ndarray, at: np.ndarray, alone: list[int], residuals: np.ndarray
) -> None:
    """Residuals of rows without which a column is not determined, each by a fit of its own."""
    training = task.training
    for place in np.flatnonzero(np.isin(at, alone)):
        row, others = rows[at[place]], np.delete(rows, at[place])
        if len(others) == 0:
            continue
        data = RowsToFit(
            np.asarray(training.X[others], dtype=np.float64),
            np.asarray(training.targets[others], dtype=np.float64),
            None if training.weights is None else training.weights[others],
            None,
        )
        system = CellSystem(data, (task.kernel,), bias=task.bias, fixed=task.fixed)
        new = np.asarray(training.X[row : row + 1], dtype=np.float64)
        across = KernelGram(task.kernel, new, data.X).full()
        for k, alpha in enumerate(task.alphas):
            fit = system.fit(0, float(alpha), held_out=False)
            assert fit.fixed_coef is not None
            linear = new[:, list(task.fixed)] @ fit.fixed_coef
            predicted = across @ fit.dual_coef + fit.intercept + linear
            residuals[k, place] = training.targets[row] - predicted[0]


def search_average(
    training: RowsToFit,
    cells: Cells,
    grid: Grid,
    executor: Executor,
    rng: np.random.Generator,
    *,
    bias: bool,
    fixed: tuple[int, ...] = (),
    device: str | None = None,
) -> Grid:
    """Starting at the pair for which the mean of all cells' models predicts held-out rows best.

    The alphas of the grid are those for all rows; a cell of n_c rows takes its share n_c/n.
    """
    if not grid.is_choice:
        return grid
    sample = _draw(training, rng)

    def look(number: int, one: Grid) -> Choice:
        def scores(kernel: int) -> np.ndarray:
            return _errors_of_average(
                training,
                cells,
                one.kernels[kernel],
                one.alphas,
                executor,
                sample=sample,
                bias=bias,
                fixed=fixed,
                device=device,
            )

        return search_with_all_ridges(scores, one)

    return best_of(grid, look)


def _draw(training: RowsToFit, rng: np.random.Generator) -> ScoredRows:
    """Rows to be predicted by models without them."""
    most = max(_FEWEST_SAMPLED_ROWS, _SAMPLED_TARGETS // training.n_targets)
    return training.scored_sample(most, rng)


def error_of_average(
    training: RowsToFit,
    cells: Cells,
    pair: tuple[Kernel, float],
    executor: Executor,
    *,
    rng: np.random.Generator,
    bias: bool,
    fixed: tuple[int, ...] = (),
    device: str | None = None,
) -> float:
    """The mean squared error of one pair, at rows drawn with `rng`."""
    kernel, alpha = pair
    found = _errors_of_average(
        training,
        cells,
        kernel,
        np.array([alpha]),
        executor,
        sample=_draw(training, rng),
        bias=bias,
        fixed=fixed,
        device=device,
    )
    return float(found[0])


def _errors_of_average(
    training: RowsToFit,
    cells: Cells,
    kernel: Kernel,
    alphas: np.ndarray,
    executor: Executor,
    *,
    sample: ScoredRows,
    bias: bool,
    fixed: tuple[int, ...] = (),
    device: str | None,
) -> np.ndarray:
    """Mean squared errors at the sample of the mean of all cells' models, for every alpha."""
    n, m = training.X.shape[0], number_of(cells)
    tasks = [
        _Task(training, rows, sample, kernel, alphas * (len(rows) / n), bias, fixed, device)
        for rows in (rows_of(cells, c) for c in range(m))
    ]
    total = np.zeros((len(alphas), len(sample.rows), training.targets.shape[1]))
    for part in executor.map(_predict_sample, tasks):
        total += part
    with np.errstate(over="ignore", invalid="ignore"):
        errors = np.mean((total / m - sample.targets[None]) ** 2, axis=2)
        means = np.average(errors, axis=1, weights=sample.counts)
    return np.where(np.isfinite(means), means, np.inf)

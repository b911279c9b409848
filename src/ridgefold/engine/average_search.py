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

from ridgefold.engine.cell_rows import Training, number_of, rows_of
from ridgefold.engine.local_search import Choice, search
from ridgefold.executors import Executor
from ridgefold.kernels import Kernel, KernelGram
from ridgefold.records import Cells, Grid

SAMPLE_ROWS = 500


@dataclass(frozen=True)
class _Task:
    training: Training
    rows: np.ndarray
    sample: np.ndarray
    kernel: Kernel
    alphas: np.ndarray
    bias: bool


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
    out = np.zeros((a, len(task.sample), t))
    if len(rows) == 0:
        return out
    X = np.asarray(training.X[rows], dtype=np.float64)
    y = training.targets[rows].astype(np.float64)
    gram = KernelGram(task.kernel, X)
    K = gram.full()
    across = gram.against(np.asarray(training.X[task.sample], dtype=np.float64)).block()
    if roots is not None:
        K *= roots[:, None] * roots[None, :]
        across *= roots[None, :]
        y = y * roots[:, None]
    values, vectors = np.linalg.eigh(K)
    filters = 1.0 / (np.maximum(values, 0.0)[None, :] + task.alphas[:, None])  # (a, n)
    coefficients = np.einsum("ij,aj,jt->ait", vectors, filters, vectors.T @ y, optimize=True)
    diagonal = filters @ (vectors * vectors).T  # (a, n)
    intercept = np.zeros((a, t))
    if task.bias:
        s = np.ones(len(rows)) if roots is None else roots
        along = np.einsum("ij,aj,j->ai", vectors, filters, vectors.T @ s, optimize=True)
        total = along @ s
        intercept = np.einsum("i,ait->at", s, coefficients) / total[:, None]
        coefficients = coefficients - along[:, :, None] * intercept[:, None, :]
        diagonal = diagonal - along**2 / total[:, None]
    out = np.einsum("si,ait->ast", across, coefficients, optimize=True) + intercept[:, None, :]
    place = np.searchsorted(rows, task.sample)
    own = (place < len(rows)) & (rows[np.minimum(place, len(rows) - 1)] == task.sample)
    at = place[own]
    residuals = coefficients[:, at] / diagonal[:, at, None]
    if roots is not None:
        residuals = residuals / roots[None, at, None]
    out[:, own] = training.targets[rows[at]][None] - residuals
    return np.asarray(out)


def search_average(
    training: Training,
    cells: Cells,
    grid: Grid,
    executor: Executor,
    rng: np.random.Generator,
    *,
    bias: bool,
) -> Choice:
    """The pair for which the mean of all cells' models predicts held-out rows best.

    The alphas of the grid are those for all rows; a cell of n_c rows takes its share n_c/n.
    """
    if not grid.is_choice:
        return Choice(grid.start, grid.start_alpha, float("nan"))
    n, m = training.X.shape[0], number_of(cells)
    candidates = np.arange(n)
    if training.weights is not None:
        candidates = candidates[training.weights > 0]
    size = min(len(candidates), SAMPLE_ROWS)
    sample = np.sort(rng.choice(candidates, size, replace=False))
    truth = training.targets[sample][None]

    def scores(kernel: int) -> np.ndarray:
        tasks = [
            _Task(
                training,
                rows_of(cells, c),
                sample,
                grid.kernels[kernel],
                grid.alphas * (len(rows_of(cells, c)) / n),
                bias,
            )
            for c in range(m)
        ]
        total = np.zeros((len(grid.alphas), size, training.targets.shape[1]))
        for part in executor.map(_predict_sample, tasks):
            total += part
        with np.errstate(over="ignore", invalid="ignore"):
            means = np.mean((total / m - truth) ** 2, axis=(1, 2))
        return np.where(np.isfinite(means), means, np.inf)

    return search(scores, grid)

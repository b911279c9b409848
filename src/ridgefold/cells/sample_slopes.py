"""The directions in which targets change: mean slopes of a fit to some rows.

With f a ridge fit with the RBF kernel, k(x, x') = exp(−‖x − x'‖²/2ℓ²),

    ∇f(x) = Σ_j a_j k(x, x_j)(x_j − x)/ℓ²,    G = mean of ∇f(x_i)∇f(x_i)ᵀ,

the outer product of gradients of Samarov (JASA 88, 1993) and Xia, Tong, Li and Zhu (JRSS B 64,
2002), here scaled to trace d, its number of columns. A rough fit tells it well: it is a mean over a
thousand rows. Targets count alike, whatever their units; of many, principal components stand for
all.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from ridgefold.cells.cell_rows import RowsToFit, spaced
from ridgefold.cells.local_fit import CellSystem
from ridgefold.cells.local_search import FEWEST_ROWS, Choice, search
from ridgefold.records import CELL_SEARCH, Grid, Slopes

_GRADIENTS = 1024
"""Gradients that are averaged, of all targets together."""
_MOST_TARGETS = 8
"""With more targets, the slopes of so many leading combinations of them are taken: each costs a
solution."""
_MOST_DIRECTIONS = 32
"""Further ones count as flat."""


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def mean_slopes(
    X: np.ndarray, targets: np.ndarray, weights: np.ndarray | None, grid: Grid
) -> Slopes | None:
    """The mean slopes of a fit of these rows, by a kernel of the grid (RBF of one width each).

    None if there is nothing to tell: too few rows, or targets that do not change.
    """
    if weights is not None:
        counted = np.flatnonzero(weights > 0)
        X, targets, weights = X[counted], targets[counted], weights[counted]
    if len(X) < 2 * FEWEST_ROWS:
        return None
    data = RowsToFit(X - X.mean(axis=0), _alike(targets), weights)
    if data.targets.shape[1] == 0:
        return None
    choice = _choice(data.taken(spaced(len(X), CELL_SEARCH.slope_pair_rows)), grid)
    points = data.X[spaced(len(X), _GRADIENTS // data.targets.shape[1])]
    gradients = _gradients(data, points, grid, choice)
    size = float(np.linalg.norm(gradients))
    return _principal(gradients * (np.sqrt(X.shape[1]) / size)) if 0.0 < size < np.inf else None


def _alike(targets: np.ndarray) -> np.ndarray:
    """Targets of mean 0 and spread 1, without constant ones; of many, principal components."""
    y = targets - targets.mean(axis=0)
    spread = y.std(axis=0)
    rounding = len(y) * np.finfo(y.dtype).eps * np.abs(targets).max(axis=0, initial=0.0)
    y = y[:, spread > rounding] / spread[spread > rounding]
    n, t = y.shape
    if t <= _MOST_TARGETS:
        return np.asarray(y)
    if t > n:
        values, vectors = eigh(y @ y.T, subset_by_index=[max(0, n - _MOST_TARGETS), n - 1])
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
    _, vectors = eigh(y.T @ y, subset_by_index=[t - _MOST_TARGETS, t - 1])
    return np.asarray(y @ vectors)


def _choice(data: RowsToFit, grid: Grid) -> Choice:
    """Kernel and ridge by leave-one-out, unless they are given."""
    if not grid.is_choice:
        return Choice(grid.start, grid.start_alpha, np.nan)
    system = CellSystem(data, grid.kernels, bias=True)
    return search(lambda kernel, alpha: system.score(kernel, float(grid.alphas[alpha])), grid)


def _gradients(data: RowsToFit, points: np.ndarray, grid: Grid, choice: Choice) -> np.ndarray:
    """ℓ²∇f at some points, one target after the other."""
    kernel, alpha = grid.kernels[choice.kernel], float(grid.alphas[choice.alpha])
    fit = CellSystem(data, (kernel,), bias=True).fit(0, alpha, held_out=False, quickly=True)
    near, found = kernel(points, data.X), []
    for a in fit.dual_coef.T:
        pulls = near * a
        found.append(pulls @ data.X - pulls.sum(axis=1)[:, None] * points)
    return np.concatenate(found)


def _principal(gradients: np.ndarray) -> Slopes:
    """Eigenvalues and eigenvectors of QᵀQ, from the smaller of QᵀQ and QQᵀ."""
    n, d = gradients.shape
    wide = d > n
    values, vectors = eigh(gradients @ gradients.T if wide else gradients.T @ gradients)
    kept = np.flatnonzero(values > 1e-12 * values[-1])[::-1][:_MOST_DIRECTIONS]
    directions = vectors[:, kept]
    if wide:
        directions = gradients.T @ directions / np.sqrt(values[kept])
    return Slopes(np.ascontiguousarray(directions), values[kept])

"""Which kernels and ridge values cells choose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.kernels import Kernel
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.metric import FAMILIES
from ridgefold.records import Grid
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.grids import (
    WIDTH_STEP,
    Candidate,
    KernelGrid,
    alphas_from_data,
    check_alphas,
    kernel_grid,
    made_up_rows,
    wider,
    widths_from_data,
)
from ridgefold.selection.learned_grid import is_automatic

_SETTINGS = ("gamma", "kernel_params")
"""Arguments of kernels."""
_MORE_WIDTHS = 4
"""Steps beyond each end of the ordinary grid that a search may walk: effects of places that are far
narrower than a typical distance are not learned otherwise."""
SAMPLE_ROWS = 512
"""Rows from which a grid is made, where there are no cells yet."""


def grid_asked(model: Any, data: TrainingData, rows: np.ndarray, n_rows: int) -> Grid:
    """What a model asks for, for cells like the given rows; `n_rows` is what alphas count."""
    part = replace(data, X=np.ascontiguousarray(data.X[rows]), weights=None)
    settings = {name: getattr(model, name) for name in _SETTINGS}
    grid = cell_grid(model.kernel, settings, model.alpha, part)
    return grid if model.alpha is not None else grid.with_ridges_times(n_rows / len(rows))


def families_asked(model: Any, n_columns: int) -> tuple[int, bool]:
    """How many grids a first look goes through, and whether there is any choice of a pair.

    Without the data: which kernels there are does not depend on the rows, only their widths do.
    """
    grids = _made_up_grids(model, n_columns)
    families = sum(grid.widths_from_data for grid in grids)
    fixed = sum(len(grid.candidates) for grid in grids if not grid.widths_from_data)
    ridges = 2 if model.alpha is None else len(check_alphas(model.alpha))
    return families + (fixed > 0), families > 0 or fixed > 1 or ridges > 1


def chooses_widths(model: Any, n_columns: int) -> bool:
    """Whether widths of a kernel are to come from the data."""
    return any(grid.widths_from_data for grid in _made_up_grids(model, n_columns))


def _made_up_grids(model: Any, n_columns: int) -> list[KernelGrid]:
    settings = {name: getattr(model, name) for name in _SETTINGS}
    return _kernel_grids(model.kernel, settings, made_up_rows(n_columns))


def rbf_grid(data: TrainingData) -> Grid:
    """RBF kernels of widths around the median distance within `data`."""
    return cell_grid("rbf", dict.fromkeys(_SETTINGS), None, data)


def cell_grid(kernel: Any, settings: Mapping[str, Any], alpha: Any, data: TrainingData) -> Grid:
    """The grid for cells, with widths around the median distance within `data`, a cell.

    Of several kernels, every one that gets its widths from the data is a grid of its own; those
    that are left are one together.
    """
    families: list[Grid] = []
    fixed: list[Candidate] = []
    for found in _kernel_grids(kernel, settings, data):
        if found.widths_from_data:
            families.append(_grid(_many_widths(found), alpha, data, ordered=True))
        else:
            fixed.extend(found.candidates)
    if fixed:
        families.append(_grid(fixed, alpha, data, ordered=False))
    return replace(families[0], others=tuple(families[1:]))


def coarse_kernels(family: DistanceKernel, data: TrainingData) -> list[Kernel]:
    """The same kernel with the median distance within `data`, and powers of two times it."""
    grid = widths_from_data(family, data).candidates
    return [replace(family, **each.params) for each in grid[len(grid) // 2 :]]


def _kernel_grids(kernel: Any, settings: Mapping[str, Any], data: TrainingData) -> list[KernelGrid]:
    """One for every kernel of a list, or for every family that "auto" stands for."""
    if isinstance(kernel, (list, tuple)) and kernel:
        return [grid for each in kernel for grid in _kernel_grids(each, settings, data)]
    if not is_automatic(kernel):
        return [kernel_grid(kernel, settings, data)]
    for name in _SETTINGS:
        if settings[name] is not None:
            raise InvalidInputError(
                f'{name}={settings[name]!r} cannot be given with kernel="auto", which chooses '
                f"among kernels with widths of their own: leave {name} out, or name a kernel"
            )
    return [widths_from_data(family, data) for family in FAMILIES.values()]


def _many_widths(grid: KernelGrid) -> list[Candidate]:
    """The widths of an ordinary grid, and more beyond its ends."""
    middle = grid.candidates[len(grid.candidates) // 2]
    reach = len(grid.candidates) // 2 + _MORE_WIDTHS
    return [wider(middle, WIDTH_STEP**k) for k in range(-reach, reach + 1)]


def _grid(
    candidates: Sequence[Candidate], alpha: Any, data: TrainingData, *, ordered: bool
) -> Grid:
    kernels = []
    for candidate in candidates:
        if not isinstance(candidate.kernel, Kernel):
            raise InvalidInputError(
                'kernel="precomputed" has no rows to cut into cells: use KernelRidge, or a kernel '
                "of rows"
            )
        kernels.append(candidate.kernel)
    start = len(kernels) // 2
    alphas = (
        alphas_from_data(kernels[start], data) if alpha is None else np.sort(check_alphas(alpha))
    )
    return Grid(
        kernels=tuple(kernels),
        alphas=alphas,
        start=start,
        start_alpha=int(np.argmin(np.abs(np.log(alphas / 0.1)))) if len(alphas) > 1 else 0,
        ordered=ordered,
    )

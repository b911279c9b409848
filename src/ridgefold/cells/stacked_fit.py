"""Fit many cells at once on a device.

A cell of some hundred rows leaves a GPU waiting. So cells of similar size are stacked, padded to
one size (`linalg.stacked`), and factorised together; their searches for a pair of their own go on
side by side, a round of scores at a time. Cells that a stack cannot answer (a singular system,
rows of weight zero) are left to be fitted alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ridgefold.cells.cell_rows import RowsToFit
from ridgefold.cells.local_fit import CellFit, CellSystem, FitSettings
from ridgefold.cells.local_search import (
    Choice,
    answered_together,
    has_own_choice,
    search_pairs,
    search_widely,
)
from ridgefold.kernels.gram_stack import GramStack
from ridgefold.linalg import Array, namespace_of
from ridgefold.linalg.leave_one_out import LeaveOneOut
from ridgefold.linalg.namespace import on_device
from ridgefold.linalg.stacked import (
    StackedSolution,
    StackedSystems,
    pad_diagonals,
    solve_stack,
)

_FILLED = 0.85
"""Cells of a stack have at least this share of its rows: padding costs two thirds more work at
most."""
_MATRICES = 10.0
"""Matrices of a cell's size that a stack holds for each of its cells, at most."""
_MOST_STACKED = 1024
"""Cells that are worked on together, however much memory there is."""


def stacks_of(
    sizes: Sequence[int], bytes_of: Callable[[int], float], memory_bytes: float
) -> list[np.ndarray]:
    """Positions of cells of similar size, so many together as `memory_bytes` hold.

    A cell of n rows takes `bytes_of(n)`. Every stack has one cell at least.
    """
    order = np.argsort(-np.asarray(sizes), kind="stable")
    stacks: list[list[int]] = []
    largest, room = 0, 0
    for position in order.tolist():
        size = sizes[position]
        if not stacks or size < _FILLED * largest or len(stacks[-1]) >= room:
            largest = size
            room = int(min(max(1.0, memory_bytes / bytes_of(size)), _MOST_STACKED))
            stacks.append([])
        stacks[-1].append(position)
    return [np.sort(np.asarray(stack)) for stack in stacks]


def padded(arrays: Sequence[np.ndarray], size: int) -> np.ndarray:
    """Arrays that differ in their first axis as one, with zeros at their ends."""
    out = np.zeros((len(arrays), size, *arrays[0].shape[1:]), dtype=arrays[0].dtype)
    for row, array in zip(out, arrays, strict=True):
        row[: len(array)] = array
    return out


def cell_on(data: RowsToFit, device: str) -> RowsToFit:
    """The rows of a cell on a device; shares stay here, where scores are averaged."""
    X, targets = on_device(np.array(data.X), device), on_device(np.array(data.targets), device)
    weights = None if data.weights is None else on_device(np.array(data.weights), device)
    return replace(data, X=X, targets=targets, weights=weights)


def here(fit: CellFit) -> CellFit:
    """A cell's model in arrays of NumPy."""
    namespace = namespace_of(fit.dual_coef)
    residuals = None if fit.residuals is None else namespace.to_numpy(fit.residuals)
    return replace(
        fit,
        dual_coef=namespace.to_numpy(fit.dual_coef),
        intercept=namespace.to_numpy(fit.intercept),
        residuals=residuals,
        fixed_coef=None if fit.fixed_coef is None else namespace.to_numpy(fit.fixed_coef),
    )


class CellStack:
    """The ridge systems of cells of similar size, all of whose rows have a weight."""

    def __init__(self, cells: Sequence[RowsToFit], settings: FitSettings, device: str) -> None:
        self.cells, self.settings, self.device = cells, settings, device
        grid = settings.grid
        self.kernels = grid.kernels if settings.choose else (grid.kernels[grid.start],)
        counts = np.array([len(cell.X) for cell in cells])
        m = int(counts.max())
        X = on_device(padded([cell.X for cell in cells], m), device)
        self.namespace = namespace_of(X)
        self._grams = GramStack(self.kernels, X, counts)
        self._rows = self._systems(X, counts, m)
        self._alone: dict[int, CellSystem] = {}

    def _upload(self, values: np.ndarray, dtype: Any = None) -> Array:
        uploaded = on_device(values, self.device)
        return uploaded if dtype is None else self.namespace.astype(uploaded, dtype)

    def _systems(self, X: Array, counts: np.ndarray, m: int) -> StackedSystems:
        targets = self._upload(padded([cell.targets for cell in self.cells], m))
        there = np.arange(m)[None, :] < counts[:, None]
        present = self._upload(there.astype(np.float64), X.dtype)
        roots, directions = None, present
        if any(cell.weights is not None for cell in self.cells):
            weights = padded([np.asarray(cell.weights) for cell in self.cells], m)
            directions = self._upload(np.sqrt(weights))
            roots = directions + (1.0 - present)
            targets = targets * directions[:, :, None]
        basis = transforms = None
        if self.settings.bias:
            sizes = self.namespace.xp.sqrt(self.namespace.xp.sum(directions**2, axis=1))
            basis = (directions / sizes[:, None])[:, :, None]
            transforms = (1.0 / sizes)[:, None, None]
        return StackedSystems(
            targets=targets,
            present=present,
            basis=basis,
            transforms=transforms,
            roots=roots,
            counts=counts,
        )

    def _part(self, places: np.ndarray) -> StackedSystems:
        """The systems of the cells at these places in the stack."""

        def take(a: Array | None) -> Array | None:
            return None if a is None else self.namespace.take_rows(a, places)

        rows = self._rows
        if len(places) == len(self.cells):
            return rows
        return StackedSystems(
            targets=take(rows.targets),
            present=take(rows.present),
            basis=take(rows.basis),
            transforms=take(rows.transforms),
            roots=take(rows.roots),
            counts=rows.counts[places],
        )

    def _matrices(self, kernel: int, places: np.ndarray, part: StackedSystems) -> Array:
        """K̃ of the cells at these places, with padded diagonals."""
        matrices = self._grams.matrices(kernel, places)
        scale = part.present
        if part.roots is not None:
            scale = scale * part.roots
        matrices *= scale[:, :, None]
        matrices *= scale[:, None, :]
        pad_diagonals(self.namespace, matrices, part)
        return matrices

    def _solve(
        self, kernel: int, alphas: np.ndarray, places: np.ndarray, *, held_out: bool
    ) -> StackedSolution:
        part = self._part(places)
        matrices = self._matrices(kernel, places, part)
        ridges = self.namespace.asarray(alphas, matrices)
        return solve_stack(self.namespace, matrices, ridges, part, held_out=held_out)

    # -- scores --------------------------------------------------------------------------

    @cached_property
    def _counts(self) -> Array:
        """What rows count, zero in those that pad."""
        counts = [_counts(cell) for cell in self.cells]
        return self._upload(padded(counts, max(map(len, counts))), self.namespace.double())

    def _mean_squares(
        self, solved: StackedSolution, alphas: np.ndarray, places: np.ndarray
    ) -> np.ndarray:
        """Means over rows (by what they count) and targets; infinite if not finite."""
        assert solved.residuals is not None
        if self.cells[0].members is not None:
            return self._of_members(solved, alphas, places)
        xp = self.namespace.xp
        squares = self.namespace.astype(solved.residuals, self.namespace.double()) ** 2
        squares = xp.mean(squares, axis=-1)
        counts = self.namespace.take_rows(self._counts, places)
        total = xp.sum(counts, axis=1)
        # Residuals of rows that pad may be anything.
        squares = xp.where(counts > 0, squares, xp.zeros_like(squares))
        means = self.namespace.to_numpy(xp.sum(counts * squares, axis=-1) / total)
        return np.where(np.isfinite(means), means, np.inf)

    def _of_members(
        self, solved: StackedSolution, alphas: np.ndarray, places: np.ndarray
    ) -> np.ndarray:
        """The same over the rows behind merged ones, of which every cell has as many as it has."""
        coefficients, unpenalised, residuals = (
            self.namespace.to_numpy(a)
            for a in (solved.coefficients, solved.unpenalised, solved.residuals)
        )
        means = []
        for k, cell in enumerate(places.tolist()):
            n = int(self._rows.counts[cell])
            alone = LeaveOneOut(coefficients[k, :n], unpenalised[k], residuals[k, :n])
            means.append(self.cells[cell].mean_square(alone, float(alphas[k])))
        return np.array(means)

    def scores_of_pairs(self, pairs: Mapping[int, tuple[int, int]]) -> dict[int, float]:
        """Leave-one-out mean squared error of one pair a cell, by its position in the stack."""
        score_of_cell: dict[int, float] = {}
        for kernel, places in _by_kernel({cell: pair[0] for cell, pair in pairs.items()}):
            alphas = np.array([self.settings.grid.alphas[pairs[c][1]] for c in places.tolist()])
            solved = self._solve(kernel, alphas, places, held_out=True)
            scores = self._mean_squares(solved, alphas, places)
            for position, cell in enumerate(places.tolist()):
                if solved.regular[position]:
                    score_of_cell[cell] = float(scores[position])
                else:
                    score_of_cell[cell] = self.system(cell).score(kernel, float(alphas[position]))
        return score_of_cell

    def system(self, cell: int) -> CellSystem:
        """One cell by itself, on the same device."""
        if cell not in self._alone:
            data = cell_on(self.cells[cell], self.device)
            self._alone[cell] = CellSystem(
                data, self.kernels, bias=self.settings.bias, fixed=self.settings.fixed
            )
        return self._alone[cell]

    # -- choice and fit ------------------------------------------------------------------

    def best(self) -> list[Choice]:
        """The best pair of every cell."""
        grid = self.settings.grid
        start = search_pairs if grid.ordered else search_widely
        return answered_together([start(grid) for _ in self.cells], self.scores_of_pairs)

    def fits(self, choices: Sequence[Choice], factors: np.ndarray) -> list[CellFit | None]:
        """The models of all cells, ridges times `factors`; None where a cell must be seen alone."""
        grid, settings = self.settings.grid, self.settings
        ridges = np.array([float(grid.alphas[choice.alpha]) for choice in choices])
        if not settings.choose:  # kernels and ridges are searched for without factors
            ridges = ridges * factors
        position = {c: choice.kernel if settings.choose else 0 for c, choice in enumerate(choices)}
        fits: list[CellFit | None] = [None] * len(self.cells)
        for kernel, places in _by_kernel(position):
            solved = self._solve(kernel, ridges[places], places, held_out=settings.held_out)
            for cell, fit in zip(places.tolist(), self._taken_apart(solved, places), strict=True):
                if fit is not None:
                    coefficients, intercept, residuals = fit
                    fits[cell] = CellFit(
                        coefficients,
                        intercept,
                        choices[cell].kernel,
                        float(ridges[cell]),
                        residuals,
                    )
        return fits

    def _taken_apart(
        self, solved: StackedSolution, places: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None] | None]:
        """Coefficients, intercept and residuals of each cell; None where they are not to be had."""
        coefficients = solved.coefficients
        if self._rows.roots is not None:
            coefficients = (
                coefficients * self.namespace.take_rows(self._rows.roots, places)[:, :, None]
            )
        dual, unpenalised = (self.namespace.to_numpy(a) for a in (coefficients, solved.unpenalised))
        intercept = np.zeros((len(dual), dual.shape[2]), dtype=dual.dtype)
        if self.settings.bias:
            intercept = unpenalised[:, 0, :]
        residuals = None if solved.residuals is None else self.namespace.to_numpy(solved.residuals)
        for k, cell in enumerate(places.tolist()):
            n = int(self._rows.counts[cell])
            finite = np.all(np.isfinite(dual[k, :n])) and np.all(np.isfinite(intercept[k]))
            if not solved.regular[k] or not finite:
                yield None
            else:
                yield dual[k, :n], intercept[k], None if residuals is None else residuals[k, :n]


def _counts(cell: RowsToFit) -> np.ndarray:
    counts = cell.counts()
    return np.ones(len(cell.X)) if counts is None else np.asarray(counts, dtype=float)


def _by_kernel(kernels: Mapping[int, int]) -> Iterator[tuple[int, np.ndarray]]:
    """The cells that ask for each kernel, in ascending order."""
    for kernel in sorted(set(kernels.values())):
        yield kernel, np.array(sorted(c for c, k in kernels.items() if k == kernel))


def fit_together(
    cells: Sequence[RowsToFit], settings: FitSettings, factors: np.ndarray
) -> list[CellFit | None]:
    """The models of many cells; None for those that have to be fitted alone."""
    assert settings.device is not None
    fits_of_cells: list[CellFit | None] = [None] * len(cells)
    usable = [
        position
        for position, cell in enumerate(cells)
        if len(cell.X) and (cell.weights is None or bool(np.all(cell.weights > 0)))
    ]
    if not usable or settings.fixed:  # every cell may lack another of these columns
        return fits_of_cells
    sizes = [len(cells[position].X) for position in usable]
    matrix_bytes = _MATRICES * cells[usable[0]].targets.dtype.itemsize
    for stack in stacks_of(sizes, lambda n: matrix_bytes * n**2, settings.memory_bytes):
        places = [usable[position] for position in stack.tolist()]
        together = [cells[position] for position in places]
        choices = _choices(together, settings, settings.device)
        fits = CellStack(together, settings, settings.device).fits(choices, factors[places])
        for position, fit in zip(places, fits, strict=True):
            fits_of_cells[position] = fit
    return fits_of_cells


def _choices(cells: Sequence[RowsToFit], settings: FitSettings, device: str) -> list[Choice]:
    """The pair of every cell, its own where it may choose."""
    grid = settings.grid
    choices = [Choice(grid.start, grid.start_alpha, np.nan)] * len(cells)
    choosing = [
        number
        for number, cell in enumerate(cells)
        if settings.choose and has_own_choice(grid, len(cell.X))
    ]
    if choosing:
        cores = CellStack([cells[number].core() for number in choosing], settings, device)
        for number, choice in zip(choosing, cores.best(), strict=True):
            choices[number] = choice
    return choices

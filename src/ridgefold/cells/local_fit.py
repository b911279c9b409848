"""One cell: its ridge system, solved for one pair of kernel and ridge, or scored for many."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ridgefold.cells.cell_rows import RowsToFit
from ridgefold.errors import NumericalError
from ridgefold.kernels import Kernel, KernelGram, WidthTable
from ridgefold.kernels.gram import columns_of
from ridgefold.linalg import Array, namespace_of
from ridgefold.linalg.leave_one_out import LeaveOneOut, leave_one_out
from ridgefold.linalg.quick import QuickSolver
from ridgefold.linalg.ridge import solve_ridge
from ridgefold.linalg.unpenalised import rows_that_keep_the_rank, unpenalised_space
from ridgefold.records import CELL_SEARCH, CellSearch, Grid


@dataclass(frozen=True)
class CellFit:
    """A cell's model with what was learnt about it on the way."""

    dual_coef: Array
    """Shape (n, t)."""
    intercept: Array
    """Shape (t,)."""
    kernel: int
    """Which kernel of the list."""
    alpha: float
    residuals: Array | None
    """Leave-one-out residuals, shape (n, t); None if they were not asked for."""
    fixed_coef: Array | None = None
    """Coefficients of the unpenalised columns beside the bias, shape (p, t), if there are any."""


@dataclass(frozen=True)
class FitSettings:
    """How every cell is fitted."""

    grid: Grid
    choose: bool
    """True if every cell chooses its own pair; else all take the grid's start."""
    bias: bool
    held_out: bool
    """True if leave-one-out residuals are wanted."""
    clip: bool
    """True if a cell shall predict nothing far beyond the range of its own targets."""
    fallback: np.ndarray
    """The constant that a cell without any row of positive weight predicts, shape (t,)."""
    device: str | None = None
    """Where cells are fitted, many at once; None for the processor, one after the other."""
    memory_bytes: float = math.inf
    """What they may take there."""
    fixed: tuple[int, ...] = ()
    """Numbers of the unpenalised columns of the rows: every cell has coefficients of its own."""
    trial: bool = False
    """True if cells are fitted for their residuals alone, to compare sizes."""
    limits: CellSearch = CELL_SEARCH
    """How many rows searches look at, and cells hold at most."""


class CellSystem:
    """(K + αW⁻¹)a + Fβ = y on the rows of a cell, for each of several kernels.

    F are a bias, if there is one, and the columns of X with the numbers `fixed`.
    Rows of weight zero take no part: their coefficients are zero, and they are predicted.
    """

    def __init__(
        self,
        data: RowsToFit,
        kernels: tuple[Kernel, ...],
        *,
        bias: bool,
        fixed: tuple[int, ...] = (),
    ) -> None:
        self.namespace = namespace_of(data.X)
        self.data, self.kernels, self.bias, self.fixed = data, kernels, bias, fixed
        self.rows: np.ndarray | None = None
        X, y = data.X, data.targets
        roots = None
        if data.weights is not None:
            positive = self.namespace.to_numpy(data.weights) > 0
            weights = data.weights
            if not positive.all():
                self.rows = np.flatnonzero(positive)
                X, y, weights = (self.namespace.take_rows(a, self.rows) for a in (X, y, weights))
            if bool(self.namespace.xp.any(weights != 1.0)):
                roots = self.namespace.xp.sqrt(weights)
        self._X, self._y, self._roots = X, y, roots
        self.n_rows = int(X.shape[0])
        self.n_counted = self.n_rows if data.members is None else len(data.members.weights)
        """Rows that scores are of."""
        self._right = y if roots is None else y * roots[:, None]
        self._space = unpenalised_space(
            self.namespace,
            columns_of(X, fixed) if fixed and self.n_rows else None,
            roots,
            bias=bias,
            n_rows=self.n_rows,
            like=y,
        )
        self._table = WidthTable(kernels, X) if self.n_rows else None
        self._solved: dict[tuple[int, float], LeaveOneOut] = {}
        self._quick: QuickSolver | None = None
        self._traces: dict[int, float] = {}

    def core(self) -> CellSystem:
        """The system of the rows that count most."""
        part = self.data.core()
        if part is self.data:
            return self
        return CellSystem(part, self.kernels, bias=self.bias, fixed=self.fixed)

    def _write(self, kernel: int, out: Array) -> None:
        assert self._table is not None
        self._table.write_lower(kernel, out)
        if self._roots is not None:
            out *= self._roots[:, None]
            out *= self._roots[None, :]

    def score(self, kernel: int, alpha: float) -> float:
        """Leave-one-out mean squared error of one pair, by one inverse.

        In as few digits as are enough to compare pairs.
        """
        quick = self._quick_leave_one_out(kernel, alpha)
        solved = self._leave_one_out(kernel, alpha) if quick is None else quick
        return self.data.mean_square(solved, alpha, self.rows)

    def _quick_leave_one_out(self, kernel: int, alpha: float) -> LeaveOneOut | None:
        quick = self._quick_solver()
        if quick is None:
            return None
        return quick.leave_one_out(lambda out: self._write(kernel, out), self._trace(kernel), alpha)

    def _quick_solution(self, kernel: int, alpha: float) -> tuple[Array, Array] | None:
        quick = self._quick_solver()
        if quick is None:
            return None
        return quick.solve(lambda out: self._write(kernel, out), self._trace(kernel), alpha)

    def _quick_solver(self) -> QuickSolver | None:
        """For comparisons; None if there is none for such rows."""
        if self._quick is None:
            self._quick = QuickSolver.of(self.namespace, self._right, self._space, self._roots)
        return self._quick

    def _trace(self, kernel: int) -> float:
        """The trace of K̃."""
        if kernel not in self._traces:
            diagonal = self.kernels[kernel].diagonal(self.namespace, self._X)
            if self._roots is not None:
                diagonal = diagonal * self._roots**2
            self._traces[kernel] = float(self.namespace.xp.sum(diagonal))
        return self._traces[kernel]

    def _leave_one_out(self, kernel: int, alpha: float) -> LeaveOneOut:
        """The solution for a pair; kept, a few columns beside matrices, as one of those that
        are scored is the one to fit."""
        if (kernel, alpha) not in self._solved:
            solved = leave_one_out(
                self.namespace,
                lambda out: self._write(kernel, out),
                self._right,
                alpha,
                space=self._space,
                roots=self._roots,
            )
            self._solved[kernel, alpha] = self._determined(solved, kernel, alpha)
        return self._solved[kernel, alpha]

    def _determined(self, solved: LeaveOneOut, kernel: int, alpha: float) -> LeaveOneOut:
        """With residuals also of rows without which an unpenalised column is not determined.

        Such rows are few, and each is left out by a fit of its own: the smallest coefficients.
        """
        if not self.fixed or self._space is None or self.n_rows == 1:
            return solved
        rows = rows_that_keep_the_rank(self.namespace, self._space)
        if not rows:
            return solved
        residuals, columns = self.namespace.copy(solved.residuals), columns_of(self._X, self.fixed)
        for row in rows:
            kept = np.delete(np.arange(self.n_rows), row)
            data = RowsToFit(
                self.namespace.take_rows(self._X, kept),
                self.namespace.take_rows(self._y, kept),
                None if self._roots is None else self.namespace.take_rows(self._roots, kept) ** 2,
            )
            fit = CellSystem(data, self.kernels, bias=self.bias, fixed=self.fixed).fit(
                kernel, alpha, held_out=False
            )
            own = KernelGram(self.kernels[kernel], self._X[row : row + 1, :], data.X).full()
            predicted = own @ fit.dual_coef + fit.intercept[None, :]
            predicted = predicted + columns[row : row + 1, :] @ fit.fixed_coef
            residuals[row, :] = self._y[row, :] - predicted[0, :]
        return replace(solved, residuals=residuals)

    def fit(self, kernel: int, alpha: float, *, held_out: bool, quickly: bool = False) -> CellFit:
        """Solve for one pair; with `held_out`, leave-one-out residuals too (twice the work).

        With `quickly`, in as few digits as are enough for comparisons.
        """
        if self.n_rows == 0:
            raise NumericalError("a cell holds no row of positive weight")
        if held_out:
            quick = self._quick_leave_one_out(kernel, alpha) if quickly else None
            solved = self._leave_one_out(kernel, alpha) if quick is None else quick
            coefficients, unpenalised, residuals = (
                solved.coefficients,
                solved.unpenalised,
                solved.residuals,
            )
        else:
            solution = self._quick_solution(kernel, alpha) if quickly else None
            coefficients, unpenalised = self._solve(kernel, alpha) if solution is None else solution
            residuals = None
        intercept, fixed = self._taken_apart(unpenalised)
        if self._roots is not None:
            coefficients = coefficients * self._roots[:, None]
        if not (self.namespace.all_finite(coefficients) and self.namespace.all_finite(intercept)):
            raise NumericalError(
                "a cell's solution holds NaN or infinite coefficients: values overflowed on the "
                "way; scale the columns of X and the targets, or use a larger alpha"
            )
        return self._of_all_rows(CellFit(coefficients, intercept, kernel, alpha, residuals, fixed))

    def _taken_apart(self, unpenalised: Array) -> tuple[Array, Array | None]:
        """The bias, and the coefficients of the other unpenalised columns."""
        if self._space is None:
            return self.namespace.zeros(unpenalised.shape[1], unpenalised), None
        return self._space.intercept(unpenalised), self._space.others(unpenalised)

    def _solve(self, kernel: int, alpha: float) -> tuple[Array, Array]:
        return solve_ridge(
            self.namespace,
            lambda out: self._write(kernel, out),
            self._right,
            alpha,
            self._space,
        )

    def _of_all_rows(self, fit: CellFit) -> CellFit:
        """Put rows of weight zero back: no coefficient, the residual of a prediction."""
        if self.rows is None:
            return fit
        namespace, data = self.namespace, self.data
        kernel = self.kernels[fit.kernel]
        dual = namespace.zeros(data.targets.shape, data.targets)
        dual[self.rows] = fit.dual_coef
        residuals = None
        if fit.residuals is not None:
            predicted = KernelGram(kernel, data.X, self._X).full() @ fit.dual_coef
            residuals = data.targets - predicted - fit.intercept[None, :]
            if fit.fixed_coef is not None:
                residuals = residuals - columns_of(data.X, self.fixed) @ fit.fixed_coef
            residuals[self.rows] = fit.residuals
        return replace(fit, dual_coef=dual, residuals=residuals)

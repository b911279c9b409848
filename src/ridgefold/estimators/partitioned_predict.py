"""New rows by the cells of a fitted model: predictions, slopes, and whether they are outside."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ridgefold.cells.average_effects import AverageErrors
from ridgefold.cells.cell_gradients import combined_gradients, with_coarse_slopes
from ridgefold.cells.cell_posteriors import CellPosteriors
from ridgefold.cells.cell_prediction import predict_cells
from ridgefold.cells.cell_rows import ROWS_A_BATCH, RowsByCell, RowsToFit, number_of, rows_alone
from ridgefold.cells.cell_surroundings import SurroundingsOfCells
from ridgefold.cells.checked_arguments import (
    SMALLEST_BLOCK,
    device_bytes,
    partitioner_of,
)
from ridgefold.cells.coarse_model import mix_predictions
from ridgefold.cells.combine import COMBINERS, Assignment
from ridgefold.cells.computed_rows import in_metric, scaled_rows
from ridgefold.cells.linear_part import add_linear_slopes, with_linear_part
from ridgefold.cells.named_prediction import WORTH_SENDING, kernel_values, predict_elsewhere
from ridgefold.cells.streaming import (
    larger_blocks,
    new_source,
)
from ridgefold.errors import BudgetError, InvalidInputError, UnsupportedInputError
from ridgefold.estimators.effects import WithEffects
from ridgefold.estimators.slopes import require_slopes
from ridgefold.estimators.validation import (
    check_new_rows,
    out_of_memory_is_a_budget_error,
)
from ridgefold.executors import Executor, Serial
from ridgefold.linalg import namespace_of
from ridgefold.linalg.blocks import row_blocks
from ridgefold.linalg.namespace import is_tensor, on_device
from ridgefold.options import TakesOptions, cells_of, compute_of
from ridgefold.options.cell_options import EXACT
from ridgefold.planning import available_resources
from ridgefold.planning.amounts import in_bytes
from ridgefold.records import Backdrop, Cells, LinearPart, LocalModels
from ridgefold.runtime.executor_argument import executor_of
from ridgefold.runtime.run_request import folder_of
from ridgefold.selection.outside import ColumnRanges, ranges_of
from ridgefold.storage.run_directory import RunDirectory

_NEW_ROWS_SHARE = 0.25
"""New rows that are predicted together take this share of the memory budget, beside blocks of
kernel values."""


class PredictsByCells(WithEffects, TakesOptions):
    """A fitted model of cells, as new rows see it."""

    partition: Any
    n_partitions: Any
    combine: Any
    alpha: Any
    kernel: Any
    gamma: Any
    kernel_params: dict[str, Any] | None
    fit_intercept: bool
    fixed: Any
    metric: Any
    cells: Any
    random_state: Any
    memory_budget: Any
    compute: Any
    n_features_in_: int
    X_fit_: Any
    length_scales_: np.ndarray | None
    _cells: Cells
    _models: LocalModels
    _partition: Any
    _combine: str
    _weights: np.ndarray | None
    _coarse_model: Backdrop | None
    """A coarse model behind the cells."""
    _linear: LinearPart | None
    """A linear model of all rows under the cells."""

    # -- where ---------------------------------------------------------------------------

    def _device(self) -> str | None:
        """The device for cells: the one asked for, or that of the tensors of the fit."""
        device: str | None = compute_of(self).device or self.__dict__.get("_tensor_device")
        return device

    def _taken(self, *arrays: Any) -> tuple[Any, ...]:
        """The arguments of a fit with tensors as NumPy arrays; cells are worked on where X was."""
        X = arrays[0]
        self.__dict__.pop("_tensor_device", None)
        if is_tensor(X) and X.device.type != "cpu":
            self._tensor_device = str(X.device)
        return tuple(namespace_of(a).to_numpy(a) if is_tensor(a) else a for a in arrays)

    @staticmethod
    def _given_back(values: np.ndarray, X: Any) -> Any:
        """Values for the rows of X: a tensor where X is one, unless they are labels in words."""
        if not is_tensor(X) or values.dtype.kind not in "biuf":
            return values
        return on_device(values, str(X.device))

    # -- prediction ----------------------------------------------------------------------

    @out_of_memory_is_a_budget_error("predicting")
    def _decision(self, X: Any) -> np.ndarray:
        """The combined f(x) of every row and target, shape (n, t)."""
        values = [self._combined(rows) for rows in self._blocks(X)]
        return values[0] if len(values) == 1 else np.concatenate(values)

    def _blocks(self, X: Any) -> Iterator[np.ndarray]:
        """New rows, checked: a block at a time where they are read from a file, else all."""
        check_is_fitted(self, "X_fit_")
        if is_tensor(X):
            X = namespace_of(X).to_numpy(X)
        source = new_source(self, X)
        if source is None:
            rows = self._new_rows(X)
            for some in row_blocks(len(rows), self._bytes_a_new_row(), self._bytes_of_new_rows()):
                yield rows[some]
            return
        by_name = source.names is not None and hasattr(self, "feature_names_in_")
        for block in larger_blocks(source, self.memory_budget):
            yield self._new_rows(block, by_name=by_name)

    def _bytes_of_new_rows(self) -> float:
        budget = available_resources(self.memory_budget).memory_bytes
        return max(_NEW_ROWS_SHARE * budget, SMALLEST_BLOCK)

    def _bytes_a_new_row(self) -> float:
        """Bytes that a new row takes while it is placed in cells and predicted."""
        d, t = int(self.X_fit_.shape[1]), int(self._models.intercept.shape[1])
        cells = 4.0
        if not COMBINERS[self._combine].needs_space:  # then a batch of cells predicts every row
            sizes = np.diff(self._cells.offsets)
            cells = min(len(sizes), ROWS_A_BATCH / float(np.mean(sizes)) + 1)
        return 8.0 * (2 * d + 24 + (4 + cells) * t)

    def _new_rows(self, X: Any, *, by_name: bool = False) -> np.ndarray:
        """Checked rows, as they are."""
        found = check_new_rows(self, X, self.X_fit_, accept_sparse=False, by_name=by_name)
        return np.asarray(found)

    def _in_metric(self, X: np.ndarray) -> np.ndarray:
        """Checked rows in the metric in which the cells were cut."""
        return X if self.length_scales_ is None else in_metric(X, self.length_scales_)

    def _assignment(self, X: np.ndarray) -> Assignment:
        """Which cells predict which of some rows, in their metric."""
        partitioner, cells = partitioner_of(self._partition), self._cells
        combiner = COMBINERS[self._combine]
        return combiner.assign(partitioner, cells.router, number_of(cells), X)

    def _combined(self, X: np.ndarray) -> np.ndarray:
        """Predictions for checked rows."""
        placed = self._in_metric(X)
        return self._combined_from(X, placed, self._assignment(placed))

    def _combined_from(
        self, X: np.ndarray, placed: np.ndarray, assignment: Assignment
    ) -> np.ndarray:
        """What the cells predict together, and the models behind and under them.

        `placed` are the rows X in the metric of the cells.
        """
        values = self._of_cells(placed, assignment)
        if self._coarse_model is not None:
            mix_predictions(self._coarse_model, placed, values)
        return values if self._linear is None else with_linear_part(self._linear, X, values)

    def _of_cells(self, X: np.ndarray, assignment: Assignment) -> np.ndarray:
        cells, models = self._cells, self._models
        asked = compute_of(self)
        executor = executor_of(asked.executor, asked.n_jobs, asked.verbose)
        rows = self._rows_by_cell()
        if executor.remote:
            if executor.standing and kernel_values(cells, assignment) >= WORTH_SENDING:
                return self._combined_elsewhere(rows, X, assignment, executor)
            executor = Serial()
        device = self._device()
        with executor.held():
            return predict_cells(
                rows,
                cells,
                models,
                assignment,
                new=X,
                executor=executor,
                device=device,
                memory_bytes=device_bytes(device, self.memory_budget) / executor.n_workers,
            )

    def _combined_elsewhere(
        self, rows: RowsByCell, X: np.ndarray, assignment: Assignment, executor: Executor
    ) -> np.ndarray:
        """Predictions by the workers of a cluster, by files that they see."""
        folder = folder_of(self)
        inside = folder if folder is not None and folder.is_dir() else None
        with (
            tempfile.TemporaryDirectory(prefix="ridgefold-predict-", dir=inside) as temporary,
            RunDirectory(Path(temporary), {"temporary": temporary}).opened() as run,
            executor.held(),
        ):
            return predict_elsewhere(
                rows,
                np.asarray(self._training_rows()) if isinstance(rows, RowsToFit) else X[:0],
                self._cells,
                self._models,
                assignment,
                new=X,
                executor=executor,
                run=run,
            )

    # -- slopes --------------------------------------------------------------------------

    @out_of_memory_is_a_budget_error("predict_gradient")
    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def predict_gradient(self, X: Any) -> Any:
        """The slope of the prediction along every column, at every row of X.

        By the product rule: where cells are blended, the change of their weights counts. Between
        cells that are not, predictions jump, and the slope is that of the row's own cell; where a
        cell's prediction is held at the range of its targets, it is zero. Computed in this
        process, whatever `compute` says.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)

        Returns
        -------
        gradient : array of shape (n_rows, n_columns) or (n_rows, n_columns, n_targets)
            In the units of the columns given; of classifiers, slopes of decision values. See
            :meth:`KernelRidge.predict_gradient`.
        """
        check_is_fitted(self, "X_fit_")
        rows = namespace_of(X).to_numpy(X) if is_tensor(X) else X
        slopes = self._gradients(check_new_rows(self, rows, self.X_fit_, accept_sparse=False))
        require_slopes(self, slopes)
        slopes = slopes.astype(self._models.dual_coef.dtype)
        one = slopes.shape[2] == 1 and getattr(self, "_one_target", True)
        return self._given_back(slopes[:, :, 0] if one else slopes, X)

    def _gradients(self, X: np.ndarray) -> np.ndarray:
        scales = self.length_scales_
        new = np.asarray(X if scales is None else in_metric(X, scales), dtype=np.float64)
        slopes = combined_gradients(
            self._rows_by_cell(), self._cells, self._models, self._assignment, new
        )
        if self._coarse_model is not None:
            with_coarse_slopes(self._coarse_model, new, slopes)
        if scales is not None:
            whole = np.zeros((len(X), len(scales), slopes.shape[2]))
            kept = np.isfinite(scales)
            whole[:, kept, :] = slopes / scales[kept][None, :, None]
            slopes = whole
        if self._linear is not None:
            add_linear_slopes(self._linear, X, self._combined(X), slopes)
        return slopes

    def _decision_of_checked(self, X: np.ndarray) -> np.ndarray:
        return self._combined(X)

    def _n_outputs(self) -> int:
        return int(self._models.intercept.shape[1])

    def _row_weights(self) -> np.ndarray | None:
        return self._weights

    def _why_no_effect_errors(self) -> str | None:
        """Why averages of effects have no standard errors, if they have none."""
        if hasattr(self, "classes_"):
            return (
                "Classifiers in cells have no standard errors of averages: fit LSSVMClassifier to "
                "as many of the rows as fit the memory."
            )
        if not COMBINERS[self._combine].needs_space and self._is_linear_in_targets:
            return None
        return (
            'Models in cells have standard errors of averages with combine="average", or refined '
            "to the end: use those, or fit KernelRidge to as many of the rows as fit the memory."
        )

    def _effect_errors(
        self, X: np.ndarray, shares: np.ndarray, curves: np.ndarray | None
    ) -> AverageErrors:
        return AverageErrors(
            self._processes(), self.length_scales_, self._combined, self.X_fit_, X, shares
        )

    @property
    def _is_linear_in_targets(self) -> bool:
        """Whether the model is cells that were solved, and not stopped on the way to another."""
        return cells_of(self).refine in (None, EXACT)

    def _processes(self) -> CellPosteriors:
        """The cells as Gaussian processes; a typed error where they are none."""
        if not self._is_linear_in_targets:
            raise UnsupportedInputError(
                f"cells.refine={cells_of(self).refine!r} stops on the way from cells to one model "
                'of all rows, which has no posterior: use cells.refine="exact" or None, or '
                "KernelRidge"
            )
        if not hasattr(self, "y_fit_"):
            raise InvalidInputError(
                "the model comes from a file of an older version, which lacks the targets that "
                "standard deviations are made from: fit and save it again"
            )
        largest = int(np.diff(self._cells.offsets).max())
        needed, budget = 24.0 * largest**2, available_resources(self.memory_budget).memory_bytes
        if needed > budget:
            raise BudgetError(
                f"the factor of a cell of {largest:,} rows takes {in_bytes(needed)}, and "
                f"memory_budget is {in_bytes(budget)}: raise memory_budget "
                "(set_params(memory_budget=...) does), or fit with more cells"
            )
        return CellPosteriors(
            self._rows_by_cell(),
            self._targets_of_cells(),
            self._weights,
            self._cells,
            self._models,
            bool(self.fit_intercept),
        )

    def _rows_by_cell(self) -> RowsByCell:
        return getattr(self, "_stored", None) or rows_alone(self._training_rows())

    def _training_rows(self) -> Any:
        """The rows of the fit, in the metric in which the cells were cut."""
        return scaled_rows(self.X_fit_, self.length_scales_)

    # -- rows outside --------------------------------------------------------------------

    @out_of_memory_is_a_budget_error("is_outside")
    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def is_outside(self, X: Any) -> np.ndarray:
        """Whether each row of X lies outside what the model was fitted to.

        As :meth:`KernelRidge.is_outside`, with the rows of the cell that weighs most for it in the
        place of all rows. Models without cells of their own for every row (averages, refined ones)
        look at the ranges of the columns alone.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)

        Returns
        -------
        outside : bool array of shape (n_rows,)
        """
        check_is_fitted(self, "X_fit_")
        X = check_new_rows(self, X, self.X_fit_, accept_sparse=False)
        ranges, surroundings = self._surroundings()
        outside = ranges.beyond(X)
        inside = np.flatnonzero(~outside)
        if surroundings is not None and len(inside):
            rows = self._in_metric(self._new_rows(X[inside]))
            outside[inside] = surroundings.beyond(rows, self._assignment(rows))
        return np.asarray(outside)

    def _surroundings(self) -> tuple[ColumnRanges, SurroundingsOfCells | None]:
        """The ranges of the columns and the surroundings of the cells, kept until another fit."""
        kept = self.__dict__.get("_known_surroundings")
        if kept is None or kept[0] is not self._models:
            counted = None if self._weights is None else np.asarray(self._weights) > 0
            ranges, of_cells = ranges_of(self.X_fit_, counted), None
            if COMBINERS[self._combine].needs_space:
                rows = self._training_rows()
                of_cells = SurroundingsOfCells(rows, self._weights, self._cells, self._models)
            kept = (self._models, ranges, of_cells)
            self._known_surroundings = kept
        return kept[1], kept[2]

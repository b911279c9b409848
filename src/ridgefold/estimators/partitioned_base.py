"""Cut, choose, fit, perhaps refine: what all partitioned models share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Tags

from ridgefold.cells.cell_fit_steps import Refine, RefiningWork
from ridgefold.cells.cell_rows import RowsToFit, number_of
from ridgefold.cells.cell_run_directory import opened_run
from ridgefold.cells.cell_store import StoredRows
from ridgefold.cells.checked_arguments import (
    CellArguments,
    options_of,
)
from ridgefold.cells.coarse_model import mix_residuals
from ridgefold.cells.computed_rows import scaled_rows
from ridgefold.cells.distinct_rows import DistinctRows, distinct_rows
from ridgefold.cells.fitting import CellFitting, FittedCells
from ridgefold.cells.linear_part import left_to_cells
from ridgefold.cells.refine import refine
from ridgefold.cells.run_cells import NewArray, combined_residuals, in_memory
from ridgefold.cells.streaming import (
    Stream,
    as_source,
    begun_on_disk,
    fit_stream,
    on_disk,
    open_stream,
    predicted_bytes,
)
from ridgefold.errors import InvalidInputError, NumericalError, UnsupportedInputError
from ridgefold.estimators.fixed_columns import resolve_fixed
from ridgefold.estimators.partitioned_facts import ReportsOnCells
from ridgefold.estimators.partitioned_state import StoresCells
from ridgefold.estimators.validation import (
    check_training_data,
)
from ridgefold.kernels import PRECOMPUTED, takes_sparse_and_negative
from ridgefold.linalg import namespace_of
from ridgefold.linalg.blocks import row_blocks
from ridgefold.linalg.namespace import is_foreign_array
from ridgefold.options import cells_of, compute_of
from ridgefold.options.cell_options import EXACT
from ridgefold.records import Cells, Grid, LocalModels, Resources, RunRecord
from ridgefold.runtime import perform_all
from ridgefold.runtime.progress import progress_bar
from ridgefold.runtime.training_data import TrainingData
from ridgefold.storage.row_source import RowSource
from ridgefold.storage.run_directory import Run
from ridgefold.tables.sources import ArraySource


class PartitionedModel(ReportsOnCells, StoresCells):
    """Base of the partitioned models; subclasses add their arguments, `fit` and `predict`."""

    _without_use: ClassVar[Mapping[str, str]] = {
        "compute.solver": "cells are solved by Cholesky, and all rows by cells.refine",
        "compute.tol": "cells are solved by Cholesky, and all rows by cells.refine",
        "metric.transforms": "rows of cells are taken as they are, so transform X before",
    }

    def _weighs_scores(self) -> bool:
        """Whether rows count by their weights in the scores that choose."""
        return bool(cells_of(self).weighted_scores)

    def _needs_held_out(self) -> bool:
        """Whether leave-one-out residuals are wanted, even if nothing is chosen by them."""
        return False

    def _keeps_held_out(self, choosing: bool) -> bool:
        """Whether leave-one-out residuals are kept: cells that choose pairs have them anyway."""
        return choosing or self._needs_held_out()

    _held_out_argument = ""
    """The argument that asks for leave-one-out residuals, as errors name it."""

    def _check(self, X: Any, y: Any, sample_weight: Any, *, numeric_targets: bool) -> TrainingData:
        if is_foreign_array(X):
            raise UnsupportedInputError(
                f"{type(self).__name__} takes arrays of NumPy and tensors of torch, got one of "
                f"{namespace_of(X).name}: pass one of those, or use KernelRidge"
            )
        if isinstance(self.kernel, str) and self.kernel == PRECOMPUTED:
            raise InvalidInputError(
                'kernel="precomputed" has no rows to cut into cells: use KernelRidge, or a kernel '
                "of rows"
            )
        return check_training_data(
            self, X, y, sample_weight, numeric_targets=numeric_targets, accept_sparse=False
        )

    def _fit_cells(self, data: TrainingData, targets: np.ndarray) -> None:
        try:
            with np.errstate(over="raise"):
                self._cut_and_fit(data, targets)
        except FloatingPointError:
            raise NumericalError(
                "numbers overflow while rows are cut into cells and fitted: scale the columns of "
                "X, and the targets"
            ) from None

    def _cut_and_fit(self, data: TrainingData, targets: np.ndarray) -> None:
        names = getattr(self, "feature_names_in_", None)
        fixed = resolve_fixed(self.fixed, int(data.X.shape[1]), names)
        options = replace(options_of(self), fixed=fixed)
        distinct = distinct_rows(data.X, targets, data.weights)
        with (
            opened_run(self, data.X, targets, data.weights) as run,
            options.executor.held(),
        ):
            if distinct is None:
                fitted = CellFitting(self, data, targets, options, run).fit()
            else:
                fitted = self._fit_distinct(data, targets, distinct, options, run)
            self._keep(fitted, data)
            if distinct is not None:
                self._predict_weightless(data.X, targets, np.flatnonzero(distinct.group_of < 0))
        refining = _Refining(self, fitted)
        _, records = perform_all([Refine(fitted.request)], fitted.known, refining)
        self.run_record_ = RunRecord((*self.run_record_.steps, *records))
        self._copy_choices()

    def _fit_distinct(
        self,
        data: TrainingData,
        targets: np.ndarray,
        distinct: DistinctRows,
        options: CellArguments,
        run: Run,
    ) -> FittedCells:
        """Choose and fit with equal rows merged, then give every row its own coefficient."""
        copied = data.copied_bytes + distinct.X.nbytes
        merged = replace(data, X=distinct.X, weights=distinct.weights, copied_bytes=copied)
        fitted = CellFitting(
            self,
            merged,
            distinct.targets,
            options,
            run,
            members=distinct.members if distinct.are_draws else None,
        ).fit()
        linear = fitted.linear
        if linear is not None:
            targets = left_to_cells(targets, data.X, linear)[:]
            distinct = replace(distinct, given_targets=targets)
        cells, models, residuals = distinct.expanded(fitted.cells, fitted.models, fitted.residuals)
        X = scaled_rows(data.X, fitted.length_scales)
        training = RowsToFit(X, targets, data.weights, weighted_scores=self._weighs_scores())
        return replace(
            fitted,
            cells=cells,
            models=models,
            residuals=residuals,
            rows=training,
            training=training,
        )

    def _predict_weightless(self, X: Any, targets: Any, rows: np.ndarray) -> None:
        """Set the residuals of rows of weight zero, which are in no cell, by predicting them."""
        if self.held_out_residuals_ is None or len(rows) == 0:
            return
        width = X.shape[1] * self.X_fit_.dtype.itemsize
        for some in row_blocks(len(rows), width, predicted_bytes(self.memory_budget)):
            new = np.asarray(X[rows[some]])
            self.held_out_residuals_[rows[some]] = targets[rows[some]] - self._combined(new)

    def _opened(self, X: Any, y: Any, sample_weight: Any) -> Stream | None:
        """The input as a stream, if it can or has to be read in blocks; else None."""
        if y is None:
            return None
        stream = open_stream(X, y, sample_weight)
        if stream is None and (options_of(self).executor.remote or begun_on_disk(self)):
            # Workers read files: what is in memory is written to some.
            data = self._check(X, y, sample_weight, numeric_targets=False)
            stream = Stream(ArraySource(data.X), data.y, data.weights, X)
        return stream

    def _name_columns(self, stream: Stream | None) -> None:
        """Keep the names of a table's columns, by which others are read."""
        if stream is not None and stream.X.names is not None:
            self.feature_names_in_ = np.asarray(stream.X.names, dtype=object)
        self._name_fixed()

    def _from_disk(self, stream: Stream) -> bool:
        options = options_of(self)
        able = options.refine is None and not options.combiner.scales_alpha
        if not able and options.executor.remote:
            raise InvalidInputError(
                f"compute.executor={compute_of(self).executor!r} takes cells that are fitted by "
                'themselves: use combine="blend" or "route", and cells.refine=None'
            )
        return able and on_disk(self, stream, options)

    def _fit_stream(self, stream: Stream, targets: RowSource, weights: Any) -> None:
        """Fit from rows on disk, which are never all in memory."""
        options = options_of(self)
        if weights is not None:
            weights = as_source(weights, "sample_weight", stream.X.dtype)
        names = None if stream.X.names is None else [str(name) for name in stream.X.names]
        fixed = resolve_fixed(self.fixed, int(stream.X.n_columns), names)
        options = replace(options, fixed=fixed)
        space, data, fitted = fit_stream(self, stream, targets, weights, options)
        self.n_features_in_ = stream.X.n_columns
        if not isinstance(stream.X, ArraySource):
            self.__dict__.pop("feature_names_in_", None)
        self._keep(fitted, data, space.new_array)
        # The folder is kept as long as the model reads from it.
        self._workspace = space
        self._stored = fitted.rows if isinstance(fitted.rows, StoredRows) else None
        self.X_fit_, y = data.X.array, data.y.array
        self.y_fit_ = y if len(targets.shape) == 2 else y[:, 0]
        if data.weights is not None:
            weightless = np.flatnonzero(np.asarray(data.weights) == 0)
            self._predict_weightless(data.X, data.y, weightless)

    def _keep(
        self,
        fitted: FittedCells,
        data: TrainingData,
        new_array: NewArray = in_memory,
    ) -> None:
        """Set the fitted attributes that come from these cells."""
        self.__dict__.pop("_workspace", None)
        self.__dict__.pop("_stored", None)
        cells, residuals, n = fitted.cells, fitted.residuals, data.X.shape[0]
        self.X_fit_ = data.X
        self.length_scales_ = fitted.length_scales
        self._widening = fitted.widening
        self.certificate_: np.ndarray | None = None
        self.n_partitions_ = number_of(cells)
        self.partition_sizes_ = np.diff(cells.offsets)
        self.trials_ = fitted.trials
        self.effective_dimension_ = fitted.dimension
        self.held_out_residuals_ = (
            None if residuals is None else combined_residuals(cells, residuals, n, new_array)
        )
        self._cells, self._models = cells, fitted.models
        self._partition, self._combine = self.partition, self.combine
        self._coarse_model, self._linear = fitted.coarse_model, fitted.linear
        if self._coarse_model is not None and self.held_out_residuals_ is not None:
            mix_residuals(self._coarse_model, fitted.training, self.held_out_residuals_)
        self._weights = None if data.weights is None else np.asarray(data.weights)
        self.n_steps_ = 0
        self.run_record_ = RunRecord(fitted.steps)
        self._copy_choices()

    def _refine(self, training: RowsToFit, options: CellArguments, grid: Grid, room: float) -> None:
        """Replace the cells' models by one model of all rows, in so many bytes."""
        n, cells, models = training.X.shape[0], self._cells, self._models
        # Of averaged cells every one is fitted as if it were all rows.
        alike = 1.0 / number_of(cells) if options.combiner.scales_alpha else 1.0
        shares = np.full(len(cells.rows), alike) if cells.weights is None else cells.weights
        start = np.empty((n, models.dual_coef.shape[1]), dtype=models.dual_coef.dtype)
        for j in range(start.shape[1]):
            weighted = shares * models.dual_coef[:, j]
            start[:, j] = np.bincount(cells.rows, weights=weighted, minlength=n)
        kernel, alpha = grid.kernels[grid.start], float(grid.alphas[grid.start_alpha])
        with progress_bar(compute_of(self).verbose, "refining") as progress:
            whole = refine(
                training,
                kernel,
                alpha,
                _disjoint(cells),
                start,
                bias=options.bias,
                fixed=models.fixed,
                steps=None if options.refine == EXACT else int(options.refine or 0),
                memory_bytes=room if options.device is None else options.memory_bytes,
                device=options.device,
                progress=progress,
            )
        self._cells = Cells(np.arange(n), np.array([0, n]), None, {})
        self._models = LocalModels(
            whole.dual_coef,
            whole.intercept[None, :],
            np.array([alpha]),
            (kernel,),
            np.zeros(1, dtype=np.intp),
            fixed=models.fixed,
            fixed_coef=None if whole.fixed_coef is None else whole.fixed_coef[None],
        )
        self._combine = "average"
        self.held_out_residuals_ = None
        self.certificate_, self.n_steps_ = whole.certificate, whole.steps

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.positive_only = not takes_sparse_and_negative(self.kernel)[1]
        return tags


class _Refining(RefiningWork):
    """A fitted model of cells, to be refined into one of all rows."""

    def __init__(self, model: PartitionedModel, fitted: FittedCells) -> None:
        self._model, self._fitted = model, fitted

    def resources(self) -> Resources:
        return self._fitted.request.resources

    def refine(self, room: float) -> None:
        fitted = self._fitted
        self._model._refine(fitted.training, fitted.request.options, fitted.grid, room)


def _disjoint(cells: Cells) -> list[np.ndarray]:
    """The cells with every row only in the one that it has the largest share in."""
    m = number_of(cells)
    owner = np.repeat(np.arange(m), np.diff(cells.offsets))
    if cells.weights is not None:
        order = np.lexsort((-cells.weights, cells.rows))
        first = np.unique(cells.rows[order], return_index=True)[1]
        rows, owner = cells.rows[order][first], owner[order][first]
    else:
        rows = cells.rows
    order = np.argsort(owner, kind="stable")
    groups = np.split(rows[order], np.searchsorted(owner[order], np.arange(1, m)))
    return [group for group in groups if len(group)]

"""Cut, choose, fit, perhaps refine, predict: what all partitioned models share."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ridgefold.cells.average_effects import AverageErrors
from ridgefold.cells.cell_fit_steps import Refine, RefiningWork
from ridgefold.cells.cell_gradients import combined_gradients, with_coarse_slopes
from ridgefold.cells.cell_intervals import CellIntervals
from ridgefold.cells.cell_posteriors import CellPosteriors
from ridgefold.cells.cell_prediction import CellsOfRows, IndexedRows, predict_cells
from ridgefold.cells.cell_rows import ROWS_A_BATCH, Training, number_of
from ridgefold.cells.cell_run_directory import opened_run
from ridgefold.cells.cell_store import StoredRows
from ridgefold.cells.checked_arguments import (
    SMALLEST_BLOCK,
    CellArguments,
    device_bytes,
    options_of,
    partitioner_of,
)
from ridgefold.cells.coarse_model import mix_predictions, mix_residuals
from ridgefold.cells.combine import COMBINERS, Assignment
from ridgefold.cells.cut import PARTITIONERS
from ridgefold.cells.distinct_rows import DistinctRows, distinct_rows
from ridgefold.cells.fitting import CellFitting, FittedCells
from ridgefold.cells.linear_part import LeftToCells, add_linear_slopes, with_linear_part
from ridgefold.cells.named_prediction import WORTH_SENDING, kernel_values, predict_elsewhere
from ridgefold.cells.outside import SurroundingsOfCells
from ridgefold.cells.refine import refine
from ridgefold.cells.rows_left_out import RowsLeftOut, rows_to_leave_out
from ridgefold.cells.run_cells import NewArray, combined_residuals, in_memory
from ridgefold.cells.scaled_rows import ScaledRows, in_metric
from ridgefold.cells.streaming import (
    Stream,
    as_source,
    begun_on_disk,
    fit_stream,
    larger_blocks,
    new_source,
    on_disk,
    open_stream,
    predicted_bytes,
)
from ridgefold.errors import (
    BudgetError,
    InvalidInputError,
    NumericalError,
    UnsupportedInputError,
)
from ridgefold.estimators.effect_curves import Decisions, WithEffectCurves
from ridgefold.estimators.effects import WithEffects
from ridgefold.estimators.facts import (
    CellFacts,
    HeldOutFacts,
    MetricFacts,
    ModelFacts,
    numbered_columns,
    to_numpy,
)
from ridgefold.estimators.fixed_columns import names_of_fixed, numbers_of_fixed, resolve_fixed
from ridgefold.estimators.importances import WithImportances
from ridgefold.estimators.kept_targets import require_targets
from ridgefold.estimators.partitioned_state import OPTIONAL, STATE, require_consistent
from ridgefold.estimators.rows_left_out import spread_of
from ridgefold.estimators.saving import Storable
from ridgefold.estimators.scale_names import column_shares, named_scales
from ridgefold.estimators.slopes import require_slopes
from ridgefold.estimators.validation import (
    check_new_rows,
    check_training_data,
    out_of_memory_is_a_budget_error,
)
from ridgefold.executors import Executor, Serial
from ridgefold.kernels import PRECOMPUTED, takes_sparse_and_negative
from ridgefold.linalg import namespace_of
from ridgefold.linalg.blocks import row_blocks
from ridgefold.linalg.namespace import is_foreign_array, is_tensor, on_device
from ridgefold.options import TakesOptions, cells_of, compute_of
from ridgefold.options.cell_options import EXACT
from ridgefold.planning import Explanation, available_resources, explain_run
from ridgefold.planning.amounts import in_bytes
from ridgefold.planning.cell_memory import WORK_BYTES
from ridgefold.records import Cells, Grid, LocalModels, Resources, RunRecord
from ridgefold.runtime import perform_all
from ridgefold.runtime.executor_argument import executor_of
from ridgefold.runtime.progress import progress_bar
from ridgefold.runtime.run_request import folder_of
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.importances import HeldOutSample
from ridgefold.selection.outside import ColumnRanges, ranges_of
from ridgefold.storage.annotations import check_fields
from ridgefold.storage.run_directory import Run, RunDirectory
from ridgefold.tables.sources import ArraySource, RowSource

_NEW_ROWS_SHARE = 0.25
"""New rows that are predicted together take this share of the memory budget, beside blocks of
kernel values."""

_DONORS = 2000
"""Rows of all cells, at most, that columns take exchanged values from where the rows that are left
out come from few cells."""


class PartitionedModel(WithEffects, WithImportances, WithEffectCurves, TakesOptions, Storable):
    """Base of the partitioned models; subclasses add their arguments, `fit` and `predict`."""

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
    run_record_: RunRecord

    _without_use: ClassVar[Mapping[str, str]] = {
        "compute.solver": "cells are solved by Cholesky, and all rows by cells.refine",
        "compute.tol": "cells are solved by Cholesky, and all rows by cells.refine",
        "metric.transforms": "rows of cells are taken as they are, so transform X before",
    }

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

    # -- fitting -------------------------------------------------------------------------

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
            targets = LeftToCells(targets, data.X, linear)[:]
            distinct = replace(distinct, given_targets=targets)
        cells, models, residuals = distinct.expanded(fitted.cells, fitted.models, fitted.residuals)
        X: Any = data.X
        if fitted.length_scales is not None:
            X = ScaledRows(X, fitted.length_scales)
        training = Training(
            X,
            targets,
            data.weights,
            self._weighs_scores(),
        )
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

    def _refine(self, training: Training, options: CellArguments, grid: Grid, room: float) -> None:
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

    def explain(self) -> Explanation:
        """How the fit was computed: its steps, with predicted and measured cost.

        Prints as text; `to_json()` gives JSON, and notebooks show it as HTML.
        """
        check_is_fitted(self, "X_fit_")
        if not hasattr(self, "run_record_"):
            raise InvalidInputError(
                "the model comes from a file of an older version, which does not say how it was "
                "computed: give n_samples and n_features to ridgefold.explain for a prediction"
            )
        return explain_run(self.run_record_)

    # -- reports -------------------------------------------------------------------------

    _nature: str
    """What the model is, in words."""

    def report_facts(self) -> ModelFacts:
        """What a report may know of the fitted model."""
        check_is_fitted(self, "X_fit_")
        targets = getattr(self, "y_fit_", None)
        residuals = self.held_out_residuals_
        held_out = None
        if targets is not None and residuals is not None:
            held_out = HeldOutFacts(
                "leave-one-out in every cell",
                lambda rows: self._target_columns(rows) - to_numpy(residuals[rows]),
            )
        names = numbered_columns(getattr(self, "feature_names_in_", None), int(self.n_features_in_))
        run = getattr(self, "run_record_", None)
        return ModelFacts(
            name=type(self).__name__,
            nature=self._nature,
            rows=self.X_fit_,
            n_rows=int(self.X_fit_.shape[0]),
            n_targets=int(self._models.intercept.shape[1]),
            column_names=names,
            targets=None if targets is None else to_numpy(targets),
            kernels=tuple(self.kernels_),
            alphas=np.ravel(self.alpha_).astype(np.float64),
            bias=bool(self.fit_intercept),
            fixed=numbers_of_fixed(self),
            predict=self.predict,
            held_out=held_out,
            metric=self._metric_facts(names),
            effects=self._effects_of_some_rows,
            cells=self._cell_facts(),
            run=run,
            explain=None if run is None else self.explain,
            methods_compared=False,
            importances=self._importances_for_facts(),
            effect_curves=self._curves_for_facts,
            is_outside=self.is_outside,
        )

    def _cell_facts(self) -> CellFacts:
        cut = self.partition if isinstance(self.partition, str) else type(self.partition).__name__
        in_space = COMBINERS[self._combine].needs_space
        return CellFacts(
            cells=self._cells,
            models=self._models,
            sizes=np.asarray(self.partition_sizes_),
            partition=cut,
            combine=self.combine,
            side_by_side=in_space and number_of(self._cells) == self.n_partitions_,
            trials=tuple(self.trials_),
            tolerance=float(cells_of(self).tolerance),
            coarse_share=self.coarse_model_share_,
            linear_coef=self.linear_coef_,
            refining_steps=int(self.n_steps_),
        )

    def _metric_facts(self, names: tuple[str, ...]) -> MetricFacts | None:
        shares = column_shares(self)
        if shares is None or self.length_scales_ is None:
            return None
        return MetricFacts(self.length_scales_, shares, named_scales(self, names, shares), None)

    def _fitted_targets(self) -> np.ndarray:
        """Targets of all training rows, as they were fitted; shape (n, n_columns)."""
        raise NotImplementedError

    def _targets_of_cells(self) -> np.ndarray:
        """The same as cells learned them: what a linear part leaves."""
        targets = self._fitted_targets()
        if self._linear is None:
            return targets
        return LeftToCells(targets, self.X_fit_, self._linear)[:]

    def _target_columns(self, rows: np.ndarray) -> np.ndarray:
        """Targets of numbered training rows, as they were fitted; shape (n, n_columns)."""
        raise NotImplementedError

    # -- rows left out -------------------------------------------------------------------

    def _held_out_sample(self, max_rows: int, random: np.random.Generator) -> HeldOutSample:
        check_is_fitted(self, "X_fit_")
        self._require_rows_to_leave_out()
        cells, weights = self._cells, self._weights
        n = int(self.X_fit_.shape[0])
        rows, clusters = rows_to_leave_out(
            cells, weights, n_rows=n, max_rows=max_rows, random=random
        )
        if len(rows) < 2:
            raise InvalidInputError("rows are left out of models of 2 or more, got one row")
        predict, how = self._left_out(rows)
        donors = np.sort(random.choice(n, size=min(n, _DONORS), replace=False))
        return HeldOutSample(
            X=np.asarray(self.X_fit_[rows]),
            targets=self._target_columns(rows).astype(np.float64),
            weights=np.ones(len(rows)) if weights is None else np.asarray(weights[rows], float),
            predict=predict,
            how=how,
            clusters=clusters,
            donors=None if clusters is None else np.asarray(self.X_fit_[donors]),
            donor_weights=None
            if clusters is None or weights is None
            else np.asarray(weights[donors], dtype=np.float64),
        )

    def _left_out(self, rows: np.ndarray) -> tuple[Callable[[np.ndarray], np.ndarray], str]:
        """Predictions of changed versions of training rows without them; and how, in words."""
        self._require_rows_to_leave_out()
        order = np.argsort(rows, kind="stable")
        left_out = RowsLeftOut(self._smoothers(None), rows[order])

        def predict(X: np.ndarray) -> np.ndarray:
            given = np.asarray(X, dtype=self.X_fit_.dtype)[order]
            new = self._in_metric(given)
            assignment = self._assignment(new)
            whole = self._combined_from(given, new, assignment).astype(np.float64)
            out = np.empty_like(whole)
            out[order] = whole - left_out.change(new, assignment)
            return out

        return predict, "leave-one-out in every cell"

    def _can_leave_rows_out(self) -> bool:
        in_space = COMBINERS[self._combine].needs_space
        return in_space and hasattr(self, "y_fit_") and int(self.X_fit_.shape[0]) > 1

    def _require_rows_to_leave_out(self) -> None:
        if not COMBINERS[self._combine].needs_space:
            how = "refined" if cells_of(self).refine is not None else f'combine="{self._combine}"'
            raise InvalidInputError(
                f'no row can be left out of a {how} model: fit with combine="blend" or '
                '"route" and cells.refine=None, or use KernelRidgeCV'
            )
        if not hasattr(self, "y_fit_"):
            raise InvalidInputError(
                "the model comes from a file of an older version, which lacks the targets of its "
                "rows: fit and save it again"
            )

    def _smoothers(self, residuals: np.ndarray | None) -> CellIntervals:
        """Models of cells without single rows; `residuals` are for intervals."""
        budget = available_resources(self.memory_budget).memory_bytes
        targets = self._targets_of_cells()
        return CellIntervals(
            self._training_rows(),
            targets,
            self._weights,
            self._cells,
            self._models,
            np.zeros(targets.shape) if residuals is None else residuals,
            bool(self.fit_intercept),
            self._coarse_model,
            max(budget - WORK_BYTES, WORK_BYTES),
        )

    def _target_summary(self) -> np.ndarray:
        n = int(self.X_fit_.shape[0])
        weights = np.ones(n) if self._weights is None else np.asarray(self._weights)
        classes = getattr(self, "classes_", None)
        if classes is not None:
            codes = np.asarray(self.y_fit_)
            counts = np.bincount(codes, weights, minlength=len(classes))
            return np.asarray(counts / weights.sum())
        return spread_of(self._fitted_targets(), weights)

    def _rows_for_curves(
        self, max_rows: int, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self, "X_fit_")
        n = int(self.X_fit_.shape[0])
        rows = np.arange(n) if self._weights is None else np.flatnonzero(self._weights > 0)
        if len(rows) > max_rows:
            rows = np.sort(random.choice(rows, size=max_rows, replace=False))
        weights = np.ones(len(rows)) if self._weights is None else self._weights[rows]
        return np.asarray(self.X_fit_[rows]), np.asarray(weights, dtype=np.float64)

    def _with_folds(self) -> Decisions:
        """Decision values of new rows, and None, as cells have no models without a fold."""

        def decide(X: np.ndarray) -> tuple[np.ndarray, None]:
            new = np.asarray(X, dtype=self.X_fit_.dtype)
            return self._combined(new).astype(np.float64), None

        return decide

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

    # -- prediction ----------------------------------------------------------------------

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

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle, without files that are there only as long as this object is."""
        state = dict(super().__getstate__())
        for name in ("_workspace", "_stored", "_known_surroundings"):
            state.pop(name, None)
        return state

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
        self, rows: CellsOfRows, X: np.ndarray, assignment: Assignment, executor: Executor
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
                np.asarray(self._training_rows()) if isinstance(rows, IndexedRows) else X[:0],
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

    def _rows_by_cell(self) -> CellsOfRows:
        return getattr(self, "_stored", None) or IndexedRows(self._training_rows(), self._cells)

    def _training_rows(self) -> Any:
        """The rows of the fit, in the metric in which the cells were cut."""
        if self.length_scales_ is None:
            return self.X_fit_
        return ScaledRows(self.X_fit_, self.length_scales_)

    # -- model files ---------------------------------------------------------------------

    _further_state: Mapping[str, Any] = {}
    """What subclasses store beside the values of every partitioned model, with its types."""

    def _state(self) -> dict[str, Any]:
        if not isinstance(self._partition, str):
            raise UnsupportedInputError(
                f"partition={self._partition!r} cannot be stored in a model file: use one of "
                f"{', '.join(PARTITIONERS)}"
            )
        if self.partition != self._partition:
            raise InvalidInputError(
                f"partition={self.partition!r} was set after the fit, whose cells are those of "
                f"{self._partition!r}: fit again, or set it back"
            )
        names = getattr(self, "feature_names_in_", None)
        kept = {"targets": "y_fit_", "run_record": "run_record_"}
        optional = {
            name: getattr(self, attribute)
            for name, attribute in kept.items()
            if hasattr(self, attribute)
        }
        return {
            **optional,
            "rows": np.asarray(self.X_fit_),
            "cells": self._cells,
            "model": self._models,
            "combine": self._combine,
            "backdrop": self._coarse_model,
            "partition_sizes": self.partition_sizes_,
            "trials": list(self.trials_),
            "effective_dimension": self.effective_dimension_,
            "held_out": self.held_out_residuals_,
            "weights": self._weights,
            "certificate": self.certificate_,
            "steps": self.n_steps_,
            "length_scales": self.length_scales_,
            "widening": self._widening,
            "linear": self._linear,
            "column_names": None if names is None else [str(name) for name in names],
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        check_fields("model.state", state, {**STATE, **self._further_state}, OPTIONAL)
        require_consistent(state, self.partition)
        if "targets" in state:
            n_rows, n_targets = state["rows"].shape[0], state["model"].intercept.shape[1]
            self.y_fit_ = require_targets(state, n_rows, n_targets)
        if "run_record" in state:
            self.run_record_ = state["run_record"]
        self.X_fit_, self._cells, self._models = state["rows"], state["cells"], state["model"]
        self._partition, self._combine = self.partition, state["combine"]
        self._coarse_model = state.get("backdrop")
        self.partition_sizes_ = state["partition_sizes"]
        self.n_partitions_ = len(self.partition_sizes_)
        self.trials_ = tuple(state["trials"])
        self.effective_dimension_ = state["effective_dimension"]
        self.held_out_residuals_, self.certificate_ = state["held_out"], state["certificate"]
        self.n_steps_, self._weights = state["steps"], state["weights"]
        self.length_scales_ = state["length_scales"]
        self._widening = state.get("widening")
        self._linear = state.get("linear")
        self.n_features_in_ = int(self.X_fit_.shape[1])
        if state["column_names"] is not None:
            self.feature_names_in_ = np.asarray(state["column_names"], dtype=object)
        self._copy_choices()

    def _copy_choices(self) -> None:
        self.alpha_ = self._models.alpha
        self.coarse_model_share_ = None if self._coarse_model is None else self._coarse_model.share
        self.linear_coef_ = None if self._linear is None else self._linear.coefficients
        self.kernels_ = [self._models.kernels[k] for k in self._models.kernel_of_cell]
        self.__dict__.pop("fixed_coef_", None)
        if self._models.fixed_coef is not None:
            self.fixed_coef_ = self._models.fixed_coef
            if self.length_scales_ is not None:
                units = self.length_scales_[list(numbers_of_fixed(self))][None, :, None]
                self.fixed_coef_ = self.fixed_coef_ / units.astype(self.fixed_coef_.dtype)
        self._name_fixed()

    def _name_fixed(self) -> None:
        self.__dict__.pop("fixed_names_", None)
        if self._models.fixed:
            names = getattr(self, "feature_names_in_", None)
            self.fixed_names_ = names_of_fixed(numbers_of_fixed(self), names)

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

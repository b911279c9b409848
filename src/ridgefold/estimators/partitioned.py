"""Kernel ridge and LS-SVM for many rows: cut them into cells, fit in each, combine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ridgefold.cells.cell_intervals import CellIntervals, interval_bytes
from ridgefold.cells.combine import COMBINERS
from ridgefold.cells.streaming import Stream, as_source
from ridgefold.errors import (
    BudgetError,
    InvalidInputError,
    ModelFileError,
    NumericalError,
)
from ridgefold.estimators.facts import IntervalFacts, ModelFacts, class_columns
from ridgefold.estimators.labels import (
    CLASSES_STATE,
    WithClasses,
    class_numbers,
    label_targets,
    row_counts,
)
from ridgefold.estimators.other_defaults import with_defaults
from ridgefold.estimators.partitioned_base import PartitionedModel
from ridgefold.estimators.regressor import check_coverage
from ridgefold.estimators.uncertainty import check_variance
from ridgefold.estimators.validation import out_of_memory_is_a_budget_error, unchanged_on_error
from ridgefold.linalg import Array, namespace_of
from ridgefold.options import CellOptions, Compute, MetricLearning, cells_of
from ridgefold.planning import available_resources
from ridgefold.planning.amounts import in_bytes
from ridgefold.planning.cell_memory import WORK_BYTES
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.probabilities import fit_curves
from ridgefold.storage.row_source import RowSource
from ridgefold.tables.sources import ArraySource


class PartitionedKernelRidge(MultiOutputMixin, RegressorMixin, PartitionedModel):
    """Kernel ridge regression on cells of the rows, in time and memory linear in their number.

    Each cell chooses its own kernel width and ridge by exact leave-one-out; overlapping cells
    are blended, so that predictions have no seams. The number of cells is chosen from the data.

    Parameters
    ----------
    partition : partitioner or str, default="tree"
        "tree", the default, cuts recursively across directions in which rows spread and targets
        change, known from a fit of some rows; "principal" the same without looking at targets;
        "hyperplanes" between parallel planes (PP-KRR, Liu, Song and Liang); "kmeans" around
        centres (DC-KRR, Tandon et al.); "random" draws rows (Fast-KRR, Zhang, Duchi and
        Wainwright); "stratified" draws them so that every cell is spread over all rows.
    n_partitions : "auto" or int, default="auto"
        Cells; "auto" takes as many as lose at most ``CellOptions(tolerance=0.02)`` of
        accuracy. Never more than rows.
    combine : {"blend", "route", "average"}, default="blend"
        "blend" weights overlapping cells continuously; "route" asks the one cell a row falls
        in; "average" takes the mean of all, and is the only one for "random" and "stratified".
    alpha : None, float or sequence of float
        Ridge: chosen from a grid, given, or chosen from those. With "average" it is the ridge
        for all rows, of which a cell takes its share n_cell/n; else every cell has it unchanged.
    kernel : str, kernel object, callable, list of them, or "auto", default="rbf"
        Of several kernels by name all cells take the one that is best on a few of them, and then
        choose widths of their own; of kernel objects every cell takes its own. "auto" stands for
        laplacian, Matérn 1/2, 3/2 and 5/2, rational_quadratic and rbf.
    gamma, kernel_params
        As in :class:`KernelRidgeCV`; without a width it is chosen.
    fit_intercept : bool, default=False
        An unpenalised bias in every cell. Where targets are far from zero it is worth its little
        cost; :class:`PartitionedLSSVMRegressor` has it by default.
    fixed : None, "linear" or list of str or int, default=None
        Columns whose linear effect is not penalised, as in :class:`KernelRidge`: every cell has
        coefficients of its own, in `fixed_coef_`, and there are no standard errors. Predictions
        still keep to the range of each cell's targets (``CellOptions(clip=False)`` lets them go
        beyond, as a trend does).
    metric : None, "learned" or MetricLearning, default=None
        "learned": learn one length scale a column from the gradient of the exact held-out error
        on a sample of the rows; cells are cut, and widths chosen, in that metric. Columns that do
        not matter are left out of it.
    cells : CellOptions, optional
        How cells overlap, are tuned, limited, mixed with a coarse model and refined.
    intervals : {"auto", "jackknife+", None}, default="auto"
        Whether to keep leave-one-out residuals, one number a row and target, which
        :meth:`predict_interval` needs: "auto" where cells choose their own ridge by them anyway.
    memory_budget : "auto", int or str, default="auto"
        Most memory to take beyond what the process holds, as "2GB": cells, samples and workers are
        sized by it, and a number of cells that it cannot hold is refused.
    compute : Compute, optional
        Workers, run directory, device, progress.
    random_state : int, RandomState or None, default=0

    Attributes
    ----------
    n_partitions_ : int
    partition_sizes_ : array, one entry a cell
        Rows of each cell, those shared with others included.
    alpha_, kernels_ : array and list of length `n_partitions_` (1 after refining)
        Ridge and kernel of each cell.
    trials_ : tuple of CellTrial
        What ``n_partitions="auto"`` tried: rows a cell, error, whether measured.
    effective_dimension_ : float or None
        tr K(K + alpha·I)⁻¹, with combine="average".
    held_out_residuals_ : array of shape (n_rows, n_targets) or None
        Leave-one-out residuals of the combined model, where cells chose their own ridge or
        `intervals` asks for them.
    y_fit_ : array with the shape of y
        The targets of the training rows.
    length_scales_ : array of shape (n_columns,) or None
        The learned scales, infinite for columns that are left out; the kernels' widths are in
        their units.
    fixed_coef_ : array of shape (n_partitions, n_fixed, n_targets)
        With `fixed`: the coefficients of those columns in every cell.
    fixed_names_ : array of shape (n_fixed,)
        The names of those columns.
    coarse_model_share_ : array of shape (n_targets,) or None
        How much the coarse model of all rows counts in predictions; None if there is none.
    linear_coef_ : array of shape (n_columns, n_targets) or None
        Coefficients of the linear part under the cells, one a column of X; None if there is none.
    certificate_ : array of shape (n_targets,) or None
        ‖y − (K + alpha·I)a − b‖ of a refined model.
    n_steps_ : int
        Steps of conjugate gradients taken.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import PartitionedKernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (2000, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(2000)
    >>> model = PartitionedKernelRidge(n_partitions=8).fit(X, y)
    >>> bool(np.max(np.abs(model.predict([[2.0], [5.0]]) - np.sin([2.0, 5.0]))) < 0.05)
    True
    """

    _nature = "kernel ridge regression in cells"

    def __init__(
        self,
        partition: Any = "tree",
        n_partitions: Any = "auto",
        combine: str = "blend",
        *,
        alpha: Any = None,
        kernel: Any = "rbf",
        gamma: Any = None,
        kernel_params: dict[str, Any] | None = None,
        fit_intercept: bool = False,
        fixed: Any = None,
        metric: str | MetricLearning | None = None,
        cells: CellOptions | None = None,
        intervals: str | None = "auto",
        memory_budget: Any = "auto",
        compute: Compute | None = None,
        random_state: Any = 0,
    ) -> None:
        self.partition = partition
        self.n_partitions = n_partitions
        self.combine = combine
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.fixed = fixed
        self.metric = metric
        self.cells = cells
        self.intervals = intervals
        self.memory_budget = memory_budget
        self.compute = compute
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cut the rows into cells and fit each.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            Also a memory-mapped array (``np.load(path, mmap_mode="r")``), an array of zarr or
            Dask, or the path of an .npy file, a Parquet file or a folder of them; or a tensor of
            torch. What does not
            fit well in `memory_budget` is read in blocks and put in the order of the cells on
            disk (in `run_dir`, or a temporary folder); the model is the same.
        y : array of shape (n_rows,) or (n_rows, n_targets)
            Of any of these kinds; with a Parquet X, also the name of one of its columns.
        sample_weight : float or array of shape (n_rows,), optional
            A row of weight 2 counts as two rows, one of weight 0 not at all: rows with the same x
            are one row of their weights' sum, by which cells are cut and tuned. Copies of a row are
            left out together (and count once in scores with
            ``CellOptions(weighted_scores=False)``), rows that share x but not their targets one by
            one. Rows that are read from disk are cut, and left
            out, as they are.
        """
        with unchanged_on_error(self):
            self._check_options()
            if self.intervals not in ("auto", "jackknife+", None):
                raise InvalidInputError(
                    f'intervals must be "auto", "jackknife+" or None, got {self.intervals!r}'
                )
            X, y, sample_weight = self._taken(X, y, sample_weight)
            stream = self._opened(X, y, sample_weight)
            if stream is not None and self._from_disk(stream):
                targets = as_source(stream.y, "y", stream.X.dtype)
                self._one_target = len(targets.shape) == 1
                self._fit_stream(stream, targets, stream.weights)
                self._name_columns(stream)
                return self
            X, y, sample_weight = (X, y, sample_weight) if stream is None else stream.loaded()
            data = self._check(X, y, sample_weight, numeric_targets=True)
            self._one_target = data.y.ndim == 1
            self._fit_cells(data, data.y[:, None] if self._one_target else data.y)
            self.y_fit_ = data.y
            self._name_columns(stream)
        return self

    _further_state: Mapping[str, Any] = {"one_target": bool}
    _interval_entries = ("held_out", "weights")

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "one_target": self._one_target}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        self._one_target = state["one_target"]
        if self._one_target and self._models.intercept.shape[1] != 1:
            raise ModelFileError("model.state.one_target is true of a model of several targets")

    def predict(
        self, X: Any, return_std: bool = False, *, noise: bool = False, variance: Any = None
    ) -> Any:
        """Predictions for the rows of X, grouped by cell; a tensor if X is one.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
        return_std : bool, default=False
            Also standard deviations: those of the cells that predict a row, each a Gaussian
            process with a variance of its own, averaged with the weights of the blend (what no
            correlation between cells exceeds). Of ``combine="average"``, that of the mean: its
            noise, which is independent between cells, and the mean of what the cells do not know of
            one common process. Cells are factorised one by one for each call.
        noise, variance
            As in :meth:`KernelRidge.predict`.

        Returns
        -------
        mean, or mean and std : arrays of shape (n_rows,) or (n_rows, n_targets)
        """
        if not return_std:
            if noise or variance is not None:
                raise InvalidInputError(
                    "noise and variance are about standard deviations: give return_std=True"
                )
            values = self._decision(X)
            return self._given_back(values[:, 0] if self._one_target else values, X)
        pairs = zip(*self._with_deviations(X, bool(noise), variance), strict=True)
        mean, std = (
            self._given_back(np.concatenate(each).astype(self._models.dual_coef.dtype), X)
            for each in pairs
        )
        return (mean[:, 0], std[:, 0]) if self._one_target else (mean, std)

    def _with_deviations(
        self, X: Any, noise: bool, variance: Any
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Predictions and standard deviations, block by block."""
        check_is_fitted(self, "X_fit_")
        given = check_variance(variance, int(self._models.intercept.shape[1]))
        processes, averaged = self._processes(), not COMBINERS[self._combine].needs_space
        for rows in self._blocks(X):
            placed = self._in_metric(rows)
            assignment = self._assignment(placed)
            mean = self._combined_from(rows, placed, assignment)
            if averaged:
                yield mean, processes.deviations_of_average(placed, given, noise=noise)
            else:
                yield mean, processes.standard_deviations(placed, assignment, given, noise=noise)

    def _needs_held_out(self) -> bool:
        return bool(self.intervals == "jackknife+")

    def _keeps_held_out(self, choosing: bool) -> bool:
        return self._needs_held_out() or (choosing and self.intervals is not None)

    _held_out_argument = 'intervals="jackknife+"'

    @out_of_memory_is_a_budget_error("predict_interval")
    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[Array, Array]:
        """An interval for each row of X that should hold the target with probability `coverage`.

        Exact jackknife+ with the cells as they are, from the rows of the cell that each new row
        lies in, so that intervals are wide where the model is far off. The matrices it needs are
        computed again for every cell that is asked for, about as much work as fitting those.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
        coverage : float, default=0.9
            See :meth:`KernelRidge.predict_interval`.

        Returns
        -------
        lower, upper : arrays with the shape of `predict`
            The prediction lies between them.
        """
        check_is_fitted(self, "X_fit_")
        coverage = check_coverage(coverage)
        residuals = self._kept_for_intervals()
        if residuals is None:
            raise InvalidInputError(self._why_no_intervals())
        budget = available_resources(self.memory_budget).memory_bytes
        self._require_room_for_intervals(budget)
        widening = 1.0 if self._widening is None else self._widening
        kept = self._smoothers(residuals.astype(np.float64) * widening)
        found = [self._intervals_of(rows, kept, coverage) for rows in self._blocks(X)]
        lower, upper = (
            self._given_back(np.concatenate(ends).astype(self._models.dual_coef.dtype), X)
            for ends in zip(*found, strict=True)
        )
        return (lower[:, 0], upper[:, 0]) if self._one_target else (lower, upper)

    def _require_room_for_intervals(self, budget: float) -> None:
        largest = int(np.diff(self._cells.offsets).max())
        needed = WORK_BYTES + interval_bytes(largest)
        if needed > budget and self.__dict__.get("_stored") is None:
            raise BudgetError(
                f"intervals from cells of {largest:,} rows need {in_bytes(needed)}, and "
                f"memory_budget is {in_bytes(budget)}: raise memory_budget "
                "(set_params(memory_budget=...) does), or fit with more cells"
            )

    def _intervals_of(
        self, rows: np.ndarray, kept: CellIntervals, coverage: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Both ends for some checked rows."""
        placed = self._in_metric(rows)
        assignment = self._assignment(placed)
        centre = self._combined_from(rows, placed, assignment).astype(np.float64)
        try:
            with np.errstate(over="raise"):
                lower, upper = kept.predict(placed, assignment, centre, coverage)
        except FloatingPointError:
            raise NumericalError(
                "numbers overflow while intervals are computed: scale the columns of X, and the "
                "targets"
            ) from None
        return np.minimum(lower, centre), np.maximum(upper, centre)

    def report_facts(self) -> ModelFacts:
        """What a report may know of the fitted model."""
        facts = super().report_facts()
        if self._kept_for_intervals() is None:
            return facts
        intervals = IntervalFacts(by_cell=True)
        return replace(facts, intervals=intervals, predict_interval=self.predict_interval)

    def _target_columns(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(self.y_fit_[rows]).reshape(len(rows), -1)

    def _kept_for_intervals(self) -> np.ndarray | None:
        """Leave-one-out residuals, if they are those of the model itself."""
        own = COMBINERS[self._combine].needs_space
        return self.held_out_residuals_ if own and hasattr(self, "y_fit_") else None

    def _fitted_targets(self) -> np.ndarray:
        """Targets of the training rows, shape (n, t)."""
        targets = np.asarray(self.y_fit_)
        return targets[:, None] if targets.ndim == 1 else targets

    def _why_no_intervals(self) -> str:
        if not hasattr(self, "y_fit_"):
            return (
                "the model comes from a file of an older version, which lacks the targets that "
                "intervals are made from: fit and save it again"
            )
        if not COMBINERS[self._combine].needs_space:
            how = "refined" if cells_of(self).refine is not None else f'combine="{self._combine}"'
            return (
                f'a {how} model has no intervals: fit with combine="blend" or "route" and '
                "cells.refine=None, or use KernelRidge"
            )
        return (
            f"no leave-one-out residuals were kept to predict intervals with (intervals="
            f'{self.intervals!r}): fit with intervals="jackknife+", one number a row and target'
        )


@with_defaults(fit_intercept=True)
class PartitionedLSSVMRegressor(PartitionedKernelRidge):
    """LS-SVM regression on cells of the rows: :class:`PartitionedKernelRidge` with a bias.

    Parameters
    ----------
    partition, n_partitions, combine, alpha, kernel, gamma, kernel_params, fixed, metric, cells, \
intervals, memory_budget, compute, random_state
        As in :class:`PartitionedKernelRidge`.
    fit_intercept : bool, default=True
        An unpenalised bias in every cell.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import PartitionedLSSVMRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (2000, 1))
    >>> y = 100 + np.sin(X[:, 0]) + 0.1 * rng.standard_normal(2000)
    >>> model = PartitionedLSSVMRegressor(n_partitions=8).fit(X, y)
    >>> bool(np.max(np.abs(model.predict([[2.0], [5.0]]) - 100 - np.sin([2.0, 5.0]))) < 0.05)
    True
    """

    _nature = "LS-SVM regression in cells"


class PartitionedLSSVMClassifier(WithClasses, PartitionedModel):
    """LS-SVM classification on cells of the rows: ridge on labels ±1.

    Parameters
    ----------
    partition, n_partitions, combine, alpha, kernel, gamma, kernel_params, fixed, metric, cells, \
memory_budget, compute, random_state
        As in :class:`PartitionedKernelRidge`; errors are those of the labels ±1.
    fit_intercept : bool, default=True
        An unpenalised bias in every cell.
    class_weight : dict, "balanced" or None
        Weights of the classes in all rows, multiplied with `sample_weight`. With them rows count by
        their weights in the scores that choose, too.
    probability : bool, default=False
        Make :meth:`predict_proba` available, calibrated on leave-one-out decision values.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    y_fit_ : array of shape (n_rows,)
        The classes of the training rows, as positions in `classes_`.
    calibration_ : array of shape (n_columns, 2)
        Slope and offset of the curve from decision values to probabilities, if asked for.
    n_partitions_, partition_sizes_, alpha_, kernels_, trials_, effective_dimension_, \
held_out_residuals_, length_scales_, coarse_model_share_, linear_coef_, \
certificate_, n_steps_
        As in :class:`PartitionedKernelRidge`.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import PartitionedLSSVMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((600, 2))
    >>> inside = np.sum(X**2, axis=1) < 1
    >>> model = PartitionedLSSVMClassifier(n_partitions=4).fit(X, inside)
    >>> model.predict([[0.0, 0.0], [2.0, 2.0]]).tolist()
    [True, False]
    """

    _nature = "LS-SVM classification in cells"

    def __init__(
        self,
        partition: Any = "tree",
        n_partitions: Any = "auto",
        combine: str = "blend",
        *,
        alpha: Any = None,
        kernel: Any = "rbf",
        gamma: Any = None,
        kernel_params: dict[str, Any] | None = None,
        fit_intercept: bool = True,
        fixed: Any = None,
        class_weight: Any = None,
        metric: str | MetricLearning | None = None,
        cells: CellOptions | None = None,
        probability: bool = False,
        memory_budget: Any = "auto",
        compute: Compute | None = None,
        random_state: Any = 0,
    ) -> None:
        self.partition = partition
        self.n_partitions = n_partitions
        self.combine = combine
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.fixed = fixed
        self.class_weight = class_weight
        self.metric = metric
        self.cells = cells
        self.probability = probability
        self.memory_budget = memory_budget
        self.compute = compute
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cut the rows into cells and fit each; y holds labels (numbers or strings)."""
        with unchanged_on_error(self):
            self._check_options()
            X, y, sample_weight = self._taken(X, y, sample_weight)
            stream = self._opened(X, y, sample_weight)
            if stream is not None and self._from_disk(stream):
                classes, targets, sample_weight = self._fit_stream_of_labels(stream)
            else:
                X, y, sample_weight = (X, y, sample_weight) if stream is None else stream.loaded()
                data = self._check(X, y, sample_weight, numeric_targets=False)
                data, targets, classes = label_targets(self, data, self.class_weight)
                self._fit_cells(data, targets)
            self.classes_, self.y_fit_ = classes, class_numbers(np.asarray(targets))
            self._calibrate(np.asarray(targets), sample_weight)
            self._name_columns(stream)
        return self

    def _fit_stream_of_labels(self, stream: Stream) -> tuple[Any, np.ndarray, Any]:
        """Fit from disk, with the labels in memory; the classes, columns of ±1, and weights."""
        y, weights, empty = stream.y, stream.weights, np.empty((0, 1), dtype=stream.X.dtype)
        labels = y.read() if isinstance(y, RowSource) else np.asarray(y)
        if weights is not None:
            weights = as_source(weights, "sample_weight", empty.dtype).read()
        data = TrainingData(namespace_of(), empty, labels, weights)
        data, targets, classes = label_targets(self, data, self.class_weight)
        self._fit_stream(stream, ArraySource(np.asarray(targets)), data.weights)
        return classes, np.asarray(targets), weights

    def _weighs_scores(self) -> bool:
        return super()._weighs_scores() or self.class_weight is not None

    def _needs_held_out(self) -> bool:
        return bool(self.probability)

    _held_out_argument = "probability=True"

    def _calibrate(self, targets: np.ndarray, sample_weight: Any) -> None:
        self.__dict__.pop("calibration_", None)
        if not self.probability:
            return
        assert self.held_out_residuals_ is not None
        codes = class_numbers(targets)
        decisions = targets - self.held_out_residuals_
        if np.all(np.isnan(decisions)):
            raise InvalidInputError(
                "probability=True is calibrated on rows left out, but all of the "
                f"{self.n_partitions_} cells have one row: use fewer cells, or probability=False"
            )
        self.calibration_ = fit_curves(decisions, codes, row_counts(sample_weight, len(codes)))

    _further_state: Mapping[str, Any] = CLASSES_STATE

    def _fitted_targets(self) -> np.ndarray:
        return class_columns(np.asarray(self.y_fit_), int(self._models.intercept.shape[1]))

    def _target_columns(self, rows: np.ndarray) -> np.ndarray:
        return class_columns(self.y_fit_[rows], int(self._models.intercept.shape[1]))

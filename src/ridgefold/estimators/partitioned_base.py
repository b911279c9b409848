"""Cut, choose, fit, perhaps refine, predict: what all partitioned models share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from ridgefold.combiners import COMBINERS, Assignment, cell_alpha
from ridgefold.engine.average_search import search_average
from ridgefold.engine.local_search import Grid, starting_at
from ridgefold.engine.partition_count import (
    MANY_ROWS,
    Fitted,
    choose_count,
    choose_count_of_average,
    effective_dimension,
)
from ridgefold.engine.partitioned import (
    FitSettings,
    Training,
    choose_pair,
    combined_residuals,
    number_of,
    predict_cells,
    rows_of,
    run_cells,
)
from ridgefold.engine.refine import refine
from ridgefold.engine.scaled_rows import ScaledRows
from ridgefold.errors import InvalidInputError, UnsupportedInputError
from ridgefold.estimators.cell_grid import cell_grid
from ridgefold.estimators.kept_targets import require_targets
from ridgefold.estimators.partitioned_options import (
    EXACT,
    Options,
    executor_of,
    options_of,
    partitioner_of,
)
from ridgefold.estimators.partitioned_state import OPTIONAL, STATE, require_consistent
from ridgefold.estimators.progress import progress_bar
from ridgefold.estimators.saving import Storable
from ridgefold.estimators.validation import (
    TrainingData,
    as_ridgefold_errors,
    check_new_rows,
    check_training_data,
)
from ridgefold.kernels import PRECOMPUTED, KernelGram, takes_sparse_and_negative
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.learning import learn_metric
from ridgefold.linalg.namespace import is_foreign_array
from ridgefold.partitioners import PARTITIONERS
from ridgefold.planning import available_resources
from ridgefold.records import Cells, CellTrial, LocalModels
from ridgefold.storage.annotations import check_fields

_SAMPLE_ROWS = 512
_DIMENSION_ROWS = 500
_LEARNING_ROWS = 6000


@dataclass(frozen=True)
class _Search:
    """What is known before the cells are fitted."""

    cells: Cells
    grid: Grid
    trials: tuple[CellTrial, ...]
    dimension: float | None = None
    fitted: Fitted | None = None
    """The models, if they were made on the way."""


class PartitionedModel(Storable):
    """Base of the partitioned models; subclasses add their arguments, `fit` and `predict`."""

    partition: Any
    n_partitions: Any
    combine: Any
    refine: Any
    alpha: Any
    kernel: Any
    gamma: Any
    length_scale: Any
    degree: Any
    coef0: Any
    kernel_params: dict[str, Any] | None
    fit_intercept: bool
    learn_scales: bool
    overlap: float
    clip: bool
    tuning: str
    weighted_scores: bool
    loss: float
    n_jobs: int | None
    executor: str
    random_state: Any
    memory_budget: Any
    verbose: int

    # -- fitting -------------------------------------------------------------------------

    def _check(self, X: Any, y: Any, sample_weight: Any, *, numeric_targets: bool) -> TrainingData:
        if is_foreign_array(X):
            raise UnsupportedInputError(
                f"{type(self).__name__} takes NumPy arrays only: pass X.cpu().numpy(), or use "
                "KernelRidge"
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
        options = options_of(self)
        with as_ridgefold_errors("random_state must be None, a whole number or a RandomState"):
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        rows = data.X
        self.length_scales_ = (
            self._learned_scales(data, targets, rng) if self.learn_scales else None
        )
        if self.length_scales_ is not None:
            # Cells are cut, and distances measured, in the learned metric.
            data = replace(data, X=ScaledRows(data.X, self.length_scales_))
        training = Training(data.X, targets, data.weights, bool(self.weighted_scores))
        n = data.X.shape[0]
        shared = n > MANY_ROWS if options.shared is None else options.shared
        search = (
            self._search_average(data, training, options, rng)
            if options.combiner.scales_alpha
            else self._search_in_space(data, training, options, rng, shared=shared)
        )
        cells = search.cells
        settings = self._settings(search.grid, training, options, shared=shared)
        sizes = np.diff(cells.offsets)
        factors = np.array([cell_alpha(options.combiner, 1.0, int(s), n) for s in sizes])
        residuals: np.ndarray | None
        if search.fitted is not None:
            models, residuals = search.fitted.models, search.fitted.residuals
        else:
            with progress_bar(self.verbose, "fitting cells") as progress:
                models, residuals = run_cells(
                    training, cells, settings, factors, options.executor, progress=progress
                )
        self.X_fit_ = rows
        self.certificate_: np.ndarray | None = None
        self.n_partitions_ = number_of(cells)
        self.partition_sizes_ = sizes
        self.trials_ = search.trials
        self.effective_dimension_ = search.dimension
        self.held_out_residuals_ = (
            None if residuals is None else combined_residuals(cells, residuals, n)
        )
        self._cells, self._models, self._combine = cells, models, self.combine
        self._weights = None if data.weights is None else np.asarray(data.weights)
        self.n_steps_ = 0
        if options.refine is not None:
            self._refine(training, options, search.grid)
        self._copy_choices()

    def _settings(
        self, grid: Grid, training: Training, options: Options, *, shared: bool
    ) -> FitSettings:
        choose = grid.is_choice and not shared
        return FitSettings(
            grid=grid,
            choose=choose,
            bias=options.bias,
            held_out=choose or self._needs_held_out(),
            clip=bool(self.clip) and not options.combiner.scales_alpha,
            fallback=_fallback(training, bias=options.bias),
        )

    def _learned_scales(
        self, data: TrainingData, targets: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """One scale a column, learned on a sample of the rows."""
        n = data.X.shape[0]
        some = np.sort(rng.choice(n, min(n, _LEARNING_ROWS), replace=False))
        family = self._grid(data, some[:_SAMPLE_ROWS], n).kernels[0]
        if not isinstance(family, DistanceKernel):
            raise InvalidInputError(
                "learn_scales=True needs one kernel of distances (rbf, matern, laplacian, "
                f"rational_quadratic), got kernel={self.kernel!r}"
            )
        learned = learn_metric(
            np.ascontiguousarray(data.X[some]),
            targets[some],
            family,
            weights=None if data.weights is None else data.weights[some],
            bias=bool(self.fit_intercept),
            random_state=int(rng.integers(2**31 - 1)),
        )
        return np.asarray(learned.kernel.length_scale, dtype=np.float64)

    def _grid(self, data: TrainingData, rows: np.ndarray, n_rows: int) -> Grid:
        """Kernels and alphas for cells like the given rows; `n_rows` is what alphas count."""
        part = replace(data, X=np.ascontiguousarray(data.X[rows]), weights=None)
        settings = {
            "gamma": self.gamma,
            "length_scale": self.length_scale,
            "degree": self.degree,
            "coef0": self.coef0,
            "kernel_params": self.kernel_params,
        }
        grid = cell_grid(self.kernel, settings, self.alpha, part)
        if self.alpha is None:
            grid = replace(grid, alphas=grid.alphas * (n_rows / len(rows)))
        return grid

    def _search_in_space(
        self,
        data: TrainingData,
        training: Training,
        options: Options,
        rng: np.random.Generator,
        *,
        shared: bool,
    ) -> _Search:
        n = data.X.shape[0]
        trials: tuple[CellTrial, ...] = ()
        m, grid = options.n_cells, None
        if m is None:
            near = _nearest(data.X, int(rng.integers(n)), _SAMPLE_ROWS)
            grid = self._grid(data, near, len(near))
            count = choose_count(
                training,
                options.partitioner,
                options.overlap,
                grid,
                options.executor,
                loss=options.loss,
                rng=rng,
                settings=self._settings(grid, training, options, shared=shared),
            )
            m, trials, grid = count.n_cells, count.trials, count.grid
            if count.fitted is not None:
                return _Search(count.fitted.cells, grid, trials, fitted=count.fitted)
        cells = options.partitioner.fit(data.X, min(m, n), options.overlap, rng)
        if grid is None:
            rows = rows_of(cells, number_of(cells) // 2)
            grid = self._grid(data, rows, len(rows))
        choice = choose_pair(training, cells, grid, options.executor, bias=options.bias)
        grid = starting_at(grid, choice)
        return _Search(cells, grid, trials)

    def _search_average(
        self,
        data: TrainingData,
        training: Training,
        options: Options,
        rng: np.random.Generator,
    ) -> _Search:
        n = data.X.shape[0]
        sample = np.sort(rng.choice(n, min(n, _DIMENSION_ROWS), replace=False))
        m = options.n_cells or max(1, round(n / _SAMPLE_ROWS))
        cells = options.partitioner.fit(data.X, min(m, n), 0.0, rng)
        grid = self._grid(data, sample[:_SAMPLE_ROWS], n)
        choice = search_average(training, cells, grid, options.executor, rng, bias=options.bias)
        grid = starting_at(grid, choice)
        kernel, alpha = grid.kernels[grid.start], float(grid.alphas[grid.start_alpha])
        gram = KernelGram(kernel, np.asarray(data.X[sample], dtype=np.float64)).full()
        dimension = effective_dimension(np.linalg.eigvalsh(gram), alpha * len(sample) / n)
        if options.n_cells is not None:
            return _Search(cells, grid, (), dimension)
        one = replace(grid, kernels=(kernel, kernel), start=0, ordered=False)
        one = replace(one, alphas=np.array([alpha]), start_alpha=0)
        seed = int(rng.integers(2**31))

        def score(m: int) -> float:
            split = options.partitioner.fit(data.X, m, 0.0, np.random.default_rng(seed))
            same = np.random.default_rng(seed + 1)
            found = search_average(training, split, one, options.executor, same, bias=options.bias)
            return float(np.sqrt(found.score))

        guess = max(1, int(n / max(dimension, 1.0) ** 2))
        m, trials = choose_count_of_average(score, guess, n, options.loss)
        cells = options.partitioner.fit(data.X, m, 0.0, np.random.default_rng(seed))
        return _Search(cells, grid, trials, dimension)

    def _refine(self, training: Training, options: Options, grid: Grid) -> None:
        """Replace the cells' models by one model of all rows."""
        n, cells, models = training.X.shape[0], self._cells, self._models
        shares = np.ones(len(cells.rows)) if cells.weights is None else cells.weights
        start = np.empty((n, models.dual_coef.shape[1]), dtype=models.dual_coef.dtype)
        for j in range(start.shape[1]):
            weighted = shares * models.dual_coef[:, j]
            start[:, j] = np.bincount(cells.rows, weights=weighted, minlength=n)
        kernel, alpha = grid.kernels[grid.start], float(grid.alphas[grid.start_alpha])
        with progress_bar(self.verbose, "refining") as progress:
            whole = refine(
                training,
                kernel,
                alpha,
                _disjoint(cells, n),
                start,
                bias=options.bias,
                steps=None if options.refine == EXACT else int(options.refine or 0),
                memory_bytes=available_resources(self.memory_budget).memory_bytes,
                progress=progress,
            )
        self._cells = Cells(np.arange(n), np.array([0, n]), None, {})
        self._models = LocalModels(
            whole.dual_coef,
            whole.intercept[None, :],
            np.array([alpha]),
            (kernel,),
            np.zeros(1, dtype=np.intp),
        )
        self._combine = "average"
        self.held_out_residuals_ = None
        self.certificate_, self.n_steps_ = whole.certificate, whole.steps

    # -- prediction ----------------------------------------------------------------------

    def _needs_held_out(self) -> bool:
        """Whether leave-one-out residuals are wanted, even if nothing is chosen by them."""
        return False

    def _decision(self, X: Any) -> np.ndarray:
        """The combined f(x) of every row and target, shape (n, t)."""
        check_is_fitted(self, "X_fit_")
        X = self._new_rows(X)
        return self._combined(X, self._assignment(X))

    def _new_rows(self, X: Any) -> np.ndarray:
        """Checked rows, in the metric in which the cells were cut."""
        X = check_new_rows(self, X, self.X_fit_)
        if self.length_scales_ is not None:
            X = X / self.length_scales_.astype(X.dtype)
        return np.asarray(X)

    def _assignment(self, X: np.ndarray) -> Assignment:
        """Which cells predict which of some checked rows."""
        partitioner, cells = partitioner_of(self.partition), self._cells
        combiner = COMBINERS[self._combine]
        return combiner.assign(partitioner, cells.router, number_of(cells), X)

    def _combined(self, X: np.ndarray, assignment: Assignment) -> np.ndarray:
        executor = executor_of(self.executor, self.n_jobs)
        return predict_cells(
            self._training_rows(),
            self._cells,
            self._models,
            assignment,
            new=X,
            executor=executor,
        )

    def _training_rows(self) -> Any:
        """The rows of the fit, in the metric in which the cells were cut."""
        if self.length_scales_ is None:
            return self.X_fit_
        return ScaledRows(self.X_fit_, self.length_scales_)

    # -- model files ---------------------------------------------------------------------

    _further_state: Mapping[str, Any] = {}
    """What subclasses store beside the values of every partitioned model, with its types."""

    def _state(self) -> dict[str, Any]:
        if not isinstance(self.partition, str):
            raise UnsupportedInputError(
                f"partition={self.partition!r} cannot be stored in a model file: use one of "
                f"{', '.join(PARTITIONERS)}"
            )
        names = getattr(self, "feature_names_in_", None)
        optional = {"targets": self.y_fit_} if hasattr(self, "y_fit_") else {}
        return {
            **optional,
            "rows": np.asarray(self.X_fit_),
            "cells": self._cells,
            "model": self._models,
            "combine": self._combine,
            "partition_sizes": self.partition_sizes_,
            "trials": list(self.trials_),
            "effective_dimension": self.effective_dimension_,
            "held_out": self.held_out_residuals_,
            "weights": self._weights,
            "certificate": self.certificate_,
            "steps": self.n_steps_,
            "length_scales": self.length_scales_,
            "column_names": None if names is None else [str(name) for name in names],
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        check_fields("model.state", state, {**STATE, **self._further_state}, OPTIONAL)
        require_consistent(state, self.partition)
        if "targets" in state:
            n_rows, n_targets = state["rows"].shape[0], state["model"].intercept.shape[1]
            self.y_fit_ = require_targets(state, n_rows, n_targets)
        self.X_fit_, self._cells, self._models = state["rows"], state["cells"], state["model"]
        self._combine = state["combine"]
        self.partition_sizes_ = state["partition_sizes"]
        self.n_partitions_ = len(self.partition_sizes_)
        self.trials_ = tuple(state["trials"])
        self.effective_dimension_ = state["effective_dimension"]
        self.held_out_residuals_, self.certificate_ = state["held_out"], state["certificate"]
        self.n_steps_, self._weights = state["steps"], state["weights"]
        self.length_scales_ = state["length_scales"]
        self.n_features_in_ = int(self.X_fit_.shape[1])
        if state["column_names"] is not None:
            self.feature_names_in_ = np.asarray(state["column_names"], dtype=object)
        self._copy_choices()

    def _copy_choices(self) -> None:
        self.alpha_ = self._models.alpha
        self.kernels_ = [self._models.kernels[k] for k in self._models.kernel_of_cell]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.positive_only = not takes_sparse_and_negative(self.kernel)[1]
        return tags


def _nearest(X: np.ndarray, row: int, count: int) -> np.ndarray:
    """The rows nearest to one of them, from a sample if there are many."""
    n = X.shape[0]
    some = np.unique(np.linspace(0, n - 1, min(n, 200_000)).astype(np.intp))
    count = max(min(n, 8), min(len(some), count * len(some) // n))
    squares = np.sum((np.asarray(X[some], dtype=np.float64) - X[row]) ** 2, axis=1)
    return np.asarray(np.sort(some[np.argsort(squares, kind="stable")[:count]]))


def _disjoint(cells: Cells, n_rows: int) -> list[np.ndarray]:
    """Every row in the one cell of which it has the largest share."""
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


def _fallback(training: Training, *, bias: bool) -> np.ndarray:
    """What a cell without rows predicts: the weighted mean with a bias, else zero."""
    if not bias:
        return np.zeros(training.targets.shape[1], dtype=training.targets.dtype)
    mean = np.average(training.targets, axis=0, weights=training.weights)
    return np.asarray(mean, dtype=training.targets.dtype)

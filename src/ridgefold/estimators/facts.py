"""What a fitted model tells a report: one record of facts, which every estimator fills.

A report reads these facts and nothing else, so that it never has to ask what kind of model it is
given. A part that a model does not have (a search, cells, a learned metric) is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.estimators.effects_table import MarginalEffects
from ridgefold.estimators.scale_names import NamedScales
from ridgefold.linalg import namespace_of
from ridgefold.planning import Explanation
from ridgefold.records import (
    Attempt,
    Cells,
    CellTrial,
    EffectCurve,
    Importances,
    LearnedMetric,
    LocalModels,
    RunRecord,
)


@dataclass(frozen=True)
class HeldOutFacts:
    """Predictions of training rows by models that had not seen them."""

    how: str
    """How rows were held out, in words, such as "5-fold cross-validation"."""
    at: Callable[[np.ndarray], np.ndarray]
    """The predictions (of classifiers, decision values) of numbered training rows, shape
    (n, n_columns); NaN where a row was never held out."""


@dataclass(frozen=True)
class SearchFacts:
    """The search for a kernel and a ridge."""

    results: Mapping[str, Any]
    """`cv_results_`."""
    best_index: int
    best_params: Mapping[str, Any]
    best_score: float
    scoring: Any
    """The scoring that was asked for; None for the squared error, or the share of right answers."""
    weighted: bool
    """True if rows count by their weights in the scores."""
    n_splits: int


@dataclass(frozen=True)
class CellFacts:
    """The cells of a partitioned model."""

    cells: Cells
    models: LocalModels
    sizes: np.ndarray
    """Rows of each cell that was cut; after refining, there is one model of all of them."""
    partition: str
    combine: str
    side_by_side: bool
    """True if every row has cells of its own, so that cells can be drawn on a map."""
    trials: tuple[CellTrial, ...]
    """The sizes of cells that were tried, if their number was chosen."""
    tolerance: float
    """The share by which the error of a smaller size may exceed that of the best."""
    coarse_share: np.ndarray | None
    """The share of the coarse model of all rows in the prediction of every target, if any."""
    refining_steps: int
    linear_coef: np.ndarray | None = None
    """Coefficients of the linear part under the cells, shape (n_columns, n_targets), if any."""


@dataclass(frozen=True)
class MetricFacts:
    """The length scales that were learned, one a column."""

    length_scales: np.ndarray
    shares: np.ndarray
    """Shares of the columns in the mean distance between two rows."""
    named: NamedScales
    """The shares by name, with columns that share a scale put together."""
    learned: LearnedMetric | None
    """How the scales were found; None where a model keeps the scales alone."""


@dataclass(frozen=True)
class IntervalFacts:
    """What prediction intervals are made from."""

    by_cell: bool
    """True if an interval is as wide as the residuals of the row's own cell ask for."""
    groups: np.ndarray | None = None
    """For every training row the fold that it was held out with; None where rows were held out
    one by one, or where it is not known."""


@dataclass(frozen=True)
class TriedFacts:
    """Models that were tried, and what they were put together to."""

    attempts: tuple[Attempt, ...]
    """The heaviest first."""
    error: float
    """Held-out error of all together."""
    measure: str
    """What errors are, in words."""


@dataclass(frozen=True)
class ModelFacts:
    """Everything that a report may know of a fitted model."""

    name: str
    """The name of the estimator's class."""
    nature: str
    """What the model is, in words."""
    rows: Any
    """Rows that the model keeps; of a precomputed kernel, its matrix."""
    n_rows: int
    """Rows that the model was fitted to."""
    n_targets: int
    column_names: tuple[str, ...]
    """A name for each column of numbers that the model sees."""
    targets: np.ndarray | None
    """Targets of the fit; of classifiers, positions in `classes`. None in older model files."""
    kernels: tuple[Any, ...]
    """The kernel, or one for each cell; a text where the kernel matrix was given."""
    alphas: np.ndarray
    """The ridge: one for all, one for each target, or one for each cell."""
    bias: bool
    predict: Callable[[Any], Any]
    n_table_columns: int | None = None
    """Columns of the table that the model takes; None for models of numbers."""
    classes: np.ndarray | None = None
    predict_proba: Callable[[Any], Any] | None = None
    predict_interval: Callable[[Any, float], tuple[Any, Any]] | None = None
    calibration: np.ndarray | None = None
    """Curves from decision values to probabilities, if they were asked for."""
    held_out: HeldOutFacts | None = None
    intervals: IntervalFacts | None = None
    search: SearchFacts | None = None
    metric: MetricFacts | None = None
    effects: Callable[[], MarginalEffects] | None = None
    """Marginal effects at some training rows, if the model has columns to have effects."""
    cells: CellFacts | None = None
    compressed: bool = False
    """True if the model was compressed to few of its rows after the fit."""
    run: RunRecord | None = None
    """The steps of the fit as they ran; None in older model files."""
    explain: Callable[[], Explanation] | None = None
    """The explanation of the fit, if enough is kept for one."""
    fixed: tuple[int, ...] = ()
    """Numbers of the columns that are not penalised."""
    importances: Callable[[int, int], Importances] | None = None
    """Importances of the columns, from the number of repeats and the most rows to look at; None
    where no row can be left out."""
    effect_curves: Callable[[Sequence[Any], int | None], list[EffectCurve]] | None = None
    """Curves of some columns and a target, or the one that is shown by default; None where there
    are no rows to draw them over."""
    is_outside: Callable[[Any], np.ndarray] | None = None
    """Which new rows are unlike all of the fit; None where that cannot be told."""
    methods_compared: bool = True
    """True if the methods of the steps were chosen among several."""
    tried: TriedFacts | None = None
    """What models of several kinds were tried, where they were put together."""


def to_numpy(values: Any) -> np.ndarray:
    """An array as a NumPy array, copied from its device if need be."""
    return np.asarray(namespace_of(values).to_numpy(values))


def numbered_columns(names: Any, n_columns: int) -> tuple[str, ...]:
    """The names of the columns, or their numbers where they have none."""
    if names is None:
        return tuple(f"column {j}" for j in range(n_columns))
    return tuple(str(name) for name in np.asarray(names))


def class_columns(codes: np.ndarray, n_columns: int) -> np.ndarray:
    """Positions of classes as columns of ±1, as classifiers fit them."""
    if n_columns == 1:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(n_columns), 1.0, -1.0)

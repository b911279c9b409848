"""What a report may know of a model in cells."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ridgefold.cells.cell_rows import number_of
from ridgefold.cells.combine import COMBINERS
from ridgefold.errors import InvalidInputError
from ridgefold.estimators.facts import (
    CellFacts,
    HeldOutFacts,
    MetricFacts,
    ModelFacts,
    numbered_columns,
    to_numpy,
)
from ridgefold.estimators.fixed_columns import numbers_of_fixed
from ridgefold.estimators.partitioned_left_out import LeavesRowsOutOfCells
from ridgefold.estimators.scale_names import column_shares, named_scales
from ridgefold.kernels import Kernel
from ridgefold.options import cells_of
from ridgefold.planning import Explanation, explain_run
from ridgefold.records import CellTrial


class ReportsOnCells(LeavesRowsOutOfCells):
    """The facts of a fitted model of cells."""

    trials_: tuple[CellTrial, ...]
    partition_sizes_: np.ndarray
    n_partitions_: int
    n_steps_: int
    held_out_residuals_: np.ndarray | None
    coarse_model_share_: np.ndarray | None
    linear_coef_: np.ndarray | None
    kernels_: list[Kernel]
    alpha_: np.ndarray

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

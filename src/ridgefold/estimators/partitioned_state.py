"""What a model file holds of a partitioned model, and whether it fits together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ridgefold.cells.combine import COMBINERS
from ridgefold.cells.computed_rows import in_metric
from ridgefold.cells.cut import PARTITIONERS
from ridgefold.errors import InvalidInputError, ModelFileError, UnsupportedInputError
from ridgefold.estimators.fixed_columns import names_of_fixed, numbers_of_fixed
from ridgefold.estimators.kept_targets import require_targets
from ridgefold.estimators.partitioned_predict import PredictsByCells
from ridgefold.estimators.saving import Storable
from ridgefold.estimators.stored_values import Floats, HeldOut, require_kernel
from ridgefold.exact.interval_ranks import is_widening
from ridgefold.records import Backdrop, Cells, CellTrial, LinearPart, LocalModels, RunRecord
from ridgefold.records.kinds import Count, Limit
from ridgefold.storage.annotations import check_fields


@dataclass(frozen=True)
class Sizes:
    """Whole numbers >= 1."""

    def accepts(self, value: Any) -> bool:
        return bool(_integers(value) and len(value) and np.all(value >= 1))

    def __str__(self) -> str:
        return "whole numbers >= 1"


STATE: Mapping[str, Any] = {
    "rows": np.ndarray,
    "cells": Cells,
    "model": LocalModels,
    "combine": str,
    "partition_sizes": Annotated[np.ndarray, Sizes()],
    "trials": list[CellTrial],
    "effective_dimension": Limit | None,
    "held_out": HeldOut | None,
    "weights": Annotated[np.ndarray, Floats((1,), least=0.0)] | None,
    "certificate": Annotated[np.ndarray, Floats((1,), unknown=True, infinite=True)] | None,
    "steps": Count,
    "length_scales": np.ndarray | None,
    "column_names": list[str] | None,
}
"""Entries of the state, with their types."""
OPTIONAL: Mapping[str, Any] = {
    "targets": np.ndarray,
    "run_record": RunRecord,
    "backdrop": Backdrop | None,
    "widening": np.ndarray | None,
    "linear": LinearPart | None,
}
"""What a file may lack, as older ones do."""


def require_consistent(state: Mapping[str, Any], partition: Any) -> None:
    """Raise a typed error unless shapes, types and indices of a stored state fit together."""
    rows, cells, models = state["rows"], state["cells"], state["model"]
    floats = [rows, models.dual_coef, models.intercept]
    good = (
        all(_floats(a, rows.dtype, 2) for a in floats)
        and _integers(cells.rows)
        and _integers(cells.offsets)
        and _integers(models.kernel_of_cell)
        and _floats(models.alpha, models.alpha.dtype, 1)
    )
    if not good:
        raise ModelFileError("model.state must hold finite numbers of the right types")
    m = len(cells.offsets) - 1
    n = rows.shape[0]
    good = (
        m >= 1
        and cells.offsets[0] == 0
        and cells.offsets[-1] == len(cells.rows) == len(models.dual_coef)
        and bool(np.all(cells.offsets >= 0))  # differences of others may leave their type
        and bool(np.all(np.diff(cells.offsets) > 0))
        and bool(np.all((cells.rows >= 0) & (cells.rows < n)))
        and (cells.weights is None or _floats(cells.weights, np.dtype(np.float64), 1))
        and (cells.weights is None or len(cells.weights) == len(cells.rows))
        and models.intercept.shape == (m, models.dual_coef.shape[1])
        and bool(np.all(models.alpha >= 0))
        and models.alpha.shape == models.kernel_of_cell.shape == (m,)
        and all(
            bound is None
            or (_floats(bound, rows.dtype, 2) and bound.shape == models.intercept.shape)
            for bound in (models.lowest, models.highest)
        )
        and bool(np.all(models.kernel_of_cell >= 0))
        and bool(np.all(models.kernel_of_cell < len(models.kernels)))
        and (
            state["length_scales"] is None
            or (
                state["length_scales"].dtype == np.float64
                and state["length_scales"].shape == (rows.shape[1],)
                and bool(np.all(state["length_scales"] > 0))
                and bool(np.any(np.isfinite(state["length_scales"])))
            )
        )
        and (state["column_names"] is None or len(state["column_names"]) == rows.shape[1])
    )
    held_out, weights, scales = state["held_out"], state["weights"], state["length_scales"]
    columns = rows.shape[1] if scales is None else int(np.isfinite(scales).sum())
    if held_out is not None:
        good = good and held_out.shape == (n, models.dual_coef.shape[1])
        good = good and held_out.dtype == rows.dtype
    if weights is not None:
        good = good and _floats(weights, weights.dtype, 1) and weights.shape == (n,)
    widening, coarse_model = state.get("widening"), state.get("backdrop")
    certificate = state["certificate"]
    good = good and (widening is None or is_widening(widening, models.dual_coef.shape[1]))
    good = good and (certificate is None or len(certificate) == models.dual_coef.shape[1])
    good = good and _columns_fit(models, m, rows, columns)
    good = good and _lies_under(state.get("linear"), models.dual_coef.shape[1], rows.shape[1])
    good = good and _stands_behind(coarse_model, models.dual_coef.shape[1], columns)
    if not good:
        raise ModelFileError("model.state holds cells and models that do not fit together")
    if state["combine"] not in COMBINERS or partition not in PARTITIONERS:
        raise ModelFileError("model.state names a partition or combination unknown here")
    in_space = COMBINERS[state["combine"]].needs_space
    if in_space and not np.array_equal(state["partition_sizes"], np.diff(cells.offsets)):
        raise ModelFileError("model.state.partition_sizes must be the sizes of the cells")
    cut = PARTITIONERS[partition]
    if in_space and not (cut.in_space and cut.accepts(cells.router, m, columns)):
        raise ModelFileError(f"model.state.cells has no router for {partition!r} cells")
    some = rows[:1] if scales is None else in_metric(rows[:1], scales)
    for kernel in models.kernels:
        require_kernel(kernel, some, "model.state.model.kernels")
    if coarse_model is not None:
        require_kernel(coarse_model.kernel, coarse_model.centres[:1], "model.state.backdrop.kernel")


def _columns_fit(models: LocalModels, n_cells: int, rows: np.ndarray, n_columns: int) -> bool:
    """Whether unpenalised columns and their coefficients fit the cells, if there are any."""
    coefficients, columns = models.fixed_coef, models.fixed
    if coefficients is None:
        return not columns
    return (
        _floats(coefficients, rows.dtype, 3)
        and coefficients.shape == (n_cells, len(columns), models.dual_coef.shape[1])
        and len(set(columns)) == len(columns) > 0
        and max(columns) < n_columns
    )


def _stands_behind(coarse_model: Backdrop | None, n_targets: int, n_columns: int) -> bool:
    """Whether a coarse model fits the cells, if there is one."""
    if coarse_model is None:
        return True
    arrays = {
        "centres": (len(coarse_model.centres), n_columns),
        "projection": (len(coarse_model.centres), len(coarse_model.offset)),
        "offset": (len(coarse_model.offset),),
        "coefficients": (len(coarse_model.offset), n_targets),
        "intercept": (n_targets,),
        "share": (n_targets,),
    }
    return all(
        _floats(array := getattr(coarse_model, name), array.dtype, len(shape))
        and array.shape == shape
        for name, shape in arrays.items()
    ) and bool(np.all((coarse_model.share >= 0) & (coarse_model.share <= 1)))


def _lies_under(linear: LinearPart | None, n_targets: int, n_columns: int) -> bool:
    """Whether a linear part fits the cells, if there is one."""
    if linear is None:
        return True
    shapes = {
        "coefficients": (n_columns, n_targets),
        "intercept": (n_targets,),
        "lowest": (n_columns,),
        "highest": (n_columns,),
        "least": (n_targets,),
        "most": (n_targets,),
    }
    limits = (linear.least, linear.most)
    return (
        all(
            _floats(array, np.dtype(np.float64), len(shape)) and array.shape == shape
            for name, shape in shapes.items()
            if (array := getattr(linear, name)) is not None
        )
        and bool(np.all(linear.lowest <= linear.highest))
        and (limits[0] is None) == (limits[1] is None)
        and (limits[0] is None or bool(np.all(limits[0] <= limits[1])))
    )


def _floats(a: Any, dtype: Any, ndim: int) -> bool:
    return (
        type(a) is np.ndarray
        and a.ndim == ndim
        and a.dtype == dtype
        and a.dtype in (np.float32, np.float64)
        and bool(np.all(np.isfinite(a)))
    )


def _integers(a: Any) -> bool:
    return type(a) is np.ndarray and a.ndim == 1 and a.dtype.kind == "i"


class StoresCells(PredictsByCells, Storable):
    """A fitted model of cells in model files and pickles."""

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle, without files that are there only as long as this object is."""
        state = dict(super().__getstate__())
        for name in ("_workspace", "_stored", "_known_surroundings"):
            state.pop(name, None)
        return state

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

"""What a model file holds of a partitioned model, and whether it fits together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ridgefold.cells.combine import COMBINERS
from ridgefold.cells.cut import PARTITIONERS
from ridgefold.cells.scaled_rows import in_metric
from ridgefold.errors import ModelFileError
from ridgefold.estimators.stored_values import Floats, HeldOut, require_kernel
from ridgefold.exact.interval_ranks import is_widening
from ridgefold.records import Backdrop, Cells, CellTrial, LinearPart, LocalModels, RunRecord
from ridgefold.records.kinds import Count, Limit


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

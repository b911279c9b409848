"""What a fitted model is, and how good it is, for people and for --json."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ridgefold.automatic.gradient_boosting import BoostingBeside
    from ridgefold.cli.automatic_fit import TableToFit

_COVERAGE = 0.9
_MOST_COLUMNS = 5
"""Columns that are named: the report has all of them."""
_MOST_SCALES = 8
_ROWS_EXCHANGED = 200
"""Rows whose values change places: enough for the first few columns, and quick."""
_LONGER, _LEAST_SECONDS = 4, 5
"""Where candidates had no time, so many times as much is proposed, and at least so many seconds."""


def is_automatic(fitted: Any) -> bool:
    """Whether a fitted model is one of those that chose everything."""
    from ridgefold.automatic.table_estimator import TableEstimator

    return isinstance(fitted, TableEstimator) and fitted.model is None


def fit_summary(model: Any, beside: BoostingBeside | None = None) -> dict[str, Any]:
    """What was learned."""
    classes = hasattr(model, "classes_")
    return {
        "target": getattr(model, "target_", None),
        "task": "classification" if classes else "regression",
        "rows": len(model._counts),
        "columns": f"{len(model._encoder.names)} of {model.n_features_in_}",
        "features": len(model._encoder.feature_names),
        **(_class_facts(model) if classes else _facts(model)),
        **(_of_candidates(model, beside) if is_automatic(model) else _of_given(model)),
    }


def _of_candidates(model: Any, beside: BoostingBeside | None) -> dict[str, Any]:
    """What of simpler models, and of which models the sum is made."""
    error = "log_loss" if hasattr(model, "classes_") else "rmse"
    linear = [each.held_out_error for each in model.leaderboard_ if each.candidate == "linear"]
    return {
        f"{error}_of_a_linear_model": linear[0] if linear else None,
        f"{error}_of_gradient_boosting": None if beside is None else beside.error,
        "seconds_of_gradient_boosting": None if beside is None else round(beside.seconds, 2),
        **_top_columns(model),
        "models": [
            {"candidate": each.candidate, "share": each.share}
            for each in model.leaderboard_
            if each.share > 0
        ],
        "time_budget": float(f"{model.time_budget_:.3g}"),
    }


def _of_given(model: Any) -> dict[str, Any]:
    """What a kernel machine with settings of somebody's own has chosen, and how."""
    inner = model.model_
    return {
        **kernel_summary(inner),
        "intervals": None if hasattr(model, "classes_") else intervals_of(inner),
        "shares_in_distance": _shares_in_distance(model),
        **ways_of(inner),
        "pairs_tried": len(inner.cv_results_["params"]) if hasattr(inner, "cv_plan_") else None,
    }


def ways_of(inner: Any) -> dict[str, Any]:
    """By which methods a model was chosen and fitted."""
    return {
        "cross_validation": inner.cv_plan_.method if hasattr(inner, "cv_plan_") else None,
        "solver": inner.plan_.method if hasattr(inner, "plan_") else None,
    }


def kernel_summary(inner: Any) -> dict[str, Any]:
    """Kernel and ridge, or the range of those of the cells."""
    if not hasattr(inner, "kernels_"):
        alpha = getattr(inner, "alpha_", inner.get_params().get("alpha"))
        return {"kernel": repr(inner.kernel_), "alpha": float(np.ravel(alpha)[0])}
    distinct = list(dict.fromkeys(repr(kernel) for kernel in inner.kernels_))
    shown = distinct if len(distinct) <= 2 else [distinct[0], f"{len(distinct) - 1} others"]
    sizes = inner.partition_sizes_
    return {
        "cells": f"{inner.n_partitions_} of {_range(sizes, ',')} rows",
        "kernel": " and ".join(shown),
        "alpha": _range(inner.alpha_, ".3g"),
    }


def _range(values: np.ndarray, form: str) -> str:
    """Least and largest, in words; one number if they are the same."""
    ends = dict.fromkeys(format(end, form) for end in (values.min(), values.max()))
    return " to ".join(ends)


def _shares_in_distance(model: Any) -> dict[str, str] | None:
    """The largest shares of columns in the distance of rows, where scales were learned."""
    from ridgefold.estimators.scale_names import column_shares, named_scales

    found = column_shares(model.model_)
    if found is None:
        return None
    scales = named_scales(model, model.columns_.feature_names, found)
    order = np.argsort(-scales.shares, kind="stable")[:_MOST_SCALES]
    return {
        scales.names[j]: f"{100 * scales.shares[j]:.1f}%" for j in order if scales.shares[j] > 0
    }


def intervals_of(inner: Any) -> str:
    """What is kept for intervals, in words."""
    if hasattr(inner, "held_out_residuals_"):
        kept = inner._kept_for_intervals()
        return "none kept" if kept is None else f"jackknife+ by cell ({kept.size:,} numbers)"
    found = inner.intervals_
    return "none kept" if found is None else f"{found.method} ({found.kept_numbers:,} numbers)"


def _facts(model: Any) -> dict[str, Any]:
    y, counts = np.asarray(model._targets_fit, dtype=np.float64), model._counts
    mean = np.average(y, axis=0, weights=counts)
    spread = float(np.sqrt(np.average((y - mean) ** 2, axis=0, weights=counts).mean()))
    error = float(model.held_out_error_)
    facts: dict[str, Any] = {"rmse_of_the_mean": spread}
    if not math.isfinite(error):  # a given model may hold nothing out
        return facts
    facts["held_out_rmse"] = error
    facts["held_out_r2"] = 1.0 - (error / spread) ** 2 if spread > 0 else None
    if error >= spread > 0:
        from ridgefold.report.notes import no_better_than_the_mean

        facts["note"] = no_better_than_the_mean(str(getattr(model, "target_", "the target")))
    if model._held_out is not None and model._held_out.shape[1] == 1:
        misses = np.abs(y.reshape(len(y), -1) - model._held_out)[counts > 0]
        misses = misses[~np.isnan(misses)]
        facts["nine_in_ten_within"] = float(np.quantile(misses, _COVERAGE))
    return facts


def _class_facts(model: Any) -> dict[str, Any]:
    from ridgefold.estimators.labels import labels_of

    codes, counts = np.asarray(model._targets_fit), model._counts
    classes = np.asarray(model.classes_)
    shares = np.bincount(codes, weights=counts, minlength=len(classes)) / counts.sum()
    facts: dict[str, Any] = {"classes": [str(label) for label in classes]}
    facts["accuracy_of_the_largest_class"] = float(shares.max())
    if is_automatic(model):
        known = shares[shares > 0]
        facts["held_out_log_loss"] = float(model.held_out_error_)
        facts["log_loss_of_the_shares"] = float(-np.sum(known * np.log(known)))
    if model._held_out is None:
        return facts
    tested = (counts > 0) & ~np.isnan(model._held_out).any(axis=1)
    if tested.any():
        decisions, weights = model._held_out[tested], counts[tested]
        right = labels_of(classes, decisions) == classes[codes[tested]]
        facts["held_out_accuracy"] = float(np.average(right, weights=weights))
        if is_automatic(model):
            sure = model.probabilities_of(decisions).max(axis=1) >= _COVERAGE
            if sure.any():
                facts["sure"] = (
                    f"of a class with {_COVERAGE:.0%} or more in {sure.mean():.0%} of the rows, "
                    f"and right in {right[sure].mean():.0%} of these"
                )
    return facts


def _top_columns(model: Any) -> dict[str, Any]:
    """The columns without whose values the held-out error rises most.

    Models in cells would have to be fitted again without each fold: their report does that.
    """
    in_cells = any(each.in_cells for each in model.stack_)
    if not hasattr(model, "held_out_importances") or in_cells or model._held_out is None:
        return {}
    found = model.held_out_importances(max_rows=_ROWS_EXCHANGED)
    order = np.argsort(-found.rises, kind="stable")[:_MOST_COLUMNS]
    clear = [j for j in order if found.rises[j] > 2 * found.standard_errors[j]]
    shown = {found.names[j]: f"{100 * found.rises[j]:.1f}%" for j in clear}
    lost = "lost_without" if hasattr(model, "classes_") else "r2_lost_without"
    return {lost: shown or "no column clearly"}


def what_next(model: Any, read: TableToFit, data: Path, output: Path) -> Iterator[str]:
    """What to do with the model, and what may make it better."""
    yield f"ridgefold predict {output} NEW.csv -o OUT.csv"
    yield f"ridgefold report {output} shows how good it is, and why"
    waiting = sum("time budget" in each.note for each in model.leaderboard_)
    if waiting:
        candidates = "candidate" if waiting == 1 else "candidates"
        longer = max(_LEAST_SECONDS, math.ceil(_LONGER * model.time_budget_))
        yield (f"--time {longer}: {waiting} {candidates} had no time in {model.time_budget_:.3g} s")
    if read.diagnosis.groups and read.groups is None:
        name = read.diagnosis.groups[0]
        yield f"--groups {name}: with several rows of one {name!r}, errors look too small"
    near = [
        problem.columns[0]
        for problem in read.diagnosis.problems
        if problem.topic == "near copy of the target"
    ]
    if near:
        yield f"--drop {near[0]}, if it is not known before the target is"

"""From options to a model, and from a fitted model to what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.cli.options import CommandLineError
from ridgefold.errors import InvalidInputError
from ridgefold.linalg import namespace_of
from ridgefold.records import CategoryColumn, TableColumns

_MOST_COLUMNS = 8
"""Columns that are printed, the first ones: the report has all of them."""


@dataclass(frozen=True)
class ScalesToLearn:
    """One length scale a column of numbers; of categories one a level, or one a column."""

    categories: str
    columns: TableColumns

    def metric(self) -> Any:
        from ridgefold.options import MetricLearning

        if self.categories == "one_hot":
            return "learned"
        of_categories = [c.name for c in self.columns.columns if isinstance(c, CategoryColumn)]
        return MetricLearning(groups=of_categories)


def choose_model(
    task: str,
    *,
    kernels: Sequence[str],
    alpha: float | None,
    length_scale: float | None,
    nu: float | None,
    cv: int | str,
    scales: ScalesToLearn | None,
    partitions: int | str | None,
    run_dir: str | None,
    executor: str | None,
    jobs: int | None,
    wait_for_workers: float | None,
    intervals: str | None,
    memory: str,
    time_limit: float | None,
    device: str | None,
    verbose: bool,
) -> Any:
    """The estimator for a task: a search, or a plain fit where nothing is left to choose."""
    from ridgefold.estimators.kernel_ridge_cv import LSSVMRegressorCV
    from ridgefold.estimators.ls_svm import LSSVMClassifier, LSSVMRegressor
    from ridgefold.estimators.ls_svm_cv import LSSVMClassifierCV
    from ridgefold.options import Compute

    place: Any = executor or "auto"
    if wait_for_workers is not None:
        place = _cluster_of(executor, jobs, wait_for_workers)
    given = {"length_scale": length_scale, "nu": nu}
    parameters = {name: value for name, value in given.items() if value is not None} or None
    compute = Compute(n_jobs=jobs, executor=place, run_dir=run_dir, verbose=int(verbose))
    metric = None if scales is None else scales.metric()
    kernel: Any = kernels[0] if len(kernels) == 1 else list(kernels)
    classify = task == "classification"
    if partitions is not None:
        return _partitioned(
            classify,
            intervals,
            n_partitions=partitions,
            alpha=alpha,
            kernel=kernel,
            kernel_params=parameters,
            metric=metric,
            memory_budget=memory,
            compute=compute.set_params(device=device),
        )
    if alpha is not None and length_scale is not None and scales is None and len(kernels) == 1:
        for option, value in (("--executor", executor), ("--jobs", jobs), ("--run-dir", run_dir)):
            if value is not None:
                raise CommandLineError(
                    f"{option} is for kernels or cells to be worked on, and there is one fit to "
                    "make: leave out --alpha or --length-scale, or give --partitions"
                )
        shared: dict[str, Any] = {
            "kernel": kernel,
            "kernel_params": parameters,
            "memory_budget": memory,
            "time_budget": time_limit,
        }
        if classify:
            return LSSVMClassifier(alpha, probability=True, **shared)
        kept = "cv+" if intervals == "auto" else intervals
        return LSSVMRegressor(alpha, intervals=kept, **shared)
    search: dict[str, Any] = {
        "alpha": alpha,
        "kernel": kernel,
        "kernel_params": parameters,
        "cv": cv,
        "metric": metric,
        "memory_budget": memory,
        "time_budget": time_limit,
        "compute": compute,
    }
    if classify:
        return LSSVMClassifierCV(probability=True, **search)
    return LSSVMRegressorCV(intervals=intervals, **search)


def _cluster_of(executor: str | None, jobs: int | None, wait_for_workers: float) -> Any:
    from ridgefold.executors import Dask
    from ridgefold.runtime.executor_argument import executor_of

    cluster = executor_of(executor or "auto", jobs)
    if not isinstance(cluster, Dask):
        raise InvalidInputError(
            f"--wait-for-workers {wait_for_workers:g} is for a Dask cluster: leave it out, or give "
            "--executor dask or the address of a scheduler"
        )
    return cluster.waiting(wait_for_workers)


def _partitioned(classify: bool, intervals: str | None, **settings: Any) -> Any:
    from ridgefold.estimators.partitioned import (
        PartitionedLSSVMClassifier,
        PartitionedLSSVMRegressor,
    )

    if classify:
        return PartitionedLSSVMClassifier(probability=True, **settings)
    if intervals == "cv+":
        raise CommandLineError(
            "--intervals cv+ does not go with --partitions: use auto, jackknife+ or none"
        )
    kept = "jackknife+" if intervals == "auto" else intervals
    return PartitionedLSSVMRegressor(intervals=kept, **settings)


def summary_of(model: Any, target: str, task: str) -> dict[str, Any]:
    """What was learned, for people and for --json."""
    inner = model.model_
    summary: dict[str, Any] = {
        "target": target,
        "task": task,
        "rows": int(inner.X_fit_.shape[0]),
        "columns": f"{len(model.columns_.names)} of {model.n_features_in_}",
        "features": inner.n_features_in_,
        **kernel_summary(inner),
    }
    if task == "classification":
        summary["classes"] = [str(label) for label in _to_numpy(inner.classes_)]
        accuracy = _held_out_accuracy(inner)
        if accuracy is not None:
            summary["held_out_accuracy"] = accuracy
    else:
        residuals = held_out_residuals(inner)
        if residuals is not None:
            summary["held_out_rmse"] = float(np.sqrt(np.mean(residuals**2)))
            spread = float(np.std(_to_numpy(inner.y_fit_)))
            summary["rmse_of_the_mean"] = spread
            if spread > 0:
                summary["held_out_r2"] = 1.0 - summary["held_out_rmse"] ** 2 / spread**2
        summary["intervals"] = intervals_of(inner)
    summary["shares_in_distance"] = shares_in_distance(model)
    if hasattr(inner, "cv_plan_"):
        summary["cross_validation"] = inner.cv_plan_.method
        summary["pairs_tried"] = len(inner.cv_results_["params"])
    if hasattr(inner, "plan_"):
        summary["solver"] = inner.plan_.method
    return summary


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


def shares_in_distance(model: Any) -> dict[str, str] | None:
    """The largest shares of columns in the distance of rows, where scales were learned."""
    from ridgefold.estimators.scale_names import column_shares, named_scales

    found = column_shares(model.model_)
    if found is None:
        return None
    scales = named_scales(model, model.columns_.feature_names, found)
    order = np.argsort(-scales.shares, kind="stable")[:_MOST_COLUMNS]
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


def _held_out_accuracy(inner: Any) -> float | None:
    """The score of the search, or of rows left out of their cells."""
    from ridgefold.report.unseen_rows import UnseenClasses, unseen_rows

    facts = inner.report_facts()
    if facts.search is not None:
        return float(facts.search.best_score)
    unseen = unseen_rows(facts)
    return unseen.accuracy if isinstance(unseen, UnseenClasses) else None


def held_out_residuals(inner: Any) -> np.ndarray | None:
    """Errors at rows that the models did not see, where there are any."""
    residuals: Any = None
    if hasattr(inner, "held_out_residuals_"):
        residuals = inner.held_out_residuals_
    elif hasattr(inner, "held_out_predictions_"):
        # The targets that were fitted: rows with missing values may have been left out.
        residuals = _to_numpy(inner.y_fit_) - _to_numpy(inner.held_out_predictions_)
    elif inner.intervals_ is not None:
        residuals = inner.intervals_.residuals
    if residuals is None:
        return None
    known = _to_numpy(residuals)
    known = np.asarray(known[~np.isnan(known)])
    return known if known.size else None


def _to_numpy(values: Any) -> np.ndarray:
    """From whatever device they are on."""
    return namespace_of(values).to_numpy(values)

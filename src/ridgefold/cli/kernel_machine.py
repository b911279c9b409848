"""From the options of `ridgefold fit-kernel` to an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ridgefold.cli.options import CommandLineError
from ridgefold.errors import InvalidInputError
from ridgefold.records import CategoryColumn, TableColumns


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

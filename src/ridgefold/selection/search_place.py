"""Where the search of an exact model runs, and the run directory that keeps its results."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from ridgefold.crossval import Folds
from ridgefold.errors import UnsupportedInputError
from ridgefold.executors import Caller, Executor
from ridgefold.options import compute_of, search_of
from ridgefold.runtime.executor_argument import executor_of
from ridgefold.runtime.run_request import folder_of, settings_of
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.kernel_paths import KernelPaths
from ridgefold.selection.path_tasks import Common
from ridgefold.storage import fingerprint
from ridgefold.storage.model_file import library_versions
from ridgefold.storage.run_directory import NoRunDirectory, Run, RunDirectory

_WITHOUT_EFFECT = (
    "compute.device",
    "compute.executor",
    "compute.n_jobs",
    "compute.run_dir",
    "compute.solver",
    "compute.tol",
    "compute.verbose",
    "cv",
    "intervals",
    "memory_budget",
    "probability",
    "scoring",
    "search.average_folds",
    "time_budget",
)
"""Arguments that do not change what is kept; folds are compared by their rows."""


def search_executor(model: Any) -> Executor:
    """Where kernels are worked on: by the caller, unless workers are asked for."""
    compute = compute_of(model)
    executor = executor_of(compute.executor, compute.n_jobs, compute.verbose)
    asked = not isinstance(compute.executor, str) or compute.executor != "auto"
    return executor if asked or executor.n_workers > 1 else Caller()


@contextmanager
def opened_paths(model: Any, data: TrainingData, common: Common) -> Iterator[KernelPaths]:
    """Paths of a model's kernels, computed where its `executor` says, kept in its `run_dir`."""
    executor, folder = search_executor(model), folder_of(model)
    if data.namespace.name != "numpy" and (executor.apart or folder is not None):
        raise UnsupportedInputError(
            "compute.executor, n_jobs and run_dir take NumPy arrays: pass X.cpu().numpy(), or "
            "leave them out, as one device works on one kernel at a time; got "
            f"{data.namespace.name}"
        )
    with _opened_run(model, data, common, executor, folder) as run, executor.held():
        yield KernelPaths(
            data,
            common,
            executor,
            run,
            method=search_of(model).method,
            memory_budget=model.memory_budget,
            time_budget=model.time_budget,
        )


@contextmanager
def _opened_run(
    model: Any, data: TrainingData, common: Common, executor: Executor, folder: Path | None
) -> Iterator[Run]:
    if folder is not None:
        with RunDirectory(folder, _asked_of(model, data, common)).opened() as run:
            yield run
    elif executor.remote:
        with (
            tempfile.TemporaryDirectory(prefix="ridgefold-") as temporary,
            RunDirectory(Path(temporary), {"temporary": temporary}).opened() as run,
        ):
            yield run
    else:
        yield NoRunDirectory()


def _asked_of(model: Any, data: TrainingData, common: Common) -> dict[str, Any]:
    weights = common.weights
    scoring = {"scoring": common.scoring} if isinstance(common.scoring, str | None) else {}
    return {
        "estimator": type(model).__name__,
        "settings": {**settings_of(model, _WITHOUT_EFFECT), **fingerprint.of_settings(scoring)},
        "X": _of_matrix(data.X),
        "y": fingerprint.of_rows(common.targets),
        "sample_weight": None if weights is None else fingerprint.of_rows(weights),
        "folds": _of_folds(common.folds),
        "versions": library_versions(),
    }


def _of_matrix(X: Any) -> dict[str, Any]:
    if not scipy.sparse.issparse(X):
        return fingerprint.of_rows(X)
    parts = ("data", "indices", "indptr")
    return {
        "columns": int(X.shape[1]),
        **{part: fingerprint.of_rows(getattr(X, part)) for part in parts},
    }


def _of_folds(folds: Folds) -> dict[str, Any]:
    sets = (
        {"test": folds.test} if folds.train is None else {"test": folds.test, "train": folds.train}
    )
    return {
        name: {
            "rows": fingerprint.of_rows(np.concatenate(parts).astype(np.int64)),
            "sizes": fingerprint.of_rows(np.asarray([len(p) for p in parts], dtype=np.int64)),
        }
        for name, parts in sets.items()
    }

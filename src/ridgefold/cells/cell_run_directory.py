"""The run directory of a partitioned fit, and the description of the fit that it is kept for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ridgefold.runtime.run_request import folder_of, settings_of
from ridgefold.storage import fingerprint
from ridgefold.storage.model_file import library_versions
from ridgefold.storage.run_directory import NoRunDirectory, Run, RunDirectory

_WITHOUT_EFFECT = (
    "compute.executor",
    "compute.n_jobs",
    "compute.run_dir",
    "compute.verbose",
    "memory_budget",
)
"""Arguments that do not change the result."""


@contextmanager
def opened_run(model: Any, X: Any, targets: Any, weights: Any) -> Iterator[Run]:
    """The run directory of a fit, locked; or one that keeps nothing."""
    folder = folder_of(model)
    if folder is None:
        yield NoRunDirectory()
        return
    with RunDirectory(folder, asked_of(model, X, targets, weights)).opened() as run:
        yield run


def asked_of(
    model: Any, X: Any, targets: Any, weights: Any, *, on_disk: bool = False
) -> dict[str, Any]:
    """The description of a fit by its data, settings and versions: another fit has another one."""
    return {
        "on_disk": on_disk,
        "estimator": type(model).__name__,
        "settings": settings_of(model, _WITHOUT_EFFECT),
        "X": fingerprint.of_rows(X),
        "y": fingerprint.of_rows(targets),
        "sample_weight": None if weights is None else fingerprint.of_rows(weights),
        "versions": library_versions(),
    }

"""One kernel over all its ridge values, as a task that can be sent elsewhere.

A task holds its kernel, its ridge values and its plan, and the rows either as they are in memory
or by the files that hold them. What it finds is plain arrays, which a run directory can keep.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ridgefold import notices
from ridgefold.crossval import Deadline, Folds, HeldOut, Progress, no_progress
from ridgefold.kernels import Kernel, KernelGram, PrecomputedGram
from ridgefold.linalg import Array
from ridgefold.linalg.namespace import is_out_of_memory
from ridgefold.records import Plan
from ridgefold.runtime import metered
from ridgefold.selection.cross_validate import run_cross_validation
from ridgefold.selection.describe import TrainingGram
from ridgefold.selection.race import Contest, Ran, Verdict
from ridgefold.selection.scoring import Truth, scoring_of
from ridgefold.storage.named_arrays import NamedArray, NamedSparse, named, named_matrix
from ridgefold.storage.run_directory import Piece


def gram_of(kernel: Kernel | str, X: Array) -> TrainingGram:
    """The Gram matrix of a kernel; X itself if it is "precomputed"."""
    return KernelGram(kernel, X) if isinstance(kernel, Kernel) else PrecomputedGram(X)


@dataclass(frozen=True)
class Common:
    """What all paths of a search share."""

    X: Array
    targets: Array
    """Shape (n, t)."""
    weights: Array | None
    folds: Folds
    bias: bool
    truth: Truth
    scoring: Any
    """What scores are made by: None, a name or a callable; races take the first two."""

    def opened(self) -> Common:
        return self


@dataclass(frozen=True)
class Filed:
    """The same by the files that hold it."""

    run: str
    """The run that they belong to: other data are another run."""
    X: NamedArray | NamedSparse
    targets: NamedArray
    weights: NamedArray | None
    n_rows: int
    test: tuple[NamedArray, NamedArray]
    """Rows that are held out, fold after fold, and how many each fold has."""
    train: tuple[NamedArray, NamedArray] | None
    bias: bool
    truth: NamedArray
    truth_weights: NamedArray | None
    n_classes: int | None
    scoring: Any

    def opened(self) -> Common:
        return _opened(self)


@functools.lru_cache(maxsize=1)
def _opened(filed: Filed) -> Common:
    """Read once for all tasks of a search that this process gets."""
    train = None if filed.train is None else _split(*filed.train)
    folds = Folds(filed.n_rows, _split(*filed.test), train)
    classes = None if filed.n_classes is None else np.arange(filed.n_classes)
    shares = None if filed.truth_weights is None else filed.truth_weights.read()
    return Common(
        filed.X.read(),
        filed.targets.read(),
        None if filed.weights is None else filed.weights.read(),
        folds,
        filed.bias,
        Truth(folds, filed.truth.read(), shares, classes),
        filed.scoring,
    )


def _split(rows: NamedArray, sizes: NamedArray) -> tuple[np.ndarray, ...]:
    return tuple(np.split(rows.read(), np.cumsum(sizes.read())[:-1]))


def filed(common: Common, folder: Path, run: str) -> Filed:
    """Name the files that rows are mapped from, and write the others to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    folds, truth = common.folds, common.truth

    def optional(array: Array | None, name: str) -> NamedArray | None:
        return None if array is None else named(array, folder, name)

    def rows_of(parts: tuple[np.ndarray, ...], name: str) -> tuple[NamedArray, NamedArray]:
        sizes = np.asarray([len(part) for part in parts], dtype=np.int64)
        return (
            named(np.concatenate(parts).astype(np.int64), folder, name),
            named(sizes, folder, f"{name}-sizes"),
        )

    y, n_classes = truth.y, None
    if truth.classes is not None:
        # Labels by their places: a judge compares them, and never reads them.
        y, n_classes = np.searchsorted(truth.classes, truth.y), len(truth.classes)
    return Filed(
        run,
        named_matrix(common.X, folder, "X"),
        named(common.targets, folder, "targets"),
        optional(common.weights, "weights"),
        folds.n_rows,
        rows_of(folds.test, "test"),
        None if folds.train is None else rows_of(folds.train, "train"),
        common.bias,
        named(np.asarray(y), folder, "truth"),
        optional(truth.weights, "truth-weights"),
        n_classes,
        common.scoring,
    )


@dataclass(frozen=True)
class PathTask:
    """One kernel to cross-validate, as planned."""

    common: Common | Filed
    kernel: Kernel | str
    alphas: np.ndarray
    plan: Plan
    beat: float | None
    """The score to beat; None if all alphas are to be computed to the end."""
    piece: Piece | None = None
    """Where to keep what was found; None: it is sent back."""
    progress: Progress = no_progress
    deadline: Deadline | None = None
    """When the whole search has to have ended."""


@dataclass(frozen=True)
class Found:
    """Held-out predictions of one kernel, and what they took."""

    predictions: np.ndarray
    """Shape (n_alphas, rows of all folds, t)."""
    kept: np.ndarray | None
    open: np.ndarray | None
    verdict: Verdict | None
    """What is known of the scores; None if nobody judged."""
    method: str
    seconds: float
    peak_bytes: float | None
    warned: tuple[tuple[str, str], ...]
    """Class and text of every warning of ours."""

    @property
    def ran(self) -> Ran:
        assert self.verdict is not None
        return Ran(self.predictions, self.kept, self.open, self.verdict)

    def packed(self) -> dict[str, Any]:
        """As values that a file can hold."""
        v = self.verdict
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "verdict": None if v is None else (v.upper, v.lower, v.dropped),
        }


_PLAIN = ("predictions", "kept", "open", "method", "seconds", "peak_bytes", "warned")


def unpacked(values: Mapping[str, Any]) -> Found:
    """What a file held."""
    verdict = None if values["verdict"] is None else Verdict(*values["verdict"])
    return Found(verdict=verdict, **{name: values[name] for name in _PLAIN})


def compute(task: PathTask) -> Found | None:
    """Held-out predictions; None if the system had no memory for them."""
    try:
        return _computed(task)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return None


def compute_and_keep(task: PathTask) -> str | None:
    """The same into the file of the task; returns its SHA-256."""
    assert task.piece is not None
    try:
        return task.piece.made(lambda: _computed(task).packed())
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return None


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _computed(task: PathTask) -> Found:
    common = task.common.opened()
    gram = gram_of(task.kernel, common.X)
    contest = None
    if task.beat is not None:
        rule = scoring_of(common.scoring, classifier=common.truth.classes is not None)
        contest = Contest(rule, common.truth, len(task.alphas), task.beat)

    def run() -> HeldOut:
        return run_cross_validation(
            task.plan,
            gram,
            common.folds,
            common.targets,
            task.alphas,
            weights=common.weights,
            bias=common.bias,
            progress=task.progress,
            judge=None if contest is None else contest.judge,
            deadline=task.deadline,
        )

    with notices.collected() as found:
        result, reading = metered(run, gram.like)
    warned = tuple(dict.fromkeys((each.category.__name__, each.message) for each in found))
    if contest is not None and result.kept is None:
        # A method that does not ask on the way: what it found says all the same what is certain.
        for fold, rows in enumerate(common.folds.runs):
            contest.judge(fold, result.predictions[:, rows, :], _error(result, fold))
    return Found(
        gram.namespace.to_numpy(result.predictions),
        result.kept,
        result.open,
        None if contest is None else contest.verdict,
        result.method,
        reading.seconds,
        reading.peak_bytes,
        warned,
    )


def _error(result: HeldOut, fold: int) -> np.ndarray:
    """A bound on the error of a fold's predictions, shape (n_alphas, t)."""
    if result.certificate is not None:
        return np.asarray(result.certificate[:, fold, :])
    return np.zeros((result.predictions.shape[0], result.predictions.shape[2]))

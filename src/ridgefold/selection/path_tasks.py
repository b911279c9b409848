"""One kernel over all its ridge values, as a task that can be sent elsewhere.

A task holds its kernel, its ridge values and its plan, and the rows either as they are in memory
or by the files that hold them. What comes of it is a record, which a run directory can keep.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ridgefold import notices
from ridgefold.crossval import Deadline, Folds, HeldOut, Judge, Progress, no_progress
from ridgefold.kernels import Kernel, KernelGram, PrecomputedGram
from ridgefold.linalg import Array
from ridgefold.records import KernelPath, Plan
from ridgefold.selection.cross_validate import CrossValidateKernel, PathWork
from ridgefold.selection.describe import TrainingGram
from ridgefold.selection.race import Contest
from ridgefold.selection.scoring import Truth, scoring_of
from ridgefold.storage.named_arrays import NamedArray, NamedSparse, named, named_matrix

STEP = "choosing kernel and alpha"


def gram_of(kernel: Kernel | str, X: Array, fixed: tuple[int, ...] = ()) -> TrainingGram:
    """The Gram matrix of a kernel; X itself if it is "precomputed".

    `fixed` are numbers of columns that are not penalised.
    """
    if isinstance(kernel, Kernel):
        return KernelGram(kernel, X, fixed=fixed)
    return PrecomputedGram(X)


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
    fixed: tuple[int, ...] = ()
    """Numbers of the columns of X that are not penalised."""

    def opened(self) -> Common:
        return self


@dataclass(frozen=True)
class Filed:
    """What all paths of a search share, by the files that hold it."""

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
    fixed: tuple[int, ...] = ()

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
        filed.fixed,
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
        common.fixed,
    )


@dataclass(frozen=True)
class PathTask:
    """One kernel to cross-validate; `plan`, `common` and what follows are set before it is sent."""

    kernel: Kernel | str
    alphas: np.ndarray
    beat: float | None = None
    """In a race, the score to beat; None if all alphas are to be computed to the end."""
    exact: bool = False
    """True if only a method that is certain will do: the last fallback."""
    method: str = "auto"
    """The cross-validation method that was asked for."""
    plan: Plan | None = None
    common: Common | Filed | None = None
    progress: Progress = no_progress
    deadline: Deadline | None = None
    """When the whole search has to have ended."""


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def cross_validated(task: PathTask) -> KernelPath:
    """Held-out predictions of one kernel, and what is certain of the scores."""
    assert task.common is not None
    assert task.plan is not None
    common, plan, contests = task.common.opened(), task.plan, []

    def new_judge() -> Judge | None:
        if task.beat is None:
            return None
        rule = scoring_of(common.scoring, classifier=common.truth.classes is not None)
        contests.append(Contest(rule, common.truth, len(task.alphas), task.beat))
        return contests[-1].judge

    work = PathWork(
        gram_of(task.kernel, common.X, common.fixed),
        common.folds,
        common.targets,
        task.alphas,
        common.weights,
        common.bias,
        plan.resources,
        lambda: nullcontext(task.progress),
        task.deadline,
        new_judge,
    )
    with notices.collected() as given:
        _, record = CrossValidateKernel(STEP, task.method).perform(plan.problem, work, plan)
    result, count = work.held_out, len(task.alphas)
    assert result is not None
    contest = contests[-1] if contests else None
    if contest is not None and result.kept is None:
        # The method did not ask the judge on the way: its result bounds the scores all the same.
        for fold, rows in enumerate(common.folds.runs):
            contest.judge(fold, result.predictions[:, rows, :], _error(result, fold))
    return KernelPath(
        predictions=work.gram.namespace.to_numpy(result.predictions),
        finished=np.ones(count, dtype=bool) if result.kept is None else result.kept,
        open=np.zeros(count, dtype=bool) if result.open is None else result.open,
        upper=None if contest is None else contest.upper,
        lower=None if contest is None else contest.lower,
        dropped=np.full(count, np.nan) if contest is None else contest.dropped,
        record=record,
        warned=tuple(dict.fromkeys((each.category.__name__, each.message) for each in given)),
    )


def _error(result: HeldOut, fold: int) -> np.ndarray:
    """A bound on the error of a fold's predictions, shape (n_alphas, t)."""
    if result.certificate is not None:
        return np.asarray(result.certificate[:, fold, :])
    return np.zeros((result.predictions.shape[0], result.predictions.shape[2]))

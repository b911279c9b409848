"""What `ridgefold fit` does: read a table, say what is known of it, fit, and compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ridgefold.automatic.gradient_boosting import BoostingBeside
from ridgefold.cli.options import CommandLineError, column_choices, messages
from ridgefold.errors import BudgetError, InvalidInputError
from ridgefold.tables.diagnosis import TableDiagnosis
from ridgefold.tables.names import require_columns

_PROBLEMS_SHOWN = 12
"""More lines would be read by nobody: `ridgefold diagnose` shows them all."""


@dataclass(frozen=True)
class TableToFit:
    """A table that has been read, with what options say of it."""

    diagnosis: TableDiagnosis
    groups: str | None
    sample_weight: np.ndarray | None
    """One for every row of the table; None if all count alike."""
    class_weight: Any = None

    @property
    def task(self) -> str:
        """ "regression" or "classification"."""
        assert self.diagnosis.task is not None
        return self.diagnosis.task


def read_table(
    path: Path,
    target: str,
    *,
    columns: Sequence[str] | None,
    drop: Sequence[str] | None,
    task: str,
    memory: str,
    talk: bool,
    groups: str | None = None,
    weights: str | None = None,
    class_weight: str | None = None,
    standardise: bool = True,
) -> TableToFit:
    """Read and understand a table; columns of groups and weights are not learned from."""
    from ridgefold.tables.diagnose import diagnose
    from ridgefold.tables.tables import open_table

    names = open_table(path).names()
    choices = choices_of(columns, drop, target, task)
    for option, name in (("--groups", groups), ("--weights", weights)):
        if name is not None:
            require_columns([name], names, option)
            if name == target:
                raise CommandLineError(f"{option} and --target both name {name!r}")
            choices.setdefault(name, "drop")
    _require_memory_for(path, memory)
    with _working(f"reading {path.name}", talk):
        diagnosis = diagnose(path, target, columns=choices, standardise=standardise)
    counts = None if weights is None else _weights_in(diagnosis, weights)
    by_class = None if class_weight is None else _class_weight(diagnosis, class_weight)
    return TableToFit(diagnosis, groups, counts, by_class)


def choices_of(
    columns: Sequence[str] | None, drop: Sequence[str] | None, target: str, task: str
) -> dict[str, Any]:
    """What the options say of columns and of the target."""
    choices = column_choices(columns, drop)
    if task != "auto":
        choices.setdefault(target, "number" if task == "regression" else "category")
    return choices


def _require_memory_for(path: Path, memory: str) -> None:
    """Refuse a table that would fill the memory as numbers alone."""
    from ridgefold.cli.streaming import worth_streaming

    if worth_streaming(path, memory):
        raise BudgetError(
            f"{str(path)!r} is too large to be taken whole within --memory {memory}: give more, or "
            "cut its rows into cells, read in batches: ridgefold fit-kernel --partitions auto"
        )


def _weights_in(diagnosis: TableDiagnosis, name: str) -> np.ndarray:
    from ridgefold.tables.column_kinds import TableStyle, kind_of
    from ridgefold.tables.learned_columns import column_numbers

    series = diagnosis.frame[name]
    values, _ = column_numbers(series, kind_of(series, TableStyle(), choice="number"))
    used = values[diagnosis.rows]
    if np.isnan(used).any() or (used < 0).any() or not used.any():
        wrong = int(diagnosis.rows[int(np.argmax(~(used >= 0)))])
        raise InvalidInputError(
            f"--weights {name!r} must hold a number >= 0 in every row, and not 0 in all, got "
            f"{str(series[wrong])[:40]!r} in row {wrong + 1}"
        )
    return values


def _class_weight(diagnosis: TableDiagnosis, text: str) -> Any:
    """What `--class-weight` says, as the argument of the classifier."""
    if diagnosis.task != "classification":
        raise CommandLineError(
            "--class-weight is for classes, and the target holds numbers: leave it out, or pass "
            "--task classification"
        )
    if text == "balanced":
        return text
    assert diagnosis.y is not None
    labels = {str(label): label for label in np.unique(diagnosis.y).tolist()}
    by_class: dict[Any, float] = {}
    for entry in text.split(","):
        name, _, weight = entry.rpartition("=")
        try:
            by_class[labels[name.strip()]] = float(weight)
        except (KeyError, ValueError):
            raise CommandLineError(
                "--class-weight must be balanced, or the weights of classes, as "
                f"{','.join(f'{label}=1' for label in list(labels)[:3])}, got {entry!r}"
            ) from None
    return by_class


def say_problems(diagnosis: TableDiagnosis, path: Path) -> None:
    """What the table is, and what its owner should know before hours are spent on it."""
    from ridgefold.tables.diagnosis_views import problem_line, target_line, title_of

    console = messages()
    console.print(title_of(diagnosis), markup=False, highlight=False)
    console.print(target_line(diagnosis), markup=False, highlight=False)
    for problem in diagnosis.problems[:_PROBLEMS_SHOWN]:
        said = f"note: {problem_line(problem, in_python=False)}"
        console.print(said, style="yellow", markup=False, highlight=False)
    more = len(diagnosis.problems) - _PROBLEMS_SHOWN
    if more > 0:
        said = f"and {more} more notes: ridgefold diagnose {path} shows all of them"
        console.print(said, style="yellow", markup=False, highlight=False)


def front_door(diagnosis: TableDiagnosis, model: Any, device: str | None = None) -> Any:
    """The estimator for a table of this task; `model` is the one to fit, None to choose."""
    from ridgefold.automatic.classifier import RidgefoldClassifier
    from ridgefold.automatic.regressor import RidgefoldRegressor

    cls: Any = RidgefoldClassifier if diagnosis.task == "classification" else RidgefoldRegressor
    return cls(model=model, device=device)


def fitted_model(read: TableToFit, *, talk: bool, **settings: Any) -> Any:
    """The model that the table and the time give."""
    settings["verbose"] = int(talk and messages().is_terminal)
    if read.task == "classification":
        settings["class_weight"] = read.class_weight
    model = front_door(read.diagnosis, None).set_params(**settings)
    return model.fit(read.diagnosis, groups=read.groups, sample_weight=read.sample_weight)


def fitted_beside(read: TableToFit, model: Any, *, talk: bool) -> BoostingBeside:
    """scikit-learn's gradient boosting on the numbers and folds of the model."""
    from ridgefold.automatic.gradient_boosting import boosting_beside

    data = read.diagnosis.training_data()
    # The weights of the fit hold those of classes, too.
    weights = None if read.sample_weight is None and read.class_weight is None else model._counts
    with _working("fitting gradient boosting beside it", talk):
        classify = read.task == "classification"
        return boosting_beside(data.X, data.y, model._fold_of, weights, classify=classify)


class _working:
    """A turning wheel while something goes on; nothing where nobody looks."""

    def __init__(self, words: str, talk: bool) -> None:
        console = messages()
        self._status = console.status(words) if talk and console.is_terminal else None

    def __enter__(self) -> None:
        if self._status is not None:
            self._status.start()

    def __exit__(self, *error: object) -> None:
        if self._status is not None:
            self._status.stop()

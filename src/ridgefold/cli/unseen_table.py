"""Rows that took no part in a fit, with their targets: read as those of the fit were."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ridgefold.cli.automatic_summary import is_automatic
from ridgefold.cli.options import CommandLineError
from ridgefold.errors import InvalidInputError
from ridgefold.records import CategoryColumn, NumberText
from ridgefold.tables.diagnosis import TableDiagnosis

_HOW_WRITTEN = "target numbers"
"""The note in a model file that says how the numbers of the target were written."""


def notes_of_target(diagnosis: TableDiagnosis) -> dict[str, str]:
    """What a model file notes of the target, so that those of new rows are read alike."""
    found = diagnosis.target
    assert found is not None
    rule = None if found.column is None else found.column.text
    return {} if rule is None else {_HOW_WRITTEN: json.dumps(asdict(rule), ensure_ascii=False)}


def rows_with_targets(path: Path, fitted: Any, notes: Mapping[str, str]) -> tuple[Any, np.ndarray]:
    """Rows and targets of a table, read as those of the fit were."""
    columns = getattr(fitted, "columns_", None)
    if columns is None or "target" not in notes or "task" not in notes:
        raise CommandLineError(
            "--test needs a model that ridgefold fit has written, which knows its columns and "
            "target: use ridgefold.write_report(model, page, X_test, y_test) for others"
        )
    read = _for_automatic if is_automatic(fitted) else _for_kernel
    return read(path, fitted, notes)


def _for_automatic(path: Path, fitted: Any, notes: Mapping[str, str]) -> tuple[Any, np.ndarray]:
    from ridgefold.tables.column_kinds import ColumnKind
    from ridgefold.tables.encode import level_codes, level_texts
    from ridgefold.tables.learned_columns import column_numbers
    from ridgefold.tables.names import require_columns
    from ridgefold.tables.table_input import read_input

    frame, target = read_input(path).frame, notes["target"]
    require_columns(fitted.columns_.names, frame.columns, "the model needs the column")
    require_columns([target], frame.columns, "the target")
    if notes["task"] == "classification":
        classes = np.asarray(fitted.classes_)
        texts = level_texts(frame[target])
        codes, missing = level_codes(texts, tuple(str(label) for label in classes))
        wrong = np.flatnonzero((codes < 0) & ~missing)
        if len(wrong):
            raise InvalidInputError(
                f"the target {target!r} is {texts[int(wrong[0])].as_py()!r} in row {wrong[0] + 1} "
                f"of {str(path)!r}, and the model knows the classes {', '.join(map(str, classes))}"
            )
        rows = np.flatnonzero(codes >= 0)
        y = classes[codes[rows]]
    else:
        rule = NumberText(**json.loads(notes[_HOW_WRITTEN])) if _HOW_WRITTEN in notes else None
        kind = ColumnKind("number", "as in the fit", rule or NumberText())
        values, _ = column_numbers(frame[target], kind)
        rows = np.flatnonzero(~np.isnan(values))
        y = values[rows]
    if len(rows) == 0:
        raise InvalidInputError(f"{str(path)!r} has no row with a target {target!r}")
    return frame[rows], y


def _for_kernel(path: Path, fitted: Any, notes: Mapping[str, str]) -> tuple[Any, np.ndarray]:
    from ridgefold.cli.training import read_training_table
    from ridgefold.tables.names import require_columns
    from ridgefold.tables.tables import open_table

    names = open_table(path).names()
    require_columns(fitted.columns_.names, names, "the model needs the column")
    categories = [each.name for each in fitted.columns_.columns if isinstance(each, CategoryColumn)]
    known = {*fitted.columns_.names, notes["target"]}
    table = read_training_table(
        path,
        notes["target"],
        ignore=[name for name in names if name not in known],
        categorical=categories,
        missing="drop",
        task=notes["task"],
        quiet=True,
    )
    return table.frame, table.y


def errors_on(fitted: Any, rows: Any, targets: np.ndarray) -> dict[str, Any]:
    """How far off the model is on these rows; those that it has no prediction for are left out."""
    predicted = np.asarray(fitted.predict(rows))
    known = ~np.isnan(predicted) if predicted.dtype.kind == "f" else predicted != np.array(None)
    errors: dict[str, Any] = {
        "test_rows": int(known.sum()),
        "rows_without_prediction": int((~known).sum()) or None,
    }
    if not known.any():
        return errors
    predicted, targets = predicted[known], targets[known]
    if targets.dtype.kind != "f" or not np.issubdtype(predicted.dtype, np.number):
        shares = np.unique(targets, return_counts=True)[1] / len(targets)
        return {
            **errors,
            "test_accuracy": float(np.mean(predicted.astype(str) == targets.astype(str))),
            "accuracy_of_the_largest_class": float(shares.max()),
        }
    error = float(np.sqrt(np.mean((predicted - targets) ** 2)))
    spread = float(np.std(targets))
    return {
        **errors,
        "test_rmse": error,
        "mean_absolute_error": float(np.mean(np.abs(predicted - targets))),
        "rmse_of_the_mean": spread,
        "test_r2": 1.0 - (error / spread) ** 2 if spread > 0 else None,
    }

"""Rows that took no part in a fit, with their targets: read as those of the fit were."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ridgefold.cli.options import CommandLineError
from ridgefold.errors import InvalidInputError
from ridgefold.records import NumberText
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
    from ridgefold.tables.names import require_columns
    from ridgefold.tables.table_input import read_input
    from ridgefold.tables.target_column import targets_again

    frame, target = read_input(path).frame, notes["target"]
    require_columns(columns.names, frame.columns, "the model needs the column")
    require_columns([target], frame.columns, "the target")
    classes = np.asarray(fitted.classes_) if notes["task"] == "classification" else None
    rule = NumberText(**json.loads(notes[_HOW_WRITTEN])) if _HOW_WRITTEN in notes else None
    rows, y = targets_again(frame[target], classes, rule)
    if len(rows) == 0:
        raise InvalidInputError(f"{str(path)!r} has no row with a target {target!r}")
    return frame[rows], y


def errors_on(fitted: Any, rows: Any, targets: np.ndarray) -> dict[str, Any]:
    """How far off the model is on these rows."""
    predicted = np.asarray(fitted.predict(rows))
    errors: dict[str, Any] = {"test_rows": len(predicted)}
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

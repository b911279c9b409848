"""From what users pass as a table and a target to rows, targets and weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import _check_sample_weight, check_array, check_consistent_length

from ridgefold.errors import InvalidInputError
from ridgefold.linalg.namespace import is_foreign_array
from ridgefold.records import NumberColumn, TableColumns
from ridgefold.runtime.training_data import as_ridgefold_errors, require_usable_weights
from ridgefold.tables.diagnose import diagnose
from ridgefold.tables.diagnosis import TableDiagnosis
from ridgefold.tables.encoder import TableEncoder

_WANTED_ROWS = "the table must have two dimensions (rows, columns), and no infinite numbers"


@dataclass(frozen=True)
class ReadTable:
    """A table that has been looked at, with its targets."""

    diagnosis: TableDiagnosis
    y: np.ndarray
    """Targets as given, or as they were read, of the rows that have one."""
    rows: np.ndarray
    """Numbers of these rows."""
    n_columns: int
    names: tuple[str, ...] | None
    """Of the columns; None for a matrix."""
    target: str | None
    """The name of the target, if it is a column of the table."""

    @property
    def all_in_order(self) -> bool:
        """Whether the rows are those of the table, one after another."""
        return np.array_equal(self.rows, np.arange(self.diagnosis.n_rows))


@dataclass(frozen=True)
class TableOfNumbers:
    """What models are fitted to."""

    X: np.ndarray
    targets: np.ndarray
    """Shape (n, t); of classes columns of −1 and 1."""
    codes: np.ndarray | None
    """Class numbers; None for regression."""
    labels: np.ndarray
    """The targets as they were given."""
    weights: np.ndarray | None
    groups: np.ndarray | None
    seed: int


def as_table(table: Any) -> Any:
    """What `diagnose` takes: matrices checked as scikit-learn does, others as they are."""
    if scipy.sparse.issparse(table):
        table = table.toarray()
    if isinstance(table, (str, PathLike, Mapping)):
        return table
    if _has_columns(table):
        named = all(isinstance(name, str) for name in table.columns)
        if named or not hasattr(table, "to_numpy"):
            return table
        table = table.to_numpy()  # numbers for names: a matrix
    if is_foreign_array(table):
        raise InvalidInputError(
            "tables are read in this process: pass a NumPy array, and device= to compute elsewhere"
        )
    text = np.asarray(table).dtype.kind in "OUS" if not isinstance(table, list) else False
    with as_ridgefold_errors(_WANTED_ROWS), np.errstate(over="ignore", invalid="ignore"):
        checked: np.ndarray = check_array(
            table, dtype=None if text else [np.float64, np.float32], ensure_all_finite="allow-nan"
        )
    if checked.dtype.names is None and checked.dtype.kind == "O":
        _require_cells(checked)
    return checked


def _has_columns(table: Any) -> bool:
    return not isinstance(table, np.ndarray) and hasattr(table, "columns")


def _require_cells(table: np.ndarray) -> None:
    for cell in table.ravel():
        if isinstance(cell, (dict, list, set, tuple, np.ndarray)):
            raise TypeError(
                f"the table holds {cell!r}: every argument must be a string or a number"
            )


def read_table(
    table: Any, y: Any, target: str | None, columns: Mapping[str, Any] | None, *, classify: bool
) -> ReadTable:
    """Look at a table with its target: the name of a column, or values beside it."""
    if isinstance(table, TableDiagnosis):
        return _of_diagnosis(table, y, target, classify=classify)
    if y is not None and target is not None:
        raise InvalidInputError(f"y and target={target!r} were given: pass one of them")
    table = as_table(table)
    matrix = isinstance(table, np.ndarray) and table.dtype.names is None
    if target is not None:
        return _with_named_target(table, target, dict(columns or {}), classify=classify)
    shown = _shown_target(y, classify=classify)
    diagnosis = _diagnosed(table, shown, columns)
    names = None if matrix else tuple(diagnosis.frame.columns)
    rows, values = np.arange(diagnosis.n_rows), np.asarray(y)
    if not classify and values.dtype.kind in "OUS" and diagnosis.target is not None:
        values, rows = _numbers_of(diagnosis, "y")
    return ReadTable(diagnosis, values, rows, len(diagnosis.frame.columns), names, None)


def _with_named_target(
    table: Any, target: str, columns: dict[str, Any], *, classify: bool
) -> ReadTable:
    if classify:
        columns.setdefault(target, "category")
    return _of_diagnosis(diagnose(table, target, columns=columns), None, None, classify=classify)


def _of_diagnosis(diagnosis: TableDiagnosis, y: Any, target: Any, *, classify: bool) -> ReadTable:
    """A table that has been diagnosed with its target."""
    if y is not None or target is not None:
        raise InvalidInputError(
            "a diagnosis holds its target: pass neither y nor target, or diagnose another target"
        )
    its_target = diagnosis.target
    if its_target is None or diagnosis.y is None or its_target.name not in diagnosis.frame.columns:
        raise InvalidInputError(
            "the diagnosis has no column as its target: call diagnose(table, target) with a name"
        )
    names = tuple(name for name in diagnosis.frame.columns if name != its_target.name)
    values, rows = diagnosis.y, diagnosis.rows
    if not classify:
        values, rows = _numbers_of(diagnosis, f"target={its_target.name!r}")
    return ReadTable(diagnosis, values, rows, len(names), names, its_target.name)


def _numbers_of(diagnosis: TableDiagnosis, what: str) -> tuple[np.ndarray, np.ndarray]:
    its_target = diagnosis.target
    assert its_target is not None
    assert diagnosis.y is not None
    if its_target.task == "classification" and its_target.column is None:
        values = np.asarray(diagnosis.y)
        if values.dtype.kind not in "iufb":
            raise InvalidInputError(
                f"{what} is no number: {its_target.reason}, such as {its_target.classes[0]!r}. "
                "Predict classes with RidgefoldClassifier, or turn them into numbers"
            )
        return values.astype(np.float64), diagnosis.rows
    return np.asarray(diagnosis.y, dtype=np.float64), diagnosis.rows


def _shown_target(y: Any, *, classify: bool) -> Any:
    """The target that columns are compared with; None where there is nothing to compare."""
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or len(values) < 3:
        return None
    if classify:
        return _shown_classes(values)
    if values.dtype.kind in "OUS":
        return values
    finite = values.dtype.kind in "iufb" and bool(np.all(np.isfinite(values)))
    return values.astype(np.float64) if finite and np.ptp(values.astype(np.float64)) else None


def _shown_classes(labels: np.ndarray) -> Any:
    """Labels as names of classes; None where these are too many, or hardly any."""
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        return None
    if labels.dtype.kind == "O":
        labels = labels.astype(str)
    known, codes = np.unique(labels, return_inverse=True)
    if not 2 <= len(known) <= min(_MOST_SHOWN, len(labels) // 2):
        return None
    return np.asarray([f"class {code}" for code in codes])


_MOST_SHOWN = 100
"""Classes that a diagnosis looks at."""


def _diagnosed(table: Any, shown: Any, columns: Mapping[str, Any] | None) -> TableDiagnosis:
    if shown is not None:
        rows = getattr(table, "shape", (len(shown),))[0]
        if rows != len(shown):
            shown = None
    return diagnose(table, shown, columns=columns)


def weights_of(sample_weight: Any, X: np.ndarray, rows: np.ndarray, n_rows: int) -> Any:
    """Weights of the rows in use, checked; None if all count alike."""
    if sample_weight is None:
        return None
    with as_ridgefold_errors("sample_weight must be a number or hold one for each row"):
        sample_weight = np.asarray(sample_weight)
        if sample_weight.ndim:
            check_consistent_length(np.empty(n_rows), sample_weight)
            sample_weight = sample_weight[rows]
        else:
            sample_weight = sample_weight.item()
        weights: np.ndarray = _check_sample_weight(sample_weight, X, dtype=X.dtype)
    require_usable_weights(weights)
    return weights


def standardised_by_weight(encoder: TableEncoder, X: np.ndarray, weights: np.ndarray) -> Any:
    """The encoder with mean and deviation of every number counted by weights, so that a row of
    weight 2 is two rows; and the matrix as that encoder makes it."""
    shares = weights / weights.sum()
    changed: list[Any] = []
    place, X = 0, X.copy()
    for column in encoder.columns.columns:
        if isinstance(column, NumberColumn) and (column.mean, column.scale) != (0.0, 1.0):
            values = X[:, place]
            mean = float(shares @ values)
            spread = float(np.sqrt(shares @ (values - mean) ** 2))
            spread = spread if spread > 1e-12 else 1.0
            X[:, place] = (values - mean) / spread
            scale = column.scale * spread
            mean = column.mean + column.scale * mean
            changed.append(replace(column, mean=mean, scale=scale))
        else:
            changed.append(column)
        place += len(column.feature_names)
    return TableEncoder(TableColumns(tuple(changed))), X

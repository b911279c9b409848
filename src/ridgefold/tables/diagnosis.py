"""What is found out about a table: a line a column, all problems at once, and the encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.notices import collected
from ridgefold.records import NumberColumn
from ridgefold.tables.encoder import EncodedTable, TableEncoder

KINDS = (
    *("number", "boolean", "category", "ordered", "date", "text", "identifier", "index"),
    *("constant", "duplicate", "target copy", "unsupported", "dropped"),
)
"""What a column can be; those from "text" on are left out unless they are asked for."""


@dataclass(frozen=True)
class ColumnDiagnosis:
    """What a column is, and what is done with it."""

    name: str
    kind: str
    """One of `KINDS`."""
    missing: float
    """Share of the rows without a value."""
    n_distinct: int
    """Different values."""
    treatment: str
    """What is done with the column, in words."""
    reason: str
    """Why it is taken for what it is, in words."""
    features: tuple[str, ...] = ()
    """Names of the numbers that are made of it; none if it is left out."""

    @property
    def is_used(self) -> bool:
        """Whether a model sees the column."""
        return bool(self.features)


@dataclass(frozen=True)
class Problem:
    """Something about a table that its owner should know, and how to decide otherwise."""

    topic: str
    """What it is about, in one word or two, the same for all problems of a kind."""
    columns: tuple[str, ...]
    message: str
    python: str = ""
    """An argument to paste into a call."""
    command: str = ""
    """An option to paste into a command line."""
    purpose: str = "to decide otherwise"
    """What these are for."""


@dataclass(frozen=True)
class TargetDiagnosis:
    """What the target is, and how it is read."""

    name: str
    task: str
    """"regression" or "classification"."""
    reason: str
    n_missing: int
    """Rows without a target, which are left out."""
    column: NumberColumn | None
    """How its numbers are read; None if it holds classes."""
    classes: tuple[str, ...] = ()


class TrainingTable(NamedTuple):
    """The rows of a table that have a target, as numbers."""

    X: np.ndarray
    y: np.ndarray
    rows: np.ndarray
    """Numbers of the rows of the table that have a target."""
    feature_names: tuple[str, ...]
    origins: tuple[str, ...]
    """For each feature, the column that it is made of."""


@dataclass(frozen=True)
class TableDiagnosis:
    """All that :func:`diagnose` finds out; printing it shows it as a table.

    Examples
    --------
    >>> import ridgefold
    >>> table = {"size": ["1,5 m", "2 m", "3,25 m"], "y": [1.0, 2.0, 3.0]}
    >>> diagnosis = ridgefold.diagnose(table, "y")
    >>> diagnosis.column("size").reason
    'numbers in m with decimal comma'
    >>> diagnosis.encoder.apply({"size": [2.0]}).feature_names
    ('size',)
    """

    source: str
    n_rows: int
    columns: tuple[ColumnDiagnosis, ...]
    target: TargetDiagnosis | None
    problems: tuple[Problem, ...]
    groups: tuple[str, ...]
    """Columns that say which rows belong together, as rows of one patient do."""
    repeated_rows: int
    """Rows that repeat an earlier row in all columns."""
    separator: str | None
    """Between the cells of a text file."""
    encoding: str | None
    encoder: TableEncoder
    """How the columns become numbers; applied to the table and to new rows alike."""
    frame: nw.DataFrame[Any] = field(repr=False, compare=False)
    """The table itself, as it was read."""
    rows: np.ndarray = field(repr=False, compare=False)
    """Rows that have a target."""
    y: np.ndarray | None = field(repr=False, compare=False)
    """The targets of these rows: float64 numbers, or labels."""

    @property
    def task(self) -> str | None:
        """ "regression" or "classification"; None without a target."""
        return None if self.target is None else self.target.task

    def column(self, name: str) -> ColumnDiagnosis:
        """What was found out about one column."""
        for each in self.columns:
            if each.name == name:
                return each
        raise InvalidInputError(f"the table has no column {name!r}")

    def training_data(self) -> TrainingTable:
        """The numbers to fit a model to: all rows that have a target, encoded."""
        if self.y is None:
            raise InvalidInputError("target was not given: call diagnose(table, target)")
        frame = self.frame
        if len(self.rows) < len(frame):
            frame = frame[self.rows]
        with collected():  # what would be warned of is among the problems
            encoded: EncodedTable = self.encoder.apply(frame)
        return TrainingTable(encoded.X, self.y, self.rows, encoded.feature_names, encoded.origins)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, such as JSON holds."""
        from ridgefold.tables.diagnosis_views import as_dict

        return as_dict(self)

    def __str__(self) -> str:
        from ridgefold.tables.diagnosis_views import as_text

        return as_text(self)

    def __rich__(self) -> Any:
        from ridgefold.tables.diagnosis_views import as_rich

        return as_rich(self)

    def _repr_html_(self) -> str:
        from ridgefold.tables.diagnosis_views import as_html

        return as_html(self)


ColumnChoices = Mapping[str, Any]
"""What the owner of a table says of columns: kinds by name."""

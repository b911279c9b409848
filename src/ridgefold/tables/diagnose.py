"""Understand a table as it is: `diagnose`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from ridgefold.errors import InvalidInputError, TableError
from ridgefold.records import TableColumns
from ridgefold.tables.column_kinds import (
    HEAD_ROWS,
    ColumnKind,
    TableStyle,
    has_time_name,
    kind_of,
    require_choices,
    style_of,
)
from ridgefold.tables.diagnosis import (
    ColumnChoices,
    ColumnDiagnosis,
    Problem,
    TableDiagnosis,
)
from ridgefold.tables.encoder import TableEncoder
from ridgefold.tables.frames import missing_in
from ridgefold.tables.learned_columns import ReadColumn, learn_column
from ridgefold.tables.names import require_columns
from ridgefold.tables.table_input import TableInput, read_input
from ridgefold.tables.table_problems import (
    are_numbers,
    problems_of_column,
    problems_of_table,
    problems_of_target,
    treatment_of,
)
from ridgefold.tables.target_column import ReadTarget, read_target, target_column
from ridgefold.tables.target_copies import gives_away

_MIXER = np.uint64(0x9E3779B97F4A7C15)
"""2⁶⁴ over the golden ratio: its multiples spread evenly (Knuth's multiplicative hashing)."""


def diagnose(
    table: Any,
    target: Any = None,
    *,
    columns: ColumnChoices | None = None,
    standardise: bool = True,
) -> TableDiagnosis:
    """Find out what the columns of a table are, what speaks against them, and how to encode them.

    Nothing is fitted, and nothing is changed. All problems are reported at once, each with an
    argument or an option that decides otherwise.

    Parameters
    ----------
    table : table or path
        A pandas, polars or pyarrow table, a dict of columns, a NumPy array (with or without
        names), or the path of a CSV, TSV or Parquet file. A file is read once.
    target : str or array-like, optional
        The column to predict, or its values. Rows without a target are left out.
    columns : mapping, optional
        What columns are, by name: "number", "category", "ordered", "date", "date:day_first",
        "date:month_first" or "drop"; or the levels of an order, as ``["S", "M", "L"]``. It
        overrules what is found out; identifiers, indices and copies of the target are used only
        if they are named here.
    standardise : bool, default=True
        Let the encoder bring numbers to mean 0 and standard deviation 1.

    Returns
    -------
    TableDiagnosis
        Prints as a table. ``encoder.apply(table)`` gives the numbers of this table or new rows;
        ``training_data()`` those of the rows that have a target, with the targets.

    Examples
    --------
    >>> import ridgefold
    >>> table = {
    ...     "price": ["$1,013", "$2,500", "$990", "$1,200"],
    ...     "colour": ["red", "blue", "red", "red"],
    ...     "paid": ["yes", "no", "yes", "no"],
    ... }
    >>> diagnosis = ridgefold.diagnose(table, "price")
    >>> [column.kind for column in diagnosis.columns]
    ['category', 'boolean']
    >>> diagnosis.training_data().y
    array([1013., 2500.,  990., 1200.])
    >>> diagnosis.encoder.feature_names
    ('colour=blue', 'colour=red', 'paid')
    """
    source = read_input(table)
    frame = source.frame
    choices = dict(columns or {})
    if len(frame) == 0 or not frame.columns:
        raise InvalidInputError(
            f"{source.name} has {len(frame)} rows and {len(frame.columns)} columns: at least one "
            "of each is needed"
        )
    if isinstance(target, str):
        if source.is_text and target not in frame.columns and are_numbers(frame.columns):
            raise TableError(
                f"target {target!r}: there is no such column. The first line of {source.name} "
                f"holds numbers ({', '.join(frame.columns[:3])}, …) and no names: put a line of "
                "names before it"
            )
        require_columns([target], frame.columns, "target")
    require_choices(choices, frame.columns)
    style = style_of(frame[:HEAD_ROWS], source.separator)
    read = None
    if target is not None:
        series = frame[target] if isinstance(target, str) else target_column(target, len(frame))
        choice = choices.pop(target, None) if isinstance(target, str) else None
        read = read_target(series, style, source.places, choice=choice, head_rows=HEAD_ROWS)
    names = [name for name in frame.columns if not isinstance(target, str) or name != target]
    return _Diagnosing(source, names, choices, read, standardise).result(style)


class _Diagnosing:
    """What is known of a table while its columns are looked at, one after another."""

    def __init__(
        self,
        source: TableInput,
        names: list[str],
        choices: Mapping[str, Any],
        target: ReadTarget | None,
        standardise: bool,
    ) -> None:
        self.source, self.names, self.choices, self.target = source, names, choices, target
        self.standardise = standardise
        frame = source.frame
        self.rows = np.arange(len(frame)) if target is None else target.rows
        self.columns: dict[str, ReadColumn] = {}

    def result(self, style: TableStyle) -> TableDiagnosis:
        """Everything that was found out."""
        frame = self.source.frame
        for name in self.names:
            self.columns[name] = self._column(name, style)
        self._find_shifted_indices()
        self._find_twins()
        records = tuple(
            column.record for column in self.columns.values() if column.record is not None
        )
        described = tuple(self._described(name) for name in self.names)
        repeated = self._repeated_rows()
        groups = tuple(
            name
            for name, column in self.columns.items()
            if column.kind.kind == "identifier" and column.kind.repeats
        )
        problems: list[Problem] = []
        if self.target is not None:
            problems += problems_of_target(self.source, self.target)
        for name, column in self.columns.items():
            asked_for = name in self.choices
            problems += problems_of_column(self.source, column, self.rows, asked_for=asked_for)
        problems += problems_of_table(self.source, repeated, groups, len(records))
        target = self.target
        return TableDiagnosis(
            source=self.source.name,
            n_rows=len(frame),
            columns=described,
            target=None if target is None else target.diagnosis,
            problems=tuple(problems),
            groups=groups,
            repeated_rows=repeated,
            separator=self.source.separator if self.source.is_text else None,
            encoding=self.source.encoding,
            encoder=TableEncoder(TableColumns(records)),
            frame=frame,
            rows=self.rows,
            y=None if target is None else target.y,
        )

    def _column(self, name: str, style: TableStyle) -> ReadColumn:
        series = self.source.frame[name]
        choice = self.choices.get(name)
        if choice == "drop":
            return ReadColumn(name, ColumnKind("dropped", "as asked for"))
        if name in self.source.index_names and choice is None:
            return ReadColumn(name, ColumnKind("index", "it was the index of a pandas table"))
        is_named = self.source.columns_are_named
        kind = kind_of(series[:HEAD_ROWS], style, choice=choice, is_named=is_named)
        if not kind.is_used:
            return ReadColumn(name, kind)
        used = series if len(self.rows) == len(series) else series[self.rows]
        learned = learn_column(used, kind, standardise=self.standardise)
        if learned.record is None:
            said = "it has no value" if learned.n_distinct == 0 else "it has one value"
            return ReadColumn(name, ColumnKind("constant", f"{said} in every row"), learned)
        column = ReadColumn(name, kind, learned)
        if self.target is not None:
            ordered = kind.kind != "category"
            column.given_away = gives_away(learned.values, self.target.codes, ordered=ordered)
            if column.given_away and column.given_away.is_copy and is_named and choice is None:
                column.kind = ColumnKind("target copy", f"it {column.given_away.why}")
        return column

    def _find_shifted_indices(self) -> None:
        """Leave out columns that are an index plus a number, as of rows that were counted twice."""
        for index in [name for name, column in self.columns.items() if column.kind.kind == "index"]:
            numbers = self._whole_numbers(index)
            if numbers is None:
                continue
            for name, column in self.columns.items():
                learned = column.learned
                if column.kind.kind != "number" or learned is None or has_time_name(name):
                    continue
                if name not in self.choices and np.ptp(learned.values - numbers) == 0:
                    column.kind = ColumnKind("index", f"it counts as {index!r} does")

    def _whole_numbers(self, name: str) -> np.ndarray | None:
        """The values of a column that numbers the rows; None if they are words."""
        series = self.source.frame[name]
        try:
            values = np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)[self.rows]
        except Exception:  # each library has its own error for what is no number
            return None
        return None if np.isnan(values).any() else values

    def _find_twins(self) -> None:
        """Leave out columns that hold the same as an earlier one."""
        seen: dict[tuple[bool, bytes], str] = {}
        for name, column in self.columns.items():
            if column.record is None or column.learned is None:
                continue
            # Codes are those of the sorted levels: columns that split the rows alike are the same.
            values = np.ascontiguousarray(column.learned.values, dtype=np.float64)
            digest = hashlib.sha256(values.tobytes()).digest()
            earlier = seen.setdefault((column.kind.kind == "category", digest), name)
            if earlier != name and name not in self.choices:
                column.kind = ColumnKind("duplicate", f"it holds the same as {earlier!r}")

    def _repeated_rows(self) -> int:
        """Rows that repeat an earlier one in all columns that are used, and in the target."""
        used = [
            column.learned.values
            for column in self.columns.values()
            if column.record is not None and column.learned is not None
        ]
        if not used or self.target is None:
            return 0
        mixed = np.zeros(len(self.rows), dtype=np.uint64)
        for values in [*used, self.target.codes]:
            _, codes = np.unique(values, return_inverse=True)
            # Numbers of 64 bits: two different rows hardly ever get the same.
            mixed = (mixed ^ codes.astype(np.uint64)) * _MIXER
            mixed ^= mixed >> np.uint64(29)
        return len(mixed) - len(np.unique(mixed))

    def _described(self, name: str) -> ColumnDiagnosis:
        column = self.columns[name]
        series = self.source.frame[name]
        if column.learned is not None:
            missing = float(np.isnan(column.learned.values).mean())
            n_distinct = column.learned.n_distinct
        else:
            missing = float(missing_in(series).mean())
            n_distinct = _different(series)
        features = () if column.record is None else column.record.feature_names
        treatment = treatment_of(column)
        return ColumnDiagnosis(
            name, column.kind.kind, missing, n_distinct, treatment, column.kind.reason, features
        )


def _different(series: Any) -> int:
    """Different values of a column that is left out; 0 if they cannot be compared."""
    try:
        return int(series.drop_nulls().n_unique())
    except Exception:  # lists and other objects: each library has its own error
        return 0

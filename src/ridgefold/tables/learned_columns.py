"""From what a column holds to how it becomes numbers, learned from the rows to fit.

Missing numbers become the median, with a second feature that says where; missing categories are a
level of their own. Of many levels the frequent ones have a feature each, the others one together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from ridgefold.records import (
    CategoryColumn,
    ColumnRecord,
    DateColumn,
    DatePart,
    NumberColumn,
    OrderedColumn,
)
from ridgefold.records.columns import DATE_PARTS
from ridgefold.tables.column_kinds import ColumnKind, numbers_or_nan
from ridgefold.tables.column_scale import ColumnValues
from ridgefold.tables.encode import dates_of, level_codes, level_texts
from ridgefold.tables.frames import is_text, missing_in, texts_as_arrow
from ridgefold.tables.numbers_in_text import parse_numbers
from ridgefold.tables.target_copies import GivenAway
from ridgefold.tables.written_numbers import is_missing_mark, trimmed

MOST_FEATURES = 40
"""Levels of a column that have a feature of their own: more would make the other columns count
less in every distance."""
_FEW_LEVELS = 10
"""So many levels all have a feature, however rare."""
_FREQUENT = 5
"""Rows of a level from which its effect can be told from noise."""
_FEWEST_FREQUENT = 2


@dataclass(frozen=True)
class LearnedColumn:
    """How one column becomes numbers, and what was seen on the way."""

    record: ColumnRecord | None
    """None if it is the same in every row, or empty."""
    values: np.ndarray
    """A number for each row: the numbers, or the codes of levels; NaN where it is missing."""
    unreadable: np.ndarray
    """Rows whose cell could not be read though it is not missing."""
    n_distinct: int
    n_pooled: int = 0
    """Levels that have no feature of their own."""
    far: tuple[float, ...] = ()
    """Values that lie far from all others, and do not count in the scale."""


@dataclass
class ReadColumn:
    """All that is known of one column: what it is, and how it becomes numbers."""

    name: str
    kind: ColumnKind
    learned: LearnedColumn | None = None
    """None if it is left out by what it is."""
    given_away: GivenAway | None = None

    @property
    def record(self) -> ColumnRecord | None:
        """How it becomes numbers; None if it is left out."""
        return None if self.learned is None or not self.kind.is_used else self.learned.record


def learn_column(series: nw.Series[Any], kind: ColumnKind, *, standardise: bool) -> LearnedColumn:
    """Learn one column from the rows to fit."""
    if kind.kind in ("number", "boolean"):
        return _learn_number(series, kind, standardise)
    if kind.kind == "date":
        return _learn_date(series, kind, standardise)
    if kind.kind == "ordered":
        return _learn_ordered(series, kind, standardise)
    return _learn_category(series, dict(_one_spelling(kind)))


def _one_spelling(kind: ColumnKind) -> Iterator[tuple[str, str]]:
    """For levels that are spelt in several ways, the spelling to take."""
    for texts in kind.spellings:
        if len(texts[0]) > 1:  # one letter is a code, in which capitals may mean something
            yield from ((text, texts[0]) for text in texts[1:])


def column_numbers(series: nw.Series[Any], kind: ColumnKind) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a column as its kind says, and which cells are none though not missing."""
    if is_text(series):
        return parse_numbers(texts_as_arrow(series), boolean=kind.boolean, rule=kind.rule)
    if bool(series.is_null().all()):
        return np.full(len(series), np.nan), np.zeros(len(series), dtype=bool)
    values = numbers_or_nan(series)
    return values, np.isnan(values) & ~missing_in(series)


def _learn_number(series: nw.Series[Any], kind: ColumnKind, standardise: bool) -> LearnedColumn:
    values, unreadable = column_numbers(series, kind)
    known = values[~np.isnan(values)]
    n_distinct, gaps = len(np.unique(known)), len(known) < len(values)
    if n_distinct == 0 or (n_distinct == 1 and not gaps):
        return LearnedColumn(None, values, unreadable, n_distinct)
    if n_distinct == 1:  # whether it is there is all that it says
        record: ColumnRecord = NumberColumn(
            series.name,
            mean=float(known[0]),
            fill=float(known[0]),
            boolean=kind.boolean,
            text=kind.rule,
            missing_indicator=True,
        )
        return LearnedColumn(record, values, unreadable, n_distinct)
    mean, scale, far = _scale(known, standardise)
    fill = float(np.median(known))
    record = NumberColumn(
        series.name,
        mean,
        scale,
        float(np.round(fill)) if kind.boolean else fill,
        boolean=kind.boolean,
        text=kind.rule,
        missing_indicator=gaps,
    )
    return LearnedColumn(record, values, unreadable, n_distinct, far=far)


def _scale(known: np.ndarray, standardise: bool) -> tuple[float, float, tuple[float, ...]]:
    if not standardise:
        return 0.0, 1.0, ()
    values = ColumnValues()
    values.add(known)
    scale = values.scale()
    return scale.mean, scale.spread or 1.0, scale.far


def _learn_date(series: nw.Series[Any], kind: ColumnKind, standardise: bool) -> LearnedColumn:
    from ridgefold.tables.written_dates import part_of_dates

    dates, unreadable = dates_of(series, kind.order)
    lost = np.isnat(dates)
    days = part_of_dates(dates, "elapsed_days")
    n_distinct = len(np.unique(days[~lost]))
    parts = []
    for name in DATE_PARTS:
        known = part_of_dates(dates, name)[~lost]
        if name == "elapsed_days" and np.ptp(np.floor(days[~lost])) == 0 and n_distinct > 1:
            continue  # within one day, the hour says the same
        if len(known) and not np.all(known == known[0]):  # of one year, its number says nothing
            mean, scale, _ = _scale(known, standardise)
            parts.append(DatePart(name, mean, scale, float(np.median(known))))
    if not parts and not (lost.any() and n_distinct):
        return LearnedColumn(None, days, unreadable, n_distinct)
    record = DateColumn(series.name, kind.order, tuple(parts), bool(lost.any()))
    return LearnedColumn(record, days, unreadable, n_distinct)


def _learn_ordered(series: nw.Series[Any], kind: ColumnKind, standardise: bool) -> LearnedColumn:
    codes, lost = level_codes(level_texts(series), kind.levels)
    known = codes[codes >= 0].astype(float)
    values = np.where(codes >= 0, codes, np.nan)
    unreadable = (codes < 0) & ~lost
    n_distinct = len(np.unique(known))
    if n_distinct < 2 and not (n_distinct and lost.any()):
        return LearnedColumn(None, values, unreadable, n_distinct)
    mean, scale, _ = _scale(known, standardise)
    fill, gaps = float(np.median(known)), bool((codes < 0).any())
    record = OrderedColumn(series.name, kind.levels, mean, scale, fill, gaps)
    return LearnedColumn(record, values, unreadable, n_distinct)


def _learn_category(series: nw.Series[Any], spelling: Mapping[str, str]) -> LearnedColumn:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = level_texts(series)
    coded = texts.dictionary_encode()
    plain = trimmed(coded.dictionary)
    mark = pa.array(is_missing_mark(plain, among_numbers=False))
    plain = pc.if_else(mark, pa.scalar(None, pa.large_string()), plain)
    if spelling:
        plain = pa.array(
            [spelling.get(text, text) for text in plain.to_pylist()], pa.large_string()
        )
    texts = plain.take(coded.indices)
    counts = texts.drop_null().value_counts()
    by_rows = sorted(
        zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True),
        key=lambda pair: (-pair[1], pair[0]),
    )
    lost = np.asarray(texts.is_null().to_numpy(zero_copy_only=False))
    levels = frequent_levels(by_rows)
    everything = tuple(sorted(level for level, _ in by_rows))
    codes, _ = level_codes(texts, everything)
    values = np.where(codes >= 0, codes, np.nan)
    nothing = np.zeros(len(values), dtype=bool)
    if len(by_rows) < 2 and not (by_rows and lost.any()):
        return LearnedColumn(None, values, nothing, len(by_rows))
    pooled = len(by_rows) - len(levels)
    record = CategoryColumn(series.name, tuple(sorted(levels)), bool(lost.any()), pooled > 0)
    return LearnedColumn(record, values, nothing, len(by_rows), n_pooled=pooled)


def frequent_levels(by_rows: list[tuple[str, int]]) -> list[str]:
    """The levels that have a feature each, of all with their rows, the most frequent first."""
    if len(by_rows) <= _FEW_LEVELS:
        return [level for level, _ in by_rows]
    least = _FREQUENT if by_rows[0][1] >= _FREQUENT else _FEWEST_FREQUENT
    frequent = [level for level, rows in by_rows if rows >= least]
    return frequent[:MOST_FEATURES]

"""What the owner of a table should know, in words, each with a way to decide otherwise."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from ridgefold.records import CategoryColumn, DateColumn, NumberColumn, OrderedColumn
from ridgefold.tables.column_kinds import HEAD_ROWS, ColumnKind
from ridgefold.tables.diagnosis import Problem
from ridgefold.tables.frames import is_text, texts_as_arrow
from ridgefold.tables.learned_columns import MOST_FEATURES, LearnedColumn, ReadColumn
from ridgefold.tables.table_input import TableInput
from ridgefold.tables.target_column import ReadTarget
from ridgefold.tables.written_numbers import WrittenNumbers

_EXAMPLES = 3
_MUCH_MISSING = 0.5
"""A column without a value in more rows than this mostly says where its gaps are."""
_SENTINELS = (-999.0, -9999.0, -99.0, 999.0, 9999.0, 99999.0, -99999.0)
"""Numbers that older programs write for a missing value."""


def option(name: str, kind: str) -> tuple[str, str]:
    """The argument and the command-line option that say what a column is."""
    if kind == "drop":
        return f"columns={{{name!r}: 'drop'}}", f"--drop {shlex.quote(name)}"
    return f"columns={{{name!r}: {kind!r}}}", f"--columns {shlex.quote(f'{name}={kind}')}"


def treatment_of(column: ReadColumn) -> str:
    """What is done with a column, in words."""
    kind, record, learned = column.kind, column.record, column.learned
    if record is None or learned is None:
        return "left out"
    gaps = ""
    if isinstance(record, NumberColumn):
        if record.missing_indicator:
            gaps = f"; gaps become {record.fill:g}, and a feature says where"
        return f"{'yes as 1, no as 0' if kind.boolean else 'a number'}{gaps}"
    if isinstance(record, DateColumn):
        parts = ", ".join(part.part.replace("_", " ") for part in record.parts)
        return parts + ("; gaps are filled, and a feature says where" * record.missing_indicator)
    if isinstance(record, CategoryColumn):
        gaps = "; missing is a level of its own" if record.missing_level else ""
        if record.other_level:
            return (
                f"one feature for each of {len(record.levels)} frequent levels, one for the "
                f"{learned.n_pooled:,} others together{gaps}"
            )
        return f"one feature for each of {len(record.levels)} levels{gaps}"
    assert isinstance(record, OrderedColumn)  # codes are learned later, from the target
    gaps = "; gaps are filled, and a feature says where" if record.missing_indicator else ""
    return f"places in the order {' < '.join(record.levels)}{gaps}"


_Said = Iterator[tuple[str, str, str]]
"""Topic and message of a problem, and the kind that the owner may give the column instead."""


def problems_of_column(
    source: TableInput, column: ReadColumn, rows: np.ndarray, *, asked_for: bool
) -> list[Problem]:
    """All that should be known of one column."""
    name, problems = column.name, []
    for topic, message, choice in _all_said(source, column, rows, asked_for):
        python, command = option(name, choice)
        purpose = "to decide otherwise"
        if choice == "drop":
            purpose = "to leave it out" + ("" if column.kind.is_used else " without a word")
        said = f"{name!r}: {message}"
        problems.append(Problem(topic, (name,), said, python, command, purpose))
    return problems


def _all_said(source: TableInput, column: ReadColumn, rows: np.ndarray, asked_for: bool) -> _Said:
    kind = column.kind
    if column.given_away is not None:
        yield from _of_copies(column)
    if not kind.is_used:
        if not asked_for and kind.kind != "target copy":
            choice = {"index": "number", "constant": "drop", "unsupported": "drop"}.get(
                kind.kind, "category"
            )
            yield kind.kind, f"left out, because {kind.reason}", choice
        return
    assert column.learned is not None
    if column.learned.unreadable.any():
        yield "unreadable", _says_unreadable(source, column, rows), "category"
    gaps = bool(np.isnan(column.learned.values).any())
    marks = _marks(source.frame[column.name]) if gaps else ""
    if marks:
        yield "marks for missing", f"{marks}, taken as missing", "category"
    yield from _of_writing(kind)
    if kind.half_numbers is not None and not asked_for:
        yield from _of_half_numbers(kind)
    for texts in kind.spellings:
        said = ", ".join(map(repr, texts[:_EXAMPLES]))
        if len(texts[0]) > 1:
            yield (
                "capital letters",
                f"{said} differ in capital letters only: taken for one",
                "category",
            )
        else:
            yield (
                "capital letters",
                f"{said} differ in capital letters only, and stay apart",
                "drop",
            )
    yield from _of_values(column, column.learned)


def _of_copies(column: ReadColumn) -> _Said:
    assert column.given_away is not None
    why = column.given_away.why
    if column.kind.kind == "target copy":
        yield "target copy", f"left out, because it {why}", "number"
    elif column.kind.is_used:
        yield "near copy of the target", f"is it known before the target is? {why}", "drop"


def _of_writing(kind: ColumnKind) -> _Said:
    """Numbers and dates that can be read in more than one way."""
    numbers, dates = kind.numbers, kind.dates
    if numbers is not None and kind.kind == "number":
        unit = numbers.rule.unit
        if numbers.doubtful is not None:
            meaning = meaning_of_mark(numbers)
            other = "one of thousands" if meaning == "decimal" else "decimal"
            mark = f"the mark in {numbers.doubtful!r}"
            said = f"{mark} is taken for {meaning}, and could also be {other}"
            yield "doubtful numbers", said, "category"
        if numbers.other_units:
            units = ", ".join(map(repr, numbers.other_units[:_EXAMPLES]))
            said = f"values in {units} beside {unit!r} cannot be compared, and count as missing"
            yield "several units", said, "drop"
        if unit and numbers.without_unit:
            said = f"{several(numbers.without_unit, 'value')} without a unit, taken as {unit!r}"
            yield "several units", said, "drop"
    if dates is not None and dates.doubtful is not None:
        first = kind.order.removesuffix("_first")
        other = "date:day_first" if kind.order == "month_first" else "date:month_first"
        said = f"in {dates.doubtful!r} the {first} is taken to come first, but no cell shows it"
        yield "doubtful dates", said, other


def _of_half_numbers(kind: ColumnKind) -> _Said:
    assert kind.half_numbers is not None
    wrong, known, example = kind.half_numbers
    said = (
        f"taken for categories, because {wrong:,} of {known:,} values are no number (such as "
        f"{example[:40]!r})"
    )
    if kind.numbers is not None and kind.numbers.other_units:
        units = ", ".join(map(repr, (kind.numbers.rule.unit, *kind.numbers.other_units)))
        said += f"; its numbers are in several units: {units}"
    yield "mixed", said, "number"


def _of_values(column: ReadColumn, learned: LearnedColumn) -> _Said:
    """What the values themselves show."""
    if learned.n_pooled:
        rare = (
            f"the {learned.n_pooled:,} rare ones count"
            if learned.n_pooled > 1
            else "a rare one counts"
        )
        said = f"{learned.n_distinct:,} levels; {rare} as 'other'"
        if learned.n_distinct > MOST_FEATURES:
            said = (
                f"{learned.n_distinct:,} levels: fit gives each a code by what it adds to the "
                f"target; where groups are given, {rare} as 'other'"
            )
        yield "many levels", said, "drop"
    if learned.far:
        said = ", ".join(f"{value:g}" for value in learned.far[:_EXAMPLES])
        yield "far values", f"{said} lie far from all other values; are they errors?", "drop"
    sentinel = _sentinel(learned.values) if column.kind.kind == "number" else None
    if sentinel is not None:
        value, count = sentinel
        said = (
            f"{value:g} stands in {several(count, 'row')}, away from all other values; if it means "
            "missing, leave these cells empty"
        )
        yield "mark among numbers", said, "drop"
    missing = float(np.isnan(learned.values).mean())
    if missing > _MUCH_MISSING:
        yield "mostly missing", f"no value in {100 * missing:.0f}% of the rows", "drop"


def several(count: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def meaning_of_mark(numbers: WrittenNumbers) -> str:
    """What the mark in a doubtful number is taken for."""
    assert numbers.doubtful is not None
    return "decimal" if numbers.rule.decimal in numbers.doubtful else "one of thousands"


def _says_unreadable(source: TableInput, column: ReadColumn, rows: np.ndarray) -> str:
    assert column.learned is not None
    wrong = rows[np.flatnonzero(column.learned.unreadable)]
    said = cells_in_words(source, column.name, wrong)
    noun = {"date": "date", "ordered": "level of the order"}.get(column.kind.kind, "number")
    late = int((wrong >= HEAD_ROWS).sum())
    later = f" ({late:,} of them after the first {HEAD_ROWS:,} rows, which decided)" if late else ""
    return f"{several(len(wrong), 'cell')} without a {noun}, taken as missing{later}: {said}"


def cells_in_words(source: TableInput, name: str, rows: np.ndarray) -> str:
    """The first of some cells, each with its place."""
    shown = [int(row) for row in rows[:_EXAMPLES]]
    series = source.frame[name]
    cells = [
        f"{str(series[row])[:40]!r} in {place}"
        for row, place in zip(shown, source.places(shown), strict=True)
    ]
    return ", ".join(cells) + (", …" if len(rows) > len(shown) else "")


def _marks(series: nw.Series[Any]) -> str:
    """Cells such as "?" that mean missing, in words; those that every reader knows are not said."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from ridgefold.tables.written_numbers import MISSING_MARKS, MISSING_WORDS, trimmed

    if not is_text(series):
        return ""
    texts = texts_as_arrow(series)
    counts = texts.drop_null().value_counts()
    plain = trimmed(counts.field("values"))
    unusual = pa.array(sorted(set(MISSING_MARKS) - set(MISSING_WORDS)), pa.large_string())
    keep = pc.is_in(plain, unusual)
    pairs = zip(
        plain.filter(keep).to_pylist(), counts.field("counts").filter(keep).to_pylist(), strict=True
    )
    return ", ".join(f"{text!r} in {several(count, 'cell')}" for text, count in pairs)


def _sentinel(values: np.ndarray) -> tuple[float, int] | None:
    """A number such as -999 that stands several times away from all others."""
    known = values[~np.isnan(values)]
    for value in _SENTINELS:
        count = int((known == value).sum())
        rest = known[known != value]
        if count >= _EXAMPLES and len(rest) >= 10:
            gap = rest.min() - value if value < 0 else value - rest.max()
            if gap > rest.max() - rest.min():
                return value, count
    return None


def problems_of_target(source: TableInput, target: ReadTarget) -> list[Problem]:
    """What should be known of the target."""
    found, problems = target.diagnosis, []
    name = found.name
    if target.unreadable.any():
        wrong = np.flatnonzero(target.unreadable)
        said = (
            cells_in_words(source, name, wrong) if name in source.frame.columns else f"{len(wrong)}"
        )
        python, command = option(name, "category")
        problems.append(
            Problem(
                "target",
                (name,),
                f"the target {name!r} is no number in {several(len(wrong), 'row')}, left out: "
                f"{said}",
                python,
                command,
            )
        )
    missing = found.n_missing - int(target.unreadable.sum())
    if missing:
        problems.append(
            Problem(
                "target",
                (name,),
                f"the target {name!r} has no value in {several(missing, 'row')}: left out",
            )
        )
    numbers = target.kind.numbers
    if found.column is not None and numbers is not None and numbers.doubtful is not None:
        problems.append(
            Problem(
                "target",
                (name,),
                f"the mark in {numbers.doubtful!r} of the target {name!r} is taken for "
                f"{meaning_of_mark(numbers)}; if it is not, write such numbers without marks for "
                "thousands",
            )
        )
    if found.task == "classification":
        counts = np.bincount(target.codes)
        if counts.min() < 2:
            rare = [found.classes[j] for j in np.flatnonzero(counts < 2)]
            problems.append(
                Problem(
                    "target",
                    (name,),
                    f"{len(rare)} classes of the target {name!r} have a single row, and cannot be "
                    f"checked on another: {', '.join(map(repr, rare[:5]))}",
                )
            )
    return problems


def problems_of_table(
    source: TableInput,
    repeated_rows: int,
    groups: Sequence[str],
    n_used: int,
) -> list[Problem]:
    """What should be known of a table as a whole."""
    problems = []
    for name in groups:
        problems.append(
            Problem(
                "groups",
                (name,),
                f"several rows have the same {name!r}: hold out all rows of one together, or the "
                "errors will look smaller than they are",
                f"groups={name!r}",
                f"--groups {shlex.quote(name)}",
            )
        )
    if repeated_rows:
        problems.append(
            Problem(
                "repeated rows",
                (),
                f"{several(repeated_rows, 'row')} {'repeats' if repeated_rows == 1 else 'repeat'} "
                "an earlier one in all columns that are used and in the target; if that is no "
                "coincidence, errors on held-out rows look smaller than they are",
                "table.drop_duplicates()",
                purpose="to leave them out",
            )
        )
    names = list(source.frame.columns)
    if source.lines_before:
        problems.append(
            Problem(
                "lines above the names",
                (),
                f"the names of the columns are taken from line {source.lines_before + 1}; what "
                "stands above it is left out",
            )
        )
    if source.is_text and are_numbers(names):
        problems.append(
            Problem(
                "no names",
                (),
                "the first line is taken for names, but it holds numbers: put a line of names "
                "before it",
            )
        )
    if n_used == 0:
        problems.append(
            Problem("nothing left", (), "no column is left to learn from: name one in columns=")
        )
    return problems


def are_numbers(names: Sequence[str]) -> bool:
    """Whether all names of columns are numbers, as where a file has no line of names."""
    try:
        return len([float(name) for name in names]) > 0
    except ValueError:
        return False

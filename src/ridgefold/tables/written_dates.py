"""Dates as people write them, and the numbers that are made of a date.

2021-03-04, 04.03.2021, 3/4/21 and 4 March 2021 are read, with or without a time of day. Whether
the day or the month comes first is decided by the whole column: one cell with a first number
above 12 decides it. A column in which nothing decides is said to be doubtful.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.tables.written_numbers import is_missing_mark, trimmed

_TIME = (
    r"(?:[T ]+(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}(?:[.,][0-9]+)?))?"
    r" ?(?P<half>(?i:[ap]m))? ?(?P<zone>Z|UTC|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_YEAR_FIRST = (
    rf"^(?P<year>[0-9]{{4}})[-/.](?P<month>[0-9]{{1,2}})[-/.](?P<day>[0-9]{{1,2}}){_TIME}$"
)
_COMPACT = rf"^(?P<year>[0-9]{{4}})(?P<month>[0-9]{{2}})(?P<day>[0-9]{{2}}){_TIME}$"
_YEAR_LAST = (
    r"^(?P<{first}>[0-9]{{1,2}})[-/. ](?P<{second}>[0-9]{{1,2}})"
    r"[-/. ](?P<year>[0-9]{{4}}|[0-9]{{2}})"
)
_TIME_ALONE = r"^[0-9]{1,2}:[0-9]{2}"
"""A time of day without a date is one of the first of January 1970."""
_WEEKDAY = r"^(?:(?i:mon|tue|wed|thu|fri|sat|sun)[a-z]*[.,]* )?"
_NAMED = (
    rf"{_WEEKDAY}(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th|\.)?[-/ ]*"
    rf"(?P<month>[A-Za-z]{{3,9}})[-/., ]*(?P<year>[0-9]{{4}}|[0-9]{{2}}){_TIME}$",
    rf"{_WEEKDAY}(?P<month>[A-Za-z]{{3,9}})[-/. ]*(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?[, ]+"
    rf"(?P<year>[0-9]{{4}}){_TIME}$",
)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
_PIVOT = 69
"""Years of two digits from here on are of the last century, as in POSIX."""
_FIRST_YEAR, _LAST_YEAR = 1000, 2999
_COMPACT_YEARS = 1900, 2101
_FEWEST_COMPACT = 10
"""So many numbers of eight digits are hardly all dates of these years by chance."""
_MOST_UNREADABLE = 0.1
"""A column of which more cells are no dates is none of dates."""


@dataclass(frozen=True)
class WrittenDates:
    """How the cells of a column write dates."""

    order: str
    doubtful: str | None
    """A cell that could also be read with day and month exchanged, if nothing decides."""
    unreadable: int


def _patterns(order: str) -> tuple[str, ...]:
    if order == "year_first":
        return (_YEAR_FIRST, _COMPACT, *_NAMED)
    first, second = ("day", "month") if order == "day_first" else ("month", "day")
    year_last = _YEAR_LAST.format(first=first, second=second) + _TIME + "$"
    return (_YEAR_FIRST, year_last, *_NAMED)


def dates_in(counts: Mapping[str, int], table_order: str | None) -> WrittenDates | None:
    """How the known cells of a column write dates; None if they write none.

    `table_order` is the order that other columns of the table leave no doubt of. Eight digits
    are a number here, and a date only where a column is said to hold dates.
    """
    import pyarrow as pa

    texts = [text for text in counts if any(c in text for c in "-/. ,:")]
    n_known = sum(counts.values())
    if sum(counts[text] for text in texts) < (1 - _MOST_UNREADABLE) * n_known:
        return None
    array = pa.array(texts, pa.large_string())
    weights = np.array([counts[text] for text in texts])
    read = {
        order: read_dates(array, order)[0] for order in ("year_first", "day_first", "month_first")
    }
    known = {order: int(weights[~np.isnat(dates)].sum()) for order, dates in read.items()}
    order = max(known, key=lambda name: known[name])  # the first of those that read as many
    unreadable = n_known - known[order]
    if unreadable > max(1, _MOST_UNREADABLE * n_known) or known[order] == 0:
        return None
    if order == "year_first" or known["day_first"] != known["month_first"]:
        return WrittenDates(order, None, unreadable)
    differ = np.flatnonzero(read["day_first"] != read["month_first"])
    differ = np.array([row for row in differ if not np.isnat(read["day_first"][row])], dtype=int)
    if len(differ) == 0:
        return WrittenDates("day_first", None, unreadable)
    example = texts[int(differ[0])]
    usual = "month_first" if "/" in example else "day_first"
    return WrittenDates(table_order or usual, example, unreadable)


def read_dates(texts: Any, order: str) -> tuple[np.ndarray, np.ndarray]:
    """The dates of a pyarrow array of texts to the second, and which cells are none though not
    missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    coded = texts.cast(pa.large_string()).dictionary_encode()
    different = trimmed(coded.dictionary)
    is_time = pc.match_substring_regex(different, _TIME_ALONE)
    day, nothing = pa.scalar("1970-01-01 ", pa.large_string()), pa.scalar("", pa.large_string())
    dated = pc.binary_join_element_wise(day, different, nothing)
    different = pc.if_else(is_time, dated, different)
    dates = np.full(len(different), "NaT", dtype="datetime64[s]")
    for pattern in _patterns(order):
        open_rows = np.flatnonzero(np.isnat(dates))
        if len(open_rows):
            dates[open_rows] = _matching(different.take(pa.array(open_rows)), pattern)
    unreadable = np.isnat(dates) & ~is_missing_mark(different, among_numbers=True)
    dates, unreadable = np.append(dates, np.datetime64("NaT")), np.append(unreadable, False)
    codes = coded.indices.fill_null(len(different)).to_numpy(zero_copy_only=False)
    return dates[codes], unreadable[codes]


def are_compact_dates(values: np.ndarray) -> bool:
    """Whether whole numbers are dates such as 20210304: ten different ones, and nothing else."""
    import pyarrow as pa

    known = np.unique(values[~np.isnan(values)])
    first, last = _COMPACT_YEARS
    if len(known) < _FEWEST_COMPACT or known[0] < 10_000 * first or known[-1] >= 10_000 * last:
        return False
    if not np.array_equal(known, np.floor(known)):
        return False
    texts = pa.array(known.astype(np.int64)).cast(pa.large_string())
    return not np.isnat(_matching(texts, _COMPACT)).any()


def _matching(texts: Any, pattern: str) -> np.ndarray:
    """The dates of the texts that a pattern describes, NaT for others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = pc.extract_regex(texts, pattern)
    matched = np.asarray(parts.is_valid().to_numpy(zero_copy_only=False))

    def words(name: str) -> list[str]:
        return [word or "" for word in pc.struct_field(parts, name).to_pylist()]

    def numbers(name: str) -> Any:
        column = pc.replace_substring(pc.struct_field(parts, name), ",", ".")
        empty = pc.or_(pc.equal(column, ""), pc.is_null(column))
        column = pc.if_else(empty, pa.scalar("0", pa.large_string()), column)
        return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False))

    years, days = numbers("year"), numbers("day")
    short = np.array([len(word) == 2 for word in words("year")], dtype=bool)
    years = years + np.where(short, np.where(years >= _PIVOT, 1900.0, 2000.0), 0.0)
    months = _month_numbers(words("month"))
    hours, minutes, seconds = numbers("hour"), numbers("minute"), numbers("second")
    half = np.array([word.lower() for word in words("half")])
    good = matched & (months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)
    good &= (years >= _FIRST_YEAR) & (years <= _LAST_YEAR)
    good &= (minutes < 60) & (seconds < 61) & (hours < 25)
    good &= (half == "") | ((hours >= 1) & (hours <= 12))
    hours = np.where(half == "", hours, hours % 12 + np.where(half == "pm", 12, 0))
    whole_months = np.where(good, (years - 1970) * 12 + months - 1, 0).astype(np.int64)
    month_starts = whole_months.astype("datetime64[M]")
    dates = month_starts.astype("datetime64[D]") + np.where(good, days - 1, 0).astype(np.int64)
    good &= dates.astype("datetime64[M]") == month_starts  # there is no 30 February
    offset = 3600 * hours + 60 * minutes + np.floor(seconds) - _zone_seconds(words("zone"))
    found = dates.astype("datetime64[s]") + np.where(good, offset, 0).astype(np.int64)
    found[~good] = np.datetime64("NaT")
    return np.asarray(found)


def _month_numbers(words: list[str]) -> np.ndarray:
    numbers = {}
    for word in set(words):
        lowered = word.lower()
        named = [j for j, month in enumerate(_MONTHS, 1) if month.startswith(lowered)]
        if lowered == "sept":
            named = [9]
        if word.isdigit():
            numbers[word] = int(word)
        else:
            numbers[word] = named[0] if len(lowered) >= 3 and named else 0
    return np.array([numbers[word] for word in words], dtype=np.float64)


def _zone_seconds(zones: list[str]) -> np.ndarray:
    def seconds(zone: str) -> int:
        if zone in ("", "Z", "UTC"):
            return 0
        digits = zone[1:].replace(":", "")
        return (-1 if zone[0] == "-" else 1) * (3600 * int(digits[:2]) + 60 * int(digits[2:]))

    known = {zone: seconds(zone) for zone in set(zones)}
    return np.array([known[zone] for zone in zones], dtype=np.float64)


def part_of_dates(dates: np.ndarray, part: str) -> np.ndarray:
    """One number of each date (`records.columns.DATE_PARTS`), NaN where there is no date."""
    lost = np.isnat(dates)
    seconds = np.where(lost, np.datetime64(0, "s"), dates.astype("datetime64[s]"))
    days = seconds.astype("datetime64[D]")
    whole_days = days.astype(np.int64)
    values: np.ndarray
    if part == "elapsed_days":
        values = seconds.astype(np.int64) / 86400
    elif part == "year":
        values = days.astype("datetime64[Y]").astype(np.int64) + 1970.0
    elif part == "month":
        values = days.astype("datetime64[M]").astype(np.int64) % 12 + 1.0
    elif part == "day_of_week":
        values = (whole_days + 3) % 7 + 0.0  # 1 January 1970 was a Thursday
    elif part == "day_of_year":
        values = (days - days.astype("datetime64[Y]").astype("datetime64[D]")).astype(float) + 1.0
    else:
        values = (seconds.astype(np.int64) - 86400 * whole_days) / 3600
    return np.where(lost, np.nan, values)

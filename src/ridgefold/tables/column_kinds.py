"""What a column holds: numbers, categories, dates, free text, or nothing that can be learned from.

The first rows decide (`HEAD_ROWS`); the owner of the table decides otherwise by naming a kind.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.records import NumberText
from ridgefold.tables.encode import dates_of, level_texts
from ridgefold.tables.frames import is_categorical, is_text, missing_in, numbers_of, texts_as_arrow
from ridgefold.tables.numbers_in_text import (
    LEAST_NUMBERS,
    MOST_UNREADABLE,
    TRUTH_WORDS,
    parse_numbers,
)
from ridgefold.tables.written_dates import WrittenDates, are_compact_dates, dates_in
from ridgefold.tables.written_numbers import (
    WrittenNumbers,
    is_missing_mark,
    read_numbers,
    rule_of,
    trimmed,
)

HEAD_ROWS = 50_000
"""Rows that decide what a column is: more of them would change nothing, and take long."""
CHOICES = (
    *("number", "category", "ordered", "date", "date:day_first", "date:month_first"),
    "drop",
)
"""What the owner of a table can say that a column is; or the levels of an order, in order."""
LEFT_OUT = (
    *("text", "identifier", "index", "constant", "duplicate", "target copy", "unsupported"),
    "dropped",
)
_FEWEST_ROWS = 10
"""Fewer rows can hold 1, 2, 3 … or different words by chance."""
_ALMOST_ALL = 0.95
"""A text that is another one in this share of the rows is the name of the row."""
_WORDS_OF_TEXT = 4
"""Texts of so many words on average, most of them different, are sentences."""
_LETTERS_OF_TEXT = 60
_UNNAMED = re.compile(r"^(|Unnamed: \d+(_level_\d+)?|__index_level_\d+__|level_\d+)$")
_IDENTIFIER_WORDS = {"id", "ids", "uuid", "guid", "identifier", "rowid", "pk"}
_ENTITY_NAMES = {
    *("patient", "subject", "customer", "client", "user", "person", "household", "player"),
    *("participant", "student", "employee", "member", "device", "sensor", "machine", "vehicle"),
}
"""A column of this name says whom or what a row is of, if several rows are of each."""
_ORDINAL = re.compile(r"^\d{1,3}(st|nd|rd|th)$")
_MOST_WORDS = 2
_NUMBERS_BESIDE_WORDS = 20
"""With so many different numbers, one or two words among them say that there is no number."""
_TIME_WORDS = {
    *("t", "time", "step", "tick", "second", "minute", "hour", "day", "week", "month", "quarter"),
    *("year", "date", "epoch", "period", "elapsed"),
}
"""A column of this name that counts from row to row is time, which may matter."""
_ROW_WORDS = {
    *("row", "rows", "rowname", "rownames", "rownum", "rownumber", "index", "idx", "obs"),
    *("observation", "recno", "record", "nr", "seq", "serial", "sno"),
}
"""A column of this name that has another whole number in every row numbers the rows, also where
they were mixed, or some were drawn."""
_LEADING_ZERO = re.compile(r"^0\d+$")
_LEADING_ZERO_SHARE = 0.01
_CODE_WORDS = {"zip", "zipcode", "postcode", "postal", "plz", "phone", "fips", "isbn", "barcode"}
"""Numbers in a column of this name are names."""
ORDERS = (
    ("low", "medium", "high"),
    ("low", "moderate", "high"),
    ("low", "mid", "high"),
    ("very low", "low", "medium", "high", "very high"),
    ("small", "medium", "large"),
    ("xs", "s", "m", "l", "xl", "xxl"),
    ("poor", "fair", "good", "very good", "excellent"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("none", "mild", "moderate", "severe"),
)
"""Words whose order everybody knows; a column may hold three or more of one of these."""


@dataclass(frozen=True)
class TableStyle:
    """What the columns of a table show together of how it is written."""

    decimal: str | None = None
    date_order: str | None = None
    separator: str = ","


@dataclass(frozen=True)
class ColumnKind:
    """What a column holds, and how its cells are read."""

    kind: str
    reason: str
    rule: NumberText | None = None
    boolean: bool = False
    order: str = "year_first"
    levels: tuple[str, ...] = ()
    numbers: WrittenNumbers | None = None
    dates: WrittenDates | None = None
    half_numbers: tuple[int, int, str] | None = None
    """For categories of which half are numbers: how many are none, of how many, and one."""
    spellings: tuple[tuple[str, ...], ...] = ()
    """For categories: levels that differ only in capital letters, and are taken for one."""
    repeats: bool = False
    """Whether an identifier has several rows for each."""

    @property
    def is_used(self) -> bool:
        return self.kind not in LEFT_OUT


def words_of(name: str) -> list[str]:
    """The words of a name: of customerID, customer_id and "Customer ID"."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word.lower() for word in re.split(r"[^A-Za-z0-9]+", spaced) if word]


def has_time_name(name: str) -> bool:
    """Whether a column that counts from row to row may be time, which matters."""
    return bool(_TIME_WORDS & set(words_of(name)))


def has_identifier_name(name: str) -> bool:
    return bool(_IDENTIFIER_WORDS & set(words_of(name)))


def counts_of(series: nw.Series[Any]) -> dict[str, int]:
    """How often each text of a column occurs, trimmed and without those that mean missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = texts_as_arrow(series)
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    pairs = texts.cast(pa.large_string()).drop_null().value_counts()
    plain = trimmed(pairs.field("values"))
    keep = pc.invert(pa.array(is_missing_mark(plain, among_numbers=False)))
    counts: Counter[str] = Counter()
    for text, count in zip(
        plain.filter(keep).to_pylist(), pairs.field("counts").filter(keep).to_pylist(), strict=True
    ):
        counts[text] += count
    return dict(counts)


def style_of(frame: nw.DataFrame[Any], separator: str) -> TableStyle:
    """The decimal mark and the order of dates that columns of text show beyond doubt."""
    decimals: Counter[str] = Counter()
    orders: Counter[str] = Counter()
    for name in frame.columns:
        series = frame[name]
        if not is_text(series) or is_categorical(series):
            continue
        counts = counts_of(series)
        numbers = rule_of(counts, None, separator)
        if numbers.shown_decimal and number_share(counts, numbers.rule).is_number:
            decimals[numbers.shown_decimal] += 1
            continue
        dates = dates_in(counts, None)
        if dates is not None and dates.doubtful is None and dates.order != "year_first":
            orders[dates.order] += 1
    return TableStyle(_most_common(decimals), _most_common(orders), separator)


def _most_common(counts: Counter[str]) -> str | None:
    return counts.most_common(1)[0][0] if counts else None


def kind_of(  # noqa: PLR0911 - one line a type
    series: nw.Series[Any], style: TableStyle, *, choice: Any = None, is_named: bool = True
) -> ColumnKind:
    """What a column holds, from its first rows.

    `is_named` is false for a matrix: its columns are what somebody has chosen, and none of them
    is taken for an index or an identifier.
    """
    if choice is not None:
        return _as_chosen(series, style, choice)
    dtype = series.dtype
    if bool(missing_in(series).all()):
        return ColumnKind("constant", "it has no value")
    if isinstance(dtype, nw.Boolean):
        return ColumnKind("boolean", "true and false", boolean=True)
    if isinstance(dtype, (nw.Date, nw.Datetime)):
        return ColumnKind("date", "its type is a date")
    values = numbers_or_nan(series) if _is_number(series) else None
    if values is not None:
        if dtype.is_integer() and are_compact_dates(values):
            return ColumnKind("date", "dates of eight digits")
        return _kind_of_numbers(series.name, values, None, is_named)
    if not is_text(series):
        return ColumnKind("unsupported", f"it holds {dtype}, neither numbers nor text nor dates")
    if is_categorical(series):
        levels = ordered_levels(series)
        if levels:
            return ColumnKind("ordered", "its type is an ordered category", levels=levels)
        return ColumnKind("category", "its type is a category")
    return _kind_of_text(series, style, is_named)


def _is_number(series: nw.Series[Any]) -> bool:
    if not isinstance(series.dtype, nw.Unknown):
        return series.dtype.is_numeric()
    try:
        numbers_or_nan(series)
    except Exception:  # each library has its own error for what it cannot turn into numbers
        return False
    return True


def numbers_or_nan(series: nw.Series[Any]) -> np.ndarray:
    """float64 with NaN for missing and infinite values."""
    values = np.array(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    return values


def ordered_levels(series: nw.Series[Any]) -> tuple[str, ...]:
    """The levels of a type of categories that has an order; none for others."""
    native = series.to_native()
    if getattr(getattr(native, "type", None), "ordered", False):
        return tuple(map(str, native.chunk(0).dictionary.to_pylist()))
    return ()


def _kind_of_numbers(
    name: str, values: np.ndarray, numbers: WrittenNumbers | None, is_named: bool
) -> ColumnKind:
    rule = None if numbers is None else numbers.rule
    known = values[~np.isnan(values)]
    whole = len(known) > 0 and bool(np.array_equal(known, np.floor(known)))
    different = len(np.unique(known))
    complete = len(known) == len(values)
    words = set(words_of(name))
    if is_named and whole:
        if complete and _UNNAMED.match(name.strip()) and different == len(values):
            return ColumnKind("index", "it has no name and another number in every row", rule)
        counts_rows = complete and len(values) >= _FEWEST_ROWS and _counts_rows(values)
        if counts_rows and not words & _TIME_WORDS:
            return ColumnKind("index", "it is the number of the row", rule)
        if words & _ROW_WORDS and complete and different == len(values) >= _FEWEST_ROWS:
            said = "its name says that it numbers the rows, and it has another number in each"
            return ColumnKind("index", said, rule)
        if has_identifier_name(name):
            return ColumnKind(
                "identifier",
                "its name says that it identifies rows",
                rule,
                numbers=numbers,
                repeats=_repeats(different, len(known)),
            )
        if words & _CODE_WORDS:
            return ColumnKind("category", "its name says that its numbers are codes")
    said = "numbers" if numbers is None else _how_written(numbers)
    return ColumnKind("number", said, rule, numbers=numbers)


def _counts_rows(values: np.ndarray) -> bool:
    return values[0] in (0.0, 1.0) and bool(
        np.array_equal(values, values[0] + np.arange(len(values)))
    )


def _repeats(different: int, known: int) -> bool:
    return 1 < different <= known / 1.5


def _how_written(numbers: WrittenNumbers) -> str:
    rule, said = numbers.rule, []
    if rule.unit:
        said.append(f"in {rule.unit}")
    if "," in (numbers.shown_decimal, (numbers.doubtful or "") and rule.decimal):
        said.append("with decimal comma")
    if rule.thousands:
        said.append(f"with {rule.thousands!r} between thousands")
    return " ".join(["numbers", *said])


@dataclass(frozen=True)
class _NumberShare:
    """How many of the known cells of a column are numbers."""

    right: int = 0
    wrong: int = 0
    different: int = 0
    """Different numbers."""
    words: int = 0
    """Different texts that are none."""
    example: str = ""

    @property
    def has_few_errors(self) -> bool:
        few = self.wrong <= max(1, MOST_UNREADABLE * (self.wrong + self.right))
        return self.right > 0 and few and (self.wrong == 0 or self.different >= LEAST_NUMBERS)

    @property
    def is_number(self) -> bool:
        """Numbers but for typing errors; or many, and one or two words in the place of some."""
        has_words = self.words <= _MOST_WORDS and self.right >= self.wrong
        return self.has_few_errors or (has_words and self.different >= _NUMBERS_BESIDE_WORDS)

    @property
    def is_half(self) -> bool:
        return self.right >= self.wrong > 0


def number_share(counts: Mapping[str, int], rule: NumberText) -> _NumberShare:
    """How many texts are numbers; `counts` says how often each occurs."""
    import pyarrow as pa

    if not counts:
        return _NumberShare()
    texts = list(counts)
    values, unreadable = read_numbers(pa.array(texts, pa.large_string()), rule)
    weights = np.fromiter(counts.values(), dtype=np.int64)
    known = ~np.isnan(values)
    return _NumberShare(
        int(weights[known].sum()),
        int(weights[unreadable].sum()),
        len(np.unique(values[known])),
        int(unreadable.sum()),
        texts[int(np.argmax(unreadable))] if unreadable.any() else "",
    )


def _kind_of_text(  # noqa: PLR0911 - one line a kind
    series: nw.Series[Any], style: TableStyle, is_named: bool
) -> ColumnKind:
    name, counts = series.name, counts_of(series)
    known, words = sum(counts.values()), set(words_of(series.name))
    if known == 0:
        return ColumnKind("constant", "it has no value")
    lowered = {text.lower() for text in counts}
    if len(lowered) == 2 and any(lowered == set(pair) for pair in TRUTH_WORDS[:5]):
        said = " and ".join(sorted(lowered, reverse=True))
        return ColumnKind("boolean", f"{said}", NumberText(), boolean=True)
    zeros = sum(count for text, count in counts.items() if _LEADING_ZERO.match(text))
    is_code = zeros >= max(2, _LEADING_ZERO_SHARE * known) or bool(words & _CODE_WORDS)
    numbers = rule_of(counts, style.decimal, style.separator)
    share = number_share(counts, numbers.rule)
    if share.is_number and not is_code:
        values, _ = read_numbers(texts_as_arrow(series), numbers.rule)
        if are_compact_dates(values):
            return ColumnKind("date", "dates of eight digits")
        return _kind_of_numbers(name, values, numbers, is_named)
    dates = None if is_code else dates_in(counts, style.date_order)
    if dates is not None:
        said = "dates" if any(c in text for text in counts for c in "-/. ,") else "times of day"
        return ColumnKind("date", said, order=dates.order, dates=dates)
    half = None
    if share.is_half and not is_code:
        half = (share.wrong, share.wrong + share.right, share.example)
    reason = "codes that begin with 0" if zeros else "text"
    left_out = _identifier_of(series, counts) if is_named else None
    if left_out is not None:
        return left_out
    kind = (
        _sentences_or_names(counts) or _words_with_order(counts) or ColumnKind("category", reason)
    )
    spellings = _spellings(counts) if kind.kind == "category" else ()
    if kind.kind == "ordered":
        half = None
    return dataclasses.replace(kind, half_numbers=half, numbers=numbers, spellings=spellings)


def _spellings(counts: Mapping[str, int]) -> tuple[tuple[str, ...], ...]:
    """Levels that differ only in capital letters, the most frequent spelling first."""
    alike: dict[str, list[str]] = {}
    for text in sorted(counts, key=lambda text: (-counts[text], text)):
        alike.setdefault(text.casefold(), []).append(text)
    return tuple(tuple(texts) for texts in alike.values() if len(texts) > 1)


def _identifier_of(series: nw.Series[Any], counts: Mapping[str, int]) -> ColumnKind | None:
    """An index or identifier, if the name of the column says so."""
    known, different = sum(counts.values()), len(counts)
    words = words_of(series.name)
    if _UNNAMED.match(series.name.strip()) and different == len(series):
        return ColumnKind("index", "it has no name and another text in every row")
    is_entity = len(words) == 1 and words[0] in _ENTITY_NAMES
    repeats = _repeats(different, known)
    if has_identifier_name(series.name):
        return ColumnKind("identifier", "its name says that it identifies rows", repeats=repeats)
    if is_entity and repeats and different >= _FEWEST_ROWS:
        said = "its name says that it identifies what a row is of"
        return ColumnKind("identifier", said, repeats=True)
    return None


def _sentences_or_names(counts: Mapping[str, int]) -> ColumnKind | None:
    """Texts that are another one in most rows."""
    known, different = sum(counts.values()), len(counts)
    if known >= _FEWEST_ROWS and different > known / 2:
        n_words = sum(len(text.split()) for text in counts) / different
        n_letters = sum(map(len, counts)) / different
        if n_words >= _WORDS_OF_TEXT or n_letters >= _LETTERS_OF_TEXT:
            return ColumnKind("text", f"sentences: {n_words:.0f} words on average")
        if different >= _ALMOST_ALL * known:
            return ColumnKind("identifier", "almost every row has another text")
        return ColumnKind("identifier", f"{different:,} different texts in {known:,} rows")
    return None


def _words_with_order(counts: Mapping[str, int]) -> ColumnKind | None:
    """Words whose order everybody knows, or 1st, 2nd, 3rd."""
    if len(counts) >= 3 and all(map(_ORDINAL.match, counts)):
        levels = tuple(sorted(counts, key=lambda text: int(text[:-2])))
        return ColumnKind("ordered", f"places in an order: {' < '.join(levels)}", levels=levels)
    lowered = {text.lower(): text for text in counts}
    if len(lowered) == len(counts) >= 3:
        for order in ORDERS:
            if set(lowered) <= set(order):
                levels = tuple(lowered[word] for word in order if word in lowered)
                said = f"words with an order: {' < '.join(levels)}"
                return ColumnKind("ordered", said, levels=levels)
    return None


def _as_chosen(series: nw.Series[Any], style: TableStyle, choice: Any) -> ColumnKind:
    """What the owner of the table says that a column is."""
    asked = "as asked for"
    if isinstance(choice, str):
        if choice == "number":
            return _chosen_number(series, style)
        if choice == "category":
            return ColumnKind("category", asked)
        if choice.split(":")[0] == "date":
            return _chosen_date(series, style, choice)
        levels = ordered_levels(series) or _sorted_levels(series)
        return ColumnKind("ordered", asked, levels=levels)
    return ColumnKind("ordered", asked, levels=tuple(map(str, choice)))


def _sorted_levels(series: nw.Series[Any]) -> tuple[str, ...]:
    """Levels by their numbers where all are numbers, and by the alphabet."""
    import pyarrow as pa

    levels = [text for text in level_texts(series).unique().to_pylist() if text is not None]
    values, unreadable = parse_numbers(pa.array(levels, pa.large_string()))
    if levels and not unreadable.any():
        return tuple(levels[j] for j in np.argsort(values, kind="stable"))
    return tuple(sorted(levels))


def _chosen_number(series: nw.Series[Any], style: TableStyle) -> ColumnKind:
    asked = "as asked for"
    if isinstance(series.dtype, nw.Boolean):
        return ColumnKind("boolean", asked, boolean=True)
    if not is_text(series):
        numbers_of(series[:0])  # its type can be read as numbers
        return ColumnKind("number", asked)
    counts = counts_of(series)
    numbers = rule_of(counts, style.decimal, style.separator)
    if number_share(counts, numbers.rule).right == 0:
        example = next(iter(counts), "")
        raise InvalidInputError(
            f"columns says that {series.name!r} holds numbers, but no cell is one (such as "
            f"{example[:40]!r})"
        )
    return ColumnKind("number", asked, numbers.rule, numbers=numbers)


def _chosen_date(series: nw.Series[Any], style: TableStyle, choice: str) -> ColumnKind:
    order = choice.partition(":")[2]
    found = None
    if is_text(series) and not order:
        found = dates_in(counts_of(series), style.date_order)
    order = order or (found.order if found is not None else "year_first")
    dates, _ = dates_of(series, order)
    if np.isnat(dates).all():
        raise InvalidInputError(
            f"columns says that {series.name!r} holds dates, but no cell is one (such as "
            f"{str(series.drop_nulls()[0])[:40]!r})"
        )
    return ColumnKind("date", "as asked for", order=order, dates=found)


def require_choices(choices: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse kinds that there are not, and columns that are not there."""
    from ridgefold.tables.names import require_columns

    require_columns(choices, names, "columns")
    for name, choice in choices.items():
        is_order = isinstance(choice, (list, tuple)) and len(set(choice)) == len(choice) >= 2
        if choice not in CHOICES if isinstance(choice, str) else not is_order:
            raise InvalidInputError(
                f"columns must say of {name!r} that it is one of {', '.join(CHOICES)}, or list the "
                f"levels of an order, got {choice!r}"
            )

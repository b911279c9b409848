"""Numbers as people write them: "$1,013", "1.013,50 EUR", "12 %", "(3.5)", "2639 lbs".

How a column writes its numbers is decided once, from all of its cells (`rule_of`), and is then
applied to every cell, of the table and of new rows (`read_numbers`). What a mark means is
decided by the cells that leave no doubt: in "1.013,50" the last mark is the decimal one, a mark
that occurs twice in a cell is of thousands, a mark that is not followed by three digits is
decimal. "1,013" alone can be either; such a column follows the others of its table, and says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.records import NumberText

MISSING_WORDS = (
    *("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "-NaN", "-nan", "null", "NULL", "None"),
    *("#N/A", "#NA", "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""Cells that mean that a value is missing: those of pandas."""
MISSING_MARKS = (
    *MISSING_WORDS,
    *(
        "?",
        "??",
        "-",
        "--",
        "---",
        ".",
        "..",
        "*",
        "na",
        "Na",
        "n.a.",
        "N.A.",
        "n.a",
        "(null)",
        "\\N",
    ),
    *("#DIV/0!", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!"),
)
"""Cells that mean that a value is missing, in columns of every kind: those of pandas, those that
people and older programs write, and the errors of spreadsheets."""
WORDS_FOR_NO_NUMBER = ("missing", "unknown", "none", "nil", "not available", "no data", "tbd")
"""Words that mean a missing value among numbers, and may be a category among words."""
_CURRENCIES = (
    *(
        "US$",
        "A$",
        "C$",
        "$",
        "€",
        "£",
        "¥",
        "₹",
        "₽",
        "₩",
        "₺",
        "₫",
        "zł",
        "Kč",
        "kr",
        "Fr.",
        "Rs.",
    ),
    *("USD", "EUR", "GBP", "JPY", "CHF", "CNY", "INR", "AUD", "CAD", "NZD", "SEK", "NOK", "DKK"),
    *("PLN", "CZK", "HUF", "BRL", "MXN", "ZAR", "KRW", "SGD", "HKD", "TRY", "RUB"),
)
"""What may stand before a number: other letters there make a code of it, such as A12."""
_CURRENCY = "|".join(re.escape(word) for word in _CURRENCIES)
_SHAPE = re.compile(
    rf"^\(?[+-]?\s*(?P<before>{_CURRENCY})?\s*[+-]?"
    r"(?P<body>\d[\d.,' ]*|[.,]\d+)(?P<power>[eE][+-]?\d+)?"
    r"\s*(?P<behind>[^\W\d_][^\d,;()]{0,11}[²³]?|[%‰°€$£¥₹₽₩₺₫][^\d,;()]{0,5})?\)?$"
)
_MOST_LOOKED_AT = 20_000
"""Different cells that decide how a column is written: what they do not show is rare."""
_LIKE_SPACES = {"\u00a0": " ", "\u202f": " ", "\u2009": " ", "−": "-", "’": "'"}


@dataclass(frozen=True)
class WrittenNumbers:
    """How the cells of a column write numbers."""

    rule: NumberText
    shown_decimal: str | None
    """The decimal mark, if some cell leaves no doubt of it."""
    doubtful: str | None
    """A cell that could also be read otherwise, if nothing decides."""
    other_units: tuple[str, ...]
    """Units of cells that do not have that of the rule."""
    without_unit: int
    """Cells without a unit in a column that has one."""


def trimmed(texts: Any) -> Any:
    """A pyarrow array of texts without blanks at either end, with plain spaces and signs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.utf8_trim_whitespace(texts.cast(pa.large_string()))
    for written, plain in _LIKE_SPACES.items():
        texts = pc.replace_substring(texts, written, plain)
    return pc.utf8_trim_whitespace(texts)


def is_missing_mark(texts: Any, *, among_numbers: bool) -> np.ndarray:
    """Which of the trimmed texts mean that a value is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = pc.is_in(texts, pa.array(MISSING_MARKS, pa.large_string()))
    if among_numbers:
        words = pa.array(WORDS_FOR_NO_NUMBER, pa.large_string())
        missing = pc.or_(missing, pc.is_in(pc.utf8_lower(texts), words))
    return np.asarray(missing.fill_null(True).to_numpy(zero_copy_only=False), dtype=bool)


def rule_of(counts: Mapping[str, int], table_decimal: str | None, separator: str) -> WrittenNumbers:
    """How the known cells of a column write numbers; `counts` says how often each text occurs.

    `table_decimal` is the decimal mark that other columns of the table leave no doubt of.
    """
    shapes = []
    for text, count in sorted(counts.items(), key=lambda item: -item[1])[:_MOST_LOOKED_AT]:
        if match := _SHAPE.match(text):
            unit = (match["before"] or match["behind"] or "").strip()
            shapes.append((match["body"].strip(), unit, count, text))
    unit, other_units, without = _unit_of(shapes)
    bodies = [(body, count, text) for body, own, count, text in shapes if own in ("", unit)]
    evidence: Counter[str] = Counter()
    doubtful: dict[str, str] = {}
    grouping = Counter({"": 0})
    for body, count, text in bodies:
        grouping.update({mark: count for mark in " '" if mark in body.strip()})
        decimal = _decimal_of(body)
        if decimal in (".", ","):
            evidence[decimal] += count
        elif decimal.startswith("?"):
            doubtful.setdefault(decimal[1], text)
    shown = max(evidence, key=lambda mark: evidence[mark]) if evidence else None
    if shown is not None:
        decimal = shown
    else:
        by_size = _decimal_by_size(bodies, next(iter(doubtful), ""), unit)
        usual = "," if separator == ";" and "," in doubtful and "." not in doubtful else "."
        decimal = by_size or table_decimal or usual
    other = "." if decimal == "," else ","
    thousands = next((mark for mark in " '" if grouping[mark]), "")
    if any(other in body for body, _, _ in bodies):
        thousands = other
    doubt = next(iter(doubtful.values()), None) if not evidence else None
    if table_decimal == "." and "," not in doubtful:
        doubt = None
    return WrittenNumbers(NumberText(decimal, thousands, unit), shown, doubt, other_units, without)


def _unit_of(shapes: list[tuple[str, str, int, str]]) -> tuple[str, tuple[str, ...], int]:
    """The unit of most cells, other ones, and the number of cells that have none."""
    units: Counter[str] = Counter()
    for _, own, count, _ in shapes:
        units[own] += count
    without = units.pop("", 0)
    if not units:
        return "", (), 0
    unit = units.most_common(1)[0][0]
    others = tuple(sorted(own for own in units if own != unit))
    return (unit, others, without) if units[unit] >= without else ("", (unit, *others), 0)


def _decimal_by_size(bodies: list[tuple[str, int, str]], mark: str, unit: str) -> str | None:
    """The decimal mark by which cells such as "1,013" are of the size of those without a mark.

    Prices have no thousandths: there, the mark is one of thousands.
    """
    if not mark:
        return None
    other = "." if mark == "," else ","
    if unit in _CURRENCIES:
        return other
    plain = [float(body) for body, _, _ in bodies if body.isdecimal() and float(body) > 0]
    marked = [float(body.replace(mark, "")) for body, _, _ in bodies if body.count(mark) == 1]
    marked = [value for value in marked if value > 0]
    if not plain or not marked:
        return None
    # As thousands, the marked numbers are a thousand times what they are as decimals.
    ratio = np.log10(np.median(marked) / np.median(plain))
    return other if abs(ratio) < abs(ratio - 3) else mark


def _decimal_of(body: str) -> str:
    """The decimal mark that a number shows; "?" and its mark if that could be of thousands, too."""
    marks = [mark for mark in body if mark in ".,"]
    if not marks:
        return ""
    last = marks[-1]
    if len(set(marks)) == 2:
        return last if marks.count(last) == 1 else ""
    if len(marks) > 1:
        return "." if last == "," else ","
    whole, rest = body.rsplit(last, 1)
    digits = whole.replace(" ", "").replace("'", "")
    if digits != whole or len(rest) != 3 or not 1 <= len(digits) <= 3 or digits.startswith("0"):
        return last
    return f"?{last}"


def read_numbers(texts: Any, rule: NumberText) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a pyarrow array of texts, and which cells are none though not missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    coded = texts.cast(pa.large_string()).dictionary_encode()
    different = trimmed(coded.dictionary)
    parts = pc.extract_regex(different, _pattern(rule))
    nothing = pa.scalar("", pa.large_string())
    sign = pc.binary_join_element_wise(
        pc.struct_field(parts, "first"), pc.struct_field(parts, "second"), nothing
    )
    body = pc.struct_field(parts, "body")
    if rule.thousands:
        body = pc.replace_substring(body, rule.thousands, "")
    body = pc.replace_substring(body, rule.decimal, ".")
    plain = pc.binary_join_element_wise(body, pc.struct_field(parts, "power"), nothing)
    plain = pc.if_else(parts.is_valid(), plain, pa.scalar(None, pa.large_string()))
    values = plain.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False).copy()
    negative = pc.or_(pc.equal(sign, "-"), pc.equal(pc.struct_field(parts, "bracket"), "("))
    values[negative.fill_null(False).to_numpy(zero_copy_only=False)] *= -1.0
    values[np.isinf(values)] = np.nan
    missing = is_missing_mark(different, among_numbers=True)
    unreadable = np.isnan(values) & ~missing
    # The last entries are those of cells that have no text.
    values, unreadable = np.append(values, np.nan), np.append(unreadable, False)
    codes = coded.indices.fill_null(len(different)).to_numpy(zero_copy_only=False)
    return values[codes], unreadable[codes]


def _pattern(rule: NumberText) -> str:
    """One number as the rule writes it, with named parts, in the regular expressions of RE2."""
    decimal, thousands = _literal(rule.decimal), _literal(rule.thousands)
    whole = rf"[0-9]{{1,3}}(?:{thousands}[0-9]{{3}})+|[0-9]+" if thousands else "[0-9]+"
    unit = f"(?i:{_literal(rule.unit)})" if rule.unit else ""
    unit = rf"(?:{unit})?" if unit else ""
    return (
        rf"^(?P<bracket>\(?)(?P<first>[+-]?)\s*{unit}\s*(?P<second>[+-]?)"
        rf"(?P<body>(?:{whole})(?:{decimal}[0-9]*)?|{decimal}[0-9]+)"
        rf"(?P<power>(?:[eE][+-]?[0-9]+)?)\s*{unit}\)?$"
    )


def _literal(text: str) -> str:
    """The text as a regular expression; only punctuation may be escaped there."""
    return "".join(f"\\{c}" if c in r"\.+*?()|[]{}^$-/%" else c for c in text)

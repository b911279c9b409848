"""Text that is meant as numbers: the numbers, and what to say about the cells that are none.

A number is what CSV readers take for one: digits with an optional sign, point and exponent, or an
infinity; or what the rule of its column says. Cells that hold none are typing errors or marks such
as "?": they count as missing, never without a word, and more than a tenth of them is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ridgefold.errors import InvalidInputError, UnreadableNumberWarning
from ridgefold.notices import warn
from ridgefold.records import NumberText
from ridgefold.tables.written_numbers import MISSING_WORDS, read_numbers

MOST_UNREADABLE = 0.1
"""More of the cells than this share are no typing errors: they mean something."""
LEAST_NUMBERS = 10
"""With fewer different numbers, a column of text may be codes: 1, 2, 3 and "4 or more"."""
_EXAMPLES = 3
_COLUMNS_SHOWN = 8
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?|(?i:inf(inity)?))$"
TRUTH_WORDS = (
    ("true", "false"),
    ("yes", "no"),
    ("y", "n"),
    ("t", "f"),
    ("on", "off"),
    ("1", "0"),
    ("1.0", "0.0"),
)
"""Pairs of words for true and false."""
_PLAIN_TRUTH = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}
_TRUTH = {word: 1.0 - place for pair in TRUTH_WORDS for place, word in enumerate(pair)}

Places = Callable[[Sequence[int]], list[str]]
"""Where rows stand, for messages, by their numbers from 0."""


def rows_by_number(rows: Sequence[int]) -> list[str]:
    """Rows of a table that is not from a file of lines."""
    return [f"row {row + 1}" for row in rows]


def parse_numbers(
    texts: Any, *, boolean: bool = False, rule: NumberText | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The float64 numbers of a pyarrow array of texts, and which cells are none though not missing.

    Missing and unreadable cells are NaN. Every different text is looked at once.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if rule is not None and not boolean:
        return read_numbers(texts, rule)
    truth = _PLAIN_TRUTH if rule is None else _TRUTH
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    coded = texts.cast(pa.large_string()).dictionary_encode()
    different = pc.utf8_trim_whitespace(coded.dictionary)
    if boolean:
        lowered = pc.utf8_lower(different).to_pylist()
        values = np.array([truth.get(text, np.nan) for text in lowered], dtype=np.float64)
    else:
        is_number = pc.match_substring_regex(different, _NUMBER)
        nothing = pa.scalar(None, pa.large_string())
        numbers = pc.if_else(is_number, different, nothing).cast(pa.float64())
        values = numbers.fill_null(np.nan).to_numpy(zero_copy_only=False)
    missing = pc.is_in(different, pa.array(MISSING_WORDS, pa.large_string()))
    unreadable = np.isnan(values) & ~missing.to_numpy(zero_copy_only=False)
    # The last entries are those of cells that have no text.
    values, unreadable = np.append(values, np.nan), np.append(unreadable, False)
    codes = coded.indices.fill_null(len(different)).to_numpy(zero_copy_only=False)
    return values[codes], unreadable[codes]


@dataclass
class ColumnOfText:
    """What the cells of a column of text hold, block by block."""

    name: str
    numbers: int = 0
    unreadable: int = 0
    examples: list[tuple[int, str]] = field(default_factory=list)
    """The first unreadable cells: number of the row, and text."""
    holds: ClassVar[str] = "numbers"

    def add(
        self,
        texts: Any,
        *,
        boolean: bool = False,
        rule: NumberText | None = None,
        first_row: int = 0,
    ) -> np.ndarray:
        """Look at more cells; their numbers, with NaN where there is none.

        Numbers are plain ones, or true and false, or written as a `rule` says.
        """
        values, unreadable = parse_numbers(texts, boolean=boolean, rule=rule)
        self._count(texts, int((~np.isnan(values)).sum()), unreadable, first_row)
        return values

    def _count(self, texts: Any, numbers: int, unreadable: np.ndarray, first_row: int) -> None:
        self.numbers += numbers
        self.unreadable += int(unreadable.sum())
        for row in np.flatnonzero(unreadable)[: _EXAMPLES - len(self.examples)]:
            self.examples.append((first_row + int(row), str(texts[int(row)])))

    def advice(self) -> str:
        """What else may be the matter, if too many cells are unreadable."""
        return ""

    @property
    def has_few_errors(self) -> bool:
        """Whether its unreadable cells can be typing errors: one always can."""
        return self.unreadable <= max(1, MOST_UNREADABLE * (self.numbers + self.unreadable))

    def counts(self) -> str:
        """How many of its cells hold no number, in words."""
        verb = "is" if self.unreadable == 1 else "are"
        return f"{self.unreadable:,} of {self.numbers + self.unreadable:,} values {verb}"


def report_unreadable(
    columns: Sequence[ColumnOfText], places: Places, *, refuse: bool = False
) -> None:
    """Refuse or announce cells of columns of numbers or dates that hold none."""
    wrong = [column for column in columns if column.unreadable]
    if not wrong:
        return
    described = [
        f"column {column.name!r} holds {column.holds}, but {column.counts()} none: "
        f"{_listed(column, places)}"
        for column in wrong[:_COLUMNS_SHOWN]
    ]
    if len(wrong) > _COLUMNS_SHOWN:
        described.append(f"and {len(wrong) - _COLUMNS_SHOWN} more columns")
    said = "; ".join(described)
    if refuse:
        raise InvalidInputError(
            f"{said}. Correct them; a model that RidgefoldRegressor(model=...) or ridgefold "
            "fit-kernel fits counts them as missing values"
        )
    many = [column for column in wrong if not column.has_few_errors]
    if many:
        advice = "".join(column.advice() for column in many[:_COLUMNS_SHOWN])
        raise InvalidInputError(
            f"{said}. These are too many to be typing errors: correct them{advice}"
        )
    warn(f"{said}; they count as missing values", UnreadableNumberWarning)


def _listed(column: ColumnOfText, places: Places) -> str:
    where = places([row for row, _ in column.examples])
    shown = [
        f"{text[:40]!r} in {place}" for (_, text), place in zip(column.examples, where, strict=True)
    ]
    return ", ".join(shown) + (", …" if column.unreadable > len(shown) else "")

"""How the columns of a table become numbers: what is learned, applied to rows and saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ridgefold.records.kinds import Finite, OneOf, Positive

DATE_PARTS = ("year", "month", "day_of_week", "day_of_year", "elapsed_days", "hour")
"""What can be made of a date; days are counted from 1970, the day of the week from Monday as 0."""


@dataclass(frozen=True)
class NumberText:
    """How the cells of a column write numbers: "1.013,50 EUR" has ",", "." and "EUR"."""

    decimal: Annotated[str, OneOf((".", ","))] = "."
    thousands: Annotated[str, OneOf(("", ",", ".", " ", "'"))] = ""
    unit: str = ""
    """A currency or unit before or behind the number, which is left out; a cell may lack it."""


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers: (value − mean)/scale, with `fill` in the place of missing ones."""

    name: str
    mean: Finite = 0.0
    scale: Positive = 1.0
    fill: Finite = 0.0
    boolean: bool = False
    """True if the values are true and false, taken as 1 and 0."""
    text: NumberText | None = None
    """How text of this column is read; None where only plain numbers are expected."""
    missing_indicator: bool = False
    """True if a second feature is 1 where the value is missing, and 0 elsewhere."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (self.name, *_indicator(self))


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories: one column of 0 and 1 for each level."""

    name: str
    levels: tuple[str, ...]
    missing_level: bool = False
    """True if missing values are a level of their own, the last."""
    other_level: bool = False
    """True if one more feature, before that of missing values, stands for all other levels."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (
            *(f"{self.name}={level}" for level in self.levels),
            *((f"{self.name} other",) if self.other_level else ()),
            *((f"{self.name} missing",) if self.missing_level else ()),
        )


@dataclass(frozen=True)
class OrderedColumn:
    """Categories with an order, as the numbers 0, 1, 2, … of their places in it, standardised."""

    name: str
    levels: tuple[str, ...]
    mean: Finite = 0.0
    scale: Positive = 1.0
    fill: Finite = 0.0
    """The place that stands for missing and unknown levels."""
    missing_indicator: bool = False

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (self.name, *_indicator(self))


@dataclass(frozen=True)
class CodedColumn:
    """Categories of many levels as numbers: what each level adds to the target beside the others.

    Rare levels are drawn towards 0, which is also what levels are that were not there at the fit.
    """

    name: str
    levels: tuple[str, ...]
    codes: tuple[tuple[Finite, ...], ...]
    """For each feature a number for every level. There is one feature a column of the target."""
    missing: tuple[Finite, ...]
    """For each feature the number of missing values."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        if len(self.codes) == 1:
            return (f"{self.name} code",)
        return tuple(f"{self.name} code {j + 1}" for j in range(len(self.codes)))


@dataclass(frozen=True)
class DatePart:
    """One number that is made of a date: (value − mean)/scale, `fill` where the date is missing."""

    part: Annotated[str, OneOf(DATE_PARTS)]
    mean: Finite = 0.0
    scale: Positive = 1.0
    fill: Finite = 0.0


@dataclass(frozen=True)
class DateColumn:
    """A column of dates as several numbers."""

    name: str
    order: Annotated[str, OneOf(("year_first", "day_first", "month_first"))]
    """How text such as 03/04/2021 is read."""
    parts: tuple[DatePart, ...]
    missing_indicator: bool = False

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (*(f"{self.name} {part.part}" for part in self.parts), *_indicator(self))


ColumnRecord = NumberColumn | CategoryColumn | OrderedColumn | CodedColumn | DateColumn


def _indicator(column: NumberColumn | OrderedColumn | DateColumn) -> tuple[str, ...]:
    return (f"{column.name} missing",) if column.missing_indicator else ()


@dataclass(frozen=True)
class TableColumns:
    """All columns that a model takes, in order."""

    columns: tuple[NumberColumn | CategoryColumn | OrderedColumn | CodedColumn | DateColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each column of numbers that the model sees."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @property
    def origins(self) -> tuple[str, ...]:
        """For each column of numbers that the model sees, the column of the table it is made of."""
        return tuple(column.name for column in self.columns for _ in column.feature_names)

    @property
    def category_features(self) -> tuple[tuple[int, ...], ...]:
        """For each column of categories, where its columns of 0 and 1 stand."""
        groups, start = [], 0
        for column in self.columns:
            width = len(column.feature_names)
            if isinstance(column, CategoryColumn):
                groups.append(tuple(range(start, start + width)))
            start += width
        return tuple(groups)

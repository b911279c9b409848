"""How the columns of a table become numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ridgefold.records.kinds import Finite, OneOf, Positive


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers: (value − mean)/scale, with `fill` in the place of missing ones."""

    name: str
    mean: Finite = 0.0
    scale: Positive = 1.0
    fill: Finite | None = None
    """None where a missing value is an error."""
    boolean: bool = False
    """True if the values are true and false, taken as 1 and 0."""


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories: one column of 0 and 1 for each level."""

    name: str
    levels: tuple[str, ...]
    missing_level: bool = False
    """True if missing values are a level of their own, the last."""


@dataclass(frozen=True)
class TableColumns:
    """All columns that a model takes, in order."""

    columns: tuple[NumberColumn | CategoryColumn, ...]
    missing: Annotated[str, OneOf(("error", "drop", "fill"))]
    """"error", "drop" (rows with missing values take no part) or "fill"."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each column of numbers that the model sees."""
        names: list[str] = []
        for column in self.columns:
            if isinstance(column, NumberColumn):
                names.append(column.name)
            else:
                names += [f"{column.name}={level}" for level in column.levels]
                names += [f"{column.name} missing"] if column.missing_level else []
        return tuple(names)

    @property
    def category_features(self) -> tuple[tuple[int, ...], ...]:
        """For each column of categories, where its columns of 0 and 1 stand."""
        groups, start = [], 0
        for column in self.columns:
            width = 1
            if isinstance(column, CategoryColumn):
                width = len(column.levels) + column.missing_level
                groups.append(tuple(range(start, start + width)))
            start += width
        return tuple(groups)

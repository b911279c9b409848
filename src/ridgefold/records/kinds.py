"""What a number or word in a record may be, beside its type: said where the field is declared.

Types and these limits together are the schema by which records from files are checked
(`storage.annotations`); in memory they are what readers of the code go by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any


@dataclass(frozen=True)
class Between:
    """A number from `least` to `most`, both of them allowed; NaN never is."""

    least: float
    most: float

    def accepts(self, value: Any) -> bool:
        return bool(self.least <= value <= self.most)

    def __str__(self) -> str:
        return f"from {self.least:g} to {self.most:g}"


@dataclass(frozen=True)
class OneOf:
    """One of some words."""

    words: tuple[str, ...]

    def accepts(self, value: Any) -> bool:
        return value in self.words

    def __str__(self) -> str:
        return f"one of {', '.join(self.words)}"


_LARGEST = 2.0**64
_SMALLEST_NORMAL = 2.0**-1022
_LARGEST_FLOAT = 1.7976931348623157e308

Count = Annotated[int, Between(0, _LARGEST)]
"""How many: what a file can hold as a whole number."""
Positive = Annotated[float, Between(_SMALLEST_NORMAL, _LARGEST_FLOAT)]
"""A finite number that can be divided by."""
Amount = Annotated[float, Between(0.0, _LARGEST_FLOAT)]
"""Seconds, bytes, operations: finite, and not negative."""
Limit = Annotated[float, Between(0.0, math.inf)]
"""The most that there may be of it; infinite if anything will do."""
Finite = Annotated[float, Between(-_LARGEST_FLOAT, _LARGEST_FLOAT)]
Share = Annotated[float, Between(0.0, 1.0)]

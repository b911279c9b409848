"""Limits on the numbers and words in a record, declared beside the type of the field.

Types and limits together are the schema by which records from files are checked
(`storage.annotations`). In memory nothing checks them; they tell readers what to expect.
"""

from __future__ import annotations

import math
import sys
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
    """One of the given texts."""

    texts: tuple[str, ...]

    def accepts(self, value: Any) -> bool:
        return value in self.texts

    def __str__(self) -> str:
        return f"one of {', '.join(self.texts)}"


_LARGEST_WHOLE = 2.0**64
"""The largest whole number that a file can hold."""
_SMALLEST_NORMAL = sys.float_info.min
"""Smaller numbers have fewer digits, and an inverse that may overflow."""
_LARGEST_FLOAT = sys.float_info.max
"""Only infinity is larger."""

Count = Annotated[int, Between(0, _LARGEST_WHOLE)]
"""How many: a whole number that a file can hold."""
Positive = Annotated[float, Between(_SMALLEST_NORMAL, _LARGEST_FLOAT)]
"""A finite number that can be divided by."""
Amount = Annotated[float, Between(0.0, _LARGEST_FLOAT)]
"""Seconds, bytes, operations: finite, and not negative."""
Limit = Annotated[float, Between(0.0, math.inf)]
"""An upper limit, or an error: not negative, and infinite if there is no limit."""
Finite = Annotated[float, Between(-_LARGEST_FLOAT, _LARGEST_FLOAT)]
Share = Annotated[float, Between(0.0, 1.0)]

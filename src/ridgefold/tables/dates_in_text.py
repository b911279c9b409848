"""New cells of a column of dates, and what to say about those that are none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ridgefold.tables.numbers_in_text import ColumnOfText
from ridgefold.tables.written_dates import read_dates

_FIRST = {"day_first": "the day", "month_first": "the month"}


@dataclass
class ColumnOfDates(ColumnOfText):
    """What the cells of a column of dates hold, block by block."""

    order: str = "year_first"
    """The order that the model has learned."""
    holds: ClassVar[str] = "dates"
    other_orders: set[str] = field(default_factory=lambda: set(_FIRST))
    """The orders in which all cells were dates, as far as is known."""

    def add_dates(self, texts: Any, *, first_row: int = 0) -> np.ndarray:
        """Look at more cells; their dates to the second, with NaT where there is none."""
        dates, unreadable = read_dates(texts, self.order)
        known = int((~np.isnat(dates)).sum())
        self._count(texts, known, unreadable, first_row)
        if unreadable.any():
            for order in tuple(self.other_orders):
                if read_dates(texts, order)[1].any():
                    self.other_orders.discard(order)
        elif known:
            self.other_orders.clear()  # they are as the model has learned them
        return dates

    def advice(self) -> str:
        """That another order of day and month reads every cell."""
        if not self.other_orders:
            return ""
        import pyarrow as pa

        text = self.examples[0][1]
        orders = sorted(self.other_orders)
        date = read_dates(pa.array([text], pa.large_string()), orders[0])[0][0]
        first = " or ".join(_FIRST[order] for order in orders)
        advice = f". All values of {self.name!r} are dates with {first} first: rewrite them"
        return f"{advice} as {date.astype('datetime64[D]')}" if len(orders) == 1 else advice

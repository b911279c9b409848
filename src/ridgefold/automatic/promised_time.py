"""How long a whole fit may take: a promise, and a clock that it is held against."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from ridgefold.errors import BudgetError, InvalidInputError

AUTO = "auto"
_SECONDS_OF_MANY_ROWS, _MANY_ROWS = 60.0, 1e5
_GROWTH = 0.5
"""Exponent of the rows: a minute for 100,000 of them, about twelve seconds for 4,000. Most of the
time goes into learning, which looks at a part of the rows, so that more rows need less than their
share."""
_WIDE = 40.0
"""Columns at which the automatic budget is √2 times that of a narrow table."""
_LEAST_AUTOMATIC = 2.0
_SLOWEST = 4.0
"""How many times slower than on an idle machine an automatic budget lets a fit be."""
_STOPPED_SHARE, _STOPPED_SECONDS = 0.08, 0.4
"""Work that looks at the clock stops so far beyond the budget. What is left until 1.15 times the
budget and a second is for putting the models together."""


def seconds_for(time_budget: Any, n_rows: int, n_columns: int) -> float:
    """The seconds that a `time_budget` stands for with a table of this shape."""
    if isinstance(time_budget, str) and time_budget == AUTO:
        long = _SECONDS_OF_MANY_ROWS * (n_rows / _MANY_ROWS) ** _GROWTH
        return float(max(_LEAST_AUTOMATIC, long * math.sqrt(1.0 + n_columns / _WIDE)))
    number = isinstance(time_budget, (int, float)) and not isinstance(time_budget, bool)
    if not number or not 0 < time_budget < math.inf:
        raise InvalidInputError(
            f'time_budget must be "auto" or a number of seconds > 0, got {time_budget!r}'
        )
    return float(time_budget)


class TimeOfThisProcess:
    """A clock for budgets that nobody named: on a machine that others use, it goes slower.

    It counts what the processors do for this process, at most what a clock on the wall shows, and
    at least a quarter of that. So a busy machine does not make a poorer model, and no fit takes
    more than four times its budget.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.monotonic,
        own: Callable[[], float] = time.process_time,
    ) -> None:
        self._wall, self._own = wall, own
        self._wall_begun, self._own_begun = wall(), own()

    def __call__(self) -> float:
        wall, own = self._wall() - self._wall_begun, self._own() - self._own_begun
        return max(min(wall, own), wall / _SLOWEST)


class PromisedTime:
    """The time that a fit has been promised to take, counted from where this is made.

    Parameters
    ----------
    clock : callable, optional
        Gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock, self._begun = clock, clock()
        self.budget = math.inf
        """Set as soon as the shape of the table is known."""

    @classmethod
    def of(
        cls, time_budget: Any, clock: Callable[[], float], *, alone: bool = True
    ) -> PromisedTime:
        """A budget that somebody named counts by the clock, "auto" by the time of this process.

        Unless the process is not `alone`: what others do for it is not known before they end.
        """
        own = isinstance(time_budget, str) and clock is time.monotonic and alone
        return cls(TimeOfThisProcess() if own else clock)

    @property
    def passed(self) -> float:
        return self.clock() - self._begun

    @property
    def left(self) -> float:
        """Seconds until the budget is over; negative afterwards."""
        return self.budget - self.passed

    def look(self) -> None:
        """Raise a `BudgetError` if it is too late, so that the work under way is given up."""
        if self.passed > self.budget * (1.0 + _STOPPED_SHARE) + _STOPPED_SECONDS:
            raise BudgetError(f"it took longer than predicted, and {self.budget:.3g} s are over")

"""How long learning may take, how long it has taken, and what there is still time for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_GROWTH = 2.5
"""Power of the rows by which the time of an evaluation grows."""
_EVALUATIONS = 1.3
"""Evaluations of a step, with a look at the rows outside."""


class TimeLimit:
    """Counts from where it is made; without a limit nothing ever depends on the clock."""

    def __init__(
        self, seconds: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._clock = clock
        self._begun = clock()
        self._rows, self._took = 1, 0.0

    @property
    def elapsed(self) -> float:
        """Seconds so far."""
        return self._clock() - self._begun

    @property
    def left(self) -> float:
        """Seconds that are left, infinitely many without a limit."""
        return math.inf if self.seconds == math.inf else self.seconds - self.elapsed

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self.left <= 0

    @contextmanager
    def measured(self, rows: int) -> Iterator[None]:
        """Measure what is done in the context, which is an evaluation on so many rows."""
        begun = self.elapsed
        yield
        self._rows, self._took = rows, self.elapsed - begun

    def has_time_for(self, rows: int) -> bool:
        """Whether an evaluation on so many rows, by what the last one took, will end in time."""
        return self._took * (rows / self._rows) ** _GROWTH <= self.left and not self.spent

    def rows_for(self, steps: int) -> float:
        """The number of rows on which so many steps take half of the time that is left."""
        if self._took <= 0 or self.left == math.inf:
            return math.inf
        possible = max(0.0, 0.5 * self.left) / (_EVALUATIONS * steps * self._took)
        return float(self._rows * possible ** (1.0 / _GROWTH))

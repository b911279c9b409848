"""How long learning may take, and how long it has taken."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class TimeLimit:
    """Counts from where it is made; without a limit nothing ever depends on the clock."""

    def __init__(
        self, seconds: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._clock = clock
        self._begun = clock()

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

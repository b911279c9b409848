"""When a call with a time budget has to have ended.

A budget is compared with predictions before the work. Predictions may be wrong, and a machine busy:
so work that goes step by step looks at the clock, and stops with an error that says so. What cannot
look (one call of LAPACK) is begun only if there is time for it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from ridgefold.crossval.shared.base import Progress
from ridgefold.errors import BudgetError

_GRACE_SHARE, _GRACE_SECONDS = 0.15, 1.0
"""What a call may take beyond its budget: it ends within 1.15 times that and a second."""
_STOPPED_SHARE, _STOPPED_SECONDS = 0.1, 0.5
"""Work that looks at the clock stops a little before that."""
_CHECKS_SHARE, _CHECKS_SECONDS = 0.01, 0.05
"""What a call takes to check its arguments is no reason to plan another way."""


class Deadline:
    """Counts from where it is made.

    Parameters
    ----------
    seconds : float
        The time budget.
    clock : callable, optional
        Gives seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget, self._clock = seconds, clock
        self._ends = clock() + seconds
        self.begun = False
        """Whether work was done that would be lost: then the grace is given too."""

    @classmethod
    def of(cls, time_budget: Any) -> Deadline | None:
        """None without a budget, or for what is none (which is refused where plans are made)."""
        number = isinstance(time_budget, (int, float)) and not isinstance(time_budget, bool)
        return cls(float(time_budget)) if number and 0 < time_budget < math.inf else None

    def __getstate__(self) -> dict[str, Any]:
        """Clocks of other processes show other times: what is left is sent."""
        return {"budget": self.budget, "left": self._ends - self._clock(), "begun": self.begun}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.budget, self.begun, self._clock = state["budget"], state["begun"], time.monotonic
        self._ends = self._clock() + state["left"]

    @property
    def left(self) -> float:
        """Seconds for work that is yet to be planned; next to nothing when there are none."""
        grace = _GRACE_SHARE * self.budget + _GRACE_SECONDS if self.begun else 0.0
        left = self._ends + grace - self._clock()
        if not self.begun and self.budget - left < _CHECKS_SHARE * self.budget + _CHECKS_SECONDS:
            return self.budget
        return max(left, 1e-9)

    def has_time_for(self, seconds: float) -> bool:
        return seconds <= self.left

    def check(self, work: str) -> None:
        """Raise a typed error if it is too late."""
        over = self._clock() - self._ends
        if over > _STOPPED_SHARE * self.budget + _STOPPED_SECONDS:
            raise BudgetError(
                f"{work} was stopped, as it took longer than predicted and "
                f"time_budget={self.budget:g} s is over: raise time_budget, fit on fewer rows, or "
                "use PartitionedKernelRidge"
            )

    def watching(self, progress: Progress, work: str) -> Progress:
        """The same progress, which looks at the clock too."""

        def watched(share: float) -> None:
            self.check(work)
            progress(share)

        return watched

"""What was tried to predict a table, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ridgefold.records.kinds import Amount, Limit, OneOf, Share

OUTCOMES = ("fitted", "left out", "failed")


@dataclass(frozen=True)
class Attempt:
    """One candidate: fitted and weighed, or not, and why."""

    candidate: str
    """What it is, in words."""
    outcome: Annotated[str, OneOf(OUTCOMES)]
    """"fitted", "left out" (there was no time, or nothing to gain) or "failed"."""
    held_out_error: Limit | None
    """Of regression the root mean square error, of classes the log-loss; None if not fitted."""
    share: Share
    """Its share in the weights of the final model."""
    planned_seconds: Amount
    seconds: Amount
    """As measured."""
    note: str
    """Why it was left out, or why it has no weight."""

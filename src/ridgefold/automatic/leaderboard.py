"""The table of what was tried."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ridgefold.planning.amounts import in_seconds
from ridgefold.records import Attempt

_COLUMNS = ("candidate", "held-out error", "share", "planned", "took", "note")


class Leaderboard(Sequence[Attempt]):
    """Everything that was tried, the heaviest first; prints as a table.

    The error of a candidate is that of its own held-out predictions: root mean square error, or for
    classes the log-loss after calibration. `error` is that of the model itself, whose weights have
    not seen the rows either; NaN where a model that was given keeps no held-out predictions.
    """

    def __init__(self, attempts: Sequence[Attempt], error: float, measure: str) -> None:
        self._attempts = tuple(
            sorted(attempts, key=lambda each: (-each.share, _or_infinite(each.held_out_error)))
        )
        self.error = error
        self.measure = measure

    def __len__(self) -> int:
        return len(self._attempts)

    def __getitem__(self, index: Any) -> Any:
        return self._attempts[index]

    def __iter__(self) -> Iterator[Attempt]:
        return iter(self._attempts)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns by name, as pandas and polars take them."""
        names = list(asdict(self._attempts[0])) if self._attempts else []
        return {name: [getattr(each, name) for each in self] for name in names}

    def _cells(self) -> list[tuple[str, ...]]:
        every = [
            (
                each.candidate,
                "" if each.held_out_error is None else f"{each.held_out_error:.4g}",
                f"{each.share:.0%}" if each.share > 0 else "",
                in_seconds(each.planned_seconds) if each.planned_seconds > 0 else "",
                in_seconds(each.seconds) if each.seconds > 0 else "",
                each.note,
            )
            for each in self
        ]
        error = f"{self.error:.4g}" if math.isfinite(self.error) else ""
        return [*every, ("together", error, "100%", "", "", self.measure)]

    def __str__(self) -> str:
        lines = [_COLUMNS, *self._cells()]
        widths = [max(len(line[j]) for line in lines) for j in range(len(_COLUMNS) - 1)]
        return "\n".join(
            "  ".join(
                [*(c.ljust(w) for c, w in zip(line, widths, strict=False)), line[-1]]
            ).rstrip()
            for line in lines
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in line)}</tr>"
            for line in self._cells()
        )
        head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _or_infinite(error: float | None) -> float:
    return float("inf") if error is None else error

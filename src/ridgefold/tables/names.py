"""Names of columns that are asked for, and those that are there."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from ridgefold.errors import TableError


def require_columns(wanted: Collection[str], names: Sequence[str], argument: str) -> None:
    """Every wanted column is there; else an error that offers the nearest names."""
    there = set(names)
    for name in wanted:
        if name not in there:
            folded = {known.casefold(): known for known in names}
            near = difflib.get_close_matches(str(name).casefold(), folded, n=3, cutoff=0.5)
            listed = ", ".join(repr(known) for known in list(names)[:8])
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            hint = (
                f"did you mean {' or '.join(repr(folded[n]) for n in near)}?"
                if near
                else f"there are {listed}{more}"
            )
            raise TableError(f"{argument} {name!r}: there is no such column; {hint}")

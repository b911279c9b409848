"""The point that differences are measured from: near most rows, whatever a few hold."""

from __future__ import annotations

import numpy as np

from ridgefold.linalg import Array, Namespace

_MIDDLE_ROWS = 63
"""Rows, evenly spaced, of which medians and quartiles are taken: all that is asked of them is
where most rows lie."""
_FAR = 10.0
"""A mean this many quartile ranges away from the median was moved there by a few far rows."""


@np.errstate(over="ignore", invalid="ignore")
def middle_of(namespace: Namespace, rows: Array) -> Array | None:
    """Where distances are measured from: rows near it keep most digits.

    The mean of every column, or its median where a few far rows have moved the mean away from most
    rows: differences from such a mean would lose the digits of all the others. The quartile range
    is that on the narrower side of the median: on the wider side every third row may be far.
    """
    if rows.shape[0] == 0:
        return None
    xp = namespace.xp
    ordered = xp.sort(rows[:: max(1, rows.shape[0] // _MIDDLE_ROWS), :], axis=0)
    first, median, last = (ordered[ordered.shape[0] * k // 4, :] for k in (1, 2, 3))
    mean = xp.mean(rows, axis=0)
    far = ~(xp.abs(mean - median) <= _FAR * xp.minimum(median - first, last - median))
    middle = xp.where(far, median, mean)
    return middle if namespace.all_finite(middle) else None

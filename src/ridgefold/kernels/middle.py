"""The point that differences are measured from: near most rows, whatever a few hold."""

from __future__ import annotations

import numpy as np

from ridgefold.linalg import Array, Namespace

_MIDDLE_ROWS = 63
"""Rows of which medians are taken,"""
_FAR = 10.0
"""and how many quartile ranges away from them a mean is far."""


@np.errstate(over="ignore", invalid="ignore")
def middle_of(namespace: Namespace, rows: Array) -> Array | None:
    """Where distances are measured from: rows near it keep most digits.

    The mean of every column, or its median where far rows take the mean, and with it the digits
    of all other rows, out of where half of them are. Far is what many quartile ranges on the
    narrower side of the median do not reach: on the wider one, every third row may be far itself.
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

"""What a model may predict: nothing far beyond the targets that it has seen.

Cells keep to these limits, and so do the models that choose everything. A model of a kernel and a
ridge that its user asked for keeps to none: it is the linear smoother that it says it is.
"""

from __future__ import annotations

import numpy as np

_BEYOND = 0.25
"""What a cell may predict beyond the range of its targets, as a share of that range."""
_PRECISE = 0.01
"""The share of their range to which a cell that may predict more than any target foretells them."""


@np.errstate(over="ignore", invalid="ignore")
def limits_of(
    lowest: np.ndarray, highest: np.ndarray, errors: np.ndarray | float = np.inf
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the most that each cell may predict, from the ranges of their targets.

    New rows at the edge of a cell may well lie a little beyond its own; beyond all only where its
    leave-one-out errors (root mean squares; infinite if they do not count) are as small as those of
    functions without noise. A model of all rows is a single cell.

    Parameters
    ----------
    lowest, highest : arrays of shape (n_cells, n_targets)
        The ranges of the targets.
    errors : array of the same shape
    """
    more = _BEYOND * (highest - lowest)
    low, high = lowest - more, highest + more
    within = np.maximum(low, lowest.min(axis=0)), np.minimum(high, highest.max(axis=0))
    precise = (errors <= _PRECISE * (highest - lowest)) & np.isfinite(more)
    return np.where(precise, low, within[0]), np.where(precise, high, within[1])


def widened_outside(
    lower: np.ndarray,
    upper: np.ndarray,
    outside: np.ndarray,
    targets: np.ndarray,
    coverage: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals that hold, for rows outside the data, what a row without any column would get.

    Held-out errors say nothing of rows that no training row is like. Of these no more is known than
    of the target itself, so their intervals hold its middle share, too.

    Parameters
    ----------
    lower, upper : arrays of shape (n, n_targets)
    outside : bool array of shape (n,)
    targets : array of shape (n_rows, n_targets)
        Of the training rows.
    coverage : float
    """
    n = len(targets)
    tail = 0.5 * (1.0 - coverage)
    # With the ranks of intervals: ends that so few targets cannot tell are infinite.
    low = np.floor(tail * (n + 1) + 1e-9).astype(int)
    high = np.ceil((1.0 - tail) * (n + 1) - 1e-9).astype(int)
    inside = np.sort(targets, axis=0)
    least = inside[low - 1] if low >= 1 else np.full(targets.shape[1], -np.inf)
    most = inside[high - 1] if high <= n else np.full(targets.shape[1], np.inf)
    here = outside[:, None]
    return (
        np.where(here, np.minimum(lower, least[None, :]), lower),
        np.where(here, np.maximum(upper, most[None, :]), upper),
    )

"""Units in which squares neither overflow nor underflow, whatever the size of the numbers."""

from __future__ import annotations

import numpy as np

from ridgefold.linalg.namespace import Array, Namespace


def units_of_columns(namespace: Namespace, columns: Array) -> Array:
    """For each column the power of two next below its largest entry, 1 if all are zero.

    Division by it is exact, and leaves numbers of about 1.
    """
    largest = namespace.to_numpy(namespace.xp.max(namespace.xp.abs(columns), axis=0))
    usable = np.isfinite(largest) & (largest > 0)
    exponents = np.frexp(np.where(usable, largest, 1.0))[1] - 1
    # What is below the smallest normal number has no normal inverse, and few digits anyway.
    lowest = np.finfo(largest.dtype).minexp
    return namespace.asarray(np.ldexp(1.0, np.maximum(exponents, lowest)), columns)

"""Columns that share one length scale, such as the columns of 0 and 1 of one category.

With one scale ℓ for the columns of a category, two rows that differ in it are 2/ℓ apart in the
Manhattan distance and √2/ℓ in the Euclidean one, whichever its levels. So the Laplacian kernel
is a product of a kernel on the other columns and, for every category, 1 where two rows agree
and exp(−2/ℓ) where not; the RBF kernel likewise with exp(−1/ℓ²). The other families are one
function of all distances, and no product.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError


def scales_of_columns(groups: Any, n_columns: int) -> np.ndarray:
    """The number of every column's scale; None, or no groups, give every column its own."""
    scale_of = np.full(n_columns, -1)
    try:
        lists = [] if groups is None else [list(group) for group in groups]
    except TypeError:
        raise InvalidInputError(
            f"metric.groups must be lists of column numbers, as [[3, 4, 5], [6, 7]], got {groups!r}"
        ) from None
    for number, group in enumerate(lists):
        for column in group:
            whole = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
            if not whole or not 0 <= column < n_columns:
                raise InvalidInputError(
                    f"metric.groups must hold numbers of columns, from 0 to {n_columns - 1}, got "
                    f"{column!r} in {group!r}"
                )
            if scale_of[column] >= 0:
                raise InvalidInputError(
                    f"metric.groups names column {column} twice: a column has one scale"
                )
            scale_of[column] = number
    alone = scale_of < 0
    scale_of[alone] = len(lists) + np.arange(int(alone.sum()))
    return np.asarray(np.unique(scale_of, return_inverse=True)[1]).ravel()

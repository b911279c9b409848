"""Rows that are computed from those of other arrays when they are taken: no copy of all is made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np


class ComputedRows:
    """What `compute` makes of the rows of some arrays; taken by index, like theirs.

    Memory-mapped rows stay where they are. `compute` gets a matrix of each array.
    """

    def __init__(
        self, arrays: tuple[Any, ...], compute: Callable[..., np.ndarray], n_columns: int
    ) -> None:
        self._arrays, self._compute = arrays, compute
        self.shape, self.dtype = (int(arrays[0].shape[0]), n_columns), arrays[0].dtype
        self.itemsize, self.ndim = self.dtype.itemsize, 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray:
        taken = [np.asarray(array[rows]) for array in self._arrays]
        if taken[0].ndim == 1:
            return np.asarray(self._compute(*(row[None, :] for row in taken))[0])
        return self._compute(*taken)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        computed = self[:]
        return computed if dtype is None else computed.astype(dtype, copy=False)


def in_metric(X: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """The columns of finite scale, divided by it: those that a learned metric looks at."""
    kept = np.isfinite(scales)
    columns = X if kept.all() else X[:, kept]
    return np.asarray(columns / scales[kept].astype(X.dtype))


def scaled_rows(X: Any, scales: np.ndarray | None) -> Any:
    """`in_metric` of rows when they are taken; without scales the rows themselves."""
    if scales is None:
        return X
    return ComputedRows((X,), partial(in_metric, scales=scales), int(np.isfinite(scales).sum()))

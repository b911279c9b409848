"""Rows divided by one scale a column, computed when they are taken."""

from __future__ import annotations

from typing import Any

import numpy as np


def in_metric(X: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """The columns of finite scale, divided by it: those that a learned metric looks at."""
    kept = np.isfinite(scales)
    columns = X if kept.all() else X[:, kept]
    return np.asarray(columns / scales[kept].astype(X.dtype))


class ScaledRows:
    """`in_metric` without a copy of X: what is indexed is read and divided.

    Memory-mapped rows stay where they are; partitioners and cells take rows by index only.
    """

    def __init__(self, X: np.ndarray, scales: np.ndarray) -> None:
        self._X, self._scales = X, scales
        self.shape = (X.shape[0], int(np.isfinite(scales).sum()))
        self.dtype, self.itemsize, self.ndim = X.dtype, X.itemsize, 2

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> np.ndarray:
        found = np.asarray(self._X[rows])
        if found.ndim == 1:
            return np.asarray(in_metric(found[None, :], self._scales)[0])
        return in_metric(found, self._scales)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        scaled = self[:]
        return scaled if dtype is None else scaled.astype(dtype, copy=False)

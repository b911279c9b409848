"""Rows divided by one scale a column, computed when they are taken."""

from __future__ import annotations

from typing import Any

import numpy as np


class ScaledRows:
    """X/ℓ without a copy of X: what is indexed is read and divided.

    Memory-mapped rows stay where they are; partitioners and cells take rows by index only.
    """

    def __init__(self, X: np.ndarray, scales: np.ndarray) -> None:
        self._X = X
        self._scales = scales.astype(X.dtype)
        self.shape, self.dtype, self.itemsize = X.shape, X.dtype, X.itemsize
        self.ndim = 2

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> np.ndarray:
        return np.asarray(self._X[rows] / self._scales)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        scaled = self[:]
        return scaled if dtype is None else scaled.astype(dtype, copy=False)

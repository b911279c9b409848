"""Rows that may be larger than memory: their shape, and blocks of them one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

BLOCK_BYTES = 1 << 24
"""Size of the blocks that are read at once: long enough for a disk, small beside any budget."""


class RowSource(ABC):
    """Rows of numbers, a block at a time."""

    shape: tuple[int, ...]
    dtype: np.dtype
    """float32 or float64: what its rows are converted to."""
    names: list[str] | None = None
    """Names of the columns, if it has any."""

    @property
    def n_rows(self) -> int:
        return int(self.shape[0])

    @property
    def n_columns(self) -> int:
        return 1 if len(self.shape) == 1 else int(self.shape[1])

    @property
    def n_bytes(self) -> int:
        return self.n_rows * self.n_columns * self.dtype.itemsize

    @abstractmethod
    def blocks(self) -> Iterator[np.ndarray]:
        """All rows in order, in `dtype`, some megabytes at a time."""

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Some rows, by ascending numbers."""
        taken, start = [], 0
        for block in self.blocks():
            first, last = np.searchsorted(rows, [start, start + len(block)])
            taken.append(block[rows[first:last] - start])
            start += len(block)
        return np.concatenate(taken)

    def read(self) -> np.ndarray:
        """All rows, in memory."""
        out = np.empty(self.shape, dtype=self.dtype)
        start = 0
        for block in self.blocks():
            out[start : start + len(block)] = block
            start += len(block)
        return out

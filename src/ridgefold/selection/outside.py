"""Rows that lie outside what a model was fitted to: where nothing is known of its errors.

A row is outside in one of two ways. A column is beyond the range of its values in the training
rows by more than a quarter of the range; this catches what a learned metric does not look at, and
columns along which a model is a straight line without end. Or, with all columns within their
ranges, the row is farther from every training row, in the metric of the kernel, than any training
row is from the others, and by a quarter more. New rows that are drawn like the training rows are
outside in at most a few of a thousand cases; beside the name of each table, the share by range and
by distance of rows kept apart: ccpp 0 and 0, cpusmall 0.22% and 0.4%, california 0.1% and 0,
kin8nm 0 and 0, magic 0.1% and 0.12%, german 0 and 0, banana 0 and 0.05%.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from ridgefold.kernels import KernelGram
from ridgefold.linalg import Array, namespace_of
from ridgefold.linalg.blocks import CACHE_BYTES, row_blocks

_BEYOND = 0.25
"""How far beyond, as a share of the range or of the largest distance. Without it 1% to 2% of rows
drawn like the others are outside the range of some column."""
_OF_FEW = 10.0
"""Over the number of training rows, added to that share: of few rows the range says little."""
_SAMPLE = 1000
"""Training rows whose distance to the others is looked at: of new rows that are like them one in a
thousand is farther than all of these."""
_BLOCK_BYTES = 16 * CACHE_BYTES


@dataclass(frozen=True)
class ColumnRanges:
    """The least and the most that a value may be, shape (n_columns,)."""

    lowest: np.ndarray
    highest: np.ndarray

    def beyond(self, X: Array) -> np.ndarray:
        """Which rows have a value outside."""
        out = np.zeros(int(X.shape[0]), dtype=bool)
        for rows in row_blocks(len(out), 2 * 8.0 * int(X.shape[1]), _BLOCK_BYTES):
            block = dense(X[rows])
            low, high = self.lowest[None, :], self.highest[None, :]
            out[rows] = np.any((block < low) | (block > high), axis=1)
        return out


@np.errstate(over="ignore", invalid="ignore")
def ranges_of(X: Array, counted: np.ndarray | None = None) -> ColumnRanges:
    """The ranges of training rows and a quarter more, of few rows further.

    `counted` are the rows of positive weight.
    """
    lowest = np.full(int(X.shape[1]), np.inf)
    highest = -lowest
    n_counted = int(X.shape[0]) if counted is None else int(np.count_nonzero(counted))
    per_row = 8.0 * int(X.shape[1])
    for rows in row_blocks(int(X.shape[0]), per_row, _BLOCK_BYTES):
        block = dense(X[rows])
        if counted is not None:
            block = block[counted[rows]]
        if len(block):
            lowest = np.minimum(lowest, block.min(axis=0))
            highest = np.maximum(highest, block.max(axis=0))
    more = (_BEYOND + _OF_FEW / max(n_counted, 1)) * (highest - lowest)
    # A constant column may differ by its rounding.
    more = np.maximum(more, 8 * np.finfo(np.float64).eps * np.maximum(abs(lowest), abs(highest)))
    return ColumnRanges(lowest - more, highest + more)


def dense(X: Array) -> np.ndarray:
    """Rows as a NumPy matrix in float64."""
    if scipy.sparse.issparse(X):
        return np.asarray(X.toarray(), dtype=np.float64)
    return np.asarray(namespace_of(X).to_numpy(X), dtype=np.float64)


class Surroundings:
    """Training rows, and how far from them a row may be."""

    def __init__(self, gram: KernelGram, rows: np.ndarray) -> None:
        """`rows` are those of positive weight."""
        self._gram, self._rows = gram, rows
        self._diagonal = gram.namespace.to_numpy(gram.diagonal())[rows].astype(np.float64)
        # Of kernels of distances the kernel itself falls with the distance, to its last digit.
        spread = float(np.ptp(self._diagonal))
        self._by_value = spread <= 1e-6 * float(np.max(np.abs(self._diagonal)))
        some = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLE)).astype(np.intp))
        own = self._distances(lambda part: gram.block(rows[some[part]], rows), len(some), some)
        known = own[np.isfinite(own)]
        farthest = float(known.max()) if len(known) else np.inf
        # Distances of kernels without noise in them are exact to rounding only.
        self.farthest = (1.0 + _BEYOND) * farthest + 1e-6

    def beyond(self, X: Array) -> np.ndarray:
        """Which rows of X are farther from all training rows than any of these from the others."""
        against = self._gram.against(X)
        every = self._rows

        def block(part: slice) -> Array:
            return against.block(part, every)

        diagonal = None
        if not self._by_value:
            kernel, namespace = self._gram.kernel, self._gram.namespace
            diagonal = namespace.to_numpy(kernel.diagonal(namespace, X)).astype(np.float64)
        distances = self._distances(block, int(X.shape[0]), None, diagonal)
        return np.asarray(distances > self.farthest)

    @np.errstate(divide="ignore", over="ignore", invalid="ignore")
    def _distances(
        self,
        block: Callable[[slice], Array],
        n: int,
        own: np.ndarray | None,
        diagonal: np.ndarray | None = None,
    ) -> np.ndarray:
        """To the nearest training row other than `own`: −log k, or ‖φ(x) − φ(z)‖² in its units."""
        out = np.empty(n)
        if diagonal is None:
            diagonal = self._diagonal if own is None else self._diagonal[own]
        for part in row_blocks(n, 2 * 8.0 * len(self._rows), _BLOCK_BYTES):
            values = self._gram.namespace.to_numpy(block(part)).astype(np.float64)
            if self._by_value:
                nearness = values
            else:
                nearness = 2.0 * values - self._diagonal[None, :] - diagonal[part, None]
            if own is not None:
                places = own[part]
                nearness[np.arange(len(places)), places] = -np.inf
            nearest = nearness.max(axis=1)
            if self._by_value:
                out[part] = -np.log(np.maximum(nearest, 0.0) / self._diagonal[0])
            else:
                out[part] = np.maximum(-nearest, 0.0)
        return out

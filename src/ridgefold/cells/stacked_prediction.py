"""Predict with many cells at once on a device.

New rows of a cell are cut into pieces of one length; pieces whose cells have the same kernel and
about as many rows are stacked, and the kernel between them is one product for the whole stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ridgefold.cells.stacked_fit import padded, stacks_of
from ridgefold.kernels import Kernel
from ridgefold.kernels.gram_stack import across_stack
from ridgefold.linalg import Array, namespace_of
from ridgefold.linalg.namespace import on_device

_PIECE = 256
"""New rows of a cell that are predicted together."""
_BLOCKS = 5.0
"""Blocks of the kernel's size that a piece holds, at most."""


@dataclass(frozen=True)
class StackedCell:
    """One cell's model, and the new rows that it predicts."""

    X: np.ndarray
    dual_coef: np.ndarray
    intercept: np.ndarray
    kernel: Kernel
    lowest: np.ndarray | None
    highest: np.ndarray | None
    new: np.ndarray


def predict_together(
    cells: Sequence[StackedCell], device: str, memory_bytes: float
) -> list[np.ndarray]:
    """Predictions of every cell for its new rows, one array of shape (rows, t) a cell."""
    out = [np.empty((len(c.new), c.dual_coef.shape[1]), dtype=c.dual_coef.dtype) for c in cells]
    by_kernel: dict[Kernel, list[tuple[int, int]]] = {}
    for number, cell in enumerate(cells):
        starts = range(0, len(cell.new), _PIECE)
        by_kernel.setdefault(cell.kernel, []).extend((number, start) for start in starts)
    for kernel, pieces in by_kernel.items():
        sizes = [len(cells[number].X) for number, _ in pieces]
        columns, itemsize = cells[pieces[0][0]].X.shape[1], 8.0

        def in_bytes(n: int, columns: int = columns, itemsize: float = itemsize) -> float:
            return itemsize * (_BLOCKS * _PIECE * n + 4.0 * (n + _PIECE) * (columns + 2))

        for stack in stacks_of(sizes, in_bytes, memory_bytes):
            some = [pieces[position] for position in stack.tolist()]
            for (number, start), values in zip(
                some, _predicted(cells, some, kernel, device), strict=True
            ):
                stop = min(start + _PIECE, len(cells[number].new))
                out[number][start:stop] = values[: stop - start]
    return out


def _predicted(
    cells: Sequence[StackedCell], pieces: list[tuple[int, int]], kernel: Kernel, device: str
) -> np.ndarray:
    """Predictions of a stack of pieces, shape (pieces, _PIECE, t)."""
    numbers = sorted({number for number, _ in pieces})
    place = np.array([numbers.index(number) for number, _ in pieces])
    own = [cells[number] for number in numbers]
    counts = np.array([len(cell.X) for cell in own])
    m = int(counts.max())
    X = on_device(padded([cell.X for cell in own], m), device)
    dual = on_device(padded([cell.dual_coef for cell in own], m), device)
    new = padded([cells[k].new[start : start + _PIECE] for k, start in pieces], _PIECE)
    namespace = namespace_of(X)

    def of_pieces(a: Array) -> Array:
        return namespace.take_rows(a, place)

    block = across_stack(kernel, on_device(new, device), of_pieces(X), counts[place])
    values = namespace.to_numpy(block @ of_pieces(dual))  # coefficients that pad are zero
    values = values + np.stack([cell.intercept for cell in own])[place][:, None, :]
    if own[0].lowest is not None:
        lowest = np.stack([np.asarray(cell.lowest) for cell in own])[place]
        highest = np.stack([np.asarray(cell.highest) for cell in own])[place]
        values = np.clip(values, lowest[:, None, :], highest[:, None, :])
    return np.asarray(values)

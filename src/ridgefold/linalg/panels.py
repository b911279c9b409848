"""Updates of one block by others, a panel of columns at a time: no temporary of block size."""

from __future__ import annotations

from ridgefold.linalg.namespace import Array
from ridgefold.linalg.symmetric import Factor

_PANEL = 256


def subtract_product_in_place(out: Array, left: Array, right: Array) -> None:
    """out −= leftᵀ right."""
    for start in range(0, out.shape[1], _PANEL):
        columns = slice(start, start + _PANEL)
        out[:, columns] -= left.T @ right[:, columns]


def subtract_gram_in_place(out: Array, rows: Array, sign: float = 1.0) -> None:
    """out −= sign·rowsᵀ rows, lower triangle only."""
    n = out.shape[0]
    for start in range(0, n, _PANEL):
        stop = min(start + _PANEL, n)
        out[start:stop, :stop] -= (sign * rows[:, start:stop]).T @ rows[:, :stop]


def half_solve_in_place(factor: Factor, b: Array) -> None:
    """b ← W with WᵀW = bᵀA⁻¹b for the factorised A."""
    for start in range(0, b.shape[1], _PANEL):
        columns = slice(start, start + _PANEL)
        b[:, columns] = factor.half_solve(b[:, columns])

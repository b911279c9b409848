"""Updates of one block by others, a panel of columns at a time: no temporary of block size."""

from __future__ import annotations

from collections.abc import Iterator

from ridgefold.linalg.namespace import Array
from ridgefold.linalg.symmetric import Factor

_PANEL = 256
"""Columns of a panel: wide enough for fast products, and a small part of any block."""


def _panels(n: int) -> Iterator[slice]:
    return (slice(start, min(start + _PANEL, n)) for start in range(0, n, _PANEL))


def _signed(panel: Array, signs: Array | None) -> Array:
    return panel if signs is None else panel * signs[:, None]


def subtract_product_in_place(
    out: Array, left: Array, right: Array, signs: Array | None = None
) -> None:
    """out −= leftᵀ J right with J = diag(signs)."""
    for columns in _panels(out.shape[1]):
        out[:, columns] -= left.T @ _signed(right[:, columns], signs)


def subtract_gram_in_place(out: Array, rows: Array, signs: Array | None = None) -> None:
    """out −= rowsᵀ J rows with J = diag(signs), lower triangle only."""
    for panel in _panels(out.shape[0]):
        left = slice(0, panel.stop)
        out[panel, left] -= _signed(rows[:, panel], signs).T @ rows[:, left]


def half_solve_in_place(factor: Factor, b: Array) -> None:
    """b ← W with WᵀJW = bᵀA⁻¹b for the factorised A and J = diag(its signs)."""
    for columns in _panels(b.shape[1]):
        b[:, columns] = factor.half_solve(b[:, columns])

"""Cutting rows into blocks that fit a number of bytes."""

from __future__ import annotations

from collections.abc import Iterator

CACHE_BYTES = 1 << 20
"""A block of about this size stays in a core's cache while it is worked on."""

WORKSPACE_BYTES = 16 * CACHE_BYTES
"""What tiles of the kernel, panels and BLAS's packing buffers may take beside the large arrays."""

ROWS_AT_ONCE = 512
"""Rows of an n × n matrix that are worked on at once where no BLAS routine knows its triangle:
enough for fast products, and few enough that temporary arrays are small beside the matrix."""


def row_blocks(n_rows: int, bytes_per_row: float, limit: float) -> Iterator[slice]:
    """Slices that cover range(n_rows), each of at most `limit` bytes but at least one row."""
    step = max(1, int(limit // max(bytes_per_row, 1)))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))

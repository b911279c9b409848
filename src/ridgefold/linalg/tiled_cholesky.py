"""The Cholesky factor by tiles, for matrices beside which BLAS's own work space counts.

OpenBLAS packs 384 rows of a factor as long as the whole matrix is wide, and keeps that space
until the process ends: a fifth of a matrix of 2,000 rows. Called on tiles it packs no more than
a tile's width, and up to a few thousand rows tiles take no longer. Larger matrices go to potrf
whole: there its space is a small part of the matrix, and tiles cost a tenth of the time.
"""

from __future__ import annotations

import numpy as np

from ridgefold.linalg.blas_pointers import BlasPointers
from ridgefold.linalg.blocks import row_blocks

TILE = 512
"""Rows of a tile: enough for products at full speed, few enough that BLAS packs little."""
WORTH_IT = range(2 * TILE, 3200)
"""Numbers of rows for which tiles are used: they save a good part of the memory, at no cost in
time that can be measured."""


def tiled_cholesky_in_place(a: np.ndarray, blas: BlasPointers) -> bool:
    """A = L Lᵀ in the lower triangle of A (C order); False if A is not positive definite.

    Left-looking: a tile receives all that is to be subtracted when its column's turn comes.
    """
    n = a.shape[0]
    for columns in row_blocks(n, 1, TILE):
        left = slice(0, columns.start)
        corner = a[columns, columns]
        if columns.start:
            blas.subtract_gram_of_rows(corner, a[columns, left])
        if not blas.cholesky(corner):
            return False
        for block in row_blocks(n - columns.stop, 1, TILE):
            rows = slice(columns.stop + block.start, columns.stop + block.stop)
            tile = a[rows, columns]
            if columns.start:
                blas.subtract_product(tile, a[rows, left], a[columns, left].T)
            blas.divide_by_transposed(tile, corner)
    return True

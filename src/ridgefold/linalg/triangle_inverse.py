"""The inverse of a triangle by halves, and the diagonal of (L Lᵀ)⁻¹ that it gives.

With the triangle cut in the middle,

    [A 0; B C]⁻¹ = [A⁻¹ 0; −C⁻¹BA⁻¹ C⁻¹],

so that all work but that on small triangles is products, which run at the speed of BLAS. LAPACK's
own routine (trtri), which potri begins with, takes about twice as long for a few hundred rows.
Where only the diagonal of the inverse is wanted, as for leave-one-out, Σ_k (L⁻¹)_ki² gives it
without the product that potri ends with.
"""

from __future__ import annotations

import numpy as np

from ridgefold.linalg.blas_pointers import BlasPointers
from ridgefold.linalg.blocks import row_blocks

SMALL = 64
"""Triangles of at most this many rows are inverted by LAPACK: further halves would cost more calls
than they save arithmetic."""
FASTER_BY_HALVES = range(128, 1600)
"""Numbers of rows for which a whole inverse is faster with a triangle inverted here: 1.7 times
at 500 to 900 rows. Of larger ones LAPACK's own is as fast; the diagonal alone, for which the
triangle is enough, is 1.8 times as fast at 4,000 rows too."""
_ROWS_AT_ONCE = 128
"""Rows squared at once: few, so that the part above the diagonal that must be masked is small."""
_BELOW = np.tri(_ROWS_AT_ONCE, dtype=bool)


def invert_triangle_in_place(lower: np.ndarray, blas: BlasPointers) -> None:
    """L := L⁻¹ in the lower triangle of a C-ordered array; the other triangle is left alone."""
    n = lower.shape[0]
    if n <= SMALL:
        blas.invert_triangle(lower)
        return
    half = n // 2
    first, corner, last = lower[:half, :half], lower[half:, :half], lower[half:, half:]
    invert_triangle_in_place(first, blas)
    invert_triangle_in_place(last, blas)
    blas.multiply_by_triangle(corner, first)
    blas.multiply_triangle_by(last, corner, -1.0)


def inverse_of_factor_in_place(matrix: np.ndarray, blas: BlasPointers) -> None:
    """A := L⁻¹ for A = L Lᵀ, in the lower triangle of a C-ordered array.

    With L⁻¹ of a half at hand, the rest of L is a product as well: [A Bᵀ; B C] with A = L₁L₁ᵀ has
    B L₁⁻ᵀ below L₁. A matrix that is not positive definite is told by what LAPACK says.
    """
    n = matrix.shape[0]
    if n <= SMALL:
        blas.cholesky(matrix)
        blas.invert_triangle(matrix)
        return
    half = (n // 2 + 7) // 8 * 8  # rows begin where vectors in memory do
    first, corner, last = matrix[:half, :half], matrix[half:, :half], matrix[half:, half:]
    inverse_of_factor_in_place(first, blas)
    blas.multiply_by_triangle(corner, first, transposed=True)
    blas.subtract_gram_of_rows(last, corner)
    inverse_of_factor_in_place(last, blas)
    blas.multiply_by_triangle(corner, first)
    blas.multiply_triangle_by(last, corner, -1.0)


def squares_of_columns(lower: np.ndarray) -> np.ndarray:
    """Σ_k L_ki² for every column i of a lower triangle: diag(LᵀL)."""
    out = np.zeros(lower.shape[0], dtype=lower.dtype)
    for rows in row_blocks(lower.shape[0], 1, _ROWS_AT_ONCE):
        left, corner = lower[rows, : rows.start], lower[rows, rows]
        corner = np.where(_BELOW[: len(corner), : len(corner)], corner, corner.dtype.type(0.0))
        out[: rows.start] += np.einsum("ij,ij->j", left, left)
        out[rows] += np.einsum("ij,ij->j", corner, corner)
    return out

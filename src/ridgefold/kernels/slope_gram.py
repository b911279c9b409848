"""Products with the derivatives of a Gram matrix in the columns of its rows, tile by tile.

All is computed in float64, whatever the rows are in: a slope is a difference of near numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse

from ridgefold.errors import UnsupportedInputError
from ridgefold.kernels.base import Kernel, Rows
from ridgefold.kernels.middle import middle_of
from ridgefold.kernels.slope_terms import (
    SlopeTerm,
    add_both_slopes,
    add_column_slopes,
    add_row_slopes,
)
from ridgefold.linalg import Array, namespace_of
from ridgefold.linalg.blocks import row_blocks


class SlopeGram:
    """The derivatives ∂k(x_r, z_i)/∂x_rj between rows x and z, as something to multiply with.

    With n left rows, m right rows and d columns a product costs O(nmd) operations, as the Gram
    matrix itself does, and memory for a few tiles of it.
    """

    def __init__(self, kernel: Kernel, X: Array, Z: Array) -> None:
        if scipy.sparse.issparse(X) or scipy.sparse.issparse(Z):
            raise UnsupportedInputError(
                "slopes fill every column, so that sparse rows have none: fit and ask with "
                "X.toarray()"
            )
        self.namespace = namespace_of(Z)
        double = self.namespace.double()
        self._kernel = kernel
        self._X, self._Z = (self.namespace.astype(rows, double) for rows in (X, Z))
        kernel.check(self.namespace, self._X)
        origin = middle_of(self.namespace, self._Z)
        self._right = kernel.prepare(self.namespace, self._Z, origin)
        self._left = self._right if X is Z else kernel.prepare(self.namespace, self._X, origin)

    def row_slopes(self, coefficients: Array) -> Array:
        """Σ_i a_i ∂k(x_r, z_i)/∂x_rj, of shape (n, d, t) for coefficients of shape (m, t)."""
        a = self.namespace.astype(coefficients, self._Z.dtype)
        shape = (*self._X.shape, int(a.shape[1]))
        out = self.namespace.zeros(shape, self._X)
        for down, across, left, right in self._tiles():
            terms = self._terms(down, left, right)
            add_row_slopes(terms, a[across, :], out[down, ...])
        return out

    def column_slopes(self, weights: Array) -> Array:
        """Σ_r u_rj ∂k(x_r, z_i)/∂x_rj, of shape (m, d) for weights of shape (n, d)."""
        out = self.namespace.zeros(self._Z.shape, self._Z)
        for down, across, left, right in self._tiles():
            terms = self._terms(down, left, right)
            add_column_slopes(terms, weights[down, :], out[across, :])
        return out

    def mixed_sums(self, weights: Array, others: Array) -> Array:
        """Σ_ri u_rj v_ij ∂²k(x_r, z_i)/∂x_rj∂z_ij for every column j."""
        out = self.namespace.zeros(self._X.shape[1], self._X)
        for down, across, left, right in self._tiles():
            terms = self._kernel.mixed_terms(
                self.namespace, self._X[down, :], self._Z[across, :], left, right
            )
            add_both_slopes(self.namespace, terms, weights[down, :], others[across, :], out)
        return out

    def _terms(self, down: slice, left: Rows, right: Rows) -> Iterator[SlopeTerm]:
        return self._kernel.slope_terms(self.namespace, self._X[down, :], left, right)

    def _tiles(self) -> Iterator[tuple[slice, slice, Rows, Rows]]:
        """Rows, columns, and both as they were prepared: few enough to stay in the cache."""
        namespace = self.namespace
        tile = namespace.tile_bytes(self._X)
        side = max(64, int((tile / 8) ** 0.5))
        for across in row_blocks(int(self._Z.shape[0]), 1, side):
            right = self._right.take(namespace, across)
            for down in row_blocks(int(self._X.shape[0]), 1, side):
                yield down, across, self._left.take(namespace, down), right


def dual_of_features(kernel: Kernel, X: Array, primal_coef: Array) -> Array:
    """Coefficients a of the rows with Φᵀa = w: Φ(x)w has the slopes of Σ a_i k(x_i, ·).

    Those of a ridge fit in the primal, residuals divided by alpha, lose all digits where alpha is
    small. The least-norm a = Φ(ΦᵀΦ)⁺w is, with one step of
    refinement.
    """
    namespace = namespace_of(X)
    features = namespace.to_numpy(
        kernel.features(namespace, namespace.astype(X, namespace.double()))
    )
    w = namespace.to_numpy(namespace.astype(primal_coef, namespace.double()))
    values, vectors = np.linalg.eigh(features.T @ features)
    kept = values > len(values) * np.finfo(np.float64).eps * values[-1]
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)

    def least_norm(right: np.ndarray) -> np.ndarray:
        return np.asarray(features @ (vectors @ (inverse[:, None] * (vectors.T @ right))))

    a = least_norm(w)
    a += least_norm(w - features.T @ a)
    return namespace.asarray(a, X, namespace.double())

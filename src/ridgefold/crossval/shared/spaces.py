"""Small spaces in which the systems of one fold are solved for every ridge value at once.

With an orthonormal basis V, x(α) = V(VᵀAV + αI)⁻¹Vᵀb costs one small eigendecomposition for all α.
Whatever V is and however it was made, the residual b − (A + αI)x(α) is known from AV, so that
rounding errors on the way cannot hide:

    |ŷ(x) − exact(x)| ≤ ‖ψ(x)‖·‖residual‖/(2√α), with ψ of `MaskedFolds.reach`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.crossval.shared.masked import MaskedFolds
from ridgefold.linalg import Array, Namespace


class FoldSystem:
    """The system of one fold on vectors over all rows, zero outside its training rows.

    Vectors are rows of matrices.
    """

    def __init__(self, masked: MaskedFolds, targets: Array, k: int) -> None:
        self.namespace, self.index = masked.namespace, k
        self.test = masked.folds.test[k]
        self.roots = masked.roots * masked.mask[:, k]
        self.basis: Array | None = None
        """Of the space of the unpenalised columns (n, r), if there are any."""
        if masked.spaces:
            self.basis, self.at_test = masked.spaces[k].basis, masked.at_test(k)
        self.weighted = (targets * self.roots[:, None]).T
        self.right = self.project(self.weighted)

    def project(self, vectors: Array) -> Array:
        if self.basis is None:
            return vectors
        return vectors - (vectors @ self.basis) @ self.basis.T

    def values(self, vectors: Array, matrix: Array) -> Array:
        """What the vectors predict at every row by the kernel alone: K W^½ v."""
        return (vectors * self.roots[None, :]) @ matrix

    def image(self, values: Array) -> Array:
        """A v from the values of v."""
        return self.project(values * self.roots[None, :])


@dataclass(frozen=True)
class Found:
    """What a space says of one fold."""

    predictions: Array
    """Shape (a, test rows, t)."""
    residuals: np.ndarray
    """Shape (a, t)."""


class Space:
    """An orthonormal basis V that grows, with what every vector predicts."""

    def __init__(self, system: FoldSystem) -> None:
        self._system = system
        n = int(system.roots.shape[0])
        self._basis = system.namespace.empty((0, n), system.right)
        self._values = system.namespace.empty((0, n), system.right)
        self.size = 0

    @property
    def unmeasured(self) -> Array:
        """The vectors whose values are not known yet."""
        return self._basis[self._values.shape[0] : self.size, :]

    def grow(self, vectors: Array) -> Array:
        """Add what is new in the vectors; returns it as orthonormal rows."""
        new = self._orthonormal(vectors)
        if new.shape[0] > 0:
            self._append(new)
        return new

    def measured(self, values: Array) -> None:
        """Take the values of the vectors that were unmeasured."""
        self._values = self._system.namespace.xp.concat([self._values, values], axis=0)

    def solutions(self, alphas: np.ndarray) -> tuple[Array, Array]:
        """z(α), shape (a, t, size), and the residuals (a, t, n)."""
        system, namespace, xp = self._system, self._system.namespace, self._system.namespace.xp
        basis = self._basis[: self.size, :]
        image = system.image(self._values)
        projected = image @ basis.T
        symmetric = xp.asarray((projected + projected.T) / 2.0, copy=True)
        values, vectors = namespace.eigh_in_place(symmetric)
        right = system.right @ basis.T @ vectors  # (t, size)
        shifts = namespace.asarray(alphas, values)
        z = right[None, :, :] / (values[None, :] + shifts[:, None])[:, None, :]
        z = z @ vectors.T
        residual = system.right[None, :, :] - z @ image
        residual -= (z * shifts[:, None, None]) @ basis
        return z, residual

    def found(self, z: Array, residual: Array) -> Found:
        """Predictions of the test rows, and the norms of the residuals."""
        system, namespace, xp = self._system, self._system.namespace, self._system.namespace.xp
        values = xp.take(self._values, namespace.indices(system.test, z), axis=1)
        predictions = z @ values  # (a, t, rows)
        if system.basis is not None:
            fitted = z @ (self._values @ (system.roots[:, None] * system.basis))  # (a, t, r)
            whole = (system.weighted @ system.basis)[None, :, :]
            predictions += (whole - fitted) @ system.at_test.T
        squares = namespace.to_numpy(xp.sum(residual * residual, axis=2))
        norms = np.asarray(np.sqrt(squares), dtype=float)
        return Found(xp.permute_dims(predictions, (0, 2, 1)), norms)

    def _orthonormal(self, vectors: Array) -> Array:
        """What is new in the vectors, as orthonormal rows."""
        system, namespace, xp = self._system, self._system.namespace, self._system.namespace.xp
        basis = self._basis[: self.size, :]
        lengths = xp.sqrt(xp.sum(vectors * vectors, axis=1))
        vectors = system.project(vectors / xp.where(lengths > 0, lengths, 1.0)[:, None])
        for _ in range(2):  # twice is enough (Kahan, Parlett)
            vectors = vectors - (vectors @ basis.T) @ basis
        vectors = _orthonormal_rows(namespace, vectors, 1e3 * namespace.eps(vectors))
        vectors = system.project(vectors)
        # What was rounding error lies in the old space again once it is scaled up.
        return _orthonormal_rows(namespace, vectors - (vectors @ basis.T) @ basis, 0.5)

    def _append(self, rows: Array) -> None:
        namespace, needed = self._system.namespace, self.size + rows.shape[0]
        if needed > self._basis.shape[0]:
            room = namespace.empty((max(32, 2 * needed), self._basis.shape[1]), rows)
            room[: self.size, :] = self._basis[: self.size, :]
            self._basis = room
        self._basis[self.size : needed, :] = rows
        self.size = needed


def _orthonormal_rows(namespace: Namespace, rows: Array, least: float) -> Array:
    """Orthonormal rows that span `rows`, but for what adds less than `least` to those before."""
    q, r = namespace.xp.linalg.qr(rows.T)
    sizes = np.abs(namespace.to_numpy(namespace.xp.linalg.diagonal(r)))
    return namespace.take_rows(q.T, np.flatnonzero(sizes > least))

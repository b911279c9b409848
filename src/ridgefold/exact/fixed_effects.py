"""Standard errors of the coefficients of unpenalised columns.

They are those of generalised least squares, and of the fixed effects of a mixed model: with prior
variance s²k of the smooth part and noise s²α/w, Var(β) = s²(S^T H S)⁻¹ with H = (K̃ + αI)⁻¹ and
S = W^½F, and s² = yᵀa/(n − q), its restricted maximum-likelihood estimate. In the basis of
`linalg.unpenalised`,

    (QᵀHQ)⁻¹ = QᵀK̃Q + αI − (K̃Q)ᵀC(K̃Q),    Var(β) = s² T(QᵀHQ)⁻¹Tᵀ,

and C(K̃Q) is what the system gives for K̃Q as targets: a few more columns on the right of whichever
solver runs, so that none of them has to know.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.linalg.unpenalised import Unpenalised

_DETERMINED = 1e-6
"""How far from the identity rounding may take what fitting maps coefficients to."""


@dataclass(frozen=True)
class FixedErrors:
    """Further targets to solve for, and what follows from their solutions."""

    gram: Gram
    space: Unpenalised
    roots: Array | None
    """√w of every row."""
    alphas: np.ndarray
    """The ridge of every target."""

    @cached_property
    def _distinct(self) -> np.ndarray:
        return np.unique(self.alphas)

    @cached_property
    def _products(self) -> Array:
        """K W^½Q, of shape (n, r)."""
        basis = self.space.basis
        if self.roots is not None:
            basis = basis * self.roots[:, None]
        return self.gram.matmat(basis)

    @property
    def transform(self) -> np.ndarray:
        """T, in float64."""
        found = self.gram.namespace.to_numpy(self.space.transform)
        return np.asarray(found, dtype=np.float64)

    def targets(self) -> Array:
        """The further targets: the same r columns for every distinct ridge."""
        xp = self.gram.namespace.xp
        return xp.concat([self._products] * len(self._distinct), axis=1)

    def ridges(self) -> np.ndarray:
        """The ridge of each of them."""
        return np.repeat(self._distinct, self.space.rank)

    def standard_errors(self, solved: Array, targets: Array, dual: Array) -> np.ndarray:
        """Those of the columns beside the bias, shape (p, t), in float64.

        Parameters
        ----------
        solved : array
            The dual coefficients for `targets()`.
        targets, dual : arrays of shape (n, t)
            The targets y of the model, and the dual coefficients a of its fit to them.
        """
        space, namespace = self.space, self.gram.namespace
        n_rows = int(self.gram.shape[0])
        weighted = space.basis
        if self.roots is not None:
            weighted = weighted * self.roots[:, None]
            n_rows = int(np.count_nonzero(namespace.to_numpy(self.roots) > 0))
        inner = namespace.to_numpy(weighted.T @ self._products).astype(np.float64)
        products = namespace.to_numpy(self._products).astype(np.float64)
        values = namespace.to_numpy(solved).astype(np.float64)
        y = namespace.to_numpy(targets).astype(np.float64)
        squares = np.sum(y * namespace.to_numpy(dual).astype(np.float64), axis=0)
        freedom = n_rows - space.rank
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = np.maximum(squares, 0.0) / freedom if freedom > 0 else squares * np.nan
        transform = self.transform
        errors = np.empty((space.n_columns, len(self.alphas)))
        for place, alpha in enumerate(self._distinct):
            own = values[:, place * space.rank : (place + 1) * space.rank]
            spread = inner + alpha * np.eye(space.rank) - products.T @ own
            of_columns = np.einsum("ij,jk,ik->i", transform, (spread + spread.T) / 2.0, transform)
            chosen = self.alphas == alpha
            size = np.sqrt(np.maximum(of_columns, 0.0))
            errors[:, chosen] = size[:, None] * np.sqrt(variance[chosen])[None, :]
        errors[~self._determined()] = np.nan
        return errors[int(space.bias) :]

    def _determined(self) -> np.ndarray:
        """Which coefficients the rows determine: those that fitting gives back."""
        space, namespace = self.space, self.gram.namespace
        if space.rank == space.n_columns:
            return np.ones(space.n_columns, dtype=bool)
        columns = self.gram.fixed_columns()
        parts = [namespace.ones((int(self.gram.shape[0]), 1), self.gram.like)] if space.bias else []
        parts += [] if columns is None else [columns]
        every = namespace.xp.concat(parts, axis=1)
        if self.roots is not None:
            every = every * self.roots[:, None]
        back = namespace.to_numpy(space.transform @ (space.basis.T @ every)).astype(np.float64)
        found = np.abs(np.diagonal(back) - 1.0) < _DETERMINED
        sizes = np.linalg.norm(namespace.to_numpy(every), axis=0)
        off = np.abs(back - np.diag(np.diagonal(back))) * sizes[None, :]
        return np.asarray(found & (np.max(off, axis=1) <= _DETERMINED * np.maximum(sizes, 1e-300)))

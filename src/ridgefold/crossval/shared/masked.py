"""All folds side by side: one column for each fold and target, zero outside its training rows.

A product of the whole K̃ with such columns is a product with every fold's own K̃_cc at once; the
rows that a fold tests come out as K_kc v, which is what its predictions are made of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ridgefold.crossval.shared.base import rounding_allowance
from ridgefold.crossval.shared.folds import Folds
from ridgefold.crossval.shared.shortcut import require_weighted_training_rows
from ridgefold.errors import MethodGaveUpError
from ridgefold.kernels import Gram
from ridgefold.linalg import Array, Namespace
from ridgefold.linalg.blocks import CACHE_BYTES, row_blocks
from ridgefold.linalg.unpenalised import Unpenalised, unpenalised_space

TOLERANCE = 1e-8
"""Bound on the error of a prediction, relative to the largest target: well below any noise, and
within reach of residuals in float64."""
_MOST_EXCUSED, _MOST_EXCUSED_SINGLE = 1e3, 1e-4
"""In units of the root of rounding error, and of the largest target: what a prediction may be off
by as rounding does it. The root of float32's is no bound: held-out errors were half too large."""


@dataclass(frozen=True)
class ErrorBounds:
    """What predictions may be off by, for every α: ‖residual‖·reach/(2√α), and rounding."""

    a_residual: np.ndarray
    """For a residual of length 1."""
    rounding: np.ndarray
    """What rounding may do to predictions as large as the largest target."""
    conditions: np.ndarray
    """The most that the condition number of K̃ + αI can be."""
    scale: float
    """The largest target."""

    def of(self, residuals: np.ndarray) -> np.ndarray:
        """For residual norms of shape (a, …), without rounding, which `certified` adds."""
        return np.asarray((residuals.T * self.a_residual).T)

    def told(self, residuals: np.ndarray) -> np.ndarray:
        """For residual norms of shape (a, …), as a judge is told on the way."""
        return np.asarray((residuals.T * self.a_residual + self.rounding).T)


@dataclass(frozen=True)
class MaskedFolds:
    """The training rows of every fold as columns of zeros and ones."""

    namespace: Namespace
    gram: Gram
    folds: Folds
    bias: bool
    roots: Array
    """√w of every row."""
    mask: Array
    """Shape (n, n_folds): 1 where the fold trains on the row."""

    def repeated(self, t: int) -> Array:
        """The mask for every fold and target: column k·t + j is fold k, target j."""
        if t == 1:
            return self.mask
        n, count = self.mask.shape
        xp = self.namespace.xp
        wide = xp.broadcast_to(self.mask[:, :, None], (n, count, t))
        return xp.reshape(wide, (n, count * t))

    def spread(self, targets: Array) -> Array:
        """ỹ for every fold and target, zero on the rows that the fold does not train on."""
        xp, (n, t) = self.namespace.xp, targets.shape
        y = targets * self.roots[:, None]
        wide = xp.broadcast_to(y[:, None, :], (n, len(self.folds), t))
        return xp.reshape(wide, (n, len(self.folds) * t)) * self.repeated(t)

    @cached_property
    def spaces(self) -> tuple[Unpenalised, ...]:
        """The space of the unpenalised columns on every fold's training rows; none without such.

        Bases are zero on rows that the fold does not train on.
        """
        if not self.bias and self._fixed is None:
            return ()
        found = []
        for k in range(len(self.folds)):
            space = unpenalised_space(
                self.namespace,
                self._fixed,
                self.roots * self.mask[:, k],
                bias=self.bias,
                n_rows=self.folds.n_rows,
                like=self.gram.like,
            )
            assert space is not None
            found.append(space)
        return tuple(found)

    @cached_property
    def _fixed(self) -> Array | None:
        return self.gram.fixed_columns()

    def directions(self, t: int) -> tuple[Array, ...]:
        """For every column, unit vectors that span what is not penalised on its training rows.

        They are orthogonal to each other; zero for folds whose rank is less than that of others.
        """
        if not self.spaces:
            return ()
        xp, rank = self.namespace.xp, max(space.rank for space in self.spaces)
        n, zero = self.folds.n_rows, self.namespace.zeros(self.folds.n_rows, self.gram.like)
        found = []
        for j in range(rank):
            parts = [space.basis[:, j] if j < space.rank else zero for space in self.spaces]
            wide = xp.broadcast_to(xp.stack(parts, axis=1)[:, :, None], (n, len(parts), t))
            found.append(xp.reshape(wide, (n, len(parts) * t)))
        return tuple(found)

    def at_test(self, k: int) -> Array:
        """ΦT at the rows that fold k tests, (rows, r): what coordinates in its basis mean there."""
        space, test = self.spaces[k], self.folds.test[k]
        own = None if self._fixed is None else self.namespace.take_rows(self._fixed, test)
        return space.at(own, len(test))

    def training_products(self, rows: Array) -> Iterator[Array]:
        """R_c R_cᵀ over the training rows of every fold, for R of shape (r, n)."""
        namespace, everything = self.namespace, rows @ rows.T
        left_out = namespace.to_numpy(self.mask) == 0.0
        for k in range(len(self.folds)):
            index = namespace.indices(np.flatnonzero(left_out[:, k]), rows)
            others = namespace.xp.take(rows, index, axis=1)
            yield everything - others @ others.T

    def gather(self, values: Array, t: int) -> Array:
        """Rows that each fold tests, from columns over all rows: (rows of all folds, t)."""
        namespace = self.namespace
        parts = [
            namespace.take_rows(values[:, k * t : (k + 1) * t], test)
            for k, test in enumerate(self.folds.test)
        ]
        return namespace.xp.concat(parts, axis=0)

    def gather_unpenalised(self, coordinates: Array, t: int) -> Array:
        """What coordinates (r, folds·t) predict at the rows each fold tests, as `gather` has it."""
        parts = [
            self.at_test(k) @ coordinates[: space.rank, k * t : (k + 1) * t]
            for k, space in enumerate(self.spaces)
        ]
        return self.namespace.xp.concat(parts, axis=0)

    @cached_property
    def reach(self) -> float:
        """The most that ‖ψ(x)‖ can be, of what predictions at x are products with.

        Without unpenalised columns ψ(x) = φ(x), of length √k(x, x). With them coefficients β follow
        from a, and ψ(x) = φ(x) − Σ vᵢ√wᵢφ(xᵢ) with v = QTᵀ(columns of x), the weights by which the
        columns alone would predict at x: at most √k·(1 + Σ√wᵢ|vᵢ|), and ‖φ(x) − φ̄‖ with a bias.
        """
        xp, diagonal = self.namespace.xp, self.gram.diagonal()
        largest = math.sqrt(max(float(xp.max(diagonal)), 0.0))
        if not self.spaces:
            return largest
        if self._fixed is None:
            return 2.0 * largest
        most = 0.0
        for k, space in enumerate(self.spaces):
            weighted = (space.basis * self.roots[:, None]).T
            for rows in row_blocks(len(self.folds.test[k]), 8.0 * self.folds.n_rows, CACHE_BYTES):
                sums = xp.sum(xp.abs(self.at_test(k)[rows, :] @ weighted), axis=1)
                most = max(most, float(xp.max(sums)))
        return largest * (1.0 + most)

    def trace(self) -> float:
        """The trace of K̃, which bounds its largest eigenvalue."""
        return float(self.namespace.xp.sum(self.gram.diagonal() * self.roots * self.roots))

    def bounds(self, targets: Array, alphas: np.ndarray) -> ErrorBounds:
        """What residuals say of the predictions of every fold."""
        namespace, n = self.namespace, self.folds.n_rows
        scale = float(namespace.xp.max(namespace.xp.abs(targets)))
        conditions = (self.trace() + alphas) / alphas
        rounding = rounding_allowance(namespace, targets, conditions, n, scale)
        return ErrorBounds(self.reach / (2.0 * np.sqrt(alphas)), rounding, conditions, scale)

    def wanted_residuals(self, targets: Array, alphas: np.ndarray) -> np.ndarray:
        """The residual norm, for every α, below which predictions are as good as they need be.

        |ŷ(x) − exact(x)| ≤ reach·‖residual‖/(2√α) shall be at most `TOLERANCE` of the largest
        target, or what rounding does anyway: no residual falls below eps·‖K‖‖x‖. Where that is
        most of the digits, as with a ridge near zero, it is no excuse.
        """
        bounds = self.bounds(targets, alphas)
        scale = bounds.scale or 1.0
        excused = _MOST_EXCUSED * math.sqrt(self.namespace.eps(targets))
        excused = min(excused, _MOST_EXCUSED_SINGLE) * scale
        error = TOLERANCE * scale + np.minimum(bounds.rounding, excused)
        return np.asarray(error * 2.0 * np.sqrt(alphas) / (self.reach or 1.0))


def mask_folds(gram: Gram, folds: Folds, weights: Array | None, bias: bool) -> MaskedFolds:
    """Lay the folds out side by side; training sets need not be complements."""
    namespace = gram.namespace
    like = gram.like
    positive = np.ones(folds.n_rows, dtype=bool)
    roots = namespace.ones(folds.n_rows, gram.diagonal())
    if weights is not None:
        positive = namespace.to_numpy(weights) > 0
        roots = namespace.xp.sqrt(weights)
    require_weighted_training_rows(folds, positive)
    if folds.train is not None and any(len(np.unique(r)) != len(r) for r in folds.train):
        raise MethodGaveUpError(
            "a fold's training set names a row twice, but this method trains on rows or leaves "
            'them out: use method="auto"'
        )
    mask = np.zeros((folds.n_rows, len(folds)))
    for k in range(len(folds)):
        mask[folds.training_rows(k), k] = 1.0
    mask *= positive[:, None]
    return MaskedFolds(namespace, gram, folds, bias, roots, namespace.asarray(mask, like))

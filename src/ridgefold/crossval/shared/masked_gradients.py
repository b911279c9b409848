"""Conjugate gradients for all folds side by side: one α, little memory.

Preconditioned by a low-rank factor of K that all folds share, with short recurrences and K
computed block by block: O(n·(folds + rank)) numbers.
"""

from __future__ import annotations

import math

import numpy as np

from ridgefold.crossval.shared.base import HeldOut, Progress, certified
from ridgefold.crossval.shared.masked import MaskedFolds
from ridgefold.errors import MethodGaveUpError
from ridgefold.linalg import Array

BLOCK_BYTES = float(1 << 22)
"""A block of K in a product on the fly."""
NOMINAL_STEPS = 60
"""Steps where nothing is known of the spectrum."""
MOST_STEPS = 600
"""Where more are needed, a factorisation is faster, on up to some thousand rows."""


def preconditioner_rank(n: int, columns: int) -> int:
    """As many columns as keep the preconditioner at a few hundredths of the memory of K."""
    share = min(0.035 * n, math.sqrt(0.02 * n * n / columns))
    return int(min(n, max(32.0, min(512.0, share))))


class _Preconditioner:
    """(F_cF_cᵀ + αI)⁻¹ on the training rows of every fold, by the Woodbury identity."""

    def __init__(self, state: MaskedFolds, alpha: float, t: int) -> None:
        namespace = state.namespace
        partial = state.gram.partial_cholesky()
        most = preconditioner_rank(state.folds.n_rows, len(state.folds) * t)
        while partial.rank < most and partial.trace > 0.1 * alpha:
            if partial.grow(min(32, most - partial.rank)) == 0:
                break
        self._namespace, self._alpha, self._t = namespace, alpha, t
        self._rows = partial.factor_rows()  # (r, n)
        self._rows *= state.roots[None, :]
        self._inverses = []
        for small in state.training_products(self._rows):
            namespace.add_to_diagonal_in_place(small, alpha)
            values, vectors = namespace.eigh_in_place(small)
            namespace.maximum_in_place(values, alpha)
            self._inverses.append((vectors / values[None, :]) @ vectors.T)

    def __call__(self, columns: Array) -> Array:
        xp, t = self._namespace.xp, self._t
        inner = self._rows @ columns
        parts = [
            inverse @ inner[:, k * t : (k + 1) * t] for k, inverse in enumerate(self._inverses)
        ]
        return (columns - self._rows.T @ xp.concat(parts, axis=1)) / self._alpha


def solve_one_alpha(
    state: MaskedFolds, targets: Array, alpha: float, progress: Progress
) -> HeldOut:
    """Held-out predictions with their certificate, or `MethodGaveUpError`."""
    namespace, xp, t = state.namespace, state.namespace.xp, int(targets.shape[1])
    mask, directions = state.repeated(t), state.directions(t)
    roots = state.roots[:, None]

    def project(columns: Array) -> Array:
        columns = columns * mask
        for direction in directions:
            columns = columns - direction * xp.sum(direction * columns, axis=0)[None, :]
        return columns

    def multiply(columns: Array) -> Array:
        return state.gram.matmat(columns * roots, limit=BLOCK_BYTES)

    precondition = _Preconditioner(state, alpha, t)
    r = project(state.spread(targets))
    x = namespace.zeros(r.shape, r)
    p = project(precondition(r))
    rho = xp.sum(r * p, axis=0)
    alphas = np.asarray([alpha])
    wanted = float(state.wanted_residuals(targets, alphas)[0])
    for step in range(MOST_STEPS):
        norms = namespace.to_numpy(xp.sqrt(xp.sum(r * r, axis=0)))
        if float(norms.max()) <= 0.5 * wanted:
            break
        progress(min(0.99, step / NOMINAL_STEPS))
        # In place where it can be: with many folds these columns are most of the memory.
        q = multiply(p)
        q *= roots
        q = project(q)
        q += alpha * p
        curvature = xp.sum(p * q, axis=0)
        length = xp.where(curvature > 0, rho / xp.where(curvature > 0, curvature, 1.0), 0.0)
        x += length[None, :] * p
        q *= length[None, :]
        r -= q
        del q
        z = project(precondition(r))
        new = xp.sum(r * z, axis=0)
        p *= xp.where(rho > 0, new / xp.where(rho > 0, rho, 1.0), 0.0)[None, :]
        p += z
        del z
        rho = new
    # One more pass gives the predictions, the unpenalised part and the residual as it truly is.
    del precondition, p, r
    y = state.spread(targets)
    product = multiply(x)
    predictions = state.gather(product, t)
    weighted = product * roots
    residual = project(y - weighted) - alpha * x
    norms = namespace.to_numpy(xp.sqrt(xp.sum(residual * residual, axis=0))).astype(float)
    if not float(norms.max()) <= wanted * 10:
        raise MethodGaveUpError(
            f"krylov: conjugate gradients stopped at a residual {float(norms.max()) / wanted:.1e} "
            f'times too large for alpha={alpha:g}: use method="auto", or a larger alpha'
        )
    if directions:
        along = xp.stack([xp.sum(direction * (y - weighted), axis=0) for direction in directions])
        predictions = predictions + state.gather_unpenalised(along, t)
    bounds = state.bounds(targets, alphas)
    return certified(
        namespace,
        predictions[None, ...],
        conditions=bounds.conditions,
        bound=bounds.of(norms.reshape(1, len(state.folds), t)),
        scale=bounds.scale,
        folds=state.folds,
    )

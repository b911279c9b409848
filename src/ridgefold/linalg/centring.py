"""Unpenalised columns as a projected matrix.

The bordered system of a model with unpenalised columns S = W^½F (a bias is the column s = √w),

    [ 0   Sᵀ        ] [ β ]   [ 0 ]
    [ S   K + αI    ] [ a ] = [ y ]

is, with an orthonormal basis Q of what the columns of S span and P = I − QQᵀ, the ordinary system

    (P K P + τ QQᵀ + αI) a = P y,      β = T Qᵀ(y − K a)

for any τ ≥ 0 (`linalg.unpenalised` has T): its right-hand side has no part in Q, so neither has a,
and τ only keeps the matrix regular there. So q columns cost one update of K of rank 2q, and every
method that knows (K + αI)⁻¹ knows the bordered inverse: its lower-right block is

    C = (P K P + τ QQᵀ + αI)⁻¹ − QQᵀ/(τ + α).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ridgefold.linalg.namespace import Array, Namespace
from ridgefold.linalg.symmetric import Factor
from ridgefold.linalg.unpenalised import Unpenalised

_STEP = 64
"""Rows worked on at once: at this height the temporary products stay in the cache."""


@dataclass(frozen=True)
class Centring:
    """What is needed to undo the projection: the space, K Q and τ."""

    space: Unpenalised
    product: Array
    """K Q."""
    shift: float
    """The eigenvalue τ that every column of Q has in the projected matrix."""

    @property
    def namespace(self) -> Namespace:
        return self.space.namespace

    def project(self, y: Array) -> Array:
        """P y for a matrix y."""
        return self.space.project(y)

    def coefficients(self, y: Array, solution: Array) -> Array:
        """β (q, t) for the solution of the projected system."""
        return self.space.coefficients(self.space.basis.T @ y - self.product.T @ solution)

    def along(self, alpha: float) -> float:
        """What every column of Q contributes to the inverse and must not: 1/(τ + α)."""
        return 1.0 / (self.shift + alpha)

    def take_off_block(self, block: Array, position: Any, alpha: float) -> None:
        """Make a block of the inverse on the diagonal one of C, in place."""
        own = self.space.taken(position)
        block -= (self.along(alpha) * own) @ own.T

    def take_off_product(self, product: Array, position: Any, d: Array, alpha: float) -> None:
        """Make the columns `position` of the inverse, times d, those of C, in place."""
        product -= self.along(alpha) * (self.space.basis @ (self.space.taken(position).T @ d))

    def take_off_diagonal(self, diagonal: Array, alpha: float) -> Array:
        """The diagonal of C from that of the inverse."""
        return diagonal - self.along(alpha) * self.namespace.squares_of_rows(self.space.basis)

    def take_off_all(self, inverse: Array, alpha: float) -> None:
        """Make the whole inverse C, in place."""
        basis, scale = self.space.basis, self.along(alpha)
        for start in range(0, inverse.shape[0], 512):
            rows = slice(start, min(start + 512, inverse.shape[0]))
            inverse[rows, :] -= (scale * basis[rows, :]) @ basis.T


def multiply_symmetric(namespace: Namespace, lower: Array, v: Array) -> Array:
    """K v for a symmetric K of which only the lower triangle is filled; v may have columns."""
    n = lower.shape[0]
    out = namespace.zeros(v.shape, v)
    for start in range(0, n, _STEP):
        stop = min(start + _STEP, n)
        left = lower[start:stop, :start]
        corner = lower[start:stop, start:stop]
        corner = namespace.xp.tril(corner) + namespace.xp.tril(corner, k=-1).T
        out[start:stop, ...] += left @ v[:start, ...] + corner @ v[start:stop, ...]
        out[:start, ...] += left.T @ v[start:stop, ...]
    return out


def centre_in_place(
    namespace: Namespace, lower: Array, space: Unpenalised, shift: float
) -> Centring:
    """Replace K (lower triangle) by P K P + shift·QQᵀ."""
    basis = space.basis
    if space.rank == 1:  # a product with a vector moves K through memory at twice the pace
        product = multiply_symmetric(namespace, lower, basis[:, 0])[:, None]
    else:
        product = multiply_symmetric(namespace, lower, basis)
    inner = basis.T @ product
    inner = 0.25 * (inner + inner.T)
    namespace.add_to_diagonal_in_place(inner, 0.5 * shift)
    g = product - basis @ inner
    n, xp = lower.shape[0], namespace.xp
    # K − QGᵀ − GQᵀ as one product of 2r columns: a single pass over K.
    left = xp.concat([basis, g], axis=1)
    right = namespace.copy(xp.concat([g, basis], axis=1).T)
    for start in range(0, n, _STEP):
        stop = min(start + _STEP, n)
        block = lower[start:stop, :stop]
        block -= left[start:stop, :] @ right[:, :stop]
    return Centring(space, product, shift)


def centre(namespace: Namespace, lower: Array, space: Unpenalised) -> Centring:
    """`centre_in_place` with a τ between the mean and the largest possible eigenvalue."""
    trace = float(namespace.xp.sum(namespace.diagonal(lower)))
    return centre_in_place(namespace, lower, space, abs(trace) / math.sqrt(lower.shape[0]))


def solve_centred(factor: Factor, centring: Centring | None, right: Array) -> tuple[Array, Array]:
    """ã and β (q, t) from a factorised system matrix; β has no rows without a centring."""
    if centring is None:
        return factor.solve(right), factor.namespace.zeros((0, right.shape[1]), right)
    # Rounding leaves a part in Q, which the border of the system says is zero.
    solution = centring.project(factor.solve(centring.project(right)))
    return solution, centring.coefficients(right, solution)

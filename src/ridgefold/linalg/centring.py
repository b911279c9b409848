"""The unpenalised bias as a centred matrix.

The bordered system of an LS-SVM, with s = √w (all ones without weights),

    [ 0   sᵀ        ] [ b ]   [ 0 ]
    [ s   K + αI    ] [ a ] = [ y ]

is, with u = s/‖s‖ and P = I − uuᵀ, the ordinary system

    (P K P + τ uuᵀ + αI) a = P y,      b = uᵀ(y − K a)/‖s‖

for any τ ≥ 0: its right-hand side has no part along u, so neither has a, and τ only
keeps the matrix regular along u. So a bias costs one rank-two update of K, and every
method that knows (K + αI)⁻¹ knows the bordered inverse: its lower-right block is

    C = (P K P + τ uuᵀ + αI)⁻¹ − uuᵀ/(τ + α).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ridgefold.linalg.namespace import Array, Namespace
from ridgefold.linalg.symmetric import Factor

_STEP = 64
"""Rows worked on at once: at this height the temporary products stay in the cache."""


@dataclass(frozen=True)
class Centring:
    """What is needed to undo the centring: u, ‖s‖, K u and τ."""

    namespace: Namespace
    direction: Array
    """The unit vector u = s/‖s‖."""
    scale: float
    """‖s‖."""
    product: Array
    """K u."""
    shift: float
    """The eigenvalue τ that u has in the centred matrix."""

    def project(self, y: Array) -> Array:
        """P y for a matrix y."""
        return y - self.direction[:, None] * (self.direction @ y)[None, :]

    def bias(self, y: Array, coefficients: Array) -> Array:
        """b for the solution `coefficients` of the centred system."""
        return (self.direction @ y - self.product @ coefficients) / self.scale


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


def centre_in_place(namespace: Namespace, lower: Array, s: Array, shift: float) -> Centring:
    """Replace K (lower triangle) by P K P + shift·uuᵀ."""
    scale = namespace.norm(s)
    u = s / scale
    product = multiply_symmetric(namespace, lower, u)
    g = product - (0.5 * (float(u @ product) + shift)) * u
    n = lower.shape[0]
    # K − ugᵀ − guᵀ as one product of two columns: a single pass over K.
    left, right = namespace.xp.stack([u, g], axis=1), namespace.xp.stack([g, u])
    for start in range(0, n, _STEP):
        stop = min(start + _STEP, n)
        block = lower[start:stop, :stop]
        block -= left[start:stop, :] @ right[:, :stop]
    return Centring(namespace, u, scale, product, shift)


def centre_for_bias(namespace: Namespace, lower: Array, s: Array) -> Centring:
    """`centre_in_place` with a τ between the mean and the largest possible eigenvalue."""
    trace = float(namespace.xp.sum(namespace.diagonal(lower)))
    return centre_in_place(namespace, lower, s, abs(trace) / math.sqrt(lower.shape[0]))


def solve_with_bias(factor: Factor, centring: Centring | None, right: Array) -> tuple[Array, Array]:
    """ã and b from a factorised system matrix; b is zero without a centring."""
    if centring is None:
        return factor.solve(right), factor.namespace.zeros(right.shape[1], right)
    # Rounding leaves a part along u, which the border of the system says is zero.
    solution = centring.project(factor.solve(centring.project(right)))
    return solution, centring.bias(right, solution)

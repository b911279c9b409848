"""Means of slopes and of differences as linear functionals of f.

f is linear in its coefficients, so that a mean slope Σ_r u_r ∂f(x_r)/∂x_j is aᵀc + φᵀβ with
a_i = Σ_r u_r ∂k(x_r, x_i)/∂x_rj (Hainmueller and Hazlett 2014), and a mean difference likewise with
k(x', x_i) − k(x, x_i). Applied to both arguments of k, they give the prior variance κ that a
posterior variance needs (`exact.posterior`). Rough kernels have no variance of slopes: NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.errors import NoSlopeError
from ridgefold.kernels import Kernel, KernelGram
from ridgefold.kernels.slope_gram import SlopeGram
from ridgefold.linalg import Array, namespace_of


@dataclass(frozen=True)
class Functionals:
    """Several linear functionals of f."""

    a: Array
    """ℓk(·, x_i) at every training row, of shape (n, p)."""
    phi: Array
    """ℓF, of shape (q, p)."""
    prior: np.ndarray | None = None
    """ℓℓk, of shape (p,); NaN where the kernel is too rough for it, None if it was not asked for.
    """


def mean_slopes(
    kernel: Kernel, X: Array, training: Array, shares: Array, columns: np.ndarray, *, prior: bool
) -> tuple[Array, np.ndarray | None]:
    """a and κ of Σ_r u_r ∂f(x_r)/∂x_rj for some columns j, `shares` u of shape (m,)."""
    namespace = namespace_of(training)
    every = shares[:, None] * namespace.ones((1, int(X.shape[1])), shares)
    chosen = namespace.indices(columns, shares)
    a = SlopeGram(kernel, X, training).column_slopes(every)
    variance = None
    if prior:
        try:
            variance = namespace.to_numpy(SlopeGram(kernel, X, X).mixed_sums(every, every))[columns]
        except NoSlopeError:
            variance = np.full(len(columns), np.nan)
    return namespace.xp.take(a, chosen, axis=1), variance


def weighted_values(kernel: Kernel, X: Array, training: Array, weights: Array) -> Array:
    """Σ_r w_rp k(x_r, x_i), of shape (n, p) for weights of shape (m, p)."""
    return KernelGram(kernel, training, X).matmat(weights)


def mean_difference(
    kernel: Kernel,
    high: Array,
    low: Array,
    training: Array,
    shares: tuple[Array, Array],
    *,
    prior: bool,
) -> tuple[Array, np.ndarray | None]:
    """a, of shape (n, 1), and κ of Σ_r [u_r f(high_r) − v_r f(low_r)]."""
    up, down = (each[:, None] for each in shares)
    a = weighted_values(kernel, high, training, up) - weighted_values(kernel, low, training, down)
    if not prior:
        return a, None
    # One product with the kernel of all the rows twice: what cancels is subtracted in one sum.
    namespace = namespace_of(training)
    both = namespace.xp.concat([high, low], axis=0)
    signed = namespace.xp.concat([up, -down], axis=0)
    product = KernelGram(kernel, both).matmat(signed)
    return a, np.array([float(namespace.xp.sum(signed * product))])

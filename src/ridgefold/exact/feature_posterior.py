"""Variances of a fit whose kernel has few features, without the kernel matrix.

With k(x, x') = φ(x)ᵀφ(x'), f = φᵀv + Fβ, v of variance s²I, β without a prior and noise of variance
s²α/w, coefficients have given the targets the covariance s²αA⁻¹, A = ZᵀWZ + α·diag(I, 0) with
Z = [Φ, F] (Bayesian linear regression; Rasmussen and Williams 2006, section 2.1). It is the
posterior of `exact.posterior` at the cost of p² numbers for p features and a pass over the rows:

    Var f(x) = s²α·zᵀA⁻¹z,    s² = [Σ w(y − f)² + α‖v‖²]/(α(n − q)).
"""

from __future__ import annotations

from dataclasses import dataclass

from ridgefold.linalg import Array, Namespace

_LEAST_ROWS = 2.0
"""Rows for every coefficient at least: with fewer the kernel matrix is as small."""


def pays(n_rows: int, n_features: int | None, n_unpenalised: int, alpha: float) -> bool:
    """Whether features are to be preferred to the kernel matrix, and can be used at all."""
    if n_features is None or alpha <= 0:
        return False
    return n_rows >= _LEAST_ROWS * (n_features + n_unpenalised)


@dataclass(frozen=True)
class FeaturePosterior:
    """The Gaussian process behind one ridge system, in its features."""

    namespace: Namespace
    factor: Array
    """The lower Cholesky factor of A."""
    alpha: float
    prior_variances: Array
    """s² of every target."""

    def variances(self, features: Array, basis: Array) -> Array:
        """Var f(x)/s² of rows with these features (m, p) and unpenalised columns (m, q)."""
        z = self.namespace.xp.concat([features, basis], axis=1)
        half = self.namespace.solve_triangular(self.factor, z.T)
        return self.alpha * self.namespace.xp.sum(half * half, axis=0)


def feature_posterior(
    namespace: Namespace,
    features: Array,
    basis: Array,
    targets: Array,
    *,
    weights: Array | None,
    alpha: float,
) -> FeaturePosterior | None:
    """From all rows of positive weight; None where A has no Cholesky factor."""
    xp, p = namespace.xp, int(features.shape[1])
    Z = xp.concat([features, basis], axis=1)
    weighted = Z if weights is None else Z * weights[:, None]
    A = weighted.T @ Z
    penalty = namespace.zeros(int(A.shape[0]), A)
    penalty[:p] = alpha
    namespace.add_to_diagonal_in_place(A, penalty)
    if not namespace.cholesky_in_place(A):
        return None
    coefficients = namespace.solve_cholesky(A, weighted.T @ targets)
    left = targets - Z @ coefficients
    squares = left * left if weights is None else left * left * weights[:, None]
    own = coefficients[:p, :]
    total = xp.sum(squares, axis=0) + alpha * xp.sum(own * own, axis=0)
    free = int(targets.shape[0]) - int(basis.shape[1])
    return FeaturePosterior(namespace, A, alpha, total / (alpha * free))

"""The restricted marginal likelihood of one kernel and ridge, and its gradient.

With A = K + alpha·diag(1/w), H = A⁻¹, unpenalised columns F and C = H − HF(FᵀHF)⁻¹FᵀH, and the
variance s² = yᵀCy/(n − q) that suits best, minus its logarithm is, for every target,

    ½[(n−q)(log(2πs²) + 1) + log|A| + log|FᵀHF| − log|FᵀF|].

From d(log|A| + log|FᵀHF|) = tr(C dA) and d(yᵀCy) = −aᵀdA a with a = Cy it changes by tr(M dA),

    M = ½[C − aaᵀ/s²],

added up over targets: the same kind of contraction as that of the held-out error (`criterion`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from ridgefold.kernels.distances import DistanceKernel
from ridgefold.kernels.scale_gradient import DifferentiableGram
from ridgefold.linalg import Array, namespace_of
from ridgefold.metric.families import with_scales

_BOUNDS = (-5.0, 7.0)
"""Log scales, from where an ascent starts: a column with a thousand times its scale has no part."""
_ALPHA_BOUNDS = (1e-6, 1e3)
"""Ridges: kernels whose values are 1 on the diagonal are singular to rounding not far below."""
_MOST_STEPS = 40
"""Steps of L-BFGS; on tables of ten columns it stopped by itself after 15 to 30."""
_SINGULAR = 1e3
"""Value given to parameters without a Cholesky factor: the line search turns back."""


@dataclass(frozen=True)
class Likelihood:
    """The logarithm of the likelihood, all targets together, and its gradient."""

    value: float
    scale_gradient: np.ndarray
    """∂value/∂log ℓ_j, one a column."""
    alpha_gradient: float
    """∂value/∂log alpha."""


class MarginalLikelihood:
    """The restricted likelihood of fixed targets, as a function of kernel and ridge.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n, t)
    basis : array of shape (n, q)
        The unpenalised columns F: one of ones for a bias.
    weights : array of shape (n,), optional
        Each > 0.
    """

    def __init__(self, X: Array, y: Array, basis: Array, weights: Array | None = None) -> None:
        self.namespace = namespace = namespace_of(X)
        double = namespace.double()
        self._X, self._y, self._basis = (namespace.astype(each, double) for each in (X, y, basis))
        self._inverse_weights = None
        if weights is not None:
            self._inverse_weights = 1.0 / namespace.astype(weights, double)
        self._gram = DifferentiableGram(self._X)
        columns = namespace.to_numpy(self._basis)
        self._constant = 0.0
        if columns.shape[1]:
            self._constant = -float(np.linalg.slogdet(columns.T @ columns)[1])

    def value_and_gradient(self, kernel: DistanceKernel, alpha: float) -> Likelihood | None:
        """None where K + alpha·I has no Cholesky factor, or targets leave nothing to explain."""
        namespace, xp = self.namespace, self.namespace.xp
        n, q, t = int(self._X.shape[0]), int(self._basis.shape[1]), int(self._y.shape[1])
        A = self._gram.evaluate(kernel)
        ridge = alpha if self._inverse_weights is None else self._inverse_weights * alpha
        namespace.add_to_diagonal_in_place(A, ridge)
        if n <= q or not namespace.cholesky_in_place(A):
            return None
        determinant = 2.0 * float(xp.sum(xp.log(namespace.diagonal(A)))) + self._constant
        namespace.inverse_from_cholesky_in_place(A)
        namespace.fill_upper_in_place(A)
        C = A
        if q:
            along = C @ self._basis
            inner = self._basis.T @ along
            if not namespace.cholesky_in_place(inner):
                return None
            determinant += 2.0 * float(xp.sum(xp.log(namespace.diagonal(inner))))
            half = namespace.solve_triangular(inner, along.T)
            C -= half.T @ half
        a = C @ self._y
        variances = xp.sum(self._y * a, axis=0) / (n - q)
        if not (namespace.all_finite(variances) and float(xp.min(variances)) > 0.0):
            return None
        logs = float(xp.sum(xp.log(variances)))
        value = -0.5 * ((n - q) * (t * (math.log(2.0 * math.pi) + 1.0) + logs) + t * determinant)
        left = 0.5 * a / variances[None, :]
        C *= -0.5 * t
        by_scale = self._gram.contract(C, left, a)
        diagonal = namespace.diagonal(C) + xp.sum(left * a, axis=1)
        return Likelihood(value, namespace.to_numpy(by_scale), float(xp.sum(diagonal * ridge)))


def ascend(
    likelihood: MarginalLikelihood,
    kernel: DistanceKernel,
    alpha: float,
    *,
    scale_of: np.ndarray,
    n_targets: int,
    look_at_clock: Callable[[], None] | None = None,
) -> tuple[DistanceKernel, float, float]:
    """Kernel and ridge of the largest likelihood nearby, and its logarithm.

    Parameters
    ----------
    scale_of : array of shape (n_columns,)
        The number of every column's scale: columns with one number keep one scale, in the ratio
        that they have.
    """
    d = len(scale_of)
    start = np.log(np.broadcast_to(np.asarray(kernel.length_scale, dtype=np.float64), (d,)))
    size = n_targets * int(likelihood._X.shape[0])
    best: list[tuple[float, DistanceKernel, float]] = []

    def objective(values: np.ndarray) -> tuple[float, np.ndarray]:
        if look_at_clock is not None:
            look_at_clock()
        here = with_scales(kernel, np.exp(start + values[:-1][scale_of]))
        ridge = math.exp(values[-1])
        found = likelihood.value_and_gradient(here, ridge)
        if found is None or not math.isfinite(found.value):
            return _SINGULAR, np.zeros_like(values)
        best.append((found.value, here, ridge))
        by_scale = np.bincount(scale_of, weights=found.scale_gradient)
        return -found.value / size, -np.append(by_scale, found.alpha_gradient) / size

    least, most = map(math.log, _ALPHA_BOUNDS)
    log_alpha = min(max(math.log(alpha), least), most)
    first = np.append(np.zeros(int(scale_of.max()) + 1), log_alpha)
    minimize(
        objective,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=[_BOUNDS] * (len(first) - 1) + [(least, most)],
        options={"maxiter": _MOST_STEPS},
    )
    if not best:
        return kernel, alpha, -math.inf
    value, found, ridge = max(best, key=lambda each: each[0])
    return found, ridge, value

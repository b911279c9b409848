"""Preconditioned conjugate gradients: K is never stored, only multiplied with.

The preconditioner is (F Fᵀ + αI)⁻¹ with F a partial pivoted Cholesky factor of K; all
targets with the same α move side by side, so that a pass over K serves them all. What is
reported is the true residual y − (K + αI)a, computed afresh, not the recurrence's; with it
|f(x) − f*(x)| ≤ √k(x,x)·‖residual‖/(2√α) for the exact solution f* without a bias.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from ridgefold.errors import ConvergenceWarning, NumericalError
from ridgefold.linalg import Array, Namespace
from ridgefold.linalg.pivoted_cholesky import pivoted_cholesky
from ridgefold.linalg.symmetric import factorise
from ridgefold.records import Cost, FittedModel, Problem
from ridgefold.solvers.base import RidgeSystem, for_each_alpha

_NOMINAL_STEPS = 100
_MOST_STEPS = 2000
_RESTARTS = 3
_BLOCK_BYTES = float(1 << 25)

Operator = Callable[[Array], Array]


def preconditioner_rank(n: int) -> int:
    """Columns of the preconditioner: enough to matter, never more memory than a few vectors."""
    return min(n, 50 + int(2 * n**0.5))


class ConjugateGradient:
    """For systems whose matrix does not fit in memory; right to a tolerance, with a certificate."""

    name = "conjugate_gradient"
    exact = False
    may_give_up = False
    last_resort = True

    def can_run(self, problem: Problem) -> str | None:
        if problem.smallest_alpha <= 0:
            return "alpha = 0 may leave the system singular, where the iteration does not converge"
        return None

    def cost(self, problem: Problem) -> Cost:
        n, t, rank = problem.n_rows, problem.n_targets, preconditioner_rank(problem.n_rows)
        passes = _NOMINAL_STEPS * problem.n_alphas
        return Cost(
            flops={
                "kernel": passes * float(n) ** 2 * max(problem.n_columns, 1),
                "product": passes * 2.0 * n**2 * t + 2.0 * n * rank**2,
            },
            peak_bytes=problem.itemsize * n * (3.0 * rank + 10 * t + 3 * problem.n_columns)
            + 2 * _BLOCK_BYTES,
        )

    def solve(self, system: RidgeSystem) -> FittedModel:
        namespace, gram = system.namespace, system.weighted_gram()
        direction, scale = system.bias_direction(), 1.0
        if direction is not None:
            scale = namespace.norm(direction)
            direction = direction / scale

        def project(v: Array) -> Array:
            if direction is None:
                return v
            return v - direction[:, None] * (direction @ v)[None, :]

        def multiply(v: Array) -> Array:
            return gram.matmat(v, limit=_BLOCK_BYTES)

        factor = project(
            pivoted_cholesky(
                namespace,
                gram.column,
                gram.diagonal(),
                rank=preconditioner_rank(gram.shape[0]),
                trace_tolerance=0.1 * float(system.alphas.min()),
            ).factor
        )

        def solve_for(alpha: float, right: Array) -> tuple[Array, Array, Array]:
            solution, residual = _conjugate_gradients(
                namespace,
                lambda v: project(multiply(v)) + alpha * v,
                _woodbury(namespace, factor, alpha),
                project(right),
                system.tolerance,
            )
            intercept = namespace.zeros(right.shape[1], right)
            if direction is not None:
                intercept = (direction @ right - direction @ multiply(solution)) / scale
            return solution, intercept, residual

        solution, intercept, residual = for_each_alpha(system, system.weighted_targets(), solve_for)
        return FittedModel(system.unweighted(solution), intercept, certificate=residual)


def _woodbury(namespace: Namespace, factor: Array, alpha: float) -> Operator:
    """v ↦ (F Fᵀ + αI)⁻¹v = (v − F(αI + FᵀF)⁻¹Fᵀv)/α."""
    if factor.shape[1] == 0:
        return lambda v: v / alpha
    small = factor.T @ factor

    def refill(storage: Array) -> None:
        storage[...] = factor.T @ factor
        namespace.add_to_diagonal_in_place(storage, alpha)

    namespace.add_to_diagonal_in_place(small, alpha)
    inner = factorise(namespace, small, refill)
    return lambda v: (v - factor @ inner.solve(factor.T @ v)) / alpha


def _conjugate_gradients(
    namespace: Namespace, apply: Operator, precondition: Operator, right: Array, tolerance: float
) -> tuple[Array, Array]:
    """Solve for all columns at once; returns the solution and the true residual norms.

    The recurrence's residual drifts from the true one, so the iteration restarts from the
    true residual until that is small, or stops improving.
    """
    xp = namespace.xp
    norms = xp.sqrt(xp.sum(right * right, axis=0))
    target = tolerance * xp.where(norms > 0, norms, xp.ones_like(norms))
    solution = namespace.zeros(right.shape, right)
    residual, best = right, norms
    steps = 0
    for _ in range(_RESTARTS):
        correction, taken = _descend(namespace, apply, precondition, residual, target)
        steps += taken
        solution = solution + correction
        residual = right - apply(solution)
        best = xp.sqrt(xp.sum(residual * residual, axis=0))
        if not namespace.all_finite(best):
            raise NumericalError(
                "conjugate gradients broke down: the kernel matrix is not positive definite, or "
                'its values overflow; use solver="cholesky", or scale the columns of X'
            )
        if bool(xp.all(best <= target)):
            return solution, best
    worst = float(xp.max(best / xp.where(norms > 0, norms, xp.ones_like(norms))))
    warnings.warn(
        f"conjugate gradients stopped after {steps} steps with a relative residual of "
        f"{worst:.1e}, above tol={tolerance:.1e}: use a larger alpha or tol, or "
        'solver="cholesky" if its memory can be had',
        ConvergenceWarning,
        stacklevel=2,
    )
    return solution, best


def _descend(
    namespace: Namespace, apply: Operator, precondition: Operator, right: Array, target: Array
) -> tuple[Array, int]:
    xp = namespace.xp
    x = namespace.zeros(right.shape, right)
    r = namespace.copy(right)
    z = precondition(r)
    p = namespace.copy(z)
    rho = xp.sum(r * z, axis=0)
    for step in range(_MOST_STEPS):
        if bool(xp.all(xp.sqrt(xp.sum(r * r, axis=0)) <= 0.5 * target)):
            return x, step
        q = apply(p)
        curvature = xp.sum(p * q, axis=0)
        # A column that has converged has nothing left to move along.
        length = xp.where(curvature > 0, rho / xp.where(curvature > 0, curvature, 1.0), 0.0)
        x = x + length[None, :] * p
        r = r - length[None, :] * q
        z = precondition(r)
        new = xp.sum(r * z, axis=0)
        p = z + xp.where(rho > 0, new / xp.where(rho > 0, rho, 1.0), 0.0)[None, :] * p
        rho = new
    return x, _MOST_STEPS

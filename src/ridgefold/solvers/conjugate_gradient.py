"""Preconditioned conjugate gradients: K is never stored, only multiplied with.

The preconditioner is (F Fᵀ + αI)⁻¹ with F a partial pivoted Cholesky factor of K; all
targets with the same α move side by side, so that a pass over K serves them all. What is
reported is the true residual y − (K + αI)a, computed afresh, not the recurrence's; with it
|f(x) − f*(x)| ≤ √k(x,x)·‖residual‖/(2√α) for the exact solution f* without unpenalised columns;
`crossval.shared.masked` has the bound with them.
"""

from __future__ import annotations

from ridgefold.errors import ConvergenceWarning, NumericalError
from ridgefold.linalg import Array, Namespace
from ridgefold.linalg.conjugate_gradients import Operator, conjugate_gradients
from ridgefold.linalg.pivoted_cholesky import pivoted_cholesky
from ridgefold.linalg.symmetric import factorise
from ridgefold.linalg.units import units_of_columns
from ridgefold.notices import warn
from ridgefold.records import Cost, FittedModel, Problem
from ridgefold.solvers.base import RidgeSystem, for_each_alpha

_NOMINAL_STEPS = 100
"""Steps that plans count on: with this preconditioner, a usual number to the default tolerance."""
_BLOCK_BYTES = float(1 << 23)
"""Size of the blocks of K that are multiplied: large enough for fast products, and small beside
the vectors of the iteration."""
_NOTHING_GAINED = 0.5
"""A relative residual above this is about that of the zero model: no digit is right."""


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
                "kernel": passes * float(n) ** 2,
                "product": passes * 2.0 * n**2 * t + 2.0 * n * rank**2,
                "calls": 20.0 * passes,
            },
            size=n,
            peak_bytes=problem.itemsize * n * (3.0 * rank + 14 * t + 3 * problem.n_columns)
            + 2 * _BLOCK_BYTES,
        )

    def solve(self, system: RidgeSystem) -> FittedModel:
        namespace, gram = system.namespace, system.weighted_gram()
        space = system.unpenalised()

        def project(v: Array) -> Array:
            return v if space is None else space.project(v)

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
            precondition = _woodbury(namespace, factor, alpha)
            # Projecting once leaves rounding error in the space where targets are far from zero.
            # Divided by a small α, that error is no small part of the solution.
            solution, residual = _conjugate_gradients(
                namespace,
                lambda v: project(multiply(v)) + alpha * v,
                lambda v: project(precondition(v)),
                project(project(right)),
                system.tolerance,
            )
            unpenalised = namespace.zeros((0, right.shape[1]), right)
            if space is not None:
                unpenalised = space.coefficients(space.basis.T @ (right - multiply(solution)))
            return solution, unpenalised, residual

        right = system.weighted_targets()
        units = units_of_columns(namespace, right)
        solution, unpenalised, residual = for_each_alpha(system, right / units[None, :], solve_for)
        solution = system.unweighted(solution) * units[None, :]
        unpenalised = unpenalised * units[None, :]
        return system.model(solution, space, unpenalised, certificate=residual * units)


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
    """The solution and the true residual norms; a warning if they are above the tolerance.

    Raises `NumericalError` if the best solution is no better than zero.
    """
    xp = namespace.xp
    norms = xp.sqrt(xp.sum(right * right, axis=0))
    size = xp.where(norms > 0, norms, xp.ones_like(norms))
    solved = conjugate_gradients(namespace, apply, precondition, right, tolerance * size)
    left = float(xp.max(solved.residual / size))
    if left > max(_NOTHING_GAINED, tolerance):
        raise NumericalError(
            f"conjugate gradients came to nothing: after {solved.steps} steps the best relative "
            f"residual is {left:.1e}. K + alpha·I is singular to rounding, or K is not positive "
            'semi-definite: use a larger alpha, or solver="cholesky" if its memory can be had'
        )
    if not solved.converged:
        warn(
            f"conjugate gradients stopped after {solved.steps} steps with a relative residual of "
            f"{left:.1e}, above tol={tolerance:.1e}: use a "
            'larger alpha or tol, or solver="cholesky" if its memory can be had',
            ConvergenceWarning,
        )
    return solved.solution, solved.residual

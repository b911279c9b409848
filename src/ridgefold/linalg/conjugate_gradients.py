"""Preconditioned conjugate gradients for several right-hand sides side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ridgefold.errors import NumericalError
from ridgefold.linalg.namespace import Array, Namespace

Operator = Callable[[Array], Array]

MOST_STEPS = 2000
"""A system that has not converged after so many steps is better factorised or preconditioned."""
_RESTARTS = 3
"""Descents from the true residual. One does where the system is well conditioned; each further one
takes off what the recurrence's residual has drifted from the true one."""
_FAR_BEHIND = 2.0
"""A descent may end with a residual larger than the least it has passed. Beyond this factor both
places are looked at."""


@dataclass(frozen=True)
class Solved:
    """The best solution that the iteration has come by."""

    solution: Array
    residual: Array
    """Norms of the true residuals, one a column, computed from the solution."""
    steps: int
    converged: bool


def conjugate_gradients(
    namespace: Namespace,
    apply: Operator,
    precondition: Operator,
    right: Array,
    target: Array,
    *,
    start: Array | None = None,
    most_steps: int = MOST_STEPS,
    progress: Callable[[int, Array], None] | None = None,
) -> Solved:
    """Solve A x = right for all columns at once, until every residual norm is at its target.

    The recurrence's residual drifts from the true one, so the iteration restarts from the true
    residual until that is small, or stops improving. Where A is singular to rounding the iteration
    may run away: what is returned is the best that it has come by, column by column. `start` is a
    first guess; `progress(step, residual norms)` is called after every step.
    """
    xp = namespace.xp

    def measured(solution: Array, residual: Array) -> _Iterate:
        norms = xp.sqrt(xp.sum(residual * residual, axis=0))
        # A minimum at the solution; the iteration lowers it in every step, but for rounding.
        objective = -0.5 * xp.sum(solution * (right + residual), axis=0)
        return _Iterate(solution, residual, norms, objective)

    if start is None:
        best = measured(namespace.zeros(right.shape, right), right)
    else:
        best = measured(start, right - apply(start))
    steps = 0
    for _ in range(_RESTARTS):
        if bool(xp.all(best.norms <= target)) or steps >= most_steps:
            break
        before = best
        corrections, taken = _descend(
            namespace,
            apply,
            precondition,
            before.residual,
            target,
            most_steps=most_steps - steps,
            progress=progress,
        )
        steps += taken
        gained = broken = False
        for correction in corrections:
            solution = before.solution + correction
            new = measured(solution, right - apply(solution))
            better = new.better_than(best, namespace)
            broken = broken or not namespace.all_finite(new.norms)
            gained = gained or bool(xp.any(better))
            best = new.where(better, best, namespace)
        if not gained:
            if broken:
                raise NumericalError(
                    "conjugate gradients broke down: the kernel matrix is not positive definite, "
                    'or its values overflow; use solver="cholesky", or scale the columns of X'
                )
            break
    return Solved(best.solution, best.norms, steps, bool(xp.all(best.norms <= target)))


@dataclass(frozen=True)
class _Iterate:
    """A solution with its true residual, one column for every right-hand side."""

    solution: Array
    residual: Array
    norms: Array
    """Norms of the columns of the residual."""
    objective: Array
    """The objective xᵀAx/2 − xᵀb of every column, which a step along the gradient lowers."""

    def better_than(self, other: _Iterate, namespace: Namespace) -> Array:
        """Which columns have a smaller residual, or a lower objective by more than rounding.

        A step may raise the residual though it brings the solution closer; only what is worse in
        both respects has run away.
        """
        xp = namespace.xp
        rounding = 100.0 * namespace.eps(self.norms) * xp.abs(other.objective)
        closer = (self.norms < other.norms) | (self.objective < other.objective - rounding)
        return closer & xp.isfinite(self.norms) & xp.isfinite(self.objective)

    def where(self, taken: Array, other: _Iterate, namespace: Namespace) -> _Iterate:
        """These columns where they are taken, those of `other` elsewhere."""
        xp = namespace.xp
        if bool(xp.all(taken)):
            return self
        return _Iterate(
            xp.where(taken[None, :], self.solution, other.solution),
            xp.where(taken[None, :], self.residual, other.residual),
            xp.where(taken, self.norms, other.norms),
            xp.where(taken, self.objective, other.objective),
        )


def _descend(
    namespace: Namespace,
    apply: Operator,
    precondition: Operator,
    right: Array,
    target: Array,
    *,
    most_steps: int,
    progress: Callable[[int, Array], None] | None,
) -> tuple[list[Array], int]:
    """Where a descent from zero ends and, if that is far behind it, where its residual was least.

    The residuals are those of the recurrence.
    """
    xp = namespace.xp
    x = namespace.zeros(right.shape, right)
    r = namespace.copy(right)
    z = precondition(r)
    p = namespace.copy(z)
    rho = xp.sum(r * z, axis=0)
    least_x, least = x, xp.sqrt(xp.sum(r * r, axis=0))
    norms = least
    for step in range(most_steps):
        if progress is not None:
            progress(step, norms)
        if bool(xp.all(norms <= 0.5 * target)):
            return [x], step
        q = apply(p)
        curvature = xp.sum(p * q, axis=0)
        # A column that has converged has nothing left to move along.
        length = xp.where(curvature > 0, rho / xp.where(curvature > 0, curvature, 1.0), 0.0)
        x = x + length[None, :] * p
        r = r - length[None, :] * q
        norms = xp.sqrt(xp.sum(r * r, axis=0))
        if not namespace.all_finite(norms):
            return [least_x], step + 1
        least_x = xp.where((norms < least)[None, :], x, least_x)
        least = xp.minimum(norms, least)
        z = precondition(r)
        new = xp.sum(r * z, axis=0)
        p = z + xp.where(rho > 0, new / xp.where(rho > 0, rho, 1.0), 0.0)[None, :] * p
        rho = new
    behind = bool(xp.any((norms > _FAR_BEHIND * least) & (norms > target)))
    return [x, least_x] if behind else [x], most_steps

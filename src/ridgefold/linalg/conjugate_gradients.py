"""Preconditioned conjugate gradients for several right-hand sides side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ridgefold.errors import NumericalError
from ridgefold.linalg.namespace import Array, Namespace

Operator = Callable[[Array], Array]

MOST_STEPS = 2000
_RESTARTS = 3


@dataclass(frozen=True)
class Solved:
    """What the iteration reached."""

    solution: Array
    residual: Array
    """True residual norms, one a column, computed afresh."""
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
    residual until that is small, or stops improving. `start` is a first guess;
    `progress(step, residual norms)` is called after every step.
    """
    xp = namespace.xp
    solution = namespace.zeros(right.shape, right) if start is None else start
    residual = right if start is None else right - apply(start)
    norms = xp.sqrt(xp.sum(residual * residual, axis=0))
    steps = 0
    for _ in range(_RESTARTS):
        if bool(xp.all(norms <= target)) or steps >= most_steps:
            break
        correction, taken = _descend(
            namespace,
            apply,
            precondition,
            residual,
            target,
            most_steps=most_steps - steps,
            progress=progress,
        )
        steps += taken
        solution = solution + correction
        residual = right - apply(solution)
        norms = xp.sqrt(xp.sum(residual * residual, axis=0))
        if not namespace.all_finite(norms):
            raise NumericalError(
                "conjugate gradients broke down: the kernel matrix is not positive definite, or "
                'its values overflow; use solver="cholesky", or scale the columns of X'
            )
    return Solved(solution, norms, steps, bool(xp.all(norms <= target)))


def _descend(
    namespace: Namespace,
    apply: Operator,
    precondition: Operator,
    right: Array,
    target: Array,
    *,
    most_steps: int,
    progress: Callable[[int, Array], None] | None,
) -> tuple[Array, int]:
    xp = namespace.xp
    x = namespace.zeros(right.shape, right)
    r = namespace.copy(right)
    z = precondition(r)
    p = namespace.copy(z)
    rho = xp.sum(r * z, axis=0)
    for step in range(most_steps):
        norms = xp.sqrt(xp.sum(r * r, axis=0))
        if progress is not None:
            progress(step, norms)
        if bool(xp.all(norms <= 0.5 * target)):
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
    return x, most_steps

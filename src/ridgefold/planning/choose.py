"""Choose a solver: those that can run, fit the memory, and promise the best accuracy first."""

from __future__ import annotations

from ridgefold.errors import BudgetError, InvalidInputError
from ridgefold.planning.rates import seconds
from ridgefold.records import Cost, Plan, Problem, Rejection, Resources
from ridgefold.solvers import SOLVERS


def _gigabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:.3g} GB"


def plan_fit(problem: Problem, resources: Resources, requested: str = "auto") -> Plan:
    """The solver for a problem, or a typed error that says what would do."""
    if requested != "auto" and requested not in SOLVERS:
        known = ", ".join(["auto", *SOLVERS])
        raise InvalidInputError(f"solver must be one of {known}, got {requested!r}")
    names = list(SOLVERS) if requested == "auto" else [requested]
    candidates: list[tuple[bool, float, str, Cost]] = []
    rejected: list[Rejection] = []
    too_large: list[str] = []
    for name in names:
        solver = SOLVERS[name]
        reason = solver.can_run(problem)
        if reason is not None:
            rejected.append(Rejection(name, reason))
            continue
        cost = solver.cost(problem)
        if cost.peak_bytes > resources.memory_bytes:
            text = f"needs {_gigabytes(cost.peak_bytes)}"
            rejected.append(
                Rejection(name, f"{text}, the budget is {_gigabytes(resources.memory_bytes)}")
            )
            too_large.append(f"{name} {text}")
            continue
        candidates.append((not solver.exact, seconds(cost), name, cost))
    if not candidates:
        if too_large:
            raise BudgetError(
                f"no solver fits memory_budget={_gigabytes(resources.memory_bytes)}: "
                f"{'; '.join(too_large)}. Raise memory_budget, or fit on fewer rows"
            )
        raise InvalidInputError(
            f'solver="{requested}" cannot be used: {rejected[0].reason}; '
            'use solver="auto" or "cholesky"'
        )
    _, predicted, name, cost = min(candidates)[:4]
    for inexact, other, loser, _ in candidates:
        if loser != name:
            why = "right only to a tolerance" if inexact else f"predicted {other:.2g} s"
            rejected.append(Rejection(loser, f"{why}; {name}: {predicted:.2g} s"))
    return Plan(problem, resources, name, cost, predicted, tuple(rejected))

"""Choose a method: those that can run, fit the memory, and promise the best accuracy first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ridgefold.crossval import METHODS
from ridgefold.errors import BudgetError, InvalidInputError
from ridgefold.planning.rates import seconds
from ridgefold.records import Cost, Plan, Problem, Rejection, Resources
from ridgefold.solvers import SOLVERS


def _gigabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:.3g} GB"


class _Candidate(Protocol):
    """What solvers and cross-validation methods have in common."""

    may_give_up: bool
    last_resort: bool

    def can_run(self, problem: Problem) -> str | None: ...

    def cost(self, problem: Problem) -> Cost: ...


def plan_fit(problem: Problem, resources: Resources, requested: str = "auto") -> Plan:
    """The solver for a problem, or a typed error that says what would do."""
    return _choose("solver", SOLVERS, problem, resources, requested)


def plan_cross_validation(problem: Problem, resources: Resources, requested: str = "auto") -> Plan:
    """The cross-validation method for a problem, or a typed error that says what would do."""
    return _choose("method", METHODS, problem, resources, requested)


def _choose(
    argument: str,
    registry: Mapping[str, _Candidate],
    problem: Problem,
    resources: Resources,
    requested: str,
) -> Plan:
    if requested != "auto" and requested not in registry:
        known = ", ".join(["auto", *registry])
        raise InvalidInputError(f"{argument} must be one of {known}, got {requested!r}")
    names = list(registry) if requested == "auto" else [requested]
    candidates: list[tuple[bool, float, str, Cost]] = []
    rejected: list[Rejection] = []
    too_large: list[str] = []
    for name in names:
        candidate = registry[name]
        reason = candidate.can_run(problem)
        if reason is not None:
            rejected.append(Rejection(name, reason))
            continue
        cost = candidate.cost(problem)
        if cost.peak_bytes > resources.memory_bytes:
            text = f"needs {_gigabytes(cost.peak_bytes)}"
            rejected.append(
                Rejection(name, f"{text}, the budget is {_gigabytes(resources.memory_bytes)}")
            )
            too_large.append(f"{name} {text}")
            continue
        candidates.append((candidate.last_resort, seconds(cost), name, cost))
    if not candidates:
        if too_large:
            raise BudgetError(
                f"no {argument} fits memory_budget={_gigabytes(resources.memory_bytes)}: "
                f"{'; '.join(too_large)}. Raise memory_budget, or fit on fewer rows"
            )
        raise InvalidInputError(
            f'{argument}="{requested}" cannot be used: {rejected[0].reason}; use {argument}="auto"'
        )
    candidates.sort(key=lambda candidate: candidate[:3])
    last_resort, predicted, name, cost = candidates[0]
    for other_last_resort, other, loser, _ in candidates[1:]:
        why = f"predicted {other:.2g} s"
        if other_last_resort and not last_resort:
            why = "right only to a tolerance"
        rejected.append(Rejection(loser, f"{why}; {name}: {predicted:.2g} s"))
    return Plan(
        problem, resources, name, cost, predicted, tuple(rejected), _fallbacks(registry, candidates)
    )


def _fallbacks(
    registry: Mapping[str, _Candidate], candidates: list[tuple[bool, float, str, Cost]]
) -> tuple[str, ...]:
    """The next best methods, up to the first that cannot give up."""
    ranked = [name for _, _, name, _ in candidates]
    certain = [i for i, name in enumerate(ranked) if not registry[name].may_give_up]
    return tuple(ranked[1 : certain[0] + 1]) if certain else tuple(ranked[1:])

"""Choose a method: those that can run, fit the limits, and promise the best accuracy first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from ridgefold.crossval import METHODS
from ridgefold.errors import BudgetError, InvalidInputError
from ridgefold.planning.amounts import in_bytes, in_seconds
from ridgefold.planning.calibration import calibrate_if_unknown, known_rates
from ridgefold.planning.rates import seconds
from ridgefold.records import Cost, FoldShape, Plan, Problem, Rejection, Resources
from ridgefold.solvers import SOLVERS

_WORTH_THREADS = 0.5
"""Shorter work runs on one thread: starting several costs more than they save."""
_WORTH_CALIBRATING = 20.0
"""A computation predicted to take this many seconds pays for a look at the machine."""
_WORTH_CALIBRATING_FOR_A_BUDGET = 2.0
"""The same where a time budget is compared with it: rates of another machine would not do."""
_NAMED = 3
"""Methods that a refusal names, of those that do not fit: the ones that come closest."""
_CELL_ROWS = 1000
"""Rows of a cell, when a refusal says what splitting the data would cost."""


class Candidate(Protocol):
    """What solvers and cross-validation methods have in common."""

    may_give_up: bool
    last_resort: bool

    def can_run(self, problem: Problem) -> str | None: ...

    def cost(self, problem: Problem) -> Cost: ...


def plan_fit(problem: Problem, resources: Resources, requested: str = "auto") -> Plan:
    """The solver for a problem, or a typed error that says what would do."""
    return _choose(_Question("solver", SOLVERS, requested), problem, resources)


def plan_cross_validation(problem: Problem, resources: Resources, requested: str = "auto") -> Plan:
    """The cross-validation method for a problem, or a typed error that says what would do."""
    return _choose(_Question("method", METHODS, requested), problem, resources)


def plan_only(
    argument: str, name: str, only: Candidate, problem: Problem, resources: Resources
) -> Plan:
    """The plan of work that one method can do, or a typed error that says what would do."""
    return _choose(_Question(argument, {name: only}, "auto"), problem, resources)


@dataclass(frozen=True)
class _Question:
    """What is to be chosen, from what, and what the user asked for."""

    argument: str
    registry: Mapping[str, Candidate]
    requested: str

    def names(self) -> list[str]:
        if self.requested == "auto":
            return list(self.registry)
        if self.requested not in self.registry:
            known = ", ".join(["auto", *self.registry])
            raise InvalidInputError(
                f"{self.argument} must be one of {known}, got {self.requested!r}"
            )
        return [self.requested]


@dataclass(frozen=True)
class _Option:
    """A candidate that can run, with what it is predicted to cost."""

    name: str
    last_resort: bool
    seconds: float
    cost: Cost

    def rank(self) -> tuple[bool, float, str]:
        return self.last_resort, self.seconds, self.name


def _choose(question: _Question, problem: Problem, resources: Resources) -> Plan:
    options, rejected = _options(question, problem, resources.device)
    within = [o for o in options if _fits(o, resources)]
    worth = _WORTH_CALIBRATING if resources.seconds is None else _WORTH_CALIBRATING_FOR_A_BUDGET
    looked_at = within or options
    long = bool(looked_at) and looked_at[0].seconds > worth
    if long and calibrate_if_unknown(resources.device):
        return _choose(question, problem, resources)
    for option in options:
        if option not in within:
            rejected.append(Rejection(option.name, _why_not(option, resources)))
    if not within:
        if options:
            raise BudgetError(_refusal(question, problem, resources, options))
        raise InvalidInputError(
            f'{question.argument}="{question.requested}" cannot be used: {rejected[0].reason}; '
            f'use {question.argument}="auto"'
        )
    best = within[0]
    for other in within[1:]:
        why = f"predicted {in_seconds(other.seconds)}"
        if other.last_resort and not best.last_resort:
            why = "right only to a tolerance"
        rejected.append(Rejection(other.name, f"{why}; {best.name}: {in_seconds(best.seconds)}"))
    fallbacks = _fallbacks(question.registry, [option.name for option in within])
    longest = max(o.seconds for o in within if o.name in (best.name, *fallbacks))
    return Plan(
        problem,
        replace(resources, threads=1) if longest < _WORTH_THREADS else resources,
        best.name,
        best.cost,
        best.seconds,
        tuple(rejected),
        seconds_at_most=longest,
        fallbacks=fallbacks,
    )


def _options(
    question: _Question, problem: Problem, device: str | None
) -> tuple[list[_Option], list[Rejection]]:
    """Those that can run, best first, and the others with the reason."""
    rates, options, rejected = known_rates(device), [], []
    # What a look at the data makes unlikely is still done for those who ask for it.
    asked = (
        problem if question.requested == "auto" else replace(problem, spectrum=(), remainders=())
    )
    for name in question.names():
        candidate = question.registry[name]
        reason = candidate.can_run(asked)
        if reason is not None:
            rejected.append(Rejection(name, reason))
            continue
        cost = candidate.cost(problem)
        options.append(_Option(name, candidate.last_resort, seconds(cost, problem, rates), cost))
    return sorted(options, key=_Option.rank), rejected


def _fits(option: _Option, resources: Resources) -> bool:
    in_time = resources.seconds is None or option.seconds <= resources.seconds
    return in_time and option.cost.peak_bytes <= resources.memory_bytes


def _why_not(option: _Option, resources: Resources) -> str:
    if option.cost.peak_bytes > resources.memory_bytes:
        return (
            f"needs {in_bytes(option.cost.peak_bytes)}, the budget is "
            f"{in_bytes(resources.memory_bytes)}"
        )
    assert resources.seconds is not None
    return f"predicted {in_seconds(option.seconds)}, the budget is {in_seconds(resources.seconds)}"


def _fallbacks(registry: Mapping[str, Candidate], ranked: list[str]) -> tuple[str, ...]:
    """The next best methods, up to the first that cannot give up."""
    certain = [i for i, name in enumerate(ranked) if not registry[name].may_give_up]
    return tuple(ranked[1 : certain[0] + 1]) if certain else tuple(ranked[1:])


# -- what would fit ----------------------------------------------------------------------


def _refusal(
    question: _Question, problem: Problem, resources: Resources, options: list[_Option]
) -> str:
    """Why nothing fits, and what would."""
    needs = "; ".join(
        f"{o.name} needs {in_bytes(o.cost.peak_bytes)} and about {in_seconds(o.seconds)}"
        for o in sorted(options, key=lambda o: o.cost.peak_bytes)[:_NAMED]
    )
    limits = f"memory_budget={in_bytes(resources.memory_bytes)}"
    if resources.seconds is not None:
        limits += f" and time_budget={in_seconds(resources.seconds)}"
    ways = [f"raise {limits.split('=', maxsplit=1)[0]}"]
    if resources.seconds is not None:
        ways[0] += " or time_budget"
    if question.requested != "auto":
        ways.append(f'use {question.argument}="auto"')
    rows = _most_rows(question, problem, resources)
    if rows:
        ways.append(f"fit on at most {rows} rows")
    if problem.n_rows > _CELL_ROWS and problem.kernel != "given":
        ways.append(_partitioned(question, problem, resources.device))
    return (
        f"no {question.argument} fits {limits} with {problem.n_rows} rows: {needs}. "
        f"What would do: {'; '.join(ways)}"
    )


def _with_rows(problem: Problem, n: int) -> Problem:
    """The same problem on fewer rows."""
    share = n / problem.n_rows
    folds = tuple(
        FoldShape(max(1, round(f.test * share)), max(1, round(f.train * share)), f.count)
        if f.test > 1
        else FoldShape(1, max(1, n - 1), max(1, round(f.count * share)))
        for f in problem.folds
    )
    return replace(problem, n_rows=n, folds=folds, spectrum=(), remainders=())


def _most_rows(question: _Question, problem: Problem, resources: Resources) -> int:
    """How many rows would fit, to two digits; 0 if hardly any."""
    low, high = 0, problem.n_rows
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        options, _ = _options(question, _with_rows(problem, middle), resources.device)
        if any(_fits(option, resources) for option in options):
            low = middle
        else:
            high = middle
    digits = 10 ** max(0, len(str(low)) - 2)
    return low // digits * digits if low >= 10 else 0


def _partitioned(question: _Question, problem: Problem, device: str | None) -> str:
    """What the same work costs in cells of a thousand rows."""
    options, _ = _options(question, _with_rows(problem, _CELL_ROWS), device)
    cells = -(-problem.n_rows // _CELL_ROWS)
    best = options[0]
    return (
        f"PartitionedKernelRidge, in {cells} cells about {in_seconds(cells * best.seconds)} and "
        f"{in_bytes(best.cost.peak_bytes)}"
    )

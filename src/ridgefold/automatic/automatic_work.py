"""What is known between the steps of an automatic fit, and the data that they work on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ridgefold.automatic.promised_time import PromisedTime
from ridgefold.crossval import Folds, Progress, no_progress
from ridgefold.errors import BudgetError
from ridgefold.kernels import Kernel
from ridgefold.linalg import Array
from ridgefold.planning import available_resources
from ridgefold.planning.amounts import in_seconds
from ridgefold.records import Plan, Problem, Resources
from ridgefold.runtime.step import Work
from ridgefold.selection.stack.weights import StackWeights

if TYPE_CHECKING:
    from ridgefold.automatic.automatic_step import Outcome

_SLOWEST_PACE, _FASTEST_PACE = 10.0, 0.2
"""A measured pace is kept within these limits: that of very short steps is mostly noise."""
_RIDGE_ABOVE_ROUNDING = 20.0
"""The largest eigenvalue of a kernel matrix is about its number of rows, and solutions are off by
the rounding of that over the ridge. From 20 times that on held-out errors of float32 were those of
float64 to a thousandth, in half of the time."""
_FEWEST_SINGLE = 1500
"""Models of fewer rows take no time to speak of."""
_WORTH_MEASURING = 0.05
"""Steps predicted to be shorter say nothing about the machine."""

PUTTING_TOGETHER = 0.05
"""Share of the budget that is kept for what comes after the last candidate."""


@dataclass(frozen=True)
class WaitingKernel:
    """What a plan needs to know of a kernel that is not yet fitted."""

    distances: str
    """How it measures them, as `Problem.kernel` has it."""
    itemsize: int = 8
    """Bytes of one number in a model of all rows: 4 for float32."""


@dataclass(frozen=True)
class AutomaticProblem:
    """The shapes and times that are known before a step, from which it is planned."""

    problem: Problem
    """The table as numbers: rows, columns, targets, folds."""
    left: float
    """Seconds until the budget is over."""
    exchangeable: bool = True
    """Whether any row may be held out by itself: False if rows belong together, or if folds were
    given."""
    enough_rows: bool = True
    """Whether there are rows enough to learn a metric from."""
    few_rows: bool = False
    """Whether a metric is to be learned again without each group of folds, as there are few rows
    a scale."""
    waiting: tuple[WaitingKernel, ...] = ()
    """The kernels that are found and not yet fitted."""
    learned: bool = False
    """Whether a metric was learned."""
    gains: tuple[float, ...] = ()
    """By what share each candidate so far has lowered the held-out error of the stack."""
    paces: Mapping[str, float] = field(default_factory=dict)
    """Measured over predicted seconds, of each kind of work that was done."""

    def pace(self, kind: str) -> float:
        """The factor by which predicted seconds of this kind of work are multiplied."""
        return self.paces.get(kind, max([1.0, *self.paces.values()]))

    def measured(self, kind: str, predicted: float, seconds: float) -> AutomaticProblem:
        """The same after a step of a kind of work, with its pace."""
        if predicted < _WORTH_MEASURING:
            return self
        pace = min(max(seconds / predicted, _FASTEST_PACE), _SLOWEST_PACE)
        return replace(self, paces={**self.paces, kind: pace})

    def require_time(self, kind: str, plan: Plan) -> Plan:
        """The plan with its time as it is likely to be here; a refusal if that is not left."""
        likely = plan.seconds * self.pace(kind)
        if likely > self.left:
            raise BudgetError(
                f"predicted {in_seconds(likely)}, and of the time budget there are "
                f"{in_seconds(max(self.left, 0.0))} left"
            )
        return replace(
            plan,
            seconds=likely,
            seconds_at_most=max(likely, plan.seconds_at_most),
            resources=replace(plan.resources, seconds=max(self.left, 0.0)),
        )


@dataclass(frozen=True)
class FoundKernel:
    """A kernel to be fitted to all rows."""

    description: str
    kernel: Kernel
    family: str
    alpha: float
    held_out: np.ndarray | None = None
    """Where metrics were learned again without groups of folds: predictions of rows that neither
    metric nor model have seen."""

    def itemsize(self, work: AutomaticWork) -> int:
        """Bytes of one number in a model of all rows: float32 where its rounding is far below the
        least ridge of a row."""
        plain = work.weights is None and work.folds.train is None
        if not plain or len(work.X) < _FEWEST_SINGLE:
            return 8
        rounding = float(np.finfo(np.float32).eps) * len(work.X)
        return 4 if self.alpha > _RIDGE_ABOVE_ROUNDING * rounding else 8


@dataclass(frozen=True)
class Candidate:
    """A fitted model of numbers, and its predictions of rows that it had not seen."""

    description: str
    model: Any
    held_out: np.ndarray
    """Shape (n, t); NaN for rows that no fold tests."""
    coordinates: Kernel | None = None
    """The learned kernel in whose coordinates the model takes its rows; None for rows as they
    are."""
    places: np.ndarray | None = None
    """Numbers of the rows that the model was fitted to, in order; None for all rows."""


@dataclass
class AutomaticWork(Work):
    """The table as numbers, and the candidates so far."""

    X: np.ndarray
    targets: np.ndarray
    """Shape (n, t); of classes columns of −1 and 1."""
    codes: np.ndarray | None
    """Class numbers; None for regression."""
    weights: np.ndarray | None
    folds: Folds
    category_features: tuple[tuple[int, ...], ...]
    seed: int
    time: PromisedTime
    memory_budget: Any
    n_jobs: int | None
    device: str | None
    outcomes: list[Outcome] = field(default_factory=list)
    """What became of every step so far."""
    kernels: list[FoundKernel] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    n_cells: int | None = None
    """The number of cells that was chosen for the first candidate in cells."""
    last_method: str = ""
    """The method that cross-validated the last candidate of all rows."""
    whole: StackWeights | None = None
    """Weights of the candidates so far."""
    error: float = np.inf
    """Held-out error of the stack of the candidates so far."""

    say: Callable[[str], None] = lambda name: None
    """Is called with the name of what is done next, to show it."""

    @contextmanager
    def progress(self, name: str) -> Iterator[Progress]:
        self.say(name)
        yield no_progress

    def up_to_date(self, known: AutomaticProblem) -> AutomaticProblem:
        return replace(known, left=self.time.left - PUTTING_TOGETHER * self.time.budget)

    def __post_init__(self) -> None:
        self.like: Array = self.X

    def resources(self) -> Resources:
        return available_resources(self.memory_budget)

    @property
    def counts(self) -> np.ndarray:
        """What every row counts: its weight; nothing for rows that no fold tests."""
        counts = np.ones(len(self.X)) if self.weights is None else self.weights.astype(np.float64)
        if self.folds.each_row_once:
            return counts
        tested = np.zeros(len(self.X))
        tested[self.folds.stacked] = 1.0
        return np.asarray(counts * tested)

"""The steps of a fit of all rows: hold out and solve; or learn, choose, solve, learn again.

A model lays its steps out as one list. To explain a fit every step is asked for its plan; to fit,
every step calls the method of the work (`GivenWork`, `SearchWork`) that does it. What is known
between the steps is the problem: the rows and columns, and where there is a choice the folds, ridge
values and kernels.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ridgefold.crossval import Progress
from ridgefold.exact import Fit
from ridgefold.exact.leave_two_out import LeaveTwoOut
from ridgefold.executors import Executor
from ridgefold.metric import FAMILIES
from ridgefold.metric.metric import families_of
from ridgefold.metric.transforms import TRANSFORMS
from ridgefold.options import MetricLearning, search_of
from ridgefold.planning import plan_cross_validation, plan_fit
from ridgefold.planning.cell_memory import learning_rows_within
from ridgefold.planning.learning import learning_plan
from ridgefold.records import FoldShape, Plan, Problem, Resources, StepRecord
from ridgefold.runtime.step import MeasuredStep, Step, Work
from ridgefold.selection.held_out_predictions import HOLD_OUT
from ridgefold.selection.kernel_paths import place_of, together
from ridgefold.selection.learned_grid import AUTO, families_to_learn, likely_grid, rotates
from ridgefold.selection.learning_optimism import FOLDS_LEARNED_AGAIN, few_rows
from ridgefold.selection.path_tasks import STEP
from ridgefold.selection.scoring import Rule
from ridgefold.selection.search import Settings, may_race
from ridgefold.selection.stack.nested import worth_leaving_two_out
from ridgefold.selection.stack.relearned import ROWS_LEARNED_AGAIN

_DECOMPOSITION = "eigendecomposition"
"""The likelihood of a kernel takes as much work as this solver."""
LIKELY_MEMBERS = 5
"""A stack seldom has more kernels than this."""


class ModelWork(Work):
    """A model on its training data, as its steps see it."""

    @abstractmethod
    def solve(self) -> tuple[StepRecord, ...]:
        """Fit the given or chosen kernels to all rows; returns a record of every one."""


class GivenWork(ModelWork):
    """A model whose kernel and ridge are given."""

    @abstractmethod
    def hold_out(self, n_folds: int) -> tuple[StepRecord, ...]:
        """Predict every row by a model that has not seen its fold."""


class SearchWork(ModelWork):
    """A model that chooses its kernel and ridge."""

    @abstractmethod
    def learn(self, max_rows: int) -> int | None:
        """Learn from at most so many rows; returns how many columns the kernel has then, or None if
        several kernels were learned."""

    @abstractmethod
    def choose(self) -> tuple[StepRecord, ...]:
        """Choose kernels and ridges; returns a record of every search."""

    @abstractmethod
    def learn_again(self) -> None:
        """Learn without each of a few folds, and widen intervals by what errors grow by."""


@dataclass(frozen=True)
class LearnMetric(MeasuredStep[Problem, SearchWork]):
    """Learn scales, family and transforms by the gradient of the held-out error on a sample."""

    name: str
    asked: MetricLearning
    families: int
    chooses_ridge: bool
    """Whether the ridges to try are laid around the learned one; else they were given."""
    several: bool = False
    """Whether several metrics are kept to be combined; where rows are few, they are then learned
    again without groups of folds."""
    repeated: bool = False
    """Whether it is learned again where rows are few, in this step or in one of its own."""
    rotates: bool = False
    """Whether directions that mix columns may be learned."""

    @classmethod
    def of(cls, model: Any, asked: MetricLearning) -> LearnMetric:
        """The step of a model that asks for this."""
        if asked.scales:
            name = "learning scales"
        else:
            name = "choosing a family" if asked.transforms is None else "learning transforms"
        families = len(families_of(families_to_learn(model.kernel, model.kernel_params)))
        several = bool(search_of(model).stack)
        return cls(
            name,
            asked,
            families,
            model.alpha is None,
            several,
            several or getattr(model, "intervals", None) is not None,
            rotates(model, asked),
        )

    def cost(self, known: Problem, resources: Resources) -> Plan:
        few = few_rows(known.n_rows, known.n_columns, self.asked.groups)
        times = 1 + FOLDS_LEARNED_AGAIN * (few and self.repeated)
        said = self.asked.seconds
        learn = partial(
            learning_plan,
            replace(known, folds=(), n_alphas=1, n_kernels=1),
            resources,
            families=self.families,
            starts=len(TRANSFORMS) if self.asked.transforms == AUTO else 1,
            most_seconds=None if said is None else float(said) / times,
            rotates=self.rotates,
        )
        rows = self._rows(known, resources)
        once = learn(rows)
        if times == 1 or not self.several:
            return once
        again = learn(min(rows, ROWS_LEARNED_AGAIN), times=times - 1)
        return replace(once, seconds=once.seconds + again.seconds)

    def _rows(self, known: Problem, resources: Resources) -> int:
        rows = int(self.asked.rows)
        if resources.device is not None:
            return rows
        return learning_rows_within(resources.memory_bytes, rows, known.n_rows, known.n_columns)

    def foresee(self, known: Problem) -> Problem:
        kernels, alphas = likely_grid(known.n_rows, isotropic=not self.asked.scales)
        if self.several:
            kernels = min(LIKELY_MEMBERS, len(FAMILIES))
        after = replace(known, n_kernels=kernels)
        if not self.chooses_ridge:
            return after
        return replace(
            after,
            n_alphas=len(alphas),
            smallest_alpha=float(alphas.min()),
            largest_alpha=float(alphas.max()),
        )

    def run(self, known: Problem, plan: Plan, work: SearchWork, progress: Progress) -> Problem:
        columns = work.learn(self._rows(known, plan.resources))
        if columns is None:
            return known
        left_out = known.n_columns + known.columns_left_out - columns
        return replace(known, n_columns=columns, columns_left_out=left_out)


@dataclass(frozen=True)
class HoldOut(Step[Problem, GivenWork]):
    """Predict every row by a model without its fold, where kernel and ridge are given."""

    n_folds: int
    name: str = HOLD_OUT.name

    def cost(self, known: Problem, resources: Resources) -> Plan:
        folds = fold_shapes(known.n_rows, min(self.n_folds, known.n_rows))
        return HOLD_OUT.cost(replace(known, folds=folds), resources)

    def carry_out(self, known: Problem, work: GivenWork) -> tuple[Problem, tuple[StepRecord, ...]]:
        return self.foresee(known), work.hold_out(self.n_folds)


@dataclass(frozen=True)
class Choose(Step[Problem, SearchWork]):
    """Choose kernel and ridge by exact cross-validation, on whatever workers there are."""

    executor: Executor
    method: str
    settings: Settings
    scoring: Rule
    name: str = STEP

    def cost(self, known: Problem, resources: Resources) -> Plan:
        limits = replace(resources, threads=self.executor.threads(resources.threads))
        count = known.n_kernels
        one = replace(known, n_kernels=1)
        first = plan_cross_validation(one, limits, self.method)
        plans = [first] * count
        whole = bool(known.folds) and max(fold.test for fold in known.folds) == 1
        if count > 1 and may_race(self.settings, self.scoring, known.n_rows, whole):
            # The first kernel has nothing to lose against.
            other = plan_cross_validation(replace(one, judged=True), limits, self.method)
            plans[1:] = [other] * (count - 1)
        plan = together(plans, first, min(self.executor.workers_now(), count), count)
        return replace(plan, where=place_of(self.executor))

    def foresee(self, known: Problem) -> Problem:
        return replace(known, judged=False, n_kernels=1)

    def carry_out(self, known: Problem, work: SearchWork) -> tuple[Problem, tuple[StepRecord, ...]]:
        return self.foresee(known), work.choose()


@dataclass(frozen=True)
class ChooseByLikelihood(Choose):
    """Choose kernel and ridge by the marginal likelihood: one eigendecomposition a kernel, then
    held-out predictions of the choice."""

    def cost(self, known: Problem, resources: Resources) -> Plan:
        one = replace(known, n_kernels=1, n_alphas=1)
        held_out = super().cost(one, resources)
        decomposition = plan_fit(replace(one, folds=()), resources, _DECOMPOSITION)
        peak = max(held_out.cost.peak_bytes, decomposition.cost.peak_bytes)
        count = known.n_kernels
        return replace(
            held_out,
            cost=replace(held_out.cost, peak_bytes=peak),
            seconds=held_out.seconds + count * decomposition.seconds,
            seconds_at_most=held_out.seconds_at_most + count * decomposition.seconds_at_most,
        )


@dataclass(frozen=True)
class ChooseMembers(Choose):
    """Choose width and ridge of every kernel of a stack, then their weights.

    For intervals and errors the weights are found again without each fold, from models without
    two folds.
    """

    n_groups: int = 2
    """Groups of folds without which weights are found."""

    def cost(self, known: Problem, resources: Resources) -> Plan:
        searches = super().cost(known, resources)
        if not worth_leaving_two_out(known.n_rows):
            return searches
        members = self.foresee(known).n_kernels
        one = replace(known, n_kernels=1, n_alphas=1)
        left_out = LeaveTwoOut(self.name, self.n_groups).cost(one, resources)
        peak = max(searches.cost.peak_bytes, left_out.cost.peak_bytes)
        return replace(
            searches,
            cost=replace(searches.cost, peak_bytes=peak),
            seconds=searches.seconds + members * left_out.seconds,
            seconds_at_most=searches.seconds_at_most + members * left_out.seconds,
        )

    def foresee(self, known: Problem) -> Problem:
        return replace(known, n_kernels=min(known.n_kernels, LIKELY_MEMBERS))


@dataclass(frozen=True)
class Solve(Step[Problem, ModelWork]):
    """Solve the system of all rows, for a stack once with every kernel in it."""

    solver: str
    name: str = Fit.name

    def cost(self, known: Problem, resources: Resources) -> Plan:
        one = replace(
            known, folds=(), n_alphas=1, n_kernels=1, smallest_alpha=1.0, largest_alpha=1.0
        )
        plan = Fit(self.solver).cost(one, resources)
        if known.n_kernels == 1:
            return plan
        return together([plan] * known.n_kernels, plan, 1, known.n_kernels)

    def carry_out(self, known: Problem, work: ModelWork) -> tuple[Problem, tuple[StepRecord, ...]]:
        return self.foresee(known), work.solve()


@dataclass(frozen=True)
class LearnAgain(MeasuredStep[Problem, SearchWork]):
    """Measure how much larger errors are where the metric has not seen the rows, for intervals."""

    learning: LearnMetric
    most_folds: float
    """With more folds there are no intervals."""
    name: str = "learning scales again, without each fold"

    def needed(self, known: Problem) -> bool:
        every = known.n_columns + known.columns_left_out
        if known.n_folds > self.most_folds:
            return False
        return few_rows(known.n_rows, every, self.learning.asked.groups)

    def cost(self, known: Problem, resources: Resources) -> Plan:
        once = self.learning.cost(known, resources)
        return replace(once, seconds=FOLDS_LEARNED_AGAIN * once.seconds)

    def run(self, known: Problem, plan: Plan, work: SearchWork, progress: Progress) -> Problem:
        work.learn_again()
        return known


def is_more_than_family(asked: MetricLearning) -> bool:
    """Whether scales or transforms are learned; of families alone a stack takes all."""
    return asked.scales or asked.transforms is not None


def fold_shapes(n_rows: int, n_folds: int) -> tuple[FoldShape, ...]:
    """Folds of nearly the same size that hold every row out once."""
    small, large = n_rows // n_folds, n_rows % n_folds
    shapes = (
        FoldShape(small, n_rows - small, n_folds - large),
        FoldShape(small + 1, n_rows - small - 1, large),
    )
    return tuple(shape for shape in shapes if shape.count)

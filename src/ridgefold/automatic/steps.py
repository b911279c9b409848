"""The steps of an automatic fit: who is tried, in which order, and what each is expected to cost.

The list depends on nothing but shapes: `explain` walks it as `fit` does. A step that is given what
its predecessors took decides whether it still fits into the time, and how it is done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ridgefold.automatic.automatic_step import AutomaticStep, waiting_kernels
from ridgefold.automatic.automatic_work import (
    AutomaticProblem,
    AutomaticWork,
    Candidate,
    FoundKernel,
    WaitingKernel,
)
from ridgefold.automatic.learning import (
    FEWEST_ROWS,
    MOST_ROWS,
    learned_kernels,
    plan_to_learn,
    times_again,
)
from ridgefold.automatic.linear_ridge import RIDGES, linear_path
from ridgefold.automatic.models_of_numbers import (
    cell_model,
    fit_cells,
    fit_whole,
    in_coordinates,
    splits_of,
    whole_model,
)
from ridgefold.automatic.weighing import weigh_all
from ridgefold.cells.explain_cell_fit import cell_plans
from ridgefold.crossval import Folds, Progress
from ridgefold.errors import BudgetError, InvalidInputError
from ridgefold.estimators.kernel_ridge_cv import LSSVMRegressorCV
from ridgefold.estimators.ls_svm import LSSVMRegressor
from ridgefold.estimators.partitioned import PartitionedLSSVMRegressor
from ridgefold.kernels import Kernel
from ridgefold.planning import plan_cross_validation, plan_fit
from ridgefold.planning.amounts import in_seconds
from ridgefold.planning.calibration import known_rates
from ridgefold.planning.rates import seconds
from ridgefold.records import Cost, FoldShape, Plan, Problem, Rejection, Resources
from ridgefold.selection.stack.candidates import most_candidates

FEWEST_IN_CELLS = 2000
"""Rows from which cells are an alternative to one model of all rows."""
_LARGEST_WHOLE = 30_000
"""Beyond so many rows one model of all of them is never worth its time and memory."""
_SOME_ROWS = (8000, 5600, 4000, 2800, 2000, 1400, 1000)
"""Rows of a model where there is no time for all of them."""
_SAMPLE_ROWS = 600
"""Rows on which one width for all columns is looked for."""
_CANDIDATES_WORTH_HAVING = 3.0
"""One model of all rows may take the time that is left divided by this, so that there is time for
a few candidates to combine."""
_LEAST_GAIN = 0.002
"""The search ends when two candidates in a row have lowered the error of the stack by less than
this share."""
_SHARES_OF_LEARNING = ((2000, 0.8), (10_000, 0.5), (math.inf, 0.3))
"""Up to so many rows, the share of the time that is left which learning may take, before the first
kernel is fitted: a model of few rows is fitted in no time."""
_SURE_METHOD = "inverse_blocks"
"""The method by which the time for one model of all rows is predicted: it takes as long as
predicted whatever the data are. The fit itself may find a faster one when it sees the data."""
_IN_CELLS = "search"
"""The method of cells that choose pairs of their own (`planning.cell_steps`)."""
_SMOOTHNESS = {"matern12": 0.5, "matern52": 2.5}
"""Matérn families that are tried with one width: a rough one and a smooth one."""
_ISOTROPIC = tuple(_SMOOTHNESS)
_WIDTHS = 2.0 ** np.arange(-2.0, 3.0)
"""The widths to try, in units of a typical distance between two rows."""
_RIDGES = 10.0 ** np.arange(-4.0, 1.5, 0.5)

_PROMISED_SHARE, _PROMISED_SECONDS = 1.15, 0.9
"""A fit ends within so many budgets, and so much more."""

LINEAR, WIDTH, LEARNING, WHOLE, CELLS = "linear", "width", "learning", "whole", "cells"
"""The kinds of work, each of which has a measured pace (`AutomaticProblem.pace`)."""


@dataclass(frozen=True)
class FitLinear(AutomaticStep):
    """Ridge regression on all columns: quick, so that there is a model whatever comes."""

    name = "fitting a linear model"

    def kind(self, plan: Plan) -> str:
        return LINEAR

    def cost(self, known: AutomaticProblem, resources: Resources) -> Plan:
        # It runs even if too little time is left: without it there would be no model at all.
        problem = replace(
            known.problem,
            feature_dimension=known.problem.n_columns,
            n_alphas=len(RIDGES),
            kernel="dot",
        )
        n, d = float(problem.n_rows), float(problem.n_columns)
        flops = {
            "product": 4.0 * n * d**2 + 2.0 * len(RIDGES) * n * d * problem.n_targets,
            "eigendecomposition": problem.n_folds * 9.0 * d**3,
            "memory": 8.0 * 20.0 * n * d,
            "calls": 2.0 * problem.n_folds * len(RIDGES),
        }
        kept = 8.0 * (3.0 * n * d + (len(RIDGES) + 2) * n * problem.n_targets + 4.0 * d**2)
        cost = Cost(flops, kept, size=d)
        fit = plan_fit(replace(problem, folds=(), n_alphas=1), resources)
        predicted = seconds(cost, problem, known_rates()) + fit.seconds
        return Plan(problem, resources, "moments", cost, predicted, ())

    def foresee(self, known: AutomaticProblem) -> AutomaticProblem:
        return replace(known, gains=(*known.gains, 1.0))

    def run(
        self, known: AutomaticProblem, plan: Plan, work: AutomaticWork, progress: Progress
    ) -> AutomaticProblem:
        path = linear_path(work.X, work.targets, work.weights, work.folds)
        model = LSSVMRegressor(
            path.alpha, kernel="linear", intervals=None, memory_budget=work.memory_budget
        ).fit(work.X, work.targets, work.weights)
        return _added(known, work, Candidate("linear", model, path.held_out))


@dataclass(frozen=True)
class LearnMetrics(AutomaticStep):
    """Families, transforms and length scales, learned on a sample of the rows."""

    name = "learning metrics"

    def kind(self, plan: Plan) -> str:
        return LEARNING

    def needed(self, known: AutomaticProblem) -> bool:
        return known.enough_rows

    def cost(self, known: AutomaticProblem, resources: Resources) -> Plan:
        """Learning stops by itself when its part of the time is over: that is what it costs at
        most, and there has to be enough for a few rows."""
        allowed = replace(known, left=_share_of_learning(known) * known.left)
        again = times_again(allowed, resources, LEARNING)
        allowed.require_time(LEARNING, plan_to_learn(known, resources, FEWEST_ROWS, again))
        plan = plan_to_learn(known, resources, MOST_ROWS, again)
        likely = min(plan.seconds * known.pace(LEARNING), allowed.left)
        limits = replace(resources, seconds=allowed.left)
        return replace(plan, seconds=likely, resources=limits)

    def foresee(self, known: AutomaticProblem) -> AutomaticProblem:
        waiting = (WaitingKernel("euclidean"),) * most_candidates(1)
        return replace(known, learned=True, waiting=waiting)

    def run(
        self, known: AutomaticProblem, plan: Plan, work: AutomaticWork, progress: Progress
    ) -> AutomaticProblem:
        allowed = replace(known, left=_share_of_learning(known) * known.left)
        again = times_again(allowed, plan.resources, LEARNING)
        work.kernels += learned_kernels(work, allowed.left, again)
        return replace(known, learned=True, waiting=waiting_kernels(work))


@dataclass(frozen=True)
class FindWidth(AutomaticStep):
    """One width for all columns, chosen on a sample: where there is no time to learn more."""

    name = "choosing a width for all columns"

    def kind(self, plan: Plan) -> str:
        return WIDTH

    def needed(self, known: AutomaticProblem) -> bool:
        return not known.waiting and known.problem.n_rows > 2

    def cost(self, known: AutomaticProblem, resources: Resources) -> Plan:
        rows = min(known.problem.n_rows, _SAMPLE_ROWS)
        problem = _on_rows(replace(known.problem, n_alphas=len(_RIDGES)), rows)
        plan = plan_cross_validation(problem, resources, "auto")
        kernels = len(_WIDTHS) * len(_ISOTROPIC)
        return known.require_time(WIDTH, replace(plan, seconds=kernels * plan.seconds))

    def foresee(self, known: AutomaticProblem) -> AutomaticProblem:
        return replace(known, waiting=(WaitingKernel("euclidean"),) * len(_ISOTROPIC))

    def run(
        self, known: AutomaticProblem, plan: Plan, work: AutomaticWork, progress: Progress
    ) -> AutomaticProblem:
        searches = []
        rows = np.sort(np.random.default_rng(work.seed).permutation(len(work.X))[:_SAMPLE_ROWS])
        folds = _folds_within(work.folds, rows)
        weights = None if work.weights is None else work.weights[rows]
        for family in _ISOTROPIC:
            widths = _typical_distance(work) * _WIDTHS
            model = LSSVMRegressorCV(
                _RIDGES,
                kernel="matern",
                kernel_params={"nu": _SMOOTHNESS[family], "length_scale": widths.tolist()},
                cv=5 if folds is None else folds,
                memory_budget=work.memory_budget,
                intervals=None,
            )
            model.fit(work.X[rows], work.targets[rows], weights)
            searches.append((model.best_score_, family, model))
        searches.sort(key=lambda each: -each[0])
        for _, family, model in searches:
            assert isinstance(model.kernel_, Kernel)
            work.kernels.append(
                FoundKernel(f"{family}, one width", model.kernel_, family, float(model.alpha_))
            )
        return replace(known, waiting=waiting_kernels(work))


@dataclass(frozen=True)
class FitKernel(AutomaticStep):
    """One of the kernels that were found, as one model of all rows, or in cells."""

    number: int

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"fitting kernel {self.number}"

    def kind(self, plan: Plan) -> str:
        return CELLS if plan.method == _IN_CELLS else WHOLE

    def needed(self, known: AutomaticProblem) -> bool:
        recent = known.gains[-2:]
        idle = len(known.gains) > 2 and max(recent) < _LEAST_GAIN
        return bool(known.waiting) and not idle

    def cost(self, known: AutomaticProblem, resources: Resources) -> Plan:
        """The cheaper of one model and cells, where both are to be had: beyond some thousand rows
        one model takes the time of many candidates in cells, and these are nearly as good."""
        rejected: list[Rejection] = []
        plans: list[Plan] = []
        waiting = known.waiting[0]
        problem = replace(known.problem, kernel=waiting.distances)
        whole = replace(problem, itemsize=waiting.itemsize)
        for make, each in ((self._whole, whole), (self._cells, problem)):
            try:
                plans.append(make(known, each, resources))
            except BudgetError as refusal:
                rejected.append(Rejection(make.__name__.strip("_"), str(refusal)))
        if not plans:
            plans += self._of_some_rows(known, whole, resources)
        if not plans:
            raise BudgetError("; ".join(f"{each.method}: {each.reason}" for each in rejected))
        best = plans[0]
        for other in plans[1:]:
            # One model is better where it leaves time for others.
            if best.seconds > max(known.left / _CANDIDATES_WORTH_HAVING, 2.0 * other.seconds):
                best = other
        return replace(best, rejected=(*best.rejected, *rejected))

    def method_of(self, work: AutomaticWork, plan: Plan) -> str:
        return plan.method if self.kind(plan) == CELLS else work.last_method

    def _whole(self, known: AutomaticProblem, problem: Problem, resources: Resources) -> Plan:
        if problem.n_rows > _LARGEST_WHOLE:
            raise BudgetError(f"{problem.n_rows:,} rows are better cut into cells")
        return known.require_time(WHOLE, _with_fit(problem, resources))

    def _of_some_rows(
        self, known: AutomaticProblem, problem: Problem, resources: Resources
    ) -> list[Plan]:
        """One model of as many rows as there is time for, where neither all rows nor cells are to
        be had: it has not seen the others, so that their predictions are held out, too."""
        half = replace(known, left=known.left / 2.0)
        for rows in _SOME_ROWS:
            if 2 * rows > problem.n_rows or not problem.complement_folds:
                continue
            some = _on_rows(problem, rows)
            plan = _with_fit(some, resources)
            values = float(problem.n_rows) * rows
            flops = {"kernel": values, "product": 2.0 * values * problem.n_columns}
            predicting = seconds(Cost(flops, 0.0, size=1000.0), some, known_rates())
            try:
                plan = replace(plan, seconds=plan.seconds + predicting)
                return [half.require_time(WHOLE, plan)]
            except BudgetError:
                continue
        return []

    def _cells(self, known: AutomaticProblem, problem: Problem, resources: Resources) -> Plan:
        if problem.n_rows < FEWEST_IN_CELLS:
            raise BudgetError(f"{problem.n_rows:,} rows are few enough for one model")
        model = PartitionedLSSVMRegressor(memory_budget=resources.memory_bytes)
        step_plans = [plan for _, plan in cell_plans(model, replace(problem, folds=()), resources)]
        for each in step_plans:
            if isinstance(each, Exception):
                raise each
        plans = [each for each in step_plans if isinstance(each, Plan)]
        repeats = 1 if known.exchangeable else 1 + known.problem.n_folds
        predicted = repeats * sum(plan.seconds for plan in plans)
        peak = max(plan.cost.peak_bytes for plan in plans)
        plan = Plan(problem, resources, _IN_CELLS, Cost({}, peak), predicted, ())
        return known.require_time(CELLS, plan)

    def foresee(self, known: AutomaticProblem) -> AutomaticProblem:
        return replace(known, waiting=known.waiting[1:])

    def describes(self, work: AutomaticWork) -> str:
        return work.kernels[0].description

    def let_go(self, work: AutomaticWork) -> None:
        work.kernels = work.kernels[1:]

    def passed_over(self, known: AutomaticProblem) -> AutomaticProblem:
        return self.foresee(known)

    def run(
        self, known: AutomaticProblem, plan: Plan, work: AutomaticWork, progress: Progress
    ) -> AutomaticProblem:
        known, kernel = replace(known, waiting=known.waiting[1:]), work.kernels[0]
        work.kernels = work.kernels[1:]
        if self.kind(plan) == CELLS:
            cells = cell_model(work, kernel.family)
            X = in_coordinates(kernel.kernel, work.X)
            held_out = fit_cells(work, cells, X, exchangeable=known.exchangeable)
            work.n_cells = cells.n_partitions_
            made = Candidate(f"{kernel.description}, in cells", cells, held_out, kernel.kernel)
        else:
            rows, splits, description = None, splits_of(work), kernel.description
            if plan.problem.n_rows < len(work.X):
                rows, splits = _sampled(work, plan.problem.n_rows)
                description = f"{description}, of {len(rows):,} rows"
            dtype = np.float32 if plan.problem.itemsize == 4 else np.float64
            model = whole_model(work, kernel.kernel, [kernel.alpha], splits, dtype)
            held_out = fit_whole(work, model, rows, dtype)
            if kernel.held_out is not None:
                held_out = kernel.held_out
            work.last_method = model.cv_plan_.method
            made = Candidate(description, model, held_out, places=rows)
        return _added(known, work, made)


def automatic_steps() -> list[AutomaticStep]:
    """All steps of an automatic fit, in their order."""
    kernels = [FitKernel(number) for number in range(1, most_candidates(1) + 1)]
    return [FitLinear(), LearnMetrics(), FindWidth(), *kernels]


def require_least_time(
    known: AutomaticProblem, budget: float, seconds: float, resources: Resources
) -> None:
    """Refuse a budget in which not even a linear model can be had; `seconds` have passed."""
    needed = seconds + FitLinear().cost(known, resources).seconds
    if needed > _PROMISED_SHARE * budget + _PROMISED_SECONDS:
        raise BudgetError(
            f"time_budget={in_seconds(budget)} is too short for {known.problem.n_rows:,} rows of "
            f"{known.problem.n_columns:,} columns: the least that would do is "
            f"time_budget={math.ceil(needed)}"
        )


def _with_fit(problem: Problem, resources: Resources) -> Plan:
    """The cross-validation, and then the fit of all rows."""
    try:
        plan = plan_cross_validation(problem, resources, _SURE_METHOD)
    except (BudgetError, InvalidInputError):
        plan = plan_cross_validation(problem, resources, "auto")
    fit = plan_fit(replace(problem, folds=(), n_alphas=1), resources)
    return replace(
        plan,
        seconds=plan.seconds + fit.seconds,
        seconds_at_most=plan.seconds_at_most + fit.seconds,
        cost=replace(plan.cost, peak_bytes=max(plan.cost.peak_bytes, fit.cost.peak_bytes)),
        fallbacks=(),
    )


def _share_of_learning(known: AutomaticProblem) -> float:
    """Many rows take most of the time to fit: they get it."""
    return next(share for rows, share in _SHARES_OF_LEARNING if known.problem.n_rows <= rows)


def _added(known: AutomaticProblem, work: AutomaticWork, made: Candidate) -> AutomaticProblem:
    work.candidates.append(made)
    return replace(known, gains=(*known.gains, weigh_all(work)))


def _on_rows(problem: Problem, rows: int) -> Problem:
    share = rows / problem.n_rows
    folds = tuple(
        FoldShape(max(1, round(f.test * share)), max(1, round(f.train * share)), f.count)
        for f in problem.folds
    )
    return replace(problem, n_rows=rows, folds=folds)


def _sampled(
    work: AutomaticWork, count: int
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """So many rows, and the folds of these."""
    rows = np.sort(np.random.default_rng(work.seed).permutation(len(work.X))[:count])
    splits = _folds_within(work.folds, rows)
    if splits is None:
        raise BudgetError(f"{count:,} rows have nothing to hold out in some fold")
    return rows, splits


def _folds_within(folds: Folds, rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """The same folds of some rows; None if one of them has nothing to train or to test on."""
    place = np.full(folds.n_rows, -1)
    place[rows] = np.arange(len(rows))

    def within(fold_rows: np.ndarray) -> np.ndarray:
        places = place[fold_rows]
        return np.asarray(places[places >= 0])

    pairs = [(within(folds.training_rows(k)), within(test)) for k, test in enumerate(folds.test)]
    return pairs if all(len(train) and len(test) for train, test in pairs) else None


def _typical_distance(work: AutomaticWork) -> float:
    """The root of the summed variances of the columns, every row counted by its weight."""
    counts = np.ones(len(work.X)) if work.weights is None else work.weights
    shares = counts / counts.sum()
    variances = shares @ (work.X - shares @ work.X) ** 2
    return float(np.sqrt(variances.sum())) or 1.0

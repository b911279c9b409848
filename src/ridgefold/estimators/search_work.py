"""A fit that chooses its kernel and ridge, while it is under way."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ridgefold.crossval import Folds
from ridgefold.linalg import Array
from ridgefold.planning import available_resources, device_of
from ridgefold.records import Problem, Resources, StepRecord
from ridgefold.runtime.training_data import TrainingData, seconds_left
from ridgefold.selection.fit_steps import SearchWork
from ridgefold.selection.grids import alphas_from_data, check_alphas, kernel_grid
from ridgefold.selection.held_out_predictions import by_row
from ridgefold.selection.learned_grid import LearnedGrid, learned_grid, to_learn
from ridgefold.selection.likelihood_search import LikelihoodSearch
from ridgefold.selection.path_tasks import gram_of
from ridgefold.selection.scoring import Truth, by_likelihood
from ridgefold.selection.search import Choice, GridSearch
from ridgefold.selection.stack.candidates import StackPlan, stack_plan
from ridgefold.selection.stack.search import StackChoice, stack_search

if TYPE_CHECKING:
    from ridgefold.estimators.cross_validated import CrossValidatedModel


class ModelSearch(SearchWork):
    """A fit that chooses its kernel: the model, its data, and what the steps have found so far."""

    def __init__(
        self,
        model: CrossValidatedModel,
        data: TrainingData,
        targets: Array,
        folds: Folds,
        truth: Truth,
    ) -> None:
        self.model, self.data, self.targets = model, data, targets
        self.folds, self.truth = folds, truth
        self.settings = model._settings_of_search()
        self.like = data.like

    def problem(self) -> Problem:
        """What is known before the first step."""
        data = self.data
        return Problem(
            n_rows=int(data.X.shape[0]),
            n_columns=int(data.X.shape[1]),
            n_targets=int(self.targets.shape[1]),
            itemsize=data.namespace.itemsize(data.like),
            bias=bool(self.model.fit_intercept),
            weighted=data.weights is not None,
            folds=self.folds.shapes,
        )

    def resources(self) -> Resources:
        data, model = self.data, self.model
        left = seconds_left(model.time_budget, data)
        available = available_resources(model.memory_budget, left, device_of(data.like))
        return replace(available, memory_bytes=available.memory_bytes - data.copied_bytes)

    @abstractmethod
    def finished(self) -> np.ndarray:
        """Set the fitted attributes of the search; returns held-out predictions of every row."""


class OneKernelWork(ModelSearch):
    """One kernel is chosen and fitted."""

    learned: LearnedGrid | None = None
    choice: Choice | None = None

    def learn(self, max_rows: int) -> int:
        asked = to_learn(self.model)
        assert asked is not None
        self.learned = learned_grid(
            self.model, asked, self.data, self.targets, self.folds, max_rows=max_rows
        )
        used: int = self.learned.metric.kernel.columns_used(int(self.data.X.shape[1]))
        return used

    def choose(self) -> tuple[StepRecord, ...]:
        model, data, given = self.model, self.data, self.model.alpha is not None
        if self.learned is not None:
            grid, alphas = self.learned.grid, self.learned.alphas
        else:
            settings = {"gamma": model.gamma, "kernel_params": model.kernel_params}
            grid = kernel_grid(model.kernel, settings, data)
            middle = grid.candidates[len(grid.candidates) // 2].kernel
            alphas = np.empty(0) if given else alphas_from_data(middle, data)
        if given:
            alphas = check_alphas(model.alpha)
        with model._searching(data, self.targets, self.folds, self.truth) as (paths, progress):
            paths.reserved_seconds = model._seconds_to_fit(data, self.targets, grid, alphas)
            search_by = LikelihoodSearch if by_likelihood(model.scoring) else GridSearch
            search = search_by(paths, model._rule(self.truth), self.settings)
            self.choice = search.run(grid, alphas, not given, progress)
        if data.deadline is not None:
            data.deadline.begun = True
        return (self.choice.record,)

    def solve(self) -> tuple[StepRecord, ...]:
        assert self.choice is not None
        gram = gram_of(self.choice.candidate.kernel, self.data.X, self.model._fixed_columns())
        self.model._fit_choice(self.data, self.targets, gram, self.choice, self.folds)
        return self.model.run_record_.steps

    def learn_again(self) -> None:
        assert self.learned is not None
        self.model._widen_intervals(self.data, self.targets, self.learned)

    def finished(self) -> np.ndarray:
        assert self.choice is not None
        self.model._set_choice(self.choice, self.folds, self.settings.alpha_per_target)
        self.model._set_learned(None if self.learned is None else self.learned.metric)
        return by_row(self.folds, self.choice.predictions)


class StackWork(ModelSearch):
    """Several kernels are chosen, weighted and fitted."""

    plan: StackPlan | None = None
    chosen: StackChoice | None = None

    def learn(self, max_rows: int) -> None:
        classify = self.truth.classes is not None
        self.plan = stack_plan(
            self.model, self.data, self.targets, self.folds, max_rows=max_rows, classify=classify
        )

    def choose(self) -> tuple[StepRecord, ...]:
        model, data, targets = self.model, self.data, self.targets
        if self.plan is None:
            classify = self.truth.classes is not None
            self.plan = stack_plan(model, data, targets, self.folds, classify=classify)
        with model._searching(data, targets, self.folds, self.truth) as (paths, progress):
            paths.reserved_seconds = sum(
                model._seconds_to_fit(data, targets, each.grid, each.alphas)
                for each in self.plan.candidates
            )
            self.chosen = stack_search(paths, self.plan, self.truth, self.settings, progress)
        if data.deadline is not None:
            data.deadline.begun = True
        return self.chosen.records

    def solve(self) -> tuple[StepRecord, ...]:
        assert self.chosen is not None
        return self.model._fit_members(self.data, self.targets, self.folds, self.chosen)

    def learn_again(self) -> None:
        """Held-out predictions of a stack are by metrics that have not seen the rows already."""

    def finished(self) -> np.ndarray:
        assert self.chosen is not None
        self.model._set_stack_choice(self, self.chosen)
        return self.chosen.nested.held_out

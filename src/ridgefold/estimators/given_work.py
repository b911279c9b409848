"""A fit whose kernel and ridge are given, while it is under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ridgefold.crossval import Folds
from ridgefold.estimators.validation import check_alpha
from ridgefold.linalg import Array
from ridgefold.planning import available_resources, device_of
from ridgefold.records import Problem, Resources, StepRecord
from ridgefold.runtime.training_data import TrainingData, seconds_left
from ridgefold.selection.fit_steps import GivenWork
from ridgefold.selection.held_out_predictions import held_out_predictions, shuffled_folds

if TYPE_CHECKING:
    from ridgefold.estimators.base import KernelModel


class GivenModelWork(GivenWork):
    """A model, its data, and held-out predictions where they are needed."""

    folds: Folds | None = None
    held_out: np.ndarray | None = None
    """Predictions of every row by the model without its fold, shape (n, t)."""

    def __init__(
        self,
        model: KernelModel,
        data: TrainingData,
        targets: Array,
        classes: np.ndarray | None = None,
    ) -> None:
        """`classes` of the rows, of which then every fold has its share."""
        self.model, self.data, self.targets, self.classes = model, data, targets, classes
        self.alphas = check_alpha(model.alpha, int(targets.shape[1]))
        self.gram = model._gram(data.X)
        self.like = data.like

    def problem(self) -> Problem:
        """What is known before the first step."""
        n, d = (int(size) for size in self.data.X.shape)
        return Problem(n_rows=n, n_columns=d)

    def resources(self) -> Resources:
        data, model = self.data, self.model
        left = seconds_left(model.time_budget, data)
        return available_resources(model.memory_budget, left, device_of(data.like))

    def hold_out(self, n_folds: int) -> tuple[StepRecord, ...]:
        self.folds = shuffled_folds(int(self.targets.shape[0]), n_folds, self.classes)
        self.model._require_room_for_fixed(self.data)
        self.model._warn_of_folds(self.data, self.folds)
        self.held_out, record = held_out_predictions(
            self.data,
            self.targets,
            self.gram,
            self.alphas,
            self.folds,
            bias=bool(self.model.fit_intercept),
            memory_budget=self.model.memory_budget,
        )
        return (record,)

    def solve(self) -> tuple[StepRecord, ...]:
        self.model._solve(self)
        return self.model.run_record_.steps

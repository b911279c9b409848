"""What the models that choose their own kernel and ridge share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from ridgefold.crossval import Folds, Progress
from ridgefold.errors import (
    BudgetError,
    InvalidInputError,
    ModelFileError,
    UnweightedScoresWarning,
)
from ridgefold.estimators.base import KernelModel
from ridgefold.estimators.facts import HeldOutFacts, MetricFacts, ModelFacts, SearchFacts, to_numpy
from ridgefold.estimators.scale_names import named_scales
from ridgefold.estimators.search_work import OneKernelWork, StackWork
from ridgefold.estimators.stacked import decided, require_stack, sum_of, weighted
from ridgefold.estimators.stored_values import (
    Floats,
    HeldOut,
    require_metric,
    require_results,
)
from ridgefold.kernels import Kernel
from ridgefold.linalg import Array
from ridgefold.notices import warn
from ridgefold.options import MetricLearning, compute_of, search_of
from ridgefold.planning import available_resources, device_of, plan_fit
from ridgefold.records import (
    FittedModel,
    LearnedMetric,
    Plan,
    Problem,
    RunRecord,
    Stack,
    StepRecord,
)
from ridgefold.records.kinds import Amount, Count
from ridgefold.runtime import Step, perform_all
from ridgefold.runtime.progress import progress_bar
from ridgefold.runtime.training_data import TrainingData, require_comparable, seconds_left
from ridgefold.selection.describe import TrainingGram, describe
from ridgefold.selection.fit_steps import (
    Choose,
    ChooseByLikelihood,
    ChooseMembers,
    LearnMetric,
    Solve,
    is_more_than_family,
)
from ridgefold.selection.grids import (
    KernelGrid,
)
from ridgefold.selection.held_out_predictions import by_row
from ridgefold.selection.kernel_paths import KernelPaths
from ridgefold.selection.learned_grid import (
    LearnedGrid,
    length_scales_of,
    to_learn,
)
from ridgefold.selection.path_tasks import Common, gram_of
from ridgefold.selection.scoring import Rule, Truth, by_likelihood, scoring_of
from ridgefold.selection.search import Choice, Settings, results_table
from ridgefold.selection.search_place import opened_paths, search_executor
from ridgefold.selection.stack.nested import require_stackable
from ridgefold.selection.stack.search import StackChoice
from ridgefold.storage.annotations import check_fields

_SEARCH = {
    "alpha": Amount | Annotated[np.ndarray, Floats((1,), least=0.0)],
    "best_params": Mapping[str, Any],
    "best_score": float,
    "best_index": Count,
    "results": Mapping[str, np.ndarray | np.ma.MaskedArray],
    "n_splits": Count,
}


class CrossValidatedModel(KernelModel):
    """Search over kernels and alphas by exact cross-validation, then one fit on all rows."""

    cv: Any
    scoring: Any
    metric: Any
    search: Any
    random_state: Any

    _without_use: ClassVar[Mapping[str, str]] = {
        "compute.device": KernelModel._without_use["compute.device"]
    }

    def _choose_and_fit(
        self,
        data: TrainingData,
        targets: Array,
        folds: Folds,
        truth: Truth,
    ) -> None:
        """Set all fitted attributes but those that depend on the shape of y."""
        self._require_usable(data, folds)
        self._require_room_for_fixed(data)
        self._warn_of_folds(data, folds)
        require_comparable(data.namespace.to_numpy(targets))
        self.__dict__.pop("stack_", None)
        kind = StackWork if search_of(self).stack else OneKernelWork
        work = kind(self, data, targets, folds, truth)
        _, records = perform_all(self._steps(), work.problem(), work)
        held_out = work.finished()
        self.run_record_ = RunRecord(records)
        self.held_out_predictions_ = (
            held_out
            if data.namespace.name == "numpy"
            else data.namespace.asarray(held_out, data.like)
        )

    def _steps(self) -> list[Step[Problem, Any]]:
        """What a fit does, in order; `explain` goes through the same list."""
        steps: list[Step[Problem, Any]] = []
        asked = self._learning()
        if asked is not None:
            steps.append(LearnMetric.of(self, asked))
        kind, score = (ChooseMembers, None) if search_of(self).stack else (Choose, self.scoring)
        if by_likelihood(score):
            kind = ChooseByLikelihood
        classifier = not search_of(self).stack and isinstance(self, ClassifierMixin)
        rule = scoring_of(score, classifier=classifier)
        method = search_of(self).method
        steps.append(kind(search_executor(self), method, self._settings_of_search(), rule))
        steps.append(Solve(compute_of(self).solver))
        return steps

    def _learning(self) -> MetricLearning | None:
        """What is learned before the search, if anything."""
        asked = to_learn(self)
        if asked is not None and search_of(self).stack and not is_more_than_family(asked):
            return None  # a stack takes every family with a grid of widths
        return asked

    def _settings_of_search(self) -> Settings:
        asked = search_of(self)
        return Settings(
            alpha_per_target=bool(asked.alpha_per_target),
            one_standard_error=bool(asked.one_standard_error),
            race=asked.race,
        )

    @contextmanager
    def _searching(
        self, data: TrainingData, targets: Array, folds: Folds, truth: Truth
    ) -> Iterator[tuple[KernelPaths, Progress]]:
        """Where paths of kernels are computed, for the time of a search."""
        scoring = None if search_of(self).stack else self.scoring
        common = Common(
            data.X,
            targets,
            data.weights,
            folds,
            bool(self.fit_intercept),
            truth,
            scoring,
            self._fixed_columns(),
        )
        with (
            np.errstate(over="ignore", invalid="ignore", divide="ignore"),
            opened_paths(self, data, common) as paths,
            progress_bar(compute_of(self).verbose, "choosing kernel and alpha") as progress,
        ):
            yield paths, progress

    def _rule(self, truth: Truth) -> Rule:
        return scoring_of(self.scoring, classifier=truth.classes is not None)

    # -- stacks --------------------------------------------------------------------------

    def _fit_members(
        self, data: TrainingData, targets: Array, folds: Folds, chosen: StackChoice
    ) -> tuple[StepRecord, ...]:
        """Fit every member with its weight, and become their sum."""
        t, members = int(targets.shape[1]), chosen.members
        models: list[FittedModel] = []
        kept: list[Any] = []
        fits: list[tuple[StepRecord, ...]] = []
        for place in reversed(range(len(members))):  # the heaviest last: its plan is shown
            choice = chosen.choices[members[place]]
            gram = gram_of(choice.candidate.kernel, data.X, self._fixed_columns())
            self._fit_choice(data, targets, gram, choice, folds)
            offset = chosen.nested.whole.offset if place == 0 else np.zeros(t)
            models.insert(0, weighted(self._model, chosen.nested.whole.weights[place], offset))
            kept.insert(0, self._without_folds(chosen, place, folds))
            description = chosen.candidates[members[place]].description
            steps = self.run_record_.steps
            fits.insert(
                0, tuple(replace(each, name=f"{each.name}: {description}") for each in steps)
            )
        self._model = sum_of(models)
        self.stack_ = chosen.record()
        self._set_stack_intervals(data, targets, chosen, kept)
        return tuple(record for each in fits for record in each)

    def _set_stack_choice(self, work: StackWork, chosen: StackChoice) -> None:
        """The fitted attributes of a search: those of the heaviest member, with all scores."""
        first = chosen.members[0]
        heaviest = chosen.choices[first]
        self._set_choice(heaviest, work.folds, work.settings.alpha_per_target)
        self._set_learned(None)
        stacked = chosen.nested.held_out[work.folds.stacked]
        self.best_score_ = float(self._rule(work.truth)(work.truth, stacked[None]).overall[0])
        self.cv_results_ = results_table(tuple(t for c in chosen.choices for t in c.trials))
        before = chosen.choices[:first]
        self.best_index_ = heaviest.best_index + sum(len(each.trials) for each in before)

    def _without_folds(self, chosen: StackChoice, place: int, folds: Folds) -> Any:
        """The models without each fold of the member that has just been fitted, weighted."""

    def _set_stack_intervals(
        self, data: TrainingData, targets: Array, chosen: StackChoice, kept: list[Any]
    ) -> None:
        """Keep what intervals of the stack need, from what its members keep."""

    def _decision_of_checked(self, X: Array) -> Array:
        total = super()._decision_of_checked(X)
        return decided(total) if hasattr(self, "stack_") and self.stack_.log_odds else total

    def _further_kernels(self) -> tuple[Kernel | str, ...]:
        if not hasattr(self, "stack_"):
            return ()
        return tuple(each.kernel for each in self.stack_.members[1:])

    # -- what the search found -----------------------------------------------------------

    def _seconds_to_fit(
        self, data: TrainingData, targets: Array, grid: KernelGrid, alphas: np.ndarray
    ) -> float:
        """What the fit after the search is predicted to take; a refusal if it would be refused."""
        resources = available_resources(
            self.memory_budget, seconds_left(self.time_budget, data), device_of(data.like)
        )
        plans: list[Plan] = []
        refusal: BudgetError | None = None
        for kernel in {repr(c.kernel): c.kernel for c in grid.candidates}.values():
            gram = gram_of(kernel, data.X, self._fixed_columns())
            problem = describe(data, targets, gram, alphas[:1], bias=bool(self.fit_intercept))
            try:
                plans.append(plan_fit(problem, resources, compute_of(self).solver))
            except BudgetError as error:
                refusal = error
        if not plans and refusal is not None:
            raise refusal
        return max(plan.seconds for plan in plans)

    def _require_usable(self, data: TrainingData, folds: Folds) -> None:
        """Refuse, before a long search, what these folds and options cannot give."""
        if by_likelihood(self.scoring) and (
            search_of(self).stack or search_of(self).one_standard_error
        ):
            what = (
                "search.stack=True" if search_of(self).stack else "search.one_standard_error=True"
            )
            raise InvalidInputError(
                f'{what} goes by held-out errors, and scoring="marginal_likelihood" by the '
                "likelihood: leave one of them out"
            )
        if search_of(self).average_folds and not folds.each_row_once:
            raise InvalidInputError(
                "search.average_folds=True needs a cv that holds every row out once, got "
                f"cv={self.cv!r}: use another cv, or average_folds=False"
            )
        if search_of(self).stack:
            weights = None if data.weights is None else data.namespace.to_numpy(data.weights)
            require_stackable(folds, weights, self.cv)

    def _fit_choice(
        self,
        data: TrainingData,
        targets: Array,
        gram: TrainingGram,
        choice: Choice,
        folds: Folds,
    ) -> None:
        """Fit the chosen kernel and alpha to all rows."""
        final = self._final_targets(data, targets, choice, folds)
        self._solve_with(data, final, gram, choice.alphas, observed=targets)

    def _widen_intervals(self, data: TrainingData, targets: Array, learned: LearnedGrid) -> None:
        """Widen intervals where the metric has seen the rows that were held out from the fits."""

    def _final_targets(
        self, data: TrainingData, targets: Array, choice: Choice, folds: Folds
    ) -> Array:
        """What to fit: the targets, or those whose fit is the mean of the models of the folds.

        The model without a fold is the model of all rows with the targets of the fold replaced
        by its own predictions of them, and a fit is linear in its targets. So the mean of the
        models of l folds is one fit of y − (y − ŷ)/l, ŷ the held-out predictions.
        """
        if not search_of(self).average_folds:
            return targets
        numbers = data.namespace.to_numpy(targets)
        mean = numbers - (numbers - by_row(folds, choice.predictions)) / len(folds)
        return data.namespace.asarray(mean, targets)

    def _set_learned(self, metric: LearnedMetric | None) -> None:
        """What was learned, or nothing left of an earlier fit."""
        for name in ("metric_", "length_scales_", "column_shares_"):
            self.__dict__.pop(name, None)
        if metric is not None:
            self.metric_ = metric
            self.length_scales_ = length_scales_of(self.kernel_, self.n_features_in_)
            self.column_shares_ = metric.relevance

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.metric is not None:
            tags.input_tags.sparse = False
        return tags

    def _set_choice(self, choice: Choice, folds: Folds, alpha_per_target: bool) -> None:
        self.alpha_ = choice.alphas if alpha_per_target else float(choice.alphas[0])
        self.best_params_ = {"alpha": self.alpha_, **choice.candidate.params}
        self.best_score_ = choice.score
        self.best_index_ = choice.best_index
        self.cv_results_ = results_table(choice.trials)
        self.cv_plan_ = choice.record.plan
        self.n_splits_ = len(folds)

    # -- reports -------------------------------------------------------------------------

    def report_facts(self) -> ModelFacts:
        """What a report may know of the fitted model."""
        facts = super().report_facts()
        whole = self.n_splits_ == facts.n_rows
        how = "leave-one-out" if whole else f"{self.n_splits_}-fold cross-validation"
        held_out = HeldOutFacts(how, lambda rows: to_numpy(self._held_out_columns())[rows])
        search = SearchFacts(
            results=self.cv_results_,
            best_index=int(self.best_index_),
            best_params=self.best_params_,
            best_score=float(self.best_score_),
            scoring=self.scoring,
            weighted=bool(search_of(self).weighted_scores and self.cv_plan_.problem.weighted),
            n_splits=self.n_splits_,
        )
        learned: LearnedMetric | None = getattr(self, "metric_", None)
        metric = None
        if learned is not None:
            shares = np.asarray(learned.relevance, dtype=np.float64)
            metric = MetricFacts(
                self.length_scales_, shares, named_scales(self, facts.column_names, shares), learned
            )
        return replace(
            facts,
            held_out=None if facts.targets is None else held_out,
            search=search,
            metric=metric,
        )

    def _ridge(self) -> Any:
        return self.alpha_

    # -- model files ---------------------------------------------------------------------

    _further_state: Mapping[str, Any] = {
        "search": Mapping[str, Any],
        "cv_plan": Plan,
        "held_out": HeldOut,
        "metric": LearnedMetric | None,
    }

    def _state(self) -> dict[str, Any]:
        results = {key: value for key, value in self.cv_results_.items() if key != "params"}
        return {
            **super()._state(),
            "search": {
                "alpha": self.alpha_,
                "best_params": self.best_params_,
                "best_score": self.best_score_,
                "best_index": self.best_index_,
                "results": results,
                "n_splits": self.n_splits_,
            },
            "cv_plan": self.cv_plan_,
            "held_out": self._held_out_columns(),
            "metric": getattr(self, "metric_", None),
        }

    _optional_state: Mapping[str, Any] = {
        **KernelModel._optional_state,
        "stack": ("stack_", Stack),
    }

    def _restore(self, state: Mapping[str, Any]) -> None:
        stack = state.get("stack")
        if isinstance(stack, Stack):  # the model has a part for each of its members
            self.stack_ = stack
        super()._restore(state)
        if stack is not None:
            require_stack(stack, self._model, self.X_fit_)
        search, held_out = state["search"], state["held_out"]
        check_fields("model.state.search", search, _SEARCH, {})
        require_results(search)
        n_targets = self._model.intercept.shape[0]
        if np.shape(search["alpha"]) not in ((), (n_targets,)):
            raise ModelFileError("model.state.search.alpha must be one number, or one a target")
        self.alpha_, self.best_params_ = search["alpha"], dict(search["best_params"])
        self.best_score_, self.best_index_ = search["best_score"], search["best_index"]
        self.n_splits_, self.cv_plan_ = search["n_splits"], state["cv_plan"]
        self.cv_results_ = with_params(search["results"])
        if state["metric"] is not None:
            require_metric(state["metric"], self.n_features_in_)
        self._set_learned(state["metric"])
        if held_out.ndim != 2 or held_out.shape[1] != n_targets:
            raise ModelFileError("model.state.held_out must have one column a target")
        known = state.get("targets", held_out if "compression_bound" in state else self.X_fit_)
        if held_out.shape[0] != known.shape[0]:
            raise ModelFileError("model.state.held_out must have one row for each of the fit")
        self._set_held_out(held_out)

    def _held_out_columns(self) -> Array:
        """Held-out predictions (decision values of classifiers), shape (n_rows, n_targets)."""
        raise NotImplementedError

    def _set_held_out(self, columns: Array) -> None:
        """Set the fitted attributes that come from those columns."""
        raise NotImplementedError

    def _score_weights(self, data: TrainingData, folds: Folds) -> np.ndarray | None:
        if not search_of(self).weighted_scores or data.weights is None:
            return None
        if not scoring_of(self.scoring, classifier=isinstance(self, ClassifierMixin)).takes_weights:
            warn(
                f"scoring={self.scoring!r} takes no sample_weight, so that every row counts once "
                "in the scores, though not in the fits: use another score, or say so by "
                "search.weighted_scores=False",
                UnweightedScoresWarning,
            )
            return None
        weights = np.asarray(data.namespace.to_numpy(data.weights)[folds.stacked], np.float64)
        if not np.any(weights > 0):
            raise InvalidInputError(
                "sample_weight is zero for every row that cv holds out, so there is nothing to "
                "score: use another cv, or search.weighted_scores=False"
            )
        return weights


def with_params(results: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """`cv_results_` with the list of parameters, which its masked columns hold too."""
    columns: dict[str, Any] = {key[6:]: v for key, v in results.items() if key.startswith("param_")}
    params = [
        {
            name: value.item() if isinstance(value := column.data[i], np.generic) else value
            for name, column in columns.items()
            if not np.ma.getmaskarray(column)[i]
        }
        for i in range(len(results["mean_test_score"]))
    ]
    head = {key: v for key, v in results.items() if not key.startswith(_AFTER_PARAMS)}
    tail = {key: v for key, v in results.items() if key.startswith(_AFTER_PARAMS)}
    return {**head, "params": params, **tail}


_AFTER_PARAMS = ("split", "mean_test", "std_test", "bound_test", "rank_test")

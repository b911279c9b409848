"""What the regressor and the classifier for tables share."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_consistent_length,
    check_is_fitted,
)

from ridgefold.automatic.automatic_work import PUTTING_TOGETHER, AutomaticProblem, AutomaticWork
from ridgefold.automatic.columns_by_name import FIXED
from ridgefold.automatic.kept_rows import KeepsRows
from ridgefold.automatic.leaderboard import Leaderboard
from ridgefold.automatic.learning import is_short_of_rows, is_worth_learning
from ridgefold.automatic.members import Member, packed_members, unpacked_members
from ridgefold.automatic.promised_time import PromisedTime, seconds_for
from ridgefold.automatic.shown_time import time_shown
from ridgefold.automatic.steps import automatic_steps, require_least_time
from ridgefold.automatic.table_reading import (
    ReadTable,
    TableOfNumbers,
    as_table,
    read_table,
    standardised_by_weight,
    weights_of,
)
from ridgefold.automatic.table_slopes import KnowsItsSlopes
from ridgefold.automatic.weighing import error_alone, error_of, nested
from ridgefold.crossval import Folds
from ridgefold.errors import InvalidInputError, ModelFileError
from ridgefold.estimators.explain import explain
from ridgefold.estimators.facts import HeldOutFacts, ModelFacts, TriedFacts
from ridgefold.estimators.saving import Storable
from ridgefold.estimators.stored_values import Floats, HeldOut
from ridgefold.estimators.validation import out_of_memory_is_a_budget_error, unchanged_on_error
from ridgefold.executors.interruption import looking
from ridgefold.notices import collected
from ridgefold.planning import Explanation, available_resources, explain_plans, explain_run
from ridgefold.records import Attempt, Problem, RunRecord, TableColumns
from ridgefold.records.kinds import Count, Limit
from ridgefold.runtime import foresee_all, perform_all
from ridgefold.runtime.training_data import as_ridgefold_errors
from ridgefold.selection.held_out_predictions import shuffled_folds
from ridgefold.selection.splits import folds_of
from ridgefold.selection.stack.weights import decisions_of
from ridgefold.storage.annotations import check_fields
from ridgefold.tables.diagnosis import TableDiagnosis
from ridgefold.tables.encoder import TableEncoder
from ridgefold.tables.level_codes import with_codes
from ridgefold.tables.names import require_columns
from ridgefold.tables.table_input import read_input
from ridgefold.tables.table_stream import WrittenTable
from ridgefold.tables.wide_columns import packed_columns, unpacked_columns

_FEW_FOLDS = 5


class TableEstimator(KnowsItsSlopes, KeepsRows, Storable):
    """Base of the estimators for tables; subclasses know their targets."""

    def __init__(
        self,
        *,
        model: Any = None,
        time_budget: Any = "auto",
        memory_budget: Any = "auto",
        columns: Mapping[str, Any] | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        device: str | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.model = model
        self.time_budget = time_budget
        self.memory_budget = memory_budget
        self.columns = columns
        self.cv = cv
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    _clock: ClassVar[Any] = staticmethod(time.monotonic)
    """What the time budget is measured by."""
    _classify: ClassVar[bool] = False
    _measure: ClassVar[str] = ""
    """What errors in the leaderboard are."""
    _nature: ClassVar[str] = ""

    # -- fitting -------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        target: str | None = None,
    ) -> Self:
        """Understand the table; then fit and combine what there is time for, or the given model.

        Parameters
        ----------
        X : table or path
            Of pandas, polars or pyarrow, a dict of columns, a NumPy array, a sparse matrix, or the
            path of a CSV, TSV or Parquet file; or what :func:`ridgefold.diagnose` has made of one
            with its target.
        y : array of shape (n_rows,) or (n_rows, n_targets), optional
            The targets, or the class of every row, if they are not a column of the table.
        sample_weight : float or array of shape (n_rows,), optional
            A row of weight 2 counts as two rows.
        groups : str or array of shape (n_rows,), optional
            Rows of one group are held out together: a column of the table by its name, or values.
        target : str, optional
            The name of the column to predict, in the place of y. Rows without it are left out.
        """
        promise = PromisedTime.of(
            self.time_budget, self._clock, alone=self.n_jobs is None or self.n_jobs == 1
        )
        with unchanged_on_error(self):
            written = X if isinstance(X, WrittenTable) else None
            X = X if written is None else written.diagnosis
            self._check_arguments(y, target, diagnosed=isinstance(X, TableDiagnosis))
            self._forget()
            if target is None:
                self._note_columns(X)
            read = read_table(X, y, target, self.columns, classify=self._classify)
            self._note_table(read, X)
            if written is not None:
                self._fit_written(written, sample_weight, groups)
                return self
            data = self._as_numbers(read, sample_weight, groups)
            if self.model is not None:
                self._fit_given(data.X, data.labels, data.weights, data.groups)
                self._set_held_out(read)
                return self
            work, known = self._prepared(data, promise)
            require_least_time(known, promise.budget, promise.passed, work.resources())
            # What single candidates warn of says nothing of all of them.
            with collected(), time_shown(self.verbose, promise) as work.say:
                with looking(promise.look):
                    _, records = perform_all(automatic_steps(), known, work)
                work.say("putting the models together")
                self._put_together(work, known)
            self.run_record_ = RunRecord(records)
            self._set_held_out(read)
        return self

    def _fit_written(self, written: WrittenTable, sample_weight: Any, groups: Any) -> None:
        """Fit the given model to rows that lie in a file."""
        if self.model is None or sample_weight is not None or groups is not None:
            raise InvalidInputError(
                "rows in a file are fitted by a given model, without sample_weight and groups"
            )
        self._encoder, self._one_target = written.diagnosis.encoder, True
        self._fit_given(written.X, written.y, None, None)
        self._spread_held_out(lambda values: values)

    def _check_arguments(self, y: Any, target: Any, *, diagnosed: bool) -> None:
        if y is None and target is None and not diagnosed:
            raise InvalidInputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: pass y, "
                "or the name of a column as target="
            )
        if target is not None and not isinstance(target, str):
            raise InvalidInputError(f"target must be the name of a column, got {target!r}")
        if self.model is not None:
            self._check_given()
        seconds_for(self.time_budget, 1, 1)
        available_resources(self.memory_budget)
        if self.columns is not None and not isinstance(self.columns, Mapping):
            raise InvalidInputError(
                f"columns must say what columns are, as {{'zip': 'category'}}, got {self.columns!r}"
            )

    def _forget(self) -> None:
        for name in _OF_ONE_FIT:
            self.__dict__.pop(name, None)

    def _note_columns(self, X: Any) -> None:
        """Names and number of columns, as scikit-learn's estimators keep them."""
        if _is_frame(X):
            _check_feature_names(self, X, reset=True)

    def _note_table(self, read: ReadTable, X: Any) -> None:
        self.diagnosis_: TableDiagnosis = read.diagnosis
        self.n_features_in_ = read.n_columns
        if read.target is not None:
            self.target_ = read.target
            self.feature_names_in_ = np.asarray(read.names, dtype=object)
        elif read.names is not None and not _is_frame(X):
            self.feature_names_in_ = np.asarray(read.names, dtype=object)

    def _as_numbers(self, read: ReadTable, sample_weight: Any, groups: Any) -> TableOfNumbers:
        """The rows of the table that have a target, in the order in which they were given."""
        diagnosis, rows = read.diagnosis, read.rows
        frame = diagnosis.frame if read.all_in_order else diagnosis.frame[rows]
        with collected():
            X = _never_empty(diagnosis.encoder.apply(frame).X, len(frame))
        with as_ridgefold_errors("y must hold one target for each row of the table"):
            check_consistent_length(X, read.y)
        if len(X) < 2:
            raise InvalidInputError(
                f"the table has {len(X)} row with a target (n_samples = {len(X)}): at least 2 are "
                "needed, one to fit and one to see how good that is"
            )
        weights = weights_of(sample_weight, X, rows, diagnosis.n_rows)
        self._encoder = diagnosis.encoder
        if weights is not None and self._encoder.names:
            self._encoder, X = standardised_by_weight(self._encoder, X, weights)
        targets, codes, labels, weights = self._targets(X, read.y, weights)
        with as_ridgefold_errors("random_state must be a whole number, a RandomState or None"):
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        groups = self._groups(groups, diagnosis, rows)
        if groups is None:  # codes of rows that belong together would give their targets away
            coded = with_codes(self._encoder, frame, targets, weights=weights, random_state=seed)
            if coded is not None:
                self._encoder, X = coded.encoder, coded.X
        return TableOfNumbers(X, targets, codes, labels, weights, groups, seed)

    def _prepared(
        self, data: TableOfNumbers, promise: PromisedTime
    ) -> tuple[AutomaticWork, AutomaticProblem]:
        """The work on a table, and what is known of it."""
        X, groups = data.X, data.groups
        folds = self._folds(X, data.labels, data.codes, groups)
        promise.budget = seconds_for(self.time_budget, len(X), int(X.shape[1]))
        self.time_budget_ = promise.budget
        work = AutomaticWork(
            X=X,
            targets=data.targets,
            codes=data.codes,
            weights=data.weights,
            folds=folds,
            category_features=self._encoder.columns.category_features,
            seed=data.seed,
            time=promise,
            memory_budget=self.memory_budget,
            n_jobs=self.n_jobs,
            device=self.device,
        )
        known = AutomaticProblem(
            _problem(X, data.targets, folds, weighted=data.weights is not None),
            left=promise.left,
            exchangeable=groups is None and isinstance(self.cv, (int, np.integer)),
            enough_rows=is_worth_learning(work),
            few_rows=is_short_of_rows(work),
        )
        return work, known

    def _targets(
        self, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray | None]:
        """Targets (n, t), class numbers or None, what folds are stratified by, and weights."""
        raise NotImplementedError

    def _groups(self, groups: Any, diagnosis: TableDiagnosis, rows: np.ndarray) -> Any:
        if groups is None:
            return None
        if isinstance(groups, str):
            require_columns([groups], diagnosis.frame.columns, "groups")
            groups = diagnosis.frame[groups].to_list()
        values = np.asarray(groups)
        if values.ndim != 1 or len(values) != diagnosis.n_rows:
            raise InvalidInputError(
                f"groups must be the name of a column, or hold one value a row: the table has "
                f"{diagnosis.n_rows} rows, groups has shape {values.shape}"
            )
        return values.astype(str)[rows] if values.dtype.kind == "O" else values[rows]

    def _folds(self, X: np.ndarray, labels: Any, codes: np.ndarray | None, groups: Any) -> Folds:
        cv = self.cv
        if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
            if cv < 2:
                raise InvalidInputError(f"cv must be at least 2 folds, got {cv!r}")
            if groups is None:
                return shuffled_folds(len(X), int(cv), codes)
            count = len(np.unique(groups))
            if count < 2:
                raise InvalidInputError("groups must hold at least two different values")
            from sklearn.model_selection import GroupKFold

            cv = GroupKFold(min(int(cv), count))
        folds = folds_of(cv, X, labels, classifier=self._classify, groups=groups)
        if not folds.disjoint or len(folds) > _MOST_FOLDS:
            raise InvalidInputError(
                f"cv={self.cv!r} must hold out no row twice, in at most {_MOST_FOLDS} folds: use a "
                "number of folds, or a splitter such as GroupKFold"
            )
        return folds

    # -- putting together ----------------------------------------------------------------

    def _put_together(self, work: AutomaticWork, known: AutomaticProblem) -> None:
        whole = work.whole
        assert whole is not None
        totals = whole.weights.sum(axis=1)
        heavy = [int(m) for m in np.argsort(-totals, kind="stable") if totals[m] > 0]
        members = [work.candidates[m] for m in heavy]
        if members:
            stack = nested(work, members)
            weights, offset, held_out = stack.whole.weights, stack.whole.offset, stack.held_out
        else:  # nothing predicts better than the mean
            weights, offset = np.empty((0, work.targets.shape[1])), whole.offset
            held_out = np.broadcast_to(offset, work.targets.shape).copy()
        self.stack_ = tuple(
            Member(each.description, each.model, each.coordinates, w, each.places)
            for each, w in zip(members, weights, strict=True)
        )
        self._offset, self._log_odds = offset, whole.log_odds
        self._held_out = held_out
        self._keep_rows(work, known, held_out)
        self._targets_fit = work.targets if work.codes is None else work.codes
        self._counts = work.counts
        self._fold_of = _fold_numbers(work.folds)
        self.n_splits_ = len(work.folds)
        self.held_out_error_ = error_of(work, held_out)
        shares = totals / totals.sum() if totals.sum() > 0 else totals
        self.leaderboard_ = self._leaderboard(work, shares)

    def _leaderboard(self, work: AutomaticWork, shares: np.ndarray) -> Leaderboard:
        places = {id(each): k for k, each in enumerate(work.candidates)}
        attempts: list[Attempt] = []
        for each in work.outcomes:
            planned = 0.0 if each.plan is None else each.plan.seconds
            if each.candidate is not None:
                share = float(shares[places[id(each.candidate)]])
                note = "" if share > 0 else "adds nothing to the others"
                error = error_alone(work, each.candidate)
                attempts.append(
                    Attempt(each.description, "fitted", error, share, planned, each.seconds, note)
                )
            elif each.why_not:
                outcome = "left out" if each.plan is None else "failed"
                attempts.append(
                    Attempt(
                        each.description, outcome, None, 0.0, planned, each.seconds, each.why_not
                    )
                )
        attempts += [
            Attempt(each.description, "left out", None, 0.0, 0.0, 0.0, "others had little to add")
            for each in work.kernels
        ]
        return Leaderboard(attempts, self.held_out_error_, self._measure)

    def _set_held_out(self, read: ReadTable) -> None:
        """Set the held-out attributes: one entry for each row of the table."""
        self._spread_held_out(lambda values: self._by_row_of_table(values, read))

    def _spread_held_out(self, spread: Callable[[np.ndarray], np.ndarray]) -> None:
        raise NotImplementedError

    def _by_row_of_table(self, values: np.ndarray, read: ReadTable) -> np.ndarray:
        if read.all_in_order:
            return values
        n = read.diagnosis.n_rows
        if len(read.rows) == n:
            out = np.empty_like(values)
            out[read.rows] = values
            return out
        empty: Any = np.nan if values.dtype.kind == "f" else None
        out = np.full((n, *values.shape[1:]), empty, dtype=float if empty is not None else object)
        out[read.rows] = values
        return out

    # -- prediction ----------------------------------------------------------------------

    @property
    def columns_(self) -> TableColumns:
        """How each column becomes numbers."""
        return self._encoder.columns

    def _numbers(self, X: Any) -> np.ndarray:
        """The numbers that members take, of a table with the columns of the fit."""
        check_is_fitted(self, "stack_")
        table = as_table(X)
        if not hasattr(self, "target_"):
            if _is_frame(X):
                _check_feature_names(self, X, reset=False)
            elif isinstance(table, np.ndarray) and table.dtype.names is None:
                _check_feature_names(self, table, reset=False)
                _check_n_features(self, table, reset=False)
        if isinstance(table, np.ndarray) and table.dtype.names is None:
            table = self._with_names(table)
        return _never_empty(self._encoder.apply(table).X, len(read_input(table).frame))

    def _with_names(self, matrix: np.ndarray) -> Any:
        """A matrix as a table with the names of the fit."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return matrix
        return {str(name): matrix[:, j] for j, name in enumerate(names)}

    @out_of_memory_is_a_budget_error("predicting")
    def _decision(self, X: Any) -> np.ndarray:
        """The weighted sum for the rows of a table, shape (n, t)."""
        numbers = self._numbers(X)
        self._warn_of_far_values(numbers)
        return self._bounded(self._decision_of_numbers(numbers))

    def _decision_of_numbers(self, X: np.ndarray) -> np.ndarray:
        total = np.tile(self._offset, (len(X), 1))
        for member in self.stack_:
            total += member.predict(X, self.device)
        return self._decided(total)

    def _decided(self, total: np.ndarray) -> np.ndarray:
        return decisions_of(total) if self._log_odds else total

    # -- explanation and reports ---------------------------------------------------------

    def explain(self) -> Explanation:
        """How the fit was computed: its steps, with predicted and measured cost.

        Prints as text; `to_json()` gives JSON, and notebooks show it as HTML. What a fit to a table
        of some shape would do, `ridgefold.explain` says.
        """
        check_is_fitted(self, "stack_")
        if self._is_given:
            explanation: Explanation = self.model_.explain()
            return explanation
        return explain_run(self.run_record_)

    def explain_shape(
        self,
        n_samples: int,
        n_features: int,
        n_targets: int = 1,
        memory_budget: Any = None,
        time_budget: Any = None,
    ) -> Explanation:
        """The steps that a fit to a table of this shape would take, if predictions are right."""
        if self.model is not None:
            return explain(
                self.model,
                n_samples=n_samples,
                n_features=n_features,
                n_targets=n_targets,
                memory_budget=memory_budget,
                time_budget=time_budget,
            )
        memory = self.memory_budget if memory_budget is None else memory_budget
        time_budget = self.time_budget if time_budget is None else time_budget
        n, d = n_samples, n_features
        count = int(self.cv) if isinstance(self.cv, (int, np.integer)) else _FEW_FOLDS
        folds = Folds(n, tuple(np.array_split(np.arange(n), min(count, n))))
        X, targets = np.broadcast_to(0.0, (n, d)), np.broadcast_to(0.0, (n, n_targets))
        problem = _problem(X, targets, folds, weighted=False)
        left = (1.0 - PUTTING_TOGETHER) * seconds_for(time_budget, n, d)
        known = AutomaticProblem(problem, left=left)
        return explain_plans(foresee_all(automatic_steps(), known, available_resources(memory)))

    def report_facts(self) -> ModelFacts:
        """What a report may know of the fitted model."""
        check_is_fitted(self, "stack_")
        if self._is_given:
            return self._facts_of_given()
        kernels = tuple(each.kernel for each in self.stack_)
        alphas = [each.ridges for each in self.stack_]
        targets = self._targets_fit
        return ModelFacts(
            name=type(self).__name__,
            nature=self._nature,
            rows=self._rows_fit(),
            n_rows=len(self._held_out),
            n_targets=int(self._held_out.shape[1]),
            column_names=tuple(self._encoder.feature_names),
            n_table_columns=self.n_features_in_,
            targets=targets[:, 0] if targets.ndim == 2 and targets.shape[1] == 1 else targets,
            kernels=kernels,
            alphas=np.concatenate(alphas) if alphas else np.zeros(1),
            bias=True,
            predict=self.predict,
            held_out=HeldOutFacts(
                f"{self.n_splits_}-fold cross-validation", lambda rows: self._held_out[rows]
            ),
            run=self.run_record_,
            explain=self.explain,
            methods_compared=False,
            tried=TriedFacts(tuple(self.leaderboard_), self.held_out_error_, self._measure),
            importances=self._importances_for_facts() if self.stack_ else None,
            effect_curves=self._curves_for_facts if self.stack_ else None,
            is_outside=self.is_outside,
            effects=self._effects_for_facts if self.stack_ else None,
        )

    def _rows_fit(self) -> Any:
        for each in self.stack_:
            if each.coordinates is None:
                return each.model.X_fit_
        return self.stack_[0].model.X_fit_ if self.stack_ else np.zeros((0, 1))

    def report(self, path: Any, **options: Any) -> None:
        """Write the report of the fitted model as one page of HTML.

        Parameters
        ----------
        path : str or path
        **options
            As :func:`ridgefold.write_report` takes them.
        """
        from importlib import import_module

        import_module("ridgefold.report.write").write_report(self, path, **options)

    # -- model files ---------------------------------------------------------------------

    _interval_entries = ("held_out",)

    def _state(self) -> dict[str, Any]:
        names = getattr(self, "feature_names_in_", None)
        both = {
            "columns": packed_columns(self._encoder.columns),
            "attempts": list(self.leaderboard_),
            "n_columns": self.n_features_in_,
            "column_names": None if names is None else [str(name) for name in names],
            "target": getattr(self, "target_", None),
        }
        if self._is_given:
            counts = None if np.all(self._counts == 1.0) else self._counts
            return {**both, "fitted": self.model_, "counts": counts}
        return {
            **both,
            **packed_members(self.stack_),
            "offset": self._offset,
            "log_odds": self._log_odds,
            "held_out": self._held_out,
            "counts": self._counts,
            "targets": self._targets_fit,
            "fold_of": self._fold_of,
            "kept_rows": self._kept_rows_state(),
            "n_splits": self.n_splits_,
            "error": self.held_out_error_,
            "run_record": self.run_record_,
            "seconds": self.time_budget_,
        }

    _further_state: ClassVar[Mapping[str, Any]] = {}

    def _restore(self, state: Mapping[str, Any]) -> None:
        given = "fitted" in state
        count = len(state.get("members", ()))
        fields = (
            {"fitted": Mapping[str, Any], "counts": Annotated[np.ndarray, Floats((1,))] | None}
            if given
            else {**_STATE, **{f"model_{k}": Mapping[str, Any] for k in range(count)}}
        )
        check_fields("model.state", state, {**_BOTH, **fields, **self._further_state}, {})
        self._encoder = TableEncoder(unpacked_columns("model.state.columns", state["columns"]))
        self.n_features_in_ = state["n_columns"]
        if state["column_names"] is not None:
            self.feature_names_in_ = np.asarray(state["column_names"], dtype=object)
        if state["target"] is not None:
            self.target_ = state["target"]
        if given:
            self._restore_given(state["fitted"], state["counts"])
            self.leaderboard_ = Leaderboard(
                state["attempts"], self.held_out_error_, self._measure_of_given
            )
            return
        t = len(state["offset"])
        self.stack_ = unpacked_members(state, t)
        width = max(1, len(self._encoder.feature_names))
        for each in self.stack_:
            if each.coordinates is None and each.model.n_features_in_ != width:
                raise ModelFileError("model.state.columns must name the columns of the models")
        self._offset, self._log_odds = state["offset"], state["log_odds"]
        self._held_out, self._counts = state["held_out"], state["counts"]
        self._targets_fit, self._fold_of = state["targets"], state["fold_of"]
        n = len(self._fold_of)
        self._restore_kept_rows(state["kept_rows"], width, n)
        entries = [self._counts, self._targets_fit]
        entries += [] if self._held_out is None else [self._held_out]
        if any(len(each) != n for each in entries):
            raise ModelFileError("model.state must have one entry for each row of the fit")
        self.n_splits_, self.held_out_error_ = state["n_splits"], state["error"]
        self.leaderboard_ = Leaderboard(state["attempts"], self.held_out_error_, self._measure)
        self.run_record_, self.time_budget_ = state["run_record"], state["seconds"]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags


_MOST_FOLDS = 20
"""Every fold has a model of its own, kept for intervals and for importance."""
_OF_ONE_FIT = (
    *("feature_names_in_", "classes_", "target_", "model_", "time_budget_", "n_splits_", *FIXED),
    "_known_importances",
)
"""Attributes that another fit may not set."""
_BOTH: Mapping[str, Any] = {
    "columns": TableColumns | Mapping[str, Any],
    "attempts": list[Attempt],
    "n_columns": Count,
    "column_names": list[str] | None,
    "target": str | None,
}
"""What a model file holds of every estimator for tables."""
_STATE: Mapping[str, Any] = {
    "members": list[Mapping[str, Any]],
    "offset": np.ndarray,
    "log_odds": bool,
    "held_out": HeldOut | None,
    "counts": np.ndarray,
    "targets": np.ndarray,
    "fold_of": np.ndarray,
    "kept_rows": Mapping[str, Any],
    "n_splits": Count,
    "error": Limit,
    "run_record": RunRecord,
    "seconds": Limit,
}
"""And of those that chose everything."""


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "__dataframe__")


def _never_empty(X: np.ndarray, n_rows: int) -> np.ndarray:
    """Models take at least one column; of a table that says nothing it is one of zeros."""
    return X if X.shape[1] else np.zeros((n_rows, 1))


def _problem(X: np.ndarray, targets: np.ndarray, folds: Folds, *, weighted: bool) -> Problem:
    return Problem(
        n_rows=int(X.shape[0]),
        n_columns=int(X.shape[1]),
        n_targets=int(targets.shape[1]),
        bias=True,
        weighted=weighted,
        folds=folds.shapes,
        complement_folds=folds.complement,
    )


def _fold_numbers(folds: Folds) -> np.ndarray:
    """The fold that holds out every row; −1 for rows that none does."""
    fold_of = np.full(folds.n_rows, -1)
    for k, test in enumerate(folds.test):
        fold_of[test] = k
    return fold_of

"""Regression for people with a table: everything is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted

from ridgefold.automatic.local_errors import LocalErrors
from ridgefold.automatic.table_estimator import TableEstimator
from ridgefold.errors import InvalidInputError
from ridgefold.estimators.facts import IntervalFacts, ModelFacts
from ridgefold.estimators.regressor import check_coverage
from ridgefold.runtime.training_data import as_ridgefold_errors, require_comparable
from ridgefold.selection.limits import widened_outside


class RidgefoldRegressor(MultiOutputMixin, RegressorMixin, TableEstimator):
    """Regression from a table as it is, within a time that you set.

    Columns are understood by :func:`ridgefold.diagnose`: text, dates, gaps and categories are
    made numbers, identifiers and copies of the target are left out. Then candidates are fitted
    as long as there is time: a linear model first, then kernels of several families with learned
    metrics, of all rows or in cells; and combined by their exact held-out predictions.

    With `model`, that one is fitted as it is to the columns as they were understood, and no others.

    Parameters
    ----------
    model : estimator of ridgefold, optional
        :class:`KernelRidgeCV`, :class:`PartitionedLSSVMRegressor` or another one: the only
        candidate, with its own ways to choose, to hold rows out and to give intervals. It gets
        numbers: one column for a number, one for each level of a category. Its arguments `fixed`
        and ``metric.groups`` may name columns of the table. Then `time_budget`, `memory_budget`,
        `cv`, `n_jobs` and `verbose` are for the model to have.
    time_budget : "auto" or float, default="auto"
        Seconds for the whole fit, which ends within 1.15 times that and a second, or earlier when
        nothing more is to be gained. "auto": some seconds for thousands of rows, about a minute
        for 100,000; `time_budget_` says how many. These are of processor time, so that a busy
        machine gives the same model, later (at most four times).
    memory_budget : "auto", int or str, default="auto"
        Most memory to take beyond what the process holds, as "2GB".
    columns : mapping, optional
        What columns are, by name, where :func:`ridgefold.diagnose` would decide otherwise:
        ``{"zip": "category", "note": "drop"}``.
    cv : int, splitter or iterable of (train, test), default=5
        How rows are held out to compare candidates. A number means folds of mixed rows; with
        `groups`, folds that keep groups together.
    n_jobs : int, optional
        Cells that are worked on at once; -1: as many as there are cores.
    device : str, optional
        Compute there with torch, as "cuda".
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=0

    Attributes
    ----------
    diagnosis_ : TableDiagnosis
        What was found out about the table; prints as one. A loaded model has none.
    leaderboard_ : Leaderboard
        Every candidate: held-out error, share in the final model, seconds planned and measured,
        or why it was left out. Prints as a table.
    stack_ : tuple of Member
        The models that predictions are the weighted sum of, the heaviest first.
    held_out_predictions_ : array with the shape of y
        Predictions of every row by models and weights that had not seen it; NaN for rows without
        a target, or in no test set.
    held_out_error_ : float
        Their root mean square error.
    time_budget_ : float
        Seconds that the fit was given.
    target_ : str
        The name of the target, if it is a column of the table.
    feature_names_in_ : array of str
        Names of the columns, if they have any.
    n_features_in_ : int
        Columns of the table, without the target.
    n_splits_ : int
        Folds that rows were held out by.
    run_record_ : RunRecord
        The steps of the fit, as planned and as measured.
    columns_ : TableColumns
        How each column becomes numbers.
    model_ : estimator
        The fitted model, where `model` was given. It knows numbers only.
    fixed_coef_, fixed_coef_std_, fixed_names_
        Where that has `fixed`: coefficients and standard errors in the units of the table. Of a
        column of categories there is one for each level but, beside a bias, the first.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import RidgefoldRegressor
    >>> rng = np.random.default_rng(0)
    >>> size = rng.uniform(20, 200, 120)
    >>> table = {
    ...     "size": [f"{value:.0f} m²" for value in size],
    ...     "colour": rng.choice(["red", "blue"], 120).tolist(),
    ...     "price": (1000 * np.sqrt(size) + 50 * rng.standard_normal(120)).tolist(),
    ... }
    >>> model = RidgefoldRegressor(time_budget=20).fit(table, target="price")
    >>> predicted = model.predict({"size": ["100 m²"], "colour": ["red"]})
    >>> bool(abs(predicted[0] - 10000) < 200)
    True

    A model of your own:

    >>> from ridgefold import KernelRidgeCV
    >>> model = RidgefoldRegressor(model=KernelRidgeCV(cv="loo")).fit(table, target="price")
    >>> model.columns_.feature_names
    ('size', 'colour=blue', 'colour=red')
    """

    _measure = "root mean square error"
    _nature = "regression, everything chosen"

    def _targets(
        self, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray | None]:
        wanted = "y must hold one finite real number (or one row of them) for each row of the table"
        with as_ridgefold_errors(wanted):
            if y.dtype.kind == "c":
                raise InvalidInputError("Complex data not supported: y must be real, pass y.real")
            checked: np.ndarray = check_array(
                y, ensure_2d=False, dtype=np.float64, input_name="y", allow_nd=False
            )
        targets = checked[:, None] if checked.ndim == 1 else checked
        if targets.ndim != 2 or targets.shape[1] == 0:
            raise InvalidInputError(f"{wanted}, got shape {y.shape}")
        require_comparable(targets)
        self._one_target = checked.ndim == 1
        return targets, None, checked, weights

    def _spread_held_out(self, spread: Callable[[np.ndarray], np.ndarray]) -> None:
        self.held_out_predictions_ = spread(self._shaped(self._held_out))

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self._one_target else values

    def predict(self, X: Any, return_std: bool = False, *, noise: bool = False) -> Any:
        """Predictions for the rows of a table.

        Parameters
        ----------
        X : table
        return_std : bool, default=False
            Also a standard deviation of f(x): the sum of those of the models with their weights in
            the prediction, each by its own Gaussian process (:meth:`KernelRidge.predict`). No
            correlation between their errors makes that of the sum larger; what choosing models and
            weights adds is not in it, and :meth:`predict_interval` reckons with that, too. Of a
            given `model` that of the model.
        noise : bool, default=False
            Of a new observation in place of f(x).

        Returns
        -------
        mean : array of shape (n_rows,) or (n_rows, n_targets)
        std : array of the shape of `mean`, if asked for
        """
        check_is_fitted(self, "stack_")
        if noise and not return_std:
            raise InvalidInputError("noise is about standard deviations: give return_std=True")
        if self._is_given:
            options = {"return_std": True, "noise": noise} if return_std else {}
            return self._ask("predict", X, **options)
        mean = self._shaped(self._decision(X))
        if not return_std:
            return mean
        return mean, self._shaped(self._deviations(self._numbers(X), noise=noise))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """An interval for each row that should hold the target with probability `coverage`.

        The prediction, and on both sides of it the error that so many of the held-out predictions
        do not exceed. Neither models nor weights had seen the rows that these are about. Where
        errors are clearly larger for some rows than for others, by the predicted value or by
        the columns, widths follow them (:mod:`ridgefold.selection.local_noise`). Of rows that lie
        :meth:`outside <is_outside>` the data no more is known than of the target itself: their
        intervals also hold its middle share.

        Parameters
        ----------
        X : table
        coverage : float, default=0.9

        Returns
        -------
        lower, upper : arrays with the shape of `predict`
            Infinite where there are too few rows for that coverage.
        """
        check_is_fitted(self, "stack_")
        if self._is_given:
            lower, upper = self._ask("predict_interval", X, coverage)
            return lower, upper
        coverage = check_coverage(coverage)
        if self._held_out is None:
            raise InvalidInputError(
                "nothing was kept to predict intervals with: the model was saved with "
                "intervals=False"
            )
        counted = self._counts > 0
        numbers = self._numbers(X)
        centre = self._bounded(self._decision_of_numbers(numbers))
        half = self._local_errors().half_widths(self, numbers, centre, coverage)
        lower, upper = widened_outside(
            centre - half,
            centre + half,
            self._outside_numbers(numbers),
            self._targets_fit[counted],
            coverage,
        )
        return self._shaped(lower), self._shaped(upper)

    def _local_errors(self) -> LocalErrors:
        """Computed when it is first asked for, and again after another fit."""
        kept: tuple[Any, LocalErrors] | None = self.__dict__.get("_known_errors")
        if kept is None or kept[0] is not self._held_out:
            kept = self._known_errors = (self._held_out, LocalErrors(self))
        return kept[1]

    def report_facts(self) -> ModelFacts:
        """What a report may know of the fitted model."""
        if self._is_given:
            return self._facts_of_given()
        facts = super().report_facts()
        if self._held_out is None:
            return replace(facts, held_out=None)
        return replace(
            facts, predict_interval=self.predict_interval, intervals=IntervalFacts(by_cell=False)
        )

    _further_state: ClassVar[Mapping[str, Any]] = {"one_target": bool}

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "one_target": self._one_target}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        self._one_target = state["one_target"]
        if self._held_out is not None:
            self._spread_held_out(lambda values: values)

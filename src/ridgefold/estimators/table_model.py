"""A model that takes tables as they are: numbers, categories and missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ridgefold.errors import InvalidInputError, ModelFileError
from ridgefold.estimators.effects import (
    Effect,
    check_estimand,
    effects_in_short,
    effects_of,
    require_columns,
    rows_and_shares,
)
from ridgefold.estimators.effects_table import MarginalEffects
from ridgefold.estimators.facts import ModelFacts, to_numpy
from ridgefold.estimators.fixed_in_tables import numbered, set_fixed_attributes
from ridgefold.estimators.importances import groups_of_table
from ridgefold.estimators.saving import Storable, unpack_estimator
from ridgefold.estimators.scale_names import groups_of, named_scales
from ridgefold.estimators.table_effects import table_effects
from ridgefold.estimators.validation import unchanged_on_error
from ridgefold.linalg import namespace_of
from ridgefold.linalg.namespace import on_device
from ridgefold.options import metric_of
from ridgefold.records import EffectCurve, Importances, TableColumns
from ridgefold.records.kinds import Count
from ridgefold.storage.annotations import check_fields
from ridgefold.tables.encode import encode
from ridgefold.tables.frames import as_frame, learn_columns, with_numbers_read
from ridgefold.tables.wide_columns import packed_columns, unpacked_columns


def _model_has(name: str) -> Any:
    def check(self: TableModel) -> bool:
        getattr(getattr(self, "model_", None) or self.model, name)  # its own AttributeError
        return True

    return available_if(check)


class TableModel(Storable):
    """A ridgefold model with the preparation of its columns: what ``ridgefold fit-kernel`` saves.

    Numbers are standardised, text becomes one column a category, and the model file holds both
    with the model, so that raw tables go in. For a table of numbers, ``TableModel(model)`` is
    ``make_pipeline(StandardScaler(), model)``.

    Parameters
    ----------
    model : estimator of ridgefold
    standardise : bool, default=True
        Bring columns of numbers to mean 0 and standard deviation 1.
    categorical : sequence of str, default=()
        Columns of numbers that are categories. Columns of text are anyway.
    categories : {"one_hot", "product"}, default="one_hot"
        "one_hot" learns a scale for each category where `model` learns scales; "product" learns
        one for each column of categories, so that the RBF and Laplacian kernels are products with
        one factor a column: 1 where two rows have the same category, a learned ρ < 1 where not.
        It needs a `model` with ``metric="learned"``.
    missing : {"error", "drop", "fill"}, default="error"
        What to do about missing values: refuse them; leave such rows out (their predictions are
        NaN, or None); or take the mean for numbers and make missing a category of its own.
    device : str, optional
        Compute there with torch, as "cuda". Tables go in and NumPy arrays come out all the same.

    Attributes
    ----------
    model_ : the fitted model, on columns of numbers
    columns_ : TableColumns
        How each column becomes numbers.
    rows_used_ : int
        Rows that were fitted, without those that were dropped.
    fixed_coef_, fixed_coef_std_, fixed_names_
        Where `model` has `fixed`, which takes the names of the table's columns: coefficients and
        standard errors in the units of the table. Of a column of categories there is one for each
        level but, beside a bias, the first.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from ridgefold import KernelRidge, TableModel
    >>> table = pa.table({"size": [1.0, 2.0, 3.0, 4.0], "colour": ["red", "blue", "red", "blue"]})
    >>> model = TableModel(KernelRidge(0.1, kernel="rbf")).fit(table, [1.0, 4.0, 3.0, 6.0])
    >>> model.columns_.feature_names
    ('size', 'colour=blue', 'colour=red')
    >>> model.predict(table).shape
    (4,)
    """

    def __init__(
        self,
        model: Any = None,
        *,
        standardise: bool = True,
        categorical: Sequence[str] = (),
        categories: str = "one_hot",
        missing: str = "error",
        device: str | None = None,
    ) -> None:
        self.model = model
        self.standardise = standardise
        self.categorical = categorical
        self.categories = categories
        self.missing = missing
        self.device = device

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to a pandas, polars or pyarrow table (or a NumPy matrix) and targets."""
        if not isinstance(self.model, Storable) or isinstance(self.model, TableModel):
            raise InvalidInputError(f"model must be an estimator of ridgefold, got {self.model!r}")
        with unchanged_on_error(self):
            frame = with_numbers_read(
                as_frame(X), categorical=self.categorical, missing=self.missing
            )
            columns = learn_columns(
                frame,
                standardise=bool(self.standardise),
                categorical=self.categorical,
                missing=self.missing,
            )
            matrix, rows = encode(frame, columns)
            y = _of_rows("y", y, rows, len(frame))
            weights = sample_weight
            if weights is not None and np.ndim(weights):
                weights = _of_rows("sample_weight", weights, rows, len(frame))
            inner = self._model_for(columns)
            self.model_ = inner.fit(self._on_device(matrix), y, weights)
            self.columns_ = columns
            self.rows_used_ = len(rows)
            set_fixed_attributes(self)
        return self

    def fit_numbers(self, columns: TableColumns, X: Any, y: Any) -> Self:
        """Fit to the numbers that `columns` make of a table, such as a memory-mapped matrix."""
        with unchanged_on_error(self):
            self.model_ = self._model_for(columns).fit(X, y)
            self.columns_, self.rows_used_ = columns, int(X.shape[0])
            set_fixed_attributes(self)
        return self

    def _model_for(self, columns: TableColumns) -> Any:
        """The model to fit; it is told which columns are one category."""
        inner = clone(self.model)
        fixed = getattr(inner, "fixed", None)
        if fixed is not None:
            bias = bool(inner.fit_intercept)
            inner = inner.set_params(fixed=numbered(fixed, columns, bias=bias))
        if self.categories == "one_hot":
            return inner
        if self.categories != "product":
            raise InvalidInputError(
                f'categories must be "one_hot" or "product", got {self.categories!r}'
            )
        metric = metric_of(inner) if hasattr(inner, "metric") else None
        if metric is None or not metric.scales:
            raise InvalidInputError(
                'categories="product" learns one scale for each column of categories, and needs a '
                f'model with metric="learned", such as LSSVMRegressorCV, got {self.model!r}'
            )
        return inner.set_params(metric__groups=[list(group) for group in columns.category_features])

    def _on_device(self, matrix: np.ndarray) -> Any:
        return on_device(matrix, self.device)

    def _numbers(self, X: Any) -> tuple[np.ndarray, np.ndarray, int]:
        """The model's matrix, the rows of X that it holds, and how many rows X has."""
        check_is_fitted(self, "model_")
        frame = as_frame(X)
        matrix, rows = encode(frame, self.columns_)
        return matrix, rows, len(frame)

    def _for_rows(self, X: Any, name: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the model, and spread its result over all rows of X."""
        matrix, rows, n = self._numbers(X)
        _require_rows(rows)
        result = getattr(self.model_, name)(self._on_device(matrix), *arguments, **options)
        found = result if isinstance(result, tuple) else (result,)
        parts = [namespace_of(part).to_numpy(part) for part in found]
        spread = tuple(part if len(rows) == n else _spread(part, rows, n) for part in parts)
        return spread if isinstance(result, tuple) else spread[0]

    def predict(self, X: Any, return_std: bool = False, *, noise: bool = False) -> Any:
        """Predictions for the rows of a table, with standard deviations if they are asked for.

        `return_std` and `noise` are those of :meth:`KernelRidge.predict`.
        """
        if not (return_std or noise):
            return np.asarray(self._for_rows(X, "predict"))
        _require_deviations(self.model_)
        return self._for_rows(X, "predict", return_std=return_std, noise=noise)

    @_model_has("predict_interval")  # type: ignore[untyped-decorator]
    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Intervals for the rows of a table; see :meth:`KernelRidge.predict_interval`."""
        lower, upper = self._for_rows(X, "predict_interval", coverage)
        return lower, upper

    @_model_has("marginal_effects")  # type: ignore[untyped-decorator]
    def marginal_effects(
        self,
        X: Any = None,
        *,
        estimand: str = "rows",
        standard_errors: bool = True,
        decision: bool = False,
    ) -> MarginalEffects:
        """How predictions change with every column of the table, in the units of the table.

        Numbers have slopes; those with two values in the fit, and categories, differences against
        the lower value or the first category. Columns that are made of dates, of places in an
        order or of gaps are shown as the model sees them.

        Parameters
        ----------
        X : table, optional
            Where to look; the rows of the fit by default.
        estimand, standard_errors, decision
            As in :meth:`KernelRidge.marginal_effects`.

        Returns
        -------
        effects : MarginalEffects
        """
        check_is_fitted(self, "model_")
        check_estimand(estimand)
        require_columns(self.model_)
        encoded = None
        if X is not None:
            encoded, rows, _ = self._numbers(X)
            _require_rows(rows)
            encoded = self._on_device(encoded)
        rows, shares = rows_and_shares(self.model_, encoded, None)
        return effects_of(
            self.model_,
            rows,
            shares,
            self._effects(),
            estimand=estimand,
            errors=bool(standard_errors),
            decision=bool(decision),
        )

    def _effects(self) -> list[Effect]:
        return table_effects(self.columns_, np.asarray(to_numpy(self.model_.X_fit_)))

    @_model_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes for the rows of a table."""
        return np.asarray(self._for_rows(X, "predict_proba"))

    @_model_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values for the rows of a table."""
        return np.asarray(self._for_rows(X, "decision_function"))

    def score(self, X: Any, y: Any) -> float:
        """R² of predictions, or the share of rows that are classified rightly."""
        matrix, rows, n = self._numbers(X)
        _require_rows(rows)
        y = _of_rows("y", y, rows, n)
        found = self.model_.predict(self._on_device(matrix))
        # Labels as the model has them: the type of y may be too short for some.
        predictions = namespace_of(found).to_numpy(found)
        if not hasattr(self.model_, "classes_"):
            return float(r2_score(y, predictions))
        return float(accuracy_score(y, predictions))

    def is_outside(self, X: Any) -> np.ndarray:
        """Whether each row of a table lies outside what the model was fitted to.

        See :meth:`KernelRidge.is_outside`. False for rows that have no prediction.
        """
        matrix, rows, n = self._numbers(X)
        outside = np.zeros(n, dtype=bool)
        if len(rows):
            outside[rows] = self.model_.is_outside(self._on_device(matrix))
        return outside

    def held_out_importances(
        self, *, n_repeats: int = 5, max_rows: int = 1000, random_state: int = 0
    ) -> Importances:
        """How far held-out errors rise when a column's values are exchanged between rows.

        Columns of the table, whatever they were encoded as. See
        :meth:`KernelRidgeCV.held_out_importances`.
        """
        check_is_fitted(self, "model_")
        names, groups = groups_of_table(self.columns_)
        found: Importances = self.model_._importances_of(
            names, groups, n_repeats, max_rows, random_state
        )
        return found

    def effect_curves(
        self,
        columns: Sequence[str] | None = None,
        *,
        target: int | None = None,
        max_rows: int = 200,
        random_state: int = 0,
    ) -> list[EffectCurve]:
        """How the prediction moves with each column of the table, as curves with an error.

        See :meth:`KernelRidgeCV.effect_curves`.
        """
        check_is_fitted(self, "model_")
        found: list[EffectCurve] = self.model_._curves_of(
            self.columns_, columns, target, max_rows, random_state
        )
        return found

    def report_facts(self) -> ModelFacts:
        """What a report may know of the fitted model: that of numbers, with names of a table."""
        check_is_fitted(self, "model_")
        facts: ModelFacts = self.model_.report_facts()
        names = tuple(str(name) for name in self.columns_.feature_names)
        metric = facts.metric
        if metric is not None:
            metric = replace(metric, named=named_scales(self, names, metric.shares))
        return replace(
            facts,
            column_names=names,
            n_table_columns=len(self.columns_.names),
            metric=metric,
            importances=None
            if facts.importances is None
            else lambda n_repeats, max_rows: self.held_out_importances(
                n_repeats=n_repeats, max_rows=max_rows
            ),
            effect_curves=None
            if facts.effect_curves is None
            else lambda columns, target: self.effect_curves(columns, target=target),
            is_outside=None if facts.is_outside is None else self.is_outside,
            effects=lambda: effects_in_short(self.model_, self._effects()),
            predict=self.predict,
            predict_proba=None if facts.predict_proba is None else self.predict_proba,
            predict_interval=None if facts.predict_interval is None else self.predict_interval,
        )

    # -- model files ---------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return {
            "columns": packed_columns(self.columns_),
            "fitted": self.model_,
            "rows_used": self.rows_used_,
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        required = {
            "columns": TableColumns | Mapping[str, Any],
            "fitted": Mapping[str, Any],
            "rows_used": Count,
        }
        check_fields("model.state", state, required, {})
        self.columns_ = unpacked_columns("model.state.columns", state["columns"])
        self.rows_used_ = state["rows_used"]
        self.model_ = unpack_estimator(state["fitted"])
        if isinstance(self.model_, TableModel):
            raise ModelFileError("model.state.fitted must be a model of numbers")
        self.model = clone(self.model_)
        if len(self.columns_.feature_names) != self.model_.n_features_in_:
            raise ModelFileError("model.state.columns must name the columns of the model")
        if len(set(self.columns_.names)) != len(self.columns_.names):
            raise ModelFileError("model.state.columns must name every column once")
        groups = groups_of(self.model_)
        if self.categories == "product" and [tuple(each) for each in groups] != list(
            self.columns_.category_features
        ):
            raise ModelFileError("model.parameters.metric.groups must be the columns of categories")
        set_fixed_attributes(self)


def _of_rows(name: str, values: Any, rows: np.ndarray, n_rows: int) -> np.ndarray:
    """The entries of an argument that belong to the rows in use."""
    if np.shape(values)[:1] != (n_rows,):
        raise InvalidInputError(
            f"{name} must have one entry a row: X has {n_rows} rows, {name} {np.shape(values)}"
        )
    found: np.ndarray = np.asarray(values)[rows]
    return found


def _require_deviations(model: Any) -> None:
    if hasattr(model, "classes_"):
        raise InvalidInputError(
            f"return_std is for regressors, and the model is a {type(model).__name__}: ask for "
            "predict_proba"
        )


def _require_rows(rows: np.ndarray) -> None:
    if len(rows) == 0:
        raise InvalidInputError("X has no row that can be predicted: all have missing values")


def _spread(values: np.ndarray, rows: np.ndarray, n: int) -> np.ndarray:
    """`values` at `rows`, NaN (None for labels) elsewhere."""
    if values.dtype.kind == "f":
        out = np.full((n, *values.shape[1:]), np.nan, dtype=values.dtype)
    else:
        out = np.full((n, *values.shape[1:]), None, dtype=object)
    out[rows] = values
    return out

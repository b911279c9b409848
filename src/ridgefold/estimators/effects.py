"""`marginal_effects`: how predictions change with every column, with standard errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from ridgefold.errors import (
    InvalidInputError,
    NoSlopeError,
    RidgefoldError,
    UnsupportedInputError,
)
from ridgefold.estimators.effect_errors import LinkedErrors, PlainErrors
from ridgefold.estimators.effects_table import ESTIMANDS, QUARTILES, MarginalEffects
from ridgefold.estimators.facts import numbered_columns, to_numpy
from ridgefold.estimators.validation import check_new_rows, out_of_memory_is_a_budget_error
from ridgefold.kernels import PRECOMPUTED
from ridgefold.linalg import namespace_of
from ridgefold.notices import collected
from ridgefold.selection.probability_slopes import probability_slopes

if TYPE_CHECKING:
    pass

_MOST_LEVELS = 50
"""Levels of a column of categories: of more, it is likely one of numbers that was named by mistake,
and each of them costs two predictions of all rows."""

_MOST_ROWS_SHOWN = 500
"""Training rows that effects in a report are averaged over: each costs a prediction a column."""
_MOST_ROWS_FACTORISED = 3000
"""Training rows of a model whose report has standard errors: a factorisation of a second or so."""


@dataclass(frozen=True)
class Slope:
    """The effect of a column of numbers."""

    name: str
    column: int
    unit: float = 1.0
    """What one unit of the column that people know is in the column that the model sees."""

    kind = "slope"


@dataclass(frozen=True)
class Difference:
    """The effect of setting some columns to certain values, against setting them to others."""

    name: str
    columns: tuple[int, ...]
    high: tuple[float, ...]
    low: tuple[float, ...]

    kind = "difference"

    def rows(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows with the columns set to the first values, and to the second."""
        pair = (X.copy(), X.copy())
        for rows, values in zip(pair, (self.high, self.low), strict=True):
            rows[:, list(self.columns)] = values
        return pair


Effect = Slope | Difference


class WithEffects:
    """`marginal_effects`, for models that have slopes."""

    @out_of_memory_is_a_budget_error("marginal_effects")
    def marginal_effects(
        self: Any,
        X: Any = None,
        *,
        categories: Mapping[Any, Any] | Sequence[Any] | None = None,
        estimand: str = "rows",
        standard_errors: bool = True,
        decision: bool = False,
        sample_weight: Any = None,
    ) -> MarginalEffects:
        """How predictions change with every column: slopes, their averages and standard errors.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns), optional
            Where to look; the training rows by default, with their weights.
        categories : sequence of columns, dict of columns to their base level, or None
            Columns (names or positions) whose values are categories: they have differences, the
            prediction with every row at a level less that with every row at the base, by default
            the lowest level. None: columns with two values in the training rows, and columns of
            codes. Columns of codes have differences in any case.
        estimand : {"rows", "population"}, default="rows"
            What an average estimates: that over these rows, or over the population that they are
            a sample of.
        standard_errors : bool, default=True
            False does without, and without the factorisation that they need.
        decision : bool, default=False
            Of a classifier, effects on decision values in place of probabilities.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows of X in averages and quartiles.

        Returns
        -------
        effects : MarginalEffects
            Prints as a table.

        Notes
        -----
        With a ridge fit every average is linear in the targets, Lᵀy. Its standard error σ‖L‖,
        with σ² = ‖y − f‖²/(n − df), is for new noise at the same rows and leaves out what the
        ridge smooths away; the posterior standard deviation, of the Gaussian process that
        :meth:`KernelRidge.predict` describes, has it in. Kernel, ridge and calibration of
        probabilities count as given; errors of probabilities are to first order.
        """
        check_is_fitted(self, "X_fit_")
        check_estimand(estimand)
        require_columns(self)
        training = _dense(self.X_fit_)
        rows, shares = rows_and_shares(self, X, sample_weight)
        names = numbered_columns(getattr(self, "feature_names_in_", None), training.shape[1])
        return effects_of(
            self,
            rows,
            shares,
            _effects(self, training, names, categories),
            estimand=estimand,
            errors=bool(standard_errors),
            decision=bool(decision),
        )

    def _effect_errors(
        self: Any, X: np.ndarray, shares: np.ndarray, curves: np.ndarray | None
    ) -> Any:
        """What gives standard errors of effects averaged over rows with these weights."""
        kind = PlainErrors if curves is None else LinkedErrors
        return kind(self, X, shares, curves)

    def _effects_of_some_rows(self: Any) -> MarginalEffects:
        """Effects at some of the training rows, for a report: what is quick to have."""
        require_columns(self)
        training = _dense(self.X_fit_)
        names = numbered_columns(getattr(self, "feature_names_in_", None), training.shape[1])
        return effects_in_short(self, _effects(self, training, names, None))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def effects_in_short(model: Any, effects: Sequence[Effect]) -> MarginalEffects:
    """Effects at some of the training rows, with errors where they are quick and there are any."""
    rows = _spaced(_dense(model.X_fit_), model._row_weights())
    no_probability = getattr(model, "calibration_", None) is None
    decision = hasattr(model, "classes_") and no_probability

    def found(errors: bool) -> MarginalEffects:
        shares = _shares(None, len(rows))
        return effects_of(
            model, rows, shares, effects, estimand="rows", errors=errors, decision=decision
        )

    if int(model.X_fit_.shape[0]) > _MOST_ROWS_FACTORISED:
        return found(errors=False)
    try:
        with collected():  # a fit that lost digits has said so
            return found(errors=True)
    except RidgefoldError:
        return found(errors=False)


def check_estimand(estimand: Any) -> None:
    """An error for what is no estimand."""
    if estimand not in ESTIMANDS:
        raise InvalidInputError(
            f'estimand must be "rows" or "population", got {estimand!r}: the average over '
            "these rows, or over the population that they are a sample of"
        )


def require_columns(model: Any) -> None:
    """A precomputed kernel knows no columns."""
    if isinstance(getattr(model, "kernel_", None), str):
        raise NoSlopeError(
            f'a model with kernel="{PRECOMPUTED}" knows no columns to have effects: fit with a '
            "kernel object on the rows themselves"
        )


def rows_and_shares(model: Any, X: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
    """Checked rows, or those of the fit, with weights that add up to one."""
    if X is not None:
        rows = _dense(check_new_rows(model, X, model.X_fit_))
        return rows, _shares(sample_weight, len(rows))
    if sample_weight is not None:
        raise InvalidInputError(
            "sample_weight is of the rows of X: give X, or leave it out for the training rows, "
            "which have the weights of the fit"
        )
    rows = _dense(model.X_fit_)
    shares = _shares(model._row_weights(), len(rows))
    return rows[shares > 0], shares[shares > 0]


def effects_of(
    model: Any,
    X: np.ndarray,
    shares: np.ndarray,
    effects: Sequence[Effect],
    *,
    estimand: str,
    errors: bool,
    decision: bool,
) -> MarginalEffects:
    """The table of some effects at checked rows, whose `shares` add up to one."""
    link, outputs = _link(model, decision)
    pointwise = _pointwise(model, X, effects, link)
    average = np.einsum("r,rpt->pt", shares, pointwise)
    standard = posterior = None
    note = ""
    if errors:
        why = model._why_no_effect_errors()
        if why is not None:
            note = why
        else:
            standard, posterior, note = model._effect_errors(X, shares, link).of(effects)
            if estimand == "population":
                spread = np.einsum("r,rpt->pt", shares, (pointwise - average) ** 2)
                of_rows = spread * np.sum(shares**2)
                standard = np.sqrt(standard**2 + of_rows)
                posterior = None if posterior is None else np.sqrt(posterior**2 + of_rows)
    one = len(outputs) == 1
    return MarginalEffects(
        names=tuple(each.name for each in effects),
        kinds=tuple(each.kind for each in effects),
        outputs=outputs,
        pointwise=pointwise[:, :, 0] if one else pointwise,
        average=average[:, 0] if one else average,
        standard_error=standard[:, 0] if one and standard is not None else standard,
        posterior_std=posterior[:, 0] if one and posterior is not None else posterior,
        quartiles=_quartiles(pointwise[:, :, 0] if one else pointwise, shares),
        spreads=np.array([_spread(each, X, shares) for each in effects]),
        estimand=estimand,
        note=note,
    )


def _spread(effect: Effect, X: np.ndarray, shares: np.ndarray) -> float:
    if isinstance(effect, Difference):
        return 1.0
    values = X[:, effect.column].astype(np.float64)
    return float(np.sqrt(shares @ (values - shares @ values) ** 2)) / abs(effect.unit)


def _pointwise(
    model: Any, X: np.ndarray, effects: Sequence[Effect], curves: np.ndarray | None
) -> np.ndarray:
    """Every effect at every row, of shape (n, p, outputs)."""
    like = model.X_fit_
    namespace = namespace_of(like)

    def decisions(rows: np.ndarray) -> np.ndarray:
        values = to_numpy(model._decision_of_checked(namespace.asarray(rows, like)))
        return values.astype(np.float64)

    def outputs(rows: np.ndarray) -> np.ndarray:
        values = decisions(rows)
        return values if curves is None else probability_slopes(values, curves).values

    slopes = None
    if any(isinstance(each, Slope) for each in effects):
        slopes = to_numpy(model._gradients(namespace.asarray(X, like))).astype(np.float64)
        if curves is not None:
            first = probability_slopes(decisions(X), curves).first
            slopes = np.einsum("rct,rjt->rjc", first, slopes)
    columns = []
    for each in effects:
        if isinstance(each, Slope):
            assert slopes is not None
            columns.append(slopes[:, each.column, :] * each.unit)
        else:
            high, low = each.rows(X)
            columns.append(outputs(high) - outputs(low))
    return np.stack(columns, axis=1)


def _link(model: Any, decision: bool) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """The curves from decision values to probabilities, if there are any; and names of outputs."""
    if not hasattr(model, "classes_"):
        if decision:
            raise InvalidInputError(
                "decision=True is for classifiers: a regressor has effects on its predictions"
            )
        t = model._n_outputs()
        return None, ("prediction",) if t == 1 else tuple(f"target {j}" for j in range(t))
    names = tuple(str(each) for each in to_numpy(model.classes_).tolist())
    several = len(names) > 2
    outputs = names if several else (names[1],)
    if decision:
        return None, outputs
    if getattr(model, "calibration_", None) is None:
        raise InvalidInputError(
            f"this {type(model).__name__} has no probabilities to have effects on: fit with "
            "probability=True, or give decision=True for effects on decision values"
        )
    return model.calibration_, outputs


# -- which effects ---------------------------------------------------------------------------


def _effects(
    model: Any, training: np.ndarray, names: tuple[str, ...], categories: Any
) -> list[Effect]:
    """A slope for every column of numbers, differences for the others."""
    bases = _bases(model, training, names, categories)
    effects: list[Effect] = []
    for j, name in enumerate(names):
        if j not in bases:
            effects.append(Slope(name, j))
            continue
        levels, base = _levels(training[:, j], name), bases[j]
        low = levels[0] if base is None else base
        if low not in levels:
            raise InvalidInputError(
                f"categories has the base {base!r} for {name!r}, whose values in the training rows "
                f"are {', '.join(f'{each:g}' for each in levels)}: give one of those"
            )
        effects += [
            Difference(f"{name}: {low:g} → {each:g}", (j,), (each,), (low,))
            for each in levels
            if each != low
        ]
    return effects


def _bases(
    model: Any, training: np.ndarray, names: tuple[str, ...], categories: Any
) -> dict[int, Any]:
    """Columns that have differences, with their base level where one was given."""
    codes = dict.fromkeys(_codes(model, training))
    if categories is None:
        two = {j: None for j in range(training.shape[1]) if _has_two_values(training[:, j])}
        return {**two, **codes}
    if isinstance(categories, (str, bytes)) or not isinstance(categories, Iterable):
        raise InvalidInputError(
            "categories must be a list of columns, or a dict of columns to their base level, got "
            f"{categories!r}"
        )
    given = {}
    for column in categories:
        base = categories[column] if isinstance(categories, Mapping) else None
        given[_position(column, names)] = base
    return {**codes, **given}


def _position(column: Any, names: tuple[str, ...]) -> int:
    if isinstance(column, str) and column in names:
        return names.index(column)
    whole = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
    if whole and 0 <= column < len(names):
        return int(column)
    raise InvalidInputError(
        f"categories names the column {column!r}, which there is not: the columns are "
        f"{', '.join(names[:20])}, or positions from 0 to {len(names) - 1}"
    )


def _codes(model: Any, training: np.ndarray) -> list[int]:
    """Columns that have no slope, as their values are codes."""
    like = model.X_fit_
    found = to_numpy(model._gradients(namespace_of(like).asarray(training[:1], like)))
    return [int(j) for j in np.flatnonzero(np.isnan(found).all(axis=(0, 2)))]


def _has_two_values(values: np.ndarray) -> bool:
    return bool(np.any(values != values[0])) and len(np.unique(values)) == 2


def _levels(values: np.ndarray, name: str) -> list[float]:
    levels: list[float] = np.unique(values).tolist()
    if len(levels) > _MOST_LEVELS:
        raise InvalidInputError(
            f"the column {name!r} has {len(levels)} different values in the training rows, more "
            f"than the {_MOST_LEVELS} that categories may have: leave it out of categories, or "
            "put rare levels together"
        )
    return levels


# -- rows ------------------------------------------------------------------------------------


def _dense(X: Any) -> np.ndarray:
    if scipy.sparse.issparse(X):
        raise UnsupportedInputError(
            "effects fill every column, so that sparse rows have none: fit and ask with X.toarray()"
        )
    return to_numpy(X)


def _spaced(X: np.ndarray, weights: Any) -> np.ndarray:
    """Some of the training rows that count, evenly spaced."""
    rows = np.arange(len(X)) if weights is None else np.flatnonzero(to_numpy(weights) > 0)
    chosen = np.linspace(0, len(rows) - 1, min(len(rows), _MOST_ROWS_SHOWN)).astype(np.intp)
    return np.asarray(X[rows[chosen]])


def _shares(weights: Any, n: int) -> np.ndarray:
    """Weights of rows that add up to one."""
    if weights is None:
        return np.full(n, 1.0 / n)
    try:
        values = to_numpy(weights).astype(np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (n,) or not np.all(np.isfinite(values) & (values >= 0)) or values.sum() <= 0:
        raise InvalidInputError(
            f"sample_weight must hold one finite number >= 0 for each of the {n} rows, not all zero"
        )
    return np.asarray(values / values.sum())


def _quartiles(pointwise: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Quartiles over rows; with weights, the least value with at least that share below it."""
    if np.all(shares == shares[0]):
        return np.asarray(np.quantile(pointwise, QUARTILES, axis=0))
    order = np.argsort(pointwise, axis=0)
    sums = np.cumsum(shares[order], axis=0)
    places = [np.argmax(sums >= q - 1e-12, axis=0) for q in QUARTILES]
    ordered = np.take_along_axis(pointwise, order, axis=0)
    return np.stack([np.take_along_axis(ordered, at[None], axis=0)[0] for at in places])

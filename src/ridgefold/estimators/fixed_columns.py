"""Columns of X that a model takes without a penalty: which they are, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ridgefold.crossval import Folds, least_training_share_of
from ridgefold.errors import InvalidInputError, ModelFileError, UndeterminedColumnsWarning
from ridgefold.exact.fixed_effects import FixedErrors
from ridgefold.kernels import PRECOMPUTED
from ridgefold.kernels.gram import columns_of
from ridgefold.linalg import Array
from ridgefold.linalg.unpenalised import unpenalised_space
from ridgefold.notices import warn
from ridgefold.records import FixedEffects
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.describe import TrainingGram
from ridgefold.solvers.base import unpenalised_columns

if TYPE_CHECKING:
    from ridgefold.estimators.base import KernelModel

LINEAR = "linear"
"""``fixed="linear"``: every column of X."""


_LOST = 1e-12
"""A share of a direction that training rows hold below this is rounding error."""


def resolve_fixed(fixed: Any, n_columns: int, names: Sequence[str] | None) -> tuple[int, ...]:
    """Numbers of the columns that `fixed` asks for, in its order."""
    if fixed is None:
        return ()
    if isinstance(fixed, str):
        if fixed == LINEAR:
            return tuple(range(n_columns))
        raise InvalidInputError(
            f'fixed must be None, "{LINEAR}" (every column of X), or a list of names or numbers of '
            f"columns, got {fixed!r}: one column is fixed=[{fixed!r}]"
        )
    shape = np.shape(fixed) if isinstance(fixed, (np.ndarray, list, tuple)) else None
    if shape is None and hasattr(fixed, "shape"):  # a frame, or a tensor
        shape = tuple(fixed.shape)
    if shape is not None and (len(shape) > 1 or _are_values(fixed)):
        raise InvalidInputError(
            f"fixed says which columns of X are not penalised, and got an array of shape {shape}: "
            "new rows would lack its values. Append its columns to X (np.column_stack([X, F])) and "
            f"give their numbers, fixed=list(range({n_columns}, …)); to keep them out of the "
            f"kernel, kernel=Columns(RBF(…), range({n_columns})) of ridgefold.kernels"
        )
    try:
        asked = list(fixed)
    except TypeError:
        raise InvalidInputError(
            f'fixed must be None, "{LINEAR}" (every column of X), or a list of names or numbers of '
            f"columns, got {fixed!r}"
        ) from None
    if isinstance(fixed, np.ndarray) and fixed.dtype == bool:
        if len(fixed) != n_columns:
            raise InvalidInputError(
                f"fixed is a mask of {len(fixed)} columns, and X has {n_columns}: give one value "
                "a column, or names or numbers of columns"
            )
        asked = np.flatnonzero(fixed).tolist()
    found = tuple(_number_of(each, n_columns, names) for each in asked)
    if len(set(found)) < len(found):
        raise InvalidInputError(f"fixed names a column twice: {asked!r}")
    return found


def _are_values(fixed: Any) -> bool:
    """Whether an array holds numbers that are no places of columns."""
    return isinstance(fixed, np.ndarray) and fixed.dtype.kind == "f"


def _number_of(column: Any, n_columns: int, names: Sequence[str] | None) -> int:
    if isinstance(column, str):
        if names is None:
            raise InvalidInputError(
                f"fixed names the column {column!r}, but X came without names of columns: pass a "
                "data frame, or numbers of columns"
            )
        if column not in names:
            raise InvalidInputError(
                f"fixed names the column {column!r}, which X does not have: its columns are "
                f"{', '.join(map(str, names[:20]))}{', …' if len(names) > 20 else ''}"
            )
        return list(names).index(column)
    whole = isinstance(column, (int, np.integer)) and not isinstance(column, (bool, np.bool_))
    if not whole or not -n_columns <= int(column) < n_columns:
        raise InvalidInputError(
            f"fixed must hold names of columns or numbers from {-n_columns} to {n_columns - 1}, "
            f"got {column!r}"
        )
    return int(column) % n_columns


def names_of_fixed(columns: Sequence[int], names: Sequence[str] | None) -> np.ndarray:
    """The names of some columns; x0, x1, … where they came without."""
    chosen = [f"x{j}" if names is None else str(names[j]) for j in columns]
    return np.asarray(chosen, dtype=object)


def numbers_of_fixed(model: Any) -> tuple[int, ...]:
    """Numbers of the unpenalised columns of a fitted model."""
    if hasattr(model, "fixed_effects_"):
        return tuple(model.fixed_effects_.columns)
    models = getattr(model, "_models", None)
    if models is None or model.length_scales_ is None:
        return () if models is None else tuple(models.fixed)
    # Cells know the columns that distances are made of, by their order.
    return tuple(np.flatnonzero(np.isfinite(model.length_scales_))[list(models.fixed)].tolist())


class WithFixedColumns:
    """`fixed`, `fixed_coef_`, `fixed_coef_std_` and `fixed_names_` of exact models."""

    def _fixed_columns(self: KernelModel) -> tuple[int, ...]:  # type: ignore[misc]
        """Numbers of the unpenalised columns; X has been checked."""
        fixed = getattr(self, "fixed", None)
        if fixed is None:
            return ()
        if isinstance(self.kernel, str) and self.kernel == PRECOMPUTED:
            raise InvalidInputError(
                f'fixed={fixed!r} names columns of X, and with kernel="precomputed" X is the '
                "kernel matrix: pass the columns that the kernel is made of and its object "
                "(kernels.Columns for some of them)"
            )
        names = getattr(self, "feature_names_in_", None)
        return resolve_fixed(fixed, int(self.n_features_in_), names)

    def _require_room_for_fixed(self: KernelModel, data: TrainingData) -> None:  # type: ignore[misc]
        """There are more rows than coefficients without a penalty; they are finite in number."""
        columns = self._fixed_columns()
        if not columns:
            return
        rows = int(data.X.shape[0])
        if data.weights is not None:
            rows = int(np.count_nonzero(data.namespace.to_numpy(data.weights) > 0))
        asked = len(columns) + bool(self.fit_intercept)
        if rows <= asked:
            raise InvalidInputError(
                f"fixed has {len(columns)} columns{' and a bias' if self.fit_intercept else ''} "
                f"without a penalty, but there are only {rows} rows that count: the columns alone "
                "would go through every target; name fewer columns, or leave them to the kernel"
            )

    def _warn_of_folds(self: KernelModel, data: TrainingData, folds: Folds) -> None:  # type: ignore[misc]
        """Where a fold takes away what determines a coefficient, its predictions are a choice."""
        columns = self._fixed_columns()
        if not columns:
            return
        kept, roots = np.arange(int(data.X.shape[0])), None
        rows = columns_of(data.X, columns)
        if data.weights is not None:
            kept = np.flatnonzero(data.namespace.to_numpy(data.weights) > 0)
            rows = data.namespace.take_rows(rows, kept)
            roots = data.namespace.xp.sqrt(data.namespace.take_rows(data.weights, kept))
        space = unpenalised_space(
            data.namespace,
            rows,
            roots,
            bias=bool(self.fit_intercept),
            n_rows=len(kept),
            like=data.like,
        )
        assert space is not None
        if least_training_share_of(space, folds, kept) < _LOST:
            warn(
                f"the training rows of a fold do not determine all coefficients of "
                f"fixed={self.fixed!r} (a level that only the fold's own rows have, say): in that "
                "fold the smallest coefficients were taken, and the effect of a column that its "
                "training rows lack is zero; use folds that leave rows of every level, or fewer "
                "columns",
                UndeterminedColumnsWarning,
            )

    def _fixed_errors(  # type: ignore[misc]
        self: KernelModel, data: TrainingData, gram: TrainingGram, alphas: np.ndarray
    ) -> FixedErrors | None:
        """What standard errors of the coefficients need beside the fit."""
        if not self._fixed_columns():
            return None
        roots = None if data.weights is None else data.namespace.xp.sqrt(data.weights)
        space = unpenalised_columns(gram, roots, bias=bool(self.fit_intercept))
        assert space is not None
        if space.rank < space.n_columns:
            warn(
                f"the columns of fixed={self.fixed!r}"
                f"{' and the bias' if self.fit_intercept else ''} depend on each other on the rows "
                f"of the fit ({space.n_columns} columns of rank {space.rank}): of all coefficients "
                "that predict these rows alike, the smallest were taken, and those that are not "
                "determined have no standard error (NaN); leave out columns that follow from "
                "others",
                UndeterminedColumnsWarning,
            )
        return FixedErrors(gram, space, roots, alphas)

    def _set_fixed(  # type: ignore[misc]
        self: KernelModel, errors: FixedErrors | None, std: np.ndarray | None
    ) -> None:
        """The attributes of a fit, or nothing left of an earlier one."""
        self.__dict__.pop("fixed_effects_", None)
        if errors is not None and std is not None:
            self.fixed_effects_ = FixedEffects(self._fixed_columns(), errors.transform, std)

    def _set_fixed_coefficients(self: KernelModel, one_target: bool) -> None:  # type: ignore[misc]
        for name in ("fixed_coef_", "fixed_coef_std_", "fixed_names_"):
            self.__dict__.pop(name, None)
        effects = getattr(self, "fixed_effects_", None)
        if effects is None:
            return
        members = (self._model, *self._model.further)
        coefficients: Any = sum(each.fixed_coef for each in members if each.fixed_coef is not None)
        self.fixed_coef_ = coefficients[:, 0] if one_target else coefficients
        if not hasattr(
            self, "stack_"
        ):  # of a weighted sum of models nothing says how sure they are
            self.fixed_coef_std_ = effects.std[:, 0] if one_target else effects.std
        names = getattr(self, "feature_names_in_", None)
        self.fixed_names_ = names_of_fixed(effects.columns, names)

    def _fixed_part(  # type: ignore[misc]
        self: KernelModel, X: Array, coefficients: Array | None
    ) -> Array | float:
        """What the unpenalised columns add to predictions of checked rows."""
        if coefficients is None:
            return 0.0
        return columns_of(X, self.fixed_effects_.columns) @ coefficients


def _is_transform(transform: Any, n_columns: int) -> bool:
    return (
        type(transform) is np.ndarray
        and transform.ndim == 2
        and transform.dtype == np.float64
        and transform.shape[0] in (n_columns, n_columns + 1)
        and transform.shape[1] <= transform.shape[0]
        and bool(np.all(np.isfinite(transform)))
    )


def require_fixed_effects(effects: FixedEffects | None, model: Any, n_columns: int) -> None:
    """Stored columns and standard errors that fit the model beside them."""
    every = [each.fixed_coef for each in (model, *model.further)]
    if effects is None and all(each is None for each in every):
        return
    good = effects is not None
    if good:
        assert effects is not None
        p, t = len(effects.columns), model.intercept.shape[0]
        good = (
            all(type(each) is np.ndarray for each in every)
            and all(each.dtype == model.intercept.dtype for each in every)
            and all(each.shape == (p, t) and bool(np.all(np.isfinite(each))) for each in every)
            and p > 0
            and len(set(effects.columns)) == p
            and max(effects.columns) < n_columns
            and type(effects.std) is np.ndarray
            and effects.std.dtype == np.float64
            and effects.std.shape == (p, t)
            and _is_transform(effects.transform, p)
            and not bool(np.any(effects.std < 0))
        )
    if not good:
        raise ModelFileError("model.state.fixed does not fit the model")

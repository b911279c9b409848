"""Slopes of fitted models along every column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ridgefold.errors import NoSlopeError
from ridgefold.estimators.effects import WithEffects
from ridgefold.estimators.validation import check_new_rows, out_of_memory_is_a_budget_error
from ridgefold.kernels import Kernel
from ridgefold.kernels.slope_gram import SlopeGram, dual_of_features
from ridgefold.linalg import Array, namespace_of
from ridgefold.options import search_of
from ridgefold.records import FittedModel

if TYPE_CHECKING:
    from ridgefold.estimators.base import KernelModel


class WithSlopes(WithEffects):
    """`predict_gradient`, for models of one kernel and for stacks."""

    @out_of_memory_is_a_budget_error("predict_gradient")
    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def predict_gradient(self: KernelModel, X: Any) -> Array:  # type: ignore[misc]
        """The slope of the prediction along every column, at every row of X.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)

        Returns
        -------
        gradient : array of shape (n_rows, n_columns) or (n_rows, n_columns, n_targets)
            ∂f/∂x_j in the units of the columns as they are given, whatever scales and transforms
            were learned. Of classifiers, slopes of decision values. NaN in columns of codes
            (:class:`~ridgefold.kernels.Categorical`), which have differences instead.

        Notes
        -----
        f(x) = Σ aᵢ k(xᵢ, x) + b, with the linear effects of `fixed` columns, is differentiated
        kernel by kernel, in blocks: about the work of two predictions, and memory for the result.
        Rough kernels (Laplacian, Matern with nu=0.5) have a kink at every training row. There the
        mean of the slopes on both sides is given, to which the row itself contributes nothing.
        """
        slopes = self._gradients(_rows(self, X))
        namespace = namespace_of(slopes)
        require_slopes(self, slopes)
        slopes = namespace.astype(slopes, self._model.intercept.dtype)
        return slopes[:, :, 0] if self.dual_coef_.ndim == 1 else slopes

    def _gradients(self: KernelModel, X: Array) -> Array:  # type: ignore[misc]
        return gradients(self, X)

    def _n_outputs(self: KernelModel) -> int:  # type: ignore[misc]
        return int(self._model.intercept.shape[0])

    def _row_weights(self: KernelModel) -> Any:  # type: ignore[misc]
        """Weights of the training rows, for averages over them."""
        return getattr(self, "weights_fit_", None)

    def _why_no_effect_errors(self: KernelModel) -> str | None:  # type: ignore[misc]
        """Why averages of effects have no standard errors, if they have none."""
        if hasattr(self, "stack_") and hasattr(self, "classes_"):
            return "Standard errors are not known for stacks of classifiers."
        if getattr(self, "compression_bound_", None) is not None:
            return "A compressed model has no standard errors: ask the model that it came from."
        if hasattr(self, "search") and search_of(self).average_folds:
            return "The mean of the models of the folds has no standard errors."
        return None


def gradients(model: KernelModel, X: Array) -> Array:
    """∂f/∂x_j of checked rows, of shape (n, d, t), in float64."""
    total: Array | None = None
    kernels = (model.kernel_, *model._further_kernels())
    members: tuple[FittedModel, ...] = (model._model, *model._model.further)
    for kernel, member in zip(kernels, members, strict=True):
        of_one = _gradients_of_one(kernel, member, model.X_fit_, X)
        total = of_one if total is None else total + of_one
        if member.fixed_coef is not None:  # their effect is linear: the same slope everywhere
            linear = namespace_of(total).astype(member.fixed_coef, total.dtype)
            for place, column in enumerate(model.fixed_effects_.columns):
                total[:, column, :] += linear[place, :][None, :]
    assert total is not None
    return total


def require_slopes(model: Any, slopes: Array) -> None:
    """An error where no column has a slope."""
    xp = namespace_of(slopes).xp
    if bool(xp.all(xp.isnan(slopes))):
        raise NoSlopeError(
            f"the columns of this {type(model).__name__} are all codes, which have no slopes: ask "
            "for differences, which marginal_effects gives"
        )


def _gradients_of_one(
    kernel: Kernel | str, member: FittedModel, training: Array, X: Array
) -> Array:
    if not isinstance(kernel, Kernel):
        raise NoSlopeError(
            'a model with kernel="precomputed" knows no columns to have slopes along: fit with a '
            "kernel object on the rows themselves"
        )
    dual = member.dual_coef
    slopes = SlopeGram(kernel, X, training)
    if member.primal_coef is not None:
        dual = dual_of_features(kernel, training, member.primal_coef)
    return slopes.row_slopes(dual)


def _rows(model: KernelModel, X: Any) -> Array:
    check_is_fitted(model, "X_fit_")
    return check_new_rows(model, X, model.X_fit_)

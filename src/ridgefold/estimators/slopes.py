"""Slopes of fitted models along every column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ridgefold.errors import NoSlopeError
from ridgefold.estimators.validation import check_new_rows, out_of_memory_is_a_budget_error
from ridgefold.kernels import Kernel
from ridgefold.kernels.slopes import SlopeGram, dual_of_features
from ridgefold.linalg import Array, namespace_of
from ridgefold.records import FittedModel

if TYPE_CHECKING:
    from ridgefold.estimators.base import KernelModel


class WithSlopes:
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
        slopes = gradients(self, _rows(self, X))
        namespace = namespace_of(slopes)
        slopes = namespace.astype(slopes, self._model.intercept.dtype)
        return slopes[:, :, 0] if self.dual_coef_.ndim == 1 else slopes


def gradients(model: KernelModel, X: Array) -> Array:
    """∂f/∂x_j of checked rows, of shape (n, d, t), in float64."""
    total: Array | None = None
    kernels = (model.kernel_, *model._further_kernels())
    members: tuple[FittedModel, ...] = (model._model, *model._model.further)
    for kernel, member in zip(kernels, members, strict=True):
        of_one = _gradients_of_one(kernel, member, model.X_fit_, X)
        total = of_one if total is None else total + of_one
    assert total is not None
    xp = namespace_of(total).xp
    fixed = model._model.fixed_coef
    if fixed is not None:  # their effect is linear: the same slope everywhere
        namespace = namespace_of(total)
        for place, column in enumerate(model.fixed_effects_.columns):
            total[:, column, :] += namespace.astype(fixed[place, :], total.dtype)[None, :]
    if bool(xp.all(xp.isnan(total))):
        raise NoSlopeError(
            f"the columns of the kernel {model.kernel_!r} are codes, which have no slopes: ask for "
            "differences (marginal_effects with categories=…)"
        )
    return total


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

"""Which rows lie outside what an exact model was fitted to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ridgefold.estimators.models_without_rows import require_rows
from ridgefold.estimators.validation import check_new_rows, out_of_memory_is_a_budget_error
from ridgefold.kernels import Kernel, KernelGram
from ridgefold.selection.outside import ColumnRanges, Surroundings, ranges_of

if TYPE_CHECKING:
    from ridgefold.estimators.base import KernelModel


class KnowsItsSurroundings:
    """`is_outside`, for models of all rows."""

    @out_of_memory_is_a_budget_error("is_outside")
    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def is_outside(self: KernelModel, X: Any) -> np.ndarray:  # type: ignore[misc]
        """Whether each row of X lies outside what the model was fitted to.

        There a prediction is a guess, however narrow its interval: held-out errors say nothing of
        rows that no training row is like.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)

        Returns
        -------
        outside : bool array of shape (n_rows,)
            True where a column is beyond its range in the training rows by more than a quarter of
            it, or where the row is farther from all training rows, in the metric of the kernel,
            than any of these is from the others, and by a quarter more. Of rows drawn like the
            training rows, at most a few in a thousand are.
        """
        check_is_fitted(self, "X_fit_")
        require_rows(self)
        X = check_new_rows(self, X, self.X_fit_)
        ranges, surroundings = _surroundings(self)
        outside = ranges.beyond(X)
        inside = np.flatnonzero(~outside)  # the others may be where the kernel overflows
        if len(inside):
            outside[inside] = surroundings.beyond(X[inside])
        return np.asarray(outside)


def _surroundings(model: KernelModel) -> tuple[ColumnRanges, Surroundings]:
    """Computed when they are first asked for, and again after another fit."""
    kept = model.__dict__.get("_known_surroundings")
    if kept is None or kept[0] is not model._model:
        n = int(model.X_fit_.shape[0])
        counted = np.ones(n, dtype=bool) if model._weights is None else model._weights > 0
        ranges = ranges_of(model.X_fit_, counted)
        assert isinstance(model.kernel_, Kernel)
        gram = KernelGram(model.kernel_, model.X_fit_)
        kept = (model._model, ranges, Surroundings(gram, np.flatnonzero(counted)))
        model.__dict__["_known_surroundings"] = kept
    return kept[1], kept[2]

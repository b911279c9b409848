"""What all displays share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ridgefold.errors import InvalidInputError
from ridgefold.report.evidence import inner_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Display:
    """A figure: `plot` draws it and sets `ax_` and `figure_`."""

    ax_: Axes
    figure_: Figure

    def _drawn_on(self, ax: Axes) -> None:
        self.ax_ = ax
        figure = ax.figure
        self.figure_ = figure  # type: ignore[assignment]


def fitted(estimator: Any) -> Any:
    """The fitted model of numbers; a typed error if it is something else."""
    from ridgefold.estimators.saving import Storable

    if not isinstance(estimator, Storable):
        raise InvalidInputError(
            f"estimator must be a fitted estimator of ridgefold, got {type(estimator).__name__}"
        )
    check_is_fitted(estimator)
    return inner_of(estimator)


def column_names(estimator: Any) -> tuple[str, ...]:
    """A name for each column that the model of numbers sees."""
    columns = getattr(estimator, "columns_", None)
    if columns is not None:
        return tuple(str(name) for name in columns.feature_names)
    inner = inner_of(estimator)
    names = getattr(inner, "feature_names_in_", None)
    if names is None:
        return tuple(f"column {j}" for j in range(int(inner.n_features_in_)))
    return tuple(str(name) for name in np.asarray(names))

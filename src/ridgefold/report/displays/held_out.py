"""Numbers on rows that the model did not see: true against predicted, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.report.displays.base import Display
from ridgefold.report.formatting import clean
from ridgefold.report.reported_model import facts_of
from ridgefold.report.style import (
    BAND,
    INK,
    MUTED,
    SIGNAL,
    axes_or_new,
    draw_points,
    dress,
    plain_ticks,
)
from ridgefold.report.unseen_rows import UnseenNumbers, unseen_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("actual_vs_predicted", "residual_vs_predicted")
_BINS, _ROWS_A_BIN = 12, 25
"""Medians are drawn for at most so many bins, each of at least so many rows."""
_FEWEST_BINS = 3
"""Fewer medians would make no line."""
BANDED_ROWS = _FEWEST_BINS * _ROWS_A_BIN
"""Rows from which on the band of the residuals is drawn."""


class HeldOutDisplay(Display):
    """True against predicted numbers of rows that the model did not see, or the residuals.

    Parameters
    ----------
    truth, predictions : arrays of shape (n_rows,)
    target_name : str
    source : str
        Which rows these are, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import HeldOutDisplay, KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(120, 2))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(120)
    >>> model = KernelRidgeCV().fit(X, y)
    >>> display = HeldOutDisplay.from_estimator(model, kind="residual_vs_predicted")
    >>> display.predictions.shape
    (120,)
    """

    def __init__(
        self,
        *,
        truth: np.ndarray,
        predictions: np.ndarray,
        target_name: str = "target",
        source: str = "",
    ) -> None:
        self.truth = truth
        self.predictions = predictions
        self.target_name = target_name
        self.source = source
        self.how_drawn = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        kind: str = "actual_vs_predicted",
        target: int = 0,
        target_name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw what a fitted regressor has kept of held-out rows, or its predictions of X.

        Parameters
        ----------
        estimator : fitted regressor of ridgefold
        X, y : optional
            Rows of a test set and their targets; without them, the held-out predictions of the
            cross-validation are drawn.
        kind : {"actual_vs_predicted", "residual_vs_predicted"}
        target : int, default=0
            Which of several targets.
        target_name : str, optional
        ax : matplotlib Axes, optional
        """
        facts = facts_of(estimator)
        unseen = unseen_rows(facts, X, y)
        if not isinstance(unseen, UnseenNumbers):
            raise InvalidInputError(
                f"{facts.name} keeps no held-out predictions of numbers: give a test "
                "set as X and y, use KernelRidgeCV or LSSVMRegressorCV, or ConfusionDisplay for "
                "classes"
            )
        if not 0 <= target < unseen.truth.shape[1]:
            raise InvalidInputError(
                f"target must be one of 0 to {unseen.truth.shape[1] - 1}, got {target!r}"
            )
        display = cls(
            truth=unseen.truth[:, target],
            predictions=unseen.predictions[:, target],
            target_name=target_name or "target",
            source=unseen.source,
        )
        return display.plot(ax, kind=kind)

    def plot(self, ax: Axes | None = None, *, kind: str = "actual_vs_predicted") -> Self:
        """Draw on `ax`, or on new axes."""
        if kind not in KINDS:
            raise InvalidInputError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
        ax = axes_or_new(ax)
        self._drawn_on(ax)
        if kind == "actual_vs_predicted":
            self._draw_truth(ax)
        else:
            self._draw_residuals(ax)
        plain_ticks(ax)
        return self

    def _draw_truth(self, ax: Axes) -> None:
        ends = [
            float(min(self.truth.min(), self.predictions.min())),
            float(max(self.truth.max(), self.predictions.max())),
        ]
        room = 0.03 * (ends[1] - ends[0] or 1.0)
        limits = (ends[0] - room, ends[1] + room)
        ax.set_xlim(limits)
        ax.set_ylim(limits)
        ax.set_aspect("equal", adjustable="box")
        self.how_drawn = draw_points(ax, self.predictions, self.truth)
        ax.plot(limits, limits, color=SIGNAL, linewidth=1.0, zorder=3)
        name = clean(self.target_name, 40)
        dress(ax, x=f"predicted {name}", y=f"true {name}")

    def _draw_residuals(self, ax: Axes) -> None:
        residuals = self.truth - self.predictions
        self.how_drawn = draw_points(ax, self.predictions, residuals)
        ax.axhline(0.0, color=SIGNAL, linewidth=1.0, zorder=3)
        bins = min(_BINS, len(residuals) // _ROWS_A_BIN)
        if bins >= _FEWEST_BINS:
            self._draw_bands(ax, residuals, bins)
        dress(ax, x=f"predicted {clean(self.target_name, 40)}", y="true minus predicted")

    def _draw_bands(self, ax: Axes, residuals: np.ndarray, bins: int) -> None:
        """The median and the middle 90 % of the residuals, bin by bin of predictions."""
        binned = np.array_split(np.argsort(self.predictions, kind="stable"), bins)
        middle = [float(np.median(self.predictions[rows])) for rows in binned]
        low, median, high = np.asarray(
            [np.quantile(residuals[rows], (0.05, 0.5, 0.95)) for rows in binned]
        ).T
        many = "hexagon" in self.how_drawn
        for edge in (low, high):
            ax.plot(middle, edge, color=MUTED, linewidth=1.1, linestyle=(0, (4, 2)), zorder=4)
        if not many:
            ax.fill_between(middle, low, high, color=BAND, alpha=0.45, linewidth=0, zorder=0)
        ax.plot(middle, median, color=INK, linewidth=1.4, zorder=4)

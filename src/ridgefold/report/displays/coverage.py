"""Do intervals hold what they promise, for low and for high predictions?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.report.displays.base import Display
from ridgefold.report.formatting import clean
from ridgefold.report.reported_model import facts_of
from ridgefold.report.style import ACCENT, MUTED, SIGNAL, axes_or_new, dress, plain_ticks
from ridgefold.report.unseen_intervals import unseen_intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS, _ROWS_A_BIN = 10, 20
"""At most so many points, each of at least so many rows: a share of fewer rows says little."""


class CoverageDisplay(Display):
    """The share of true values inside their intervals, over the predicted value.

    Parameters
    ----------
    predictions : array of shape (n_rows,)
    inside : bool array of shape (n_rows,)
        Whether the true value lies in its interval.
    coverage : float
        The share that should.
    target_name : str
    """

    def __init__(
        self,
        *,
        predictions: np.ndarray,
        inside: np.ndarray,
        coverage: float,
        target_name: str = "target",
    ) -> None:
        self.predictions = predictions
        self.inside = inside
        self.coverage = coverage
        self.target_name = target_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        coverage: float = 0.9,
        target: int = 0,
        target_name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the coverage of held-out intervals, or of those that are predicted for X."""
        facts = facts_of(estimator)
        intervals = unseen_intervals(facts, X, y, (coverage,))
        if intervals is None:
            raise InvalidInputError(
                f"{facts.name} keeps nothing to make intervals from: fit with "
                'intervals="cv+" or "jackknife+"'
            )
        display = cls(
            predictions=intervals.predictions[:, target],
            inside=intervals.inside[0][:, target],
            coverage=coverage,
            target_name=target_name or "target",
        )
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on new axes."""
        ax = axes_or_new(ax)
        self._drawn_on(ax)
        n = len(self.inside)
        bins = max(1, min(_BINS, n // _ROWS_A_BIN))
        binned = np.array_split(np.argsort(self.predictions, kind="stable"), bins)
        middle = np.asarray([float(np.median(self.predictions[rows])) for rows in binned])
        share = np.asarray([float(np.mean(self.inside[rows])) for rows in binned])
        counts = np.asarray([len(rows) for rows in binned])
        # Wilson's interval: it does not leave [0, 1] where nearly all or none are inside.
        z = 1.96
        centre = (share + z**2 / (2 * counts)) / (1 + z**2 / counts)
        half = z * np.sqrt(share * (1 - share) / counts + z**2 / (4 * counts**2))
        half /= 1 + z**2 / counts
        low, high = 100 * (centre - half), 100 * (centre + half)
        ax.axhline(100 * self.coverage, color=SIGNAL, linewidth=1.0)
        ax.vlines(middle, low, high, color=MUTED, linewidth=1.0)
        ax.plot(middle, 100 * share, color=ACCENT, marker="o", markersize=4, linewidth=1.2)
        ax.set_ylim(min(float(low.min()) - 2, 100 * self.coverage - 12), 101)
        dress(
            ax,
            x=f"predicted {clean(self.target_name, 40)}",
            y=f"inside their {100 * self.coverage:.0f} % interval, %",
        )
        plain_ticks(ax)
        return self

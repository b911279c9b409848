"""How the prediction moves with one column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.records import EffectCurve
from ridgefold.report.displays.base import Display
from ridgefold.report.formatting import clean
from ridgefold.report.reported_model import facts_of
from ridgefold.report.style import ACCENT, BAND, MUTED, axes_or_new, dress, name_ticks, plain_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LEVELS = 12


class EffectCurveDisplay(Display):
    """The mean prediction as one column takes each of its values, with a band.

    The band is two standard errors to each side, from the models without a fold each.

    Parameters
    ----------
    curve : EffectCurve
        One of those that ``effect_curves()`` gives.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import EffectCurveDisplay, KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(120, 2))
    >>> model = KernelRidgeCV().fit(X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(120))
    >>> display = EffectCurveDisplay.from_estimator(model, 0)
    >>> bool(np.ptp(display.curve.means) > 1)
    True
    """

    def __init__(self, *, curve: EffectCurve) -> None:
        self.curve = curve

    @classmethod
    def from_estimator(
        cls, estimator: Any, column: Any, *, target: int | None = None, ax: Axes | None = None
    ) -> Self:
        """Compute the curve of a column, by its name or number, and draw it."""
        facts = facts_of(estimator)
        if facts.effect_curves is None:
            raise InvalidInputError(f"{facts.name} keeps no rows to draw curves over")
        curves = facts.effect_curves([column], target)
        if not curves:
            raise InvalidInputError(f"the column {column!r} is the same in all rows")
        return cls(curve=curves[0]).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on new axes."""
        ax = axes_or_new(ax)
        self._drawn_on(ax)
        curve = self.curve
        reach = None if curve.standard_errors is None else 2 * curve.standard_errors
        if curve.levels is None:
            if reach is not None:
                low, high = curve.means - reach, curve.means + reach
                ax.fill_between(curve.positions, low, high, color=BAND, linewidth=0)
            ax.plot(curve.positions, curve.means, color=ACCENT, linewidth=1.6)
            dress(ax, x=clean(curve.name, 40), y=clean(curve.quantity, 40))
            plain_ticks(ax)
            return self
        shown = slice(0, _MOST_LEVELS)
        means = curve.means[shown]
        places = np.arange(len(means))
        middle = float(np.mean(curve.means))
        ax.axvline(middle, color=MUTED, linewidth=0.8)
        ax.barh(places, means - middle, left=middle, height=0.62, color=BAND, linewidth=0)
        ax.plot(means, places, linestyle="none", marker="o", markersize=4, color=ACCENT)
        if reach is not None:
            ax.hlines(
                places, means - reach[shown], means + reach[shown], color=ACCENT, linewidth=1.2
            )
        ax.set_ylim(len(means) - 0.4, -0.6)
        dress(ax, x=clean(curve.quantity, 40), grid=None)
        name_ticks(ax, list(curve.levels[shown]), axis="y")
        ax.tick_params(axis="y", length=0)
        return self

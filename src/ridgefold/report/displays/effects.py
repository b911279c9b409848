"""How predictions change with every column: averages with their errors, and quartiles of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.estimators.effects_table import MarginalEffects
from ridgefold.report.displays.base import Display
from ridgefold.report.style import (
    ACCENT,
    BAND,
    MUTED,
    RULE,
    axes_or_new,
    dress,
    name_ticks,
    plain_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TWO_SIDED = 1.959963984540054
"""The normal quantile of a 95% interval."""


class EffectsDisplay(Display):
    """Average effects with 95% intervals, over bars from the first to the third quartile of rows.

    Slopes are multiplied by the standard deviation of their column, so that columns of different
    units fit one axis; differences are as they are.

    Parameters
    ----------
    effects : MarginalEffects
    output : int
        Which target or class, if there are several.
    most : int
        So many effects are drawn, the largest first.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import EffectsDisplay, LSSVMRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (80, 2))
    >>> model = LSSVMRegressor(0.01, gamma=0.5).fit(X, 3 * X[:, 0] + X[:, 1] ** 2)
    >>> display = EffectsDisplay.from_estimator(model)
    >>> display.names[0]
    'column 0'
    """

    def __init__(self, *, effects: MarginalEffects, output: int = 0, most: int = 15) -> None:
        n_outputs, p = len(effects.outputs), len(effects.names)
        if not isinstance(output, (int, np.integer)) or not 0 <= output < n_outputs:
            raise InvalidInputError(
                f"output must be a number from 0 to {n_outputs - 1} ({', '.join(effects.outputs)}),"
                f" got {output!r}"
            )

        def of_output(values: np.ndarray) -> np.ndarray:
            return np.asarray(values.reshape(*values.shape[:1], n_outputs)[:, output])

        units = np.asarray(effects.spreads)
        average = of_output(effects.average) * units
        order = np.argsort(-np.abs(average), kind="stable")[:most]
        bars = [of_output(each)[order] * units[order] for each in effects.quartiles]
        chosen = effects.posterior_std
        self.interval_name = "posterior"
        if chosen is None or np.isnan(of_output(chosen)[order]).any():
            chosen, self.interval_name = effects.standard_error, "standard error"
        self.effects, self.output, self.most = effects, output, most
        self.left_out = p - len(order)
        self.names = tuple(effects.names[i] for i in order)
        self.averages = average[order]
        self.quartiles = np.stack(bars)
        self.half_widths = None
        if chosen is not None:
            self.half_widths = _TWO_SIDED * of_output(chosen)[order] * units[order]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        output: int = 0,
        most: int = 15,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the marginal effects of a fitted model, at its training rows or at X."""
        if not hasattr(estimator, "marginal_effects"):
            raise InvalidInputError(
                "estimator must be a fitted estimator of ridgefold, got "
                f"{type(estimator).__name__}: it has no marginal_effects"
            )
        return cls(effects=estimator.marginal_effects(X), output=output, most=most).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on new axes."""
        ax = axes_or_new(ax)
        self._drawn_on(ax)
        places = np.arange(len(self.names))
        low, _, high = self.quartiles
        ax.axvline(0.0, color=RULE, linewidth=1.0, zorder=1)
        ax.barh(places, high - low, left=low, height=0.5, color=BAND, linewidth=0, zorder=2)
        if self.half_widths is not None:
            ax.hlines(
                places, self.averages - self.half_widths, self.averages + self.half_widths,
                color=ACCENT, linewidth=2.0, zorder=3,
            )  # fmt: skip
        ax.scatter(self.averages, places, s=26, color=ACCENT, linewidth=0, zorder=4)
        ax.set_ylim(len(places) - 0.4, -0.6)
        slopes = any(kind == "slope" for kind in self.effects.kinds)
        of = self.effects.outputs[self.output]
        what = "prediction" if of == "prediction" else of
        per = " per standard deviation of the column" if slopes else ""
        dress(ax, x=f"change of {what}{per}", grid="x")
        ax.xaxis.label.set_color(MUTED)
        name_ticks(ax, self.names, axis="y")
        plain_ticks(ax, y=False)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        return self

    def caption(self) -> str:
        """What the marks are, in words."""
        words = "Dots: averages. Bars: from the first to the third quartile of the rows."
        if self.half_widths is not None:
            words += f" Lines: 95% intervals of the averages ({self.interval_name})."
        if self.left_out:
            words += f" {self.left_out} smaller effects are left out."
        return words

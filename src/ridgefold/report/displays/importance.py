"""How much every column matters: what held-out errors rise by without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.records import Importances
from ridgefold.report.displays.base import Display
from ridgefold.report.formatting import number
from ridgefold.report.reported_model import facts_of
from ridgefold.report.style import ACCENT, FONT, INK, MUTED, RULE, axes_or_new, dress, name_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ImportanceDisplay(Display):
    """What the held-out error rises by when a column's values are exchanged between rows.

    Whiskers are two standard errors long to each side. Columns whose rise may be chance are pale.

    Parameters
    ----------
    importances : Importances
        What ``held_out_importances()`` gives.
    most : int
        So many columns are drawn, the most important first.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import ImportanceDisplay, KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(120, 2))
    >>> y = 2 * X[:, 0] + np.sin(X[:, 1]) + 0.1 * rng.standard_normal(120)
    >>> display = ImportanceDisplay.from_estimator(KernelRidgeCV().fit(X, y))
    >>> bool(display.importances.rises[0] > display.importances.rises[1])
    True
    """

    def __init__(self, *, importances: Importances, most: int = 12) -> None:
        self.importances = importances
        self.most = most

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        n_repeats: int = 5,
        max_rows: int = 1000,
        most: int = 12,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the importances of a fitted model, and draw them."""
        facts = facts_of(estimator)
        if facts.importances is None:
            raise InvalidInputError(
                f"no row can be left out of this {facts.name}, so nothing is known of what its "
                "columns matter: fit KernelRidgeCV, or cells that are blended"
            )
        return cls(importances=facts.importances(n_repeats, max_rows), most=most).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on new axes."""
        ax = axes_or_new(ax)
        self._drawn_on(ax)
        importances = self.importances
        order = most_important(importances)[: self.most]
        rises, reach = importances.rises[order], 2 * importances.standard_errors[order]
        reach = np.where(np.isfinite(reach), reach, 0.0)
        places = np.arange(len(order))
        clear = rises > reach
        colours = [ACCENT if sure else RULE for sure in clear]
        ax.barh(places, rises, height=0.62, color=colours, linewidth=0)
        ax.hlines(places, rises - reach, rises + reach, color=INK, linewidth=1.0)
        ends = np.maximum(rises + reach, 0.0)
        for place, rise, end in zip(places, rises, ends, strict=True):
            ax.annotate(
                number(float(rise), 2),
                (float(end), float(place)),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=FONT,
                color=MUTED,
            )
        low, high = min(0.0, float(np.min(rises - reach))), float(np.max(ends))
        ax.axvline(0.0, color=MUTED, linewidth=0.8)
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.set_xlim(1.04 * low, high * 1.18 if high > 0 else 1.0)
        dress(ax, grid=None)
        name_ticks(ax, [importances.names[j] for j in order], axis="y")
        ax.set_xticks([])
        ax.spines["bottom"].set_visible(False)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return self


def most_important(importances: Importances) -> np.ndarray:
    """Columns in the order of their rises, those that are certain first."""
    return np.asarray(np.argsort(-importances.rises, kind="stable"))

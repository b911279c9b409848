"""How finely a learned metric resolves every column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.report.displays.base import Display
from ridgefold.report.formatting import percent
from ridgefold.report.reported_model import facts_of
from ridgefold.report.style import (
    ACCENT,
    FONT,
    MUTED,
    axes_or_new,
    dress,
    name_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class LengthScalesDisplay(Display):
    """The share of every column in the distance between two rows, as learned scales measure it.

    A large share says that the model bends within a short way along the column, a small one that
    it is smooth along it. It does not say how much the column matters: a column with a strong
    straight effect has a small share. See :class:`ImportanceDisplay` for that.

    Parameters
    ----------
    names : sequence of str
    shares : array of shape (n_columns,)
        Shares that add up to one.
    most : int
        So many columns are drawn, the largest shares first.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgefold import KernelRidgeCV, LengthScalesDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(120, 2))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(120)
    >>> model = KernelRidgeCV(metric="learned").fit(X, y)
    >>> display = LengthScalesDisplay.from_estimator(model)
    >>> bool(display.shares[0] > display.shares[1])
    True
    """

    def __init__(self, *, names: Sequence[str], shares: np.ndarray, most: int = 12) -> None:
        self.names = tuple(names)
        self.shares = shares
        self.most = most

    @classmethod
    def from_estimator(cls, estimator: Any, *, most: int = 12, ax: Axes | None = None) -> Self:
        """Draw the learned metric of a model that was fitted with ``metric="learned"``."""
        facts = facts_of(estimator)
        if facts.metric is None:
            raise InvalidInputError(
                f'{facts.name} has learned no scales: fit with metric="learned"'
            )
        scales = facts.metric.named
        return cls(names=scales.names, shares=scales.shares, most=most).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on new axes."""
        ax = axes_or_new(ax)
        self._drawn_on(ax)
        order = np.argsort(-self.shares, kind="stable")[: self.most]
        shares = self.shares[order]
        places = np.arange(len(order))
        ax.barh(places, shares, height=0.62, color=ACCENT, linewidth=0)
        for place, share in zip(places, shares, strict=True):
            ax.annotate(
                percent(float(share)),
                (float(share), float(place)),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=FONT,
                color=MUTED,
            )
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.set_xlim(0, float(shares.max()) * 1.16 if shares.max() > 0 else 1.0)
        dress(ax, grid=None)
        name_ticks(ax, [self.names[j] for j in order], axis="y")
        ax.set_xticks([])
        ax.spines["bottom"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return self

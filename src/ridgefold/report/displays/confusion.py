"""Which classes are taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.report.displays.base import Display
from ridgefold.report.formatting import clean, percent
from ridgefold.report.reported_model import facts_of
from ridgefold.report.style import (
    FONT,
    INK,
    LONGEST_NAME,
    SEQUENCE,
    SURFACE,
    axes_or_new,
    dress,
    name_ticks,
)
from ridgefold.report.unseen_rows import UnseenClasses, unseen_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CLASSES = 20
"""Of more classes no matrix is drawn: its fields would be too small to read."""


class ConfusionDisplay(Display):
    """Rows of the true class, columns of the predicted one; shares of each true class.

    Parameters
    ----------
    counts : array of shape (n_classes, n_classes)
    names : sequence of str
    """

    def __init__(self, *, counts: np.ndarray, names: Sequence[str]) -> None:
        self.counts = counts
        self.names = tuple(names)
        self.keys: dict[str, str] = {}

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Axes | None = None
    ) -> Self:
        """Draw the held-out classes of a fitted classifier, or its predictions of X."""
        return cls.of(estimator, X, y).plot(ax)

    @classmethod
    def of(cls, estimator: Any, X: Any = None, y: Any = None) -> Self:
        """The display before it is drawn."""
        facts = facts_of(estimator)
        unseen = unseen_rows(facts, X, y)
        if not isinstance(unseen, UnseenClasses) or facts.classes is None:
            raise InvalidInputError(
                f"{facts.name} keeps no held-out classes: give a test set as X and "
                "y, or fit a classifier with probability=True"
            )
        return cls.from_unseen(unseen, [str(label) for label in facts.classes.tolist()])

    @classmethod
    def from_unseen(cls, unseen: UnseenClasses, names: Sequence[str]) -> Self:
        """The display of the classes of unseen rows."""
        counts = np.zeros((len(names), len(names)), dtype=int)
        np.add.at(counts, (unseen.truth, unseen.predicted), 1)
        return cls(counts=counts, names=names)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on new axes."""
        from matplotlib.patches import Rectangle

        ax = axes_or_new(ax)
        self._drawn_on(ax)
        k = len(self.names)
        totals = np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        shares = self.counts / totals
        last = len(SEQUENCE) - 1
        for i in range(k):
            for j in range(k):
                step = round(float(shares[i, j]) * last)
                key = f"pair-{i}-{j}"
                true, said = (clean(self.names[c], LONGEST_NAME) for c in (i, j))
                self.keys[key] = f"{self.counts[i, j]:,} rows of {true} were called {said}"
                ax.add_patch(
                    Rectangle(
                        (j - 0.5, i - 0.5),
                        1,
                        1,
                        facecolor=SEQUENCE[step],
                        edgecolor=SURFACE,
                        linewidth=1.2,
                        gid=key,
                    )
                )
                if k <= 8:
                    ax.annotate(
                        f"{percent(float(shares[i, j]))}\n{self.counts[i, j]:,}",
                        (j, i), ha="center", va="center",
                        fontsize=FONT if k <= 5 else FONT - 2,
                        color=SURFACE if step >= 5 else INK,
                    )  # fmt: skip
        ax.set_xlim(-0.5, k - 0.5)
        ax.set_ylim(k - 0.5, -0.5)
        ax.set_aspect("equal" if k > 2 else 0.62)
        dress(ax, x="predicted", y="true", grid=None)
        longest = max(len(clean(name, LONGEST_NAME)) for name in self.names)
        name_ticks(ax, self.names, axis="x", rotation=0 if longest * k <= 36 else 35)
        name_ticks(ax, self.names, axis="y")
        for side in ("left", "bottom"):
            ax.spines[side].set_visible(False)
        ax.tick_params(length=0)
        return self

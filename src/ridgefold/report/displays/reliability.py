"""Are rows that get a probability of 70 % of the class in 70 % of the cases?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.report.displays.base import Display
from ridgefold.report.formatting import clean
from ridgefold.report.reported_model import facts_of
from ridgefold.report.style import ACCENT, MUTED, RULE, SIGNAL, axes_or_new, dress, plain_ticks
from ridgefold.report.unseen_rows import UnseenClasses, unseen_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS, _ROWS_A_BIN = 10, 25
"""At most so many points, each of at least so many rows: a frequency of fewer rows says little."""


class ReliabilityDisplay(Display):
    """Observed frequency against predicted probability of held-out rows, in bins of equal size.

    Parameters
    ----------
    probabilities : array of shape (n_rows,)
        Of the class (of several classes, of the one that is predicted).
    happened : bool array of shape (n_rows,)
        Whether the row is of that class.
    class_name : str
    """

    def __init__(self, *, probabilities: np.ndarray, happened: np.ndarray, class_name: str) -> None:
        self.probabilities = probabilities
        self.happened = happened
        self.class_name = class_name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Axes | None = None
    ) -> Self:
        """Draw the probabilities of held-out rows of a fitted classifier, or those of X."""
        facts = facts_of(estimator)
        unseen = unseen_rows(facts, X, y)
        if not isinstance(unseen, UnseenClasses) or unseen.probabilities is None:
            raise InvalidInputError(
                f"{facts.name} keeps no held-out probabilities: fit a classifier "
                "with probability=True"
            )
        assert facts.classes is not None
        return cls.from_unseen(unseen, str(facts.classes.tolist()[-1])).plot(ax)

    @classmethod
    def from_unseen(cls, unseen: UnseenClasses, last_class: str) -> Self:
        """The display of the probabilities of unseen rows."""
        assert unseen.probabilities is not None
        if unseen.probabilities.shape[1] == 2:
            return cls(
                probabilities=unseen.probabilities[:, 1],
                happened=unseen.truth == 1,
                class_name=last_class,
            )
        likely = np.argmax(unseen.probabilities, axis=1)
        return cls(
            probabilities=unseen.probabilities[np.arange(len(likely)), likely],
            happened=unseen.truth == likely,
            class_name="the most likely class",
        )

    def bins(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean probability, observed frequency and number of rows of every bin."""
        count = max(1, min(_BINS, len(self.happened) // _ROWS_A_BIN))
        binned = np.array_split(np.argsort(self.probabilities, kind="stable"), count)
        return (
            np.asarray([self.probabilities[rows].mean() for rows in binned]),
            np.asarray([self.happened[rows].mean() for rows in binned]),
            np.asarray([len(rows) for rows in binned]),
        )

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on new axes."""
        ax = axes_or_new(ax)
        self._drawn_on(ax)
        said, seen, counts = self.bins()
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1.02)
        ax.set_aspect("equal", adjustable="box")
        edges = np.linspace(0, 1, 26)
        heights, _ = np.histogram(self.probabilities, edges)
        ax.bar(
            edges[:-1], 0.12 * heights / max(heights.max(), 1), width=0.032, align="edge",
            color=RULE, linewidth=0,
        )  # fmt: skip
        ax.plot([0, 1], [0, 1], color=SIGNAL, linewidth=1.0)
        half = 1.96 * np.sqrt(np.maximum(seen * (1 - seen), 0.01) / counts)
        ax.vlines(said, np.clip(seen - half, 0, 1), np.clip(seen + half, 0, 1), color=MUTED, lw=1.0)
        ax.plot(said, seen, color=ACCENT, marker="o", markersize=4, linewidth=1.2)
        name = clean(self.class_name, 30)
        dress(ax, x=f"predicted probability of {name}", y=f"observed frequency of {name}")
        plain_ticks(ax)
        return self

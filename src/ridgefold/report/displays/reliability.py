"""Are rows that get a probability of 70 % of the class in 70 % of the cases?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.report.displays.base import Display, fitted
from ridgefold.report.evidence import HeldOutClasses, classes_of, held_out_of
from ridgefold.report.style import ACCENT, MUTED, RULE, SIGNAL, axes_or_new, dress, plain_ticks
from ridgefold.report.words import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 10
_ROWS_A_BIN = 25


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
        fitted(estimator)
        found = held_out_of(estimator, X, y)
        if not isinstance(found, HeldOutClasses) or found.probabilities is None:
            raise InvalidInputError(
                f"{type(estimator).__name__} keeps no held-out probabilities: fit a classifier "
                "with probability=True"
            )
        classes = classes_of(estimator)
        assert classes is not None
        return cls.from_held_out(found, str(classes.tolist()[-1])).plot(ax)

    @classmethod
    def from_held_out(cls, found: HeldOutClasses, last_class: str) -> Self:
        assert found.probabilities is not None
        if found.probabilities.shape[1] == 2:
            return cls(
                probabilities=found.probabilities[:, 1],
                happened=found.truth == 1,
                class_name=last_class,
            )
        likely = np.argmax(found.probabilities, axis=1)
        return cls(
            probabilities=found.probabilities[np.arange(len(likely)), likely],
            happened=found.truth == likely,
            class_name="the most likely class",
        )

    def bins(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean probability, observed frequency and number of rows of every bin."""
        count = max(1, min(_BINS, len(self.happened) // _ROWS_A_BIN))
        parts = np.array_split(np.argsort(self.probabilities, kind="stable"), count)
        return (
            np.asarray([self.probabilities[part].mean() for part in parts]),
            np.asarray([self.happened[part].mean() for part in parts]),
            np.asarray([len(part) for part in parts]),
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

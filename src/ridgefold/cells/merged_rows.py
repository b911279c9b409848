"""Rows with the same x as one merged row, and what leaving out one of its members says.

Rows with the same x are, for every fit with squared errors, one row of their weights' sum W and
their targets' weighted mean ȳ. With a and r the coefficient and the leave-one-out residual of the
merged row, α the ridge, e = ȳ − f = αa/W its error and h its leverage, the model without one of
its members predicts that with a residual of

    r_i = (y_i − ȳ + e)/(1 − h·w_i/W),    1 − h = e/r,

as each of them has the share of its weight in the leverage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class MergedRows:
    """The members of every merged row: the given rows that it stands for.

    Arrays hold the members of the first merged row, then those of the second, and so on.
    """

    offsets: np.ndarray
    """Where the members of each merged row begin, and where those of the last one end."""
    deviations: np.ndarray
    """y_i − ȳ of every member, of shape (members, t)."""
    weights: np.ndarray
    """w_i of every member."""
    shares: np.ndarray
    """w_i/W of every member."""

    @property
    def sizes(self) -> np.ndarray:
        """How many members every merged row has."""
        return np.diff(self.offsets)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Values of merged rows, repeated for each of their members."""
        return np.repeat(values, self.sizes, axis=0)

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Positions of the members of the numbered merged rows, one merged row after the other."""
        sizes = self.sizes[rows]
        ends = np.cumsum(sizes)
        return np.repeat(self.offsets[rows] - ends + sizes, sizes) + np.arange(sizes.sum())

    def taken(self, rows: np.ndarray) -> MergedRows:
        """The members of the numbered merged rows alone."""
        places = self.places(rows)
        offsets = np.concatenate([[0], np.cumsum(self.sizes[rows])])
        return MergedRows(
            offsets, self.deviations[places], self.weights[places], self.shares[places]
        )

    def apart(self, places: np.ndarray) -> tuple[MergedRows, np.ndarray]:
        """The members at some positions, each as a merged row of its own; and whose members they
        were."""
        alone = MergedRows(
            np.arange(len(places) + 1),
            self.deviations[places],
            self.weights[places],
            self.shares[places],
        )
        return alone, np.searchsorted(self.offsets, places, side="right") - 1

    def residuals(self, errors: np.ndarray, merged: np.ndarray) -> np.ndarray:
        """r_i of every member, from e and r of the merged rows, both of shape (n, t).

        NaN where nothing is left without a row. A member that is alone has r itself.
        """
        largest = np.argmax(np.abs(merged), axis=1)[:, None]  # h is the same for all targets
        top = np.take_along_axis(errors, largest, axis=1)
        bottom = np.take_along_axis(merged, largest, axis=1)
        kept = np.divide(top, bottom, out=np.ones_like(top), where=bottom != 0.0)
        # A merged row alone in a cell with a bias is predicted by itself.
        leverage = np.where(np.isnan(bottom), 1.0, np.clip(1.0 - kept, 0.0, 1.0))
        left = 1.0 - self.spread(leverage) * self.shares[:, None]
        apart = self.spread(errors) + self.deviations
        own = np.divide(apart, left, out=np.full_like(apart, np.nan), where=left != 0.0)
        return np.where(self.shares[:, None] == 1.0, self.spread(merged), own)

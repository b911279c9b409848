"""How the cells of a partitioned model are tuned, fitted and put together."""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.options.base import OptionObject

EXACT = "exact"
ALWAYS = "always"
TUNING = ("auto", "cell", "shared")


class CellOptions(OptionObject):
    """Details of the cells: the argument `cells` of partitioned models.

    Parameters
    ----------
    overlap : float, default=0.35
        Thickness of the band that two cells share, as a share of their own; for "blend".
    clip : bool, default=True
        Let no cell predict far beyond the range of its targets (by a quarter of it, and not
        beyond the range of all, unless it chose its own pair and its leave-one-out error is below a
        hundredth of its range): small cells extrapolate wildly where rows are few. Not for
        "average" and not after refining, where what is sought is one linear model.
    tuning : {"auto", "cell", "shared"}, default="auto"
        Kernel and ridge by cell, or one pair for all, chosen on a few cells; "auto" shares them
        above 300,000 rows and where they must be shared. Cells of more than 1,536 rows take the
        shared pair in any case.
    coarse_model : "auto" or None, default="auto"
        Mix in a coarse model of all rows, spanned by 128 of them, by as much as lowers the
        leave-one-out error: cells of a few hundred rows with noisy targets vary more than they
        need to. "auto" does so where blended cells with a bias choose their own width and ridge,
        there are at most 300,000 rows, and it gains enough to tell; None never.
    linear_part : "auto", "always" or None, default="auto"
        Fit a linear model of all columns to all rows first, and let cells learn what it leaves: a
        column that acts in the same way everywhere is then not learned again by every cell from
        its few hundred rows. "auto" does so where it lowers the leave-one-out error of a few
        regions; it looks where cells with a bias choose their own width and ridge and there are at
        least 50 rows a column. Residuals of rows left out leave a row out of its cells; its part
        in the linear model, one coefficient a column, stays. Not with "average" or `refine`.
    tolerance : float, default=0.02
        Share of accuracy (root mean squared error) that ``n_partitions="auto"`` may lose.
    refine : None, int or "exact", default=None
        Steps of conjugate gradients on the whole system that follow, preconditioned by the
        cells; "exact" goes on until predictions equal those of :class:`KernelRidge`. Needs one
        kernel and ridge for all cells.
    weighted_scores : bool, default=True
        Count rows by their `sample_weight` in the scores that choose, too, and rows with the same
        x by how many they are. False counts every row once.

    Examples
    --------
    >>> from ridgefold import CellOptions, PartitionedKernelRidge
    >>> PartitionedKernelRidge(cells=CellOptions(overlap=0.5)).get_params()["cells__overlap"]
    0.5
    """

    argument = "cells"

    def __init__(
        self,
        *,
        overlap: float = 0.35,
        clip: bool = True,
        tuning: str = "auto",
        coarse_model: str | None = "auto",
        linear_part: str | None = "auto",
        tolerance: float = 0.02,
        refine: Any = None,
        weighted_scores: bool = True,
    ) -> None:
        self.overlap = overlap
        self.clip = clip
        self.tuning = tuning
        self.coarse_model = coarse_model
        self.linear_part = linear_part
        self.tolerance = tolerance
        self.refine = refine
        self.weighted_scores = weighted_scores

    def check(self) -> None:
        self._require_share(
            "overlap", "the share of a cell's thickness in which it overlaps a neighbour"
        )
        self._require_share("tolerance", "the share of accuracy that more cells may cost")
        self._require_one_of("tuning", TUNING)
        self._require_one_of("coarse_model", ("auto", None))
        self._require_one_of("linear_part", ("auto", ALWAYS, None))
        for name in ("clip", "weighted_scores"):
            self._require_bool(name)
        if self.refine is None or (isinstance(self.refine, str) and self.refine == EXACT):
            return
        whole = isinstance(self.refine, (int, np.integer)) and not isinstance(self.refine, bool)
        if not whole or self.refine < 1:
            raise InvalidInputError(
                f'cells.refine must be None, "exact" or a number of steps >= 1, got {self.refine!r}'
            )

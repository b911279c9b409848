"""What is learned about the columns before kernel and ridge are chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.options.base import OptionObject


class MetricLearning(OptionObject):
    """Learn what distances between rows mean: the argument `metric` of models that choose.

    ``metric="learned"`` stands for ``MetricLearning()``, and ``metric=None`` for no learning.

    Parameters
    ----------
    scales : bool, default=True
        Learn one length scale a column by the gradient of the exact held-out error, on a subset
        of the rows; then choose alpha on all rows and fit. Columns that do not matter get large
        scales; those without which predictions change by at most 3% of the error are left out of
        the kernel, which saves time. Isotropic kernels are kept where learned scales are not
        better on rows that took no part. Partitioned models cut their cells in that metric, too.
    transforms : None, "standardise", "quantile", "signed_log" or "auto"
        Transform every column before the kernel sees it; "auto" chooses one for every column by
        the same error. Not for partitioned models.
    rows : int, default=2000
        At most so many rows are learned from.
    seconds : float, optional
        About how long learning may take; half of what is left of ``time_budget`` by default, and
        without one as long as it takes. What is found by then is used: scales from the slopes of
        a first fit at the least. ``metric_.history`` has what was tried, and when.
    rotate : bool, default=True
        Kernels of Euclidean distances may have scales of directions that mix columns, as their sums
        and differences, where rows that took no part are predicted better by them. Not for
        classes, partitioned models and choice by the likelihood, which keep to columns.
    groups : sequence of sequences of int, optional
        Columns that share one learned scale, as the columns of 0 and 1 of one category do: they
        count as one column. In the RBF and Laplacian kernels each category is then one factor,
        and the kernel a product.

    Examples
    --------
    >>> from ridgefold import KernelRidgeCV, MetricLearning
    >>> model = KernelRidgeCV(metric=MetricLearning(transforms="auto"))
    >>> model.get_params()["metric__transforms"]
    'auto'
    """

    argument = "metric"

    def __init__(
        self,
        *,
        scales: bool = True,
        transforms: str | None = None,
        rows: int = 2000,
        seconds: float | None = None,
        rotate: bool = True,
        groups: Any = None,
    ) -> None:
        self.scales = scales
        self.transforms = transforms
        self.rows = rows
        self.seconds = seconds
        self.rotate = rotate
        self.groups = groups

    def check(self) -> None:
        self._require_bool("scales")
        self._require_bool("rotate")
        rows = self.rows
        if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 2:
            raise InvalidInputError(f"metric.rows must be a whole number >= 2, got {rows!r}")
        seconds = self.seconds
        number = isinstance(seconds, (int, float, np.number)) and not isinstance(seconds, bool)
        if seconds is not None and not (number and seconds > 0):
            raise InvalidInputError(f"metric.seconds must be None or > 0, got {seconds!r}")
        if self.groups is not None and not self.scales:
            raise InvalidInputError(
                f"metric.groups={self.groups!r} names columns that share a learned scale, and "
                "needs metric.scales=True"
            )

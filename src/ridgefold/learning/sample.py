"""Which rows a metric is learned from, and which are kept outside to see whether it is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ridgefold.linalg import Array, Namespace, namespace_of

FEWEST_ROWS = 40
"""With fewer rows no scales are learned: there is nothing left to check them on."""
OUTSIDE_SHARE = 0.2
MOST_OUTSIDE = 2000


@dataclass(frozen=True)
class Sample:
    """Rows inside the criterion, in random order, and rows outside it."""

    namespace: Namespace
    X: Array
    y: Array
    weights: Array | None
    labels: np.ndarray | None
    """The fold that tests each row; None for leave-one-out."""
    outside_X: Array
    outside_y: Array
    bias: bool
    """Whether the models have one."""

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def first(self, count: int) -> Sample:
        """The first rows inside, with all the outside ones."""
        if count >= len(self):
            return self
        return replace(
            self,
            X=self.X[:count, ...],
            y=self.y[:count, ...],
            weights=None if self.weights is None else self.weights[:count],
            labels=None if self.labels is None else self.labels[:count],
        )

    def with_columns(self, X: Array, outside_X: Array) -> Sample:
        """The same rows with other columns."""
        return replace(self, X=X, outside_X=outside_X)

    @property
    def folds(self) -> list[np.ndarray] | None:
        """Test rows of every fold; None for leave-one-out."""
        if self.labels is None:
            return None
        names = [k for k in np.unique(self.labels) if k >= 0]
        folds = [np.flatnonzero(self.labels == k) for k in names]
        return folds if len(folds) > 1 else None


def draw_sample(
    X: Array,
    y: Array,
    weights: Array | None,
    folds: Sequence[np.ndarray] | int | None,
    *,
    max_rows: int,
    bias: bool,
    random: np.random.Generator,
) -> Sample:
    """Rows to learn from: at most `max_rows`, the same for the same generator.

    `folds` holds test sets among the rows of X, a number of random folds, or None for
    leave-one-out.
    Rows of weight zero take no part. With fewer than `FEWEST_ROWS` rows all are inside.
    """
    namespace = namespace_of(X)
    n = int(X.shape[0])
    usable = np.arange(n)
    if weights is not None:
        usable = np.flatnonzero(namespace.to_numpy(weights) > 0)
    order = random.permutation(usable)
    outside = 0
    if len(order) >= FEWEST_ROWS:
        outside = min(MOST_OUTSIDE, max(int(OUTSIDE_SHARE * len(order)), len(order) - max_rows))
    kept, rest = order[outside:][:max_rows], order[:outside]
    labels = None
    if isinstance(folds, int):
        labels = np.arange(len(kept)) % folds
    elif folds is not None:
        every = np.full(n, -1)
        for k, rows in enumerate(folds):
            every[rows] = k
        labels = every[kept]
    double = namespace.double()
    X, y = namespace.astype(X, double), namespace.astype(y, double)
    return Sample(
        namespace,
        namespace.take_rows(X, kept),
        namespace.take_rows(y, kept),
        None if weights is None else namespace.take_rows(namespace.astype(weights, double), kept),
        labels,
        namespace.take_rows(X, rest),
        namespace.take_rows(y, rest),
        bias,
    )

"""Which rows a metric is learned from, and which are kept outside to see whether it is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ridgefold.kernels.gram import columns_of
from ridgefold.linalg import Array, Namespace, namespace_of
from ridgefold.metric.time_limit import TimeLimit

FEWEST_ROWS = 40
"""With fewer different rows no scales are learned: there is nothing left to check them on."""
OUTSIDE_SHARE = 0.2
MOST_OUTSIDE = 2000
_ORDERING_COLUMNS = 8
"""Columns by which rows are put in order before they are drawn."""


def _never() -> None:
    """There is no hurry."""


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
    outside_weights: np.ndarray
    outside_groups: np.ndarray
    """Which outside rows are the same, numbered from zero."""
    distinct: int
    """Different rows inside."""
    bias: bool
    """Whether the models have one."""
    unit: float
    """What the targets were divided by: their largest size."""
    scale_of: np.ndarray
    """The number of every column's scale; columns of one group have the same."""
    look_at_clock: Callable[[], None] = _never
    """Called before every evaluation: it raises an error when it is too late."""
    limit: TimeLimit = field(default_factory=TimeLimit)
    """When it is spent, descents end where they are."""
    columns: Array | None = None
    """Unpenalised columns of the rows inside, as they were given, if there are any."""
    outside_columns: Array | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def first(self, count: int, outside: int | None = None) -> Sample:
        """The first rows inside, and the first of those outside (all of them, if not said)."""
        part = self if outside is None else self._with_outside(outside)
        if count >= len(self):
            return part
        return replace(
            part,
            distinct=max(2, round(self.distinct * count / len(self))),
            X=self.X[:count, ...],
            y=self.y[:count, ...],
            weights=None if self.weights is None else self.weights[:count],
            labels=None if self.labels is None else self.labels[:count],
            columns=None if self.columns is None else self.columns[:count, ...],
        )

    def _with_outside(self, count: int) -> Sample:
        if count >= int(self.outside_X.shape[0]):
            return self
        return replace(
            self,
            outside_X=self.outside_X[:count, ...],
            outside_y=self.outside_y[:count, ...],
            outside_weights=self.outside_weights[:count],
            outside_groups=self.outside_groups[:count],
            outside_columns=None
            if self.outside_columns is None
            else self.outside_columns[:count, ...],
        )

    def with_columns(
        self, X: Array, outside_X: Array, scale_of: np.ndarray | None = None
    ) -> Sample:
        """The same rows with other columns, of the same scales if nothing else is said."""
        scale_of = self.scale_of if scale_of is None else scale_of
        return replace(self, X=X, outside_X=outside_X, scale_of=scale_of)

    @property
    def grouped(self) -> np.ndarray:
        """Which columns share their scale with others."""
        return np.asarray(np.bincount(self.scale_of)[self.scale_of] > 1)

    @property
    def shares(self) -> np.ndarray:
        """Weights of the rows inside, as NumPy; they add up to one."""
        if self.weights is None:
            return np.full(len(self), 1.0 / len(self))
        weights = np.asarray(self.namespace.to_numpy(self.weights))
        return np.asarray(weights / weights.sum())

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
    scale_of: np.ndarray | None = None,
    fixed: tuple[int, ...] = (),
) -> Sample:
    """Rows to learn from: at most `max_rows`, the same for the same generator.

    `fixed` are numbers of columns that models take without a penalty besides.

    `folds` holds test sets among the rows of X, a number of random folds, or None for
    leave-one-out. Rows of weight zero take no part. Rows that are the same go inside or outside
    together, and into the same random fold: a model must not be judged on what it has seen, and
    repeating a row must do what a weight does. With fewer than `FEWEST_ROWS` all are inside.
    """
    namespace = namespace_of(X)
    n = int(X.shape[0])
    double = namespace.double()
    X, y = namespace.astype(X, double), namespace.astype(y, double)
    counts = np.ones(n) if weights is None else np.asarray(namespace.to_numpy(weights))
    usable = np.flatnonzero(counts > 0)
    groups = _groups(namespace.to_numpy(X)[usable], namespace.to_numpy(y)[usable])
    unit = float(np.max(np.abs(namespace.to_numpy(y)[usable]))) or 1.0
    y = y / unit
    distinct = int(groups.max()) + 1
    place = random.permutation(distinct)[groups]
    outside = 0
    if distinct >= FEWEST_ROWS:
        outside = min(MOST_OUTSIDE, max(int(OUTSIDE_SHARE * distinct), distinct - max_rows))
    order = np.argsort(place, kind="stable")
    cut = int(np.sum(place < outside))
    rest, inside = order[:cut], order[cut:][:max_rows]
    kept = usable[inside]
    labels = None
    if isinstance(folds, int):
        labels = place[inside] % folds
    elif folds is not None:
        every = np.full(n, -1)
        for k, rows in enumerate(folds):
            every[rows] = k
        labels = every[kept]
    columns = columns_of(X, fixed) if fixed else None
    outer = usable[rest]
    return Sample(
        namespace,
        namespace.take_rows(X, kept),
        namespace.take_rows(y, kept),
        None if weights is None else namespace.take_rows(namespace.astype(weights, double), kept),
        labels,
        namespace.take_rows(X, outer),
        namespace.take_rows(y, outer),
        counts[outer],
        place[rest],
        len(np.unique(place[inside])),
        bias,
        unit,
        np.arange(int(X.shape[1])) if scale_of is None else scale_of,
        columns=None if columns is None else namespace.take_rows(columns, kept),
        outside_columns=None if columns is None else namespace.take_rows(columns, outer),
    )


def _groups(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Numbers from zero, the same for rows that are the same, in the order of their values.

    So neither the order of the rows nor the units of the columns matter. Rows are compared by a
    sum of their bits modulo 2⁶⁴ with fixed odd factors.
    """
    columns = np.column_stack([y, X]) + 0.0  # −0 and 0 are the same
    factors = np.random.default_rng(0).integers(1, 2**62, columns.shape[1], dtype=np.uint64)
    bits = np.ascontiguousarray(columns, dtype=np.float64).view(np.uint64)
    bits = bits ^ (bits >> np.uint64(29))
    code = (bits * (factors * np.uint64(2) + np.uint64(1))).sum(axis=1, dtype=np.uint64)
    order = np.lexsort((code, *columns[:, :_ORDERING_COLUMNS].T[::-1]))
    new = np.concatenate([[0], code[order][1:] != code[order][:-1]])
    groups = np.empty(len(code), dtype=np.int64)
    groups[order] = np.cumsum(new)
    return groups

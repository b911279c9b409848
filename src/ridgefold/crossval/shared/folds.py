"""Which rows are held out together, and which the model is then trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.records import FoldShape


@dataclass(frozen=True)
class Folds:
    """Test rows of every fold, and its training rows where they are not simply the others.

    Test sets may overlap or miss rows. Predictions for all folds are stacked in this order.
    """

    n_rows: int
    test: tuple[np.ndarray, ...]
    train: tuple[np.ndarray, ...] | None = None
    """None when each fold is trained on all rows that it does not test."""

    def __len__(self) -> int:
        return len(self.test)

    @property
    def complement(self) -> bool:
        """True if every training set is the complement of its test set."""
        return self.train is None

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(map(len, self.test))

    @cached_property
    def shapes(self) -> tuple[FoldShape, ...]:
        """How many folds there are of each size."""
        if self.train is not None:
            alike = Counter(zip(self.sizes, map(len, self.train), strict=True))
            return tuple(FoldShape(test, train, count) for (test, train), count in alike.items())
        sizes, counts = np.unique(self.sizes, return_counts=True)
        return tuple(
            FoldShape(m, self.n_rows - m, count)
            for m, count in zip(sizes.tolist(), counts.tolist(), strict=True)
        )

    @cached_property
    def runs(self) -> tuple[slice, ...]:
        """Where each fold's rows stand among the stacked predictions."""
        ends = np.cumsum([0, *self.sizes]).tolist()
        return tuple(slice(start, stop) for start, stop in pairwise(ends))

    @cached_property
    def stacked(self) -> np.ndarray:
        """The test rows of all folds, one after the other."""
        return np.concatenate(self.test)

    @cached_property
    def disjoint(self) -> bool:
        """True if no row is tested twice."""
        return bool(np.bincount(self.stacked, minlength=self.n_rows).max() <= 1)

    @cached_property
    def each_row_once(self) -> bool:
        """True if every row is tested once, by a fold that trains on all rows it does not test."""
        return self.complement and self.disjoint and len(self.stacked) == self.n_rows

    @cached_property
    def leave_one_out(self) -> bool:
        """True if every fold tests a single row, and none twice."""
        return max(self.sizes) == 1 and self.disjoint

    def reordered(self, order: np.ndarray) -> Folds:
        """The same folds once the rows have been put into another order."""
        place = np.empty(self.n_rows, dtype=int)
        place[order] = np.arange(self.n_rows)
        train = None if self.train is None else tuple(place[rows] for rows in self.train)
        return Folds(self.n_rows, tuple(place[rows] for rows in self.test), train)

    def training_rows(self, fold: int) -> np.ndarray:
        if self.train is not None:
            return self.train[fold]
        kept = np.ones(self.n_rows, dtype=bool)
        kept[self.test[fold]] = False
        return np.flatnonzero(kept)


def leave_one_out(n_rows: int) -> Folds:
    """Every row a fold of its own."""
    if n_rows < 2:
        raise InvalidInputError(f"leave-one-out needs at least 2 rows, got n_samples={n_rows}")
    rows = np.arange(n_rows)
    folds = Folds(n_rows, tuple(rows.reshape(-1, 1)))
    # What needs no look at thousands of folds.
    vars(folds).update(
        sizes=(1,) * n_rows,
        shapes=(FoldShape(1, n_rows - 1, n_rows),),
        stacked=rows,
        disjoint=True,
        leave_one_out=True,
    )
    return folds


def make_folds(splits: Iterable[tuple[Sequence[int], Sequence[int]]], n_rows: int) -> Folds:
    """Folds from (training rows, test rows) pairs, as scikit-learn's splitters give them."""
    train, test = [], []
    for k, (train_rows, test_rows) in enumerate(splits):
        train.append(_indices(train_rows, n_rows, f"the training set of fold {k}"))
        test.append(_indices(test_rows, n_rows, f"the test set of fold {k}"))
        if len(np.unique(test[-1])) != len(test[-1]):
            raise InvalidInputError(f"cv: the test set of fold {k} names a row twice")
    if not test:
        raise InvalidInputError("cv gave no folds: use cv=5, or a splitter that gives at least one")
    folds = Folds(n_rows, tuple(test))
    if all(np.array_equal(np.sort(rows), folds.training_rows(k)) for k, rows in enumerate(train)):
        return folds
    return Folds(n_rows, tuple(test), tuple(train))


def _indices(rows: Sequence[int], n_rows: int, what: str) -> np.ndarray:
    indices = np.asarray(rows)
    if indices.dtype == bool:
        indices = np.flatnonzero(indices)
    if indices.ndim != 1 or len(indices) == 0:
        raise InvalidInputError(f"cv: {what} is empty; every fold needs rows to train and to test")
    if indices.dtype.kind not in "iu":
        raise InvalidInputError(f"cv: {what} must hold row numbers, got {indices.dtype}")
    lowest, highest = int(indices.min()), int(indices.max())
    if lowest < 0 or highest >= n_rows:
        wrong = lowest if lowest < 0 else highest
        raise InvalidInputError(
            f"cv: {what} names row {wrong}, but rows run from 0 to {n_rows - 1}"
        )
    return indices

"""Cells drawn uniformly at random (Zhang, Duchi and Wainwright, JMLR 16, 2015, Fast-KRR)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.cells.cut.base import Router, cells_of
from ridgefold.errors import InvalidInputError
from ridgefold.records import Cells, Membership

_NOT_IN_SPACE = (
    'cells drawn at random (partition="random" or "stratified") have no place for a new row: use '
    'combine="average", or partition="tree"'
)


@dataclass(frozen=True)
class RandomSplit:
    """Disjoint random subsets whose sizes differ by at most one row."""

    in_space = False

    def fit(self, X: np.ndarray, n_cells: int, overlap: float, rng: np.random.Generator) -> Cells:
        n = X.shape[0]
        n_cells = min(n_cells, n)
        labels = np.arange(n) % n_cells
        rng.shuffle(labels)
        return cells_of(labels, n_cells, {})

    def learn(
        self, X: np.ndarray, n_cells: int, overlap: float, rng: np.random.Generator
    ) -> tuple[Router, int]:
        return {}, min(n_cells, X.shape[0])

    def route(self, router: Router, X: np.ndarray) -> np.ndarray:
        raise InvalidInputError(_NOT_IN_SPACE)

    def membership(self, router: Router, X: np.ndarray) -> Membership:
        raise InvalidInputError(_NOT_IN_SPACE)

    def accepts(self, router: Router, n_cells: int, n_columns: int) -> bool:
        return not router

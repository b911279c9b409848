"""A balanced tree of cuts across directions in which rows spread and targets change.

A cut across a direction in which targets do not change leaves both sides as hard a function as
before, with half of the rows each; one across a direction in which they change makes both simpler.
So lengths are measured by how much targets change on the way: with G the mean of ∇f∇fᵀ (see
`cells.sample_slopes`), scaled to a mean eigenvalue of 1, and τ the trust in it, a part is cut
across the first eigenvector of A·cov(x), A = τG + (1 − τ + ε)·I, which is the principal direction
of the rows A^½·x. The floor ε keeps cells compact where slopes say nothing. All else is as in
`principal`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ridgefold.cells.cut.base import first_direction, of_fixed_sign
from ridgefold.cells.cut.principal import PrincipalTree
from ridgefold.records import Slopes

_FLOOR = 0.2
"""The floor ε: the length of directions in which targets do not change, where the mean is 1."""


@dataclass(frozen=True, eq=False)
class Tree(PrincipalTree):
    """Balanced cells by recursive cuts across directions in which rows spread and targets change.

    Without slopes they are those of `PrincipalTree`.
    """

    slopes: Slopes | None = None

    def guided_by(self, slopes: Slopes) -> Tree:
        return replace(self, slopes=slopes)

    def direction_of(self, sample: np.ndarray) -> np.ndarray:
        if self.slopes is None:
            return first_direction(sample)
        direction = _stretched(first_direction(_stretched(sample, self.slopes)), self.slopes)
        length = np.linalg.norm(direction)
        return of_fixed_sign(direction / length) if length > 0 else direction


def _stretched(rows: np.ndarray, slopes: Slopes) -> np.ndarray:
    """A^½·x for every row x."""
    flat = _FLOOR**0.5
    more = np.sqrt(slopes.squares + _FLOOR) - flat
    return np.asarray(flat * rows + ((rows @ slopes.directions) * more) @ slopes.directions.T)

"""Half the width of intervals: the same for all rows, or as large as errors are near each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ridgefold.cells.cell_rows import spaced
from ridgefold.selection.local_noise import LocalNoise, local_noise

if TYPE_CHECKING:
    from ridgefold.automatic.regressor import RidgefoldRegressor

_MOST_ROWS = 1000
"""Rows that say where errors are large: a tenth of a second for each thing they may depend on."""
_MOST_COLUMNS = 20


class LocalErrors:
    """Held-out errors of a fitted model, and where they are large."""

    def __init__(self, model: RidgefoldRegressor) -> None:
        held_out = model._held_out
        assert held_out is not None
        self._errors = np.abs(model._targets_fit - held_out)
        self._counted = (model._counts > 0) & np.all(np.isfinite(self._errors), axis=1)
        kept = np.flatnonzero(self._counted[model._kept_places])
        kept = kept[spaced(len(kept), _MOST_ROWS)]
        self._rows = model._kept_places[kept]
        spread = held_out[self._rows].std(axis=0)
        self._units = np.where(spread > 0, spread, 1.0)
        self._noise: list[LocalNoise | None] = []
        weights = model._counts[self._rows].astype(np.float64)
        for j in range(held_out.shape[1]):
            spaces = self._spaces(model, model._kept_numbers[kept], held_out[self._rows], j)
            self._noise.append(local_noise(spaces, self._errors[self._rows, j], weights))

    @property
    def differ(self) -> tuple[bool, ...]:
        """For each target, whether errors are larger here than there."""
        return tuple(each is not None for each in self._noise)

    def half_widths(
        self, model: RidgefoldRegressor, X: np.ndarray, predicted: np.ndarray, coverage: float
    ) -> np.ndarray:
        """Of intervals around predictions for rows of numbers, shape (n, t)."""
        out = np.empty(predicted.shape)
        for j, noise in enumerate(self._noise):
            if noise is None:
                out[:, j] = _quantile(self._errors[self._counted, j], coverage)
                continue
            own = noise.at(noise.places, own=True)
            factor = _quantile(self._errors[self._rows, j] / own, coverage)
            places = self._spaces(model, X, predicted, j)[noise.space]
            out[:, j] = factor * noise.at(places)
        return out

    def _spaces(
        self, model: RidgefoldRegressor, X: np.ndarray, predicted: np.ndarray, j: int
    ) -> list[np.ndarray]:
        """What errors may depend on: the prediction, the rows as the heaviest model measures their
        distances and as they are, and each column by itself."""
        spaces = [predicted[:, [j]] / self._units[j], X]
        if X.shape[1] <= _MOST_COLUMNS:
            spaces += [X[:, [k]] for k in range(X.shape[1])]
        if model.stack_:
            spaces.append(model.stack_[0].rows_of(X))
        return spaces


def _quantile(errors: np.ndarray, coverage: float) -> float:
    """The error that a new row exceeds with probability 1 − coverage; infinite of too few rows."""
    rank = math.ceil(coverage * (len(errors) + 1) - 1e-9)
    return float(np.partition(errors, rank - 1)[rank - 1]) if rank <= len(errors) else np.inf

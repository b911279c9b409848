"""Standard errors of average effects where the prediction is the mean of all cells.

The mean f = Σ_c f_c/m is linear in the targets, and an average effect is Lᵀy with the L_c/m of the
cells one after the other (`exact.posterior`). Its standard error is σ‖L‖ (rows of weight w count
1/w), with σ² = ‖y − f‖²/(n − df) and df = Σ_c tr S_c/m, the trace of the averaged smoother.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgefold.cells.cell_posteriors import CellPosteriors, CellProcess
from ridgefold.cells.cell_rows import number_of, spaced
from ridgefold.cells.computed_rows import in_metric
from ridgefold.errors import NumericalError
from ridgefold.exact.effects import mean_difference, mean_slopes

_MOST_RESIDUALS = 5000
"""Rows that σ² is told from: every one of them is predicted by all cells, and with so many σ is
known to 1%."""
_NOTE = "An average of cells has no posterior of its effects; standard errors are of the smoother."


@dataclass(frozen=True)
class AverageErrors:
    """Standard errors of effects on the mean of all cells."""

    processes: CellPosteriors
    scales: np.ndarray | None
    """Of the columns, infinite for those that cells do not know; None for columns as they are."""
    predict: Callable[[np.ndarray], np.ndarray]
    training: Any
    """All rows, as they were given."""
    X: np.ndarray
    """Rows that effects are averaged over, with weights that add up to one."""
    shares: np.ndarray

    def of(self, effects: Sequence[Any]) -> tuple[np.ndarray, None, str]:
        """Of shape (effects, targets); there is no posterior, which the note says."""
        m, n = number_of(self.processes.cells), int(self.training.shape[0])
        some = spaced(n, _MOST_RESIDUALS)
        squares, left = np.zeros(len(effects)), np.full(n, np.nan)
        for cell in range(m):
            own = self.processes.process(cell)
            L = own.found.weights_of_targets(*self._functionals(own, effects)) / m
            weights = np.ones(len(L)) if own.weights is None else own.weights
            squares += np.sum(L * L / weights[:, None], axis=0)
            # 1 − S_ii of the mean; S_c has α C̃ off from the identity, in the weights w.
            off = own.found.alpha * np.asarray(own.found.diagonal)
            left[own.numbers] = 1.0 - (1.0 - off) / m
        some = some[~np.isnan(left[some])]
        targets = np.asarray(self.processes.targets[some], dtype=np.float64)
        errors = targets - self.predict(np.asarray(self.training[some]))
        given = self.processes.weights
        counts = np.ones(len(some)) if given is None else np.asarray(given[some], dtype=np.float64)
        free = float(left[some].sum())
        if not free > 0:
            raise NumericalError(
                "the cells pass through their targets, and nothing is left to tell the noise "
                "from: use a larger alpha"
            )
        variance = counts @ np.square(errors) / free
        return np.sqrt(np.outer(squares, variance)), None, _NOTE

    def _functionals(
        self, own: CellProcess, effects: Sequence[Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """ℓk(·, X_c) and ℓF of every effect."""
        kernel, q = own.gram.kernel, own.found.basis.shape[1]
        a, phi = np.zeros((len(own.X), len(effects))), np.zeros((q, len(effects)))
        placed, shares = self._in_metric(self.X), self.shares
        scales = np.ones(self.X.shape[1]) if self.scales is None else self.scales
        known = np.flatnonzero(np.isfinite(scales))
        slopes = [
            i for i, each in enumerate(effects)
            if each.kind == "slope" and np.isfinite(scales[each.column])
        ]  # fmt: skip
        if slopes:
            columns = np.array([effects[i].column for i in slopes])
            units = np.array([effects[i].unit for i in slopes]) / scales[columns]
            places = np.searchsorted(known, columns)
            found, _ = mean_slopes(kernel, placed, own.X, shares, places, prior=False)
            a[:, slopes] = found * units
            phi[:, slopes] = own.slopes_of_basis(places) * units
        for i, each in enumerate(effects):
            if each.kind != "slope":
                high, low = (self._in_metric(rows) for rows in each.rows(self.X))
                pair = (shares, shares)
                a[:, i] = mean_difference(kernel, high, low, own.X, pair, prior=False)[0][:, 0]
                phi[:, i] = (own.basis(high) - own.basis(low)).T @ shares
        return a, phi

    def _in_metric(self, rows: np.ndarray) -> np.ndarray:
        rows = np.asarray(rows, dtype=np.float64)
        return rows if self.scales is None else in_metric(rows, self.scales)

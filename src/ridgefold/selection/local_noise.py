"""How large errors are here and there: a kernel smoother of held-out errors.

σ̂(x) is the mean of |r_i| over rows near x, r_i their held-out errors, with weights
exp(−‖x − x_i‖²/2h²) and a little of the mean over all rows, to which it returns where no row is
near. Intervals x ± q·σ̂(x), with q a quantile of |r_i|/σ̂₋ᵢ(x_i), are wide where errors are large
and narrow where they are small (normalised residuals: Papadopoulos, Vovk and Gammerman 2011; Lei,
G'Sell, Rinaldo, Tibshirani and Wasserman 2018, section 5.2).

Errors may differ with the columns or with the predicted value, or not at all. What is taken is what
foretells the errors of rows that it has not seen best, by the score log σ̂₋ᵢ + |r_i|/σ̂₋ᵢ, whose
mean is least for the true σ; and one σ for all rows unless another is better by three
standard errors of the difference: chance alone would find differences everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

_WIDTHS = (0.07, 0.14, 0.28, 0.56)
"""h, in units of the median distance between two rows."""
_PRIOR_ROWS = 5.0
"""How many rows the mean over all rows stands for."""
_CLEARLY = 3.0
_FEWEST = 60
"""Of fewer rows nothing is to be told of where errors are large."""
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class LocalNoise:
    """Errors of rows at known places."""

    space: int
    """Which of the spaces that were tried: what `at` takes is in it."""
    places: np.ndarray
    """Shape (m, p)."""
    sizes: np.ndarray
    """|r|, shape (m,)."""
    weights: np.ndarray
    width: float
    """h."""

    def at(self, places: np.ndarray, *, own: bool = False) -> np.ndarray:
        """σ̂ at new places; with `own` at the known ones, each without itself."""
        overall = float(np.average(self.sizes, weights=self.weights))
        out = np.empty(len(places))
        for start in range(0, len(places), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            distances = cdist(places[some], self.places, "sqeuclidean")
            near = np.exp(distances / (-2.0 * self.width**2)) * self.weights[None, :]
            if own:
                rows = np.arange(start, start + len(near))
                near[np.arange(len(near)), rows] = 0.0
            unit = float(np.mean(self.weights)) * _PRIOR_ROWS
            out[some] = (near @ self.sizes + unit * overall) / (near.sum(axis=1) + unit)
        return out


def local_noise(
    spaces: Sequence[np.ndarray], residuals: np.ndarray, weights: np.ndarray
) -> LocalNoise | None:
    """The smoother that foretells errors best; None if the same for all rows does as well.

    Parameters
    ----------
    spaces : sequence of arrays of shape (m, p)
        Places of the same rows, in units such that distances mean something.
    residuals, weights : arrays of shape (m,)
    """
    sizes = np.abs(residuals)
    total = float(weights.sum())
    if len(sizes) < _FEWEST or not np.any(sizes > 0):
        return None
    overall = float(np.average(sizes, weights=weights))
    alike = np.log(overall) + sizes / overall
    best, least = None, float(np.average(alike, weights=weights))
    for number, places in enumerate(spaces):
        apart = cdist(places[:_ROWS_AT_ONCE], places[:_ROWS_AT_ONCE])
        typical = float(np.median(apart))
        if typical <= 0:
            continue
        for factor in _WIDTHS:
            noise = LocalNoise(number, places, sizes, weights, factor * typical)
            spread = noise.at(places, own=True)
            score = np.log(spread) + sizes / spread
            mean = float(np.average(score, weights=weights))
            gain = alike - score
            error = float(np.sqrt(np.sum((weights * (gain - gain.mean())) ** 2)) / total)
            if mean < least and np.average(gain, weights=weights) > _CLEARLY * error:
                best, least = noise, mean
    return best

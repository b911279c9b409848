"""Made-up tables, and estimators whose clock stands still, so that only predictions decide."""

from __future__ import annotations

import numpy as np

from ridgefold import RidgefoldClassifier, RidgefoldRegressor


class StillRegressor(RidgefoldRegressor):
    _clock = staticmethod(lambda: 0.0)


class StillClassifier(RidgefoldClassifier):
    _clock = staticmethod(lambda: 0.0)


class Ticking:
    """A clock that goes on by so many seconds whenever it is looked at."""

    def __init__(self, step):
        self.step, self.now = step, 0.0

    def __call__(self):
        self.now += self.step
        return self.now


def rows_of(n, seed=0, n_columns=3):
    """Rows, and targets that are curved in two of the columns."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, n_columns))
    y = 10 + np.sin(2 * X[:, 0]) + 0.5 * X[:, -1] ** 2 + 0.1 * rng.standard_normal(n)
    return X, y


def mixed_table(n, seed=0):
    """Numbers with units, categories, gaps and an identifier, with a price that depends on them."""
    rng = np.random.default_rng(seed)
    size, colour = rng.uniform(20, 200, n), rng.integers(0, 3, n)
    price = 100 * np.sqrt(size) + np.array([0.0, 300.0, -200.0])[colour]
    price += 20 * rng.standard_normal(n)
    return {
        "id": [f"A{k:05d}" for k in range(n)],
        "size": [None if rng.random() < 0.05 else f"{value:.1f} m" for value in size],
        "colour": [["red", "green", "blue"][c] for c in colour],
        "price": [f"${value:,.2f}" for value in price],
    }

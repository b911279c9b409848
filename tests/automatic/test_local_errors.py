"""Intervals hold their share here and there, where noise depends on a column or the prediction."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold import RidgefoldRegressor


class HurriedRegressor(RidgefoldRegressor):
    _clock = staticmethod(lambda: 0.0)


def draw(n: int, noise: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    f = 3 * X[:, 1] + np.sin(2 * X[:, 0])
    spread = {
        "column": 0.1 + np.abs(X[:, 0]),
        "prediction": 0.1 + 0.25 * np.abs(f + 6),
        "alike": np.full(n, 0.7),
    }[noise]
    return X, f + spread * rng.normal(size=n)


def coverage_by_region(model, noise: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the intervals, and of intervals of one width for all rows."""
    X, y = draw(3000, noise, seed)
    lower, upper = model.predict_interval(X, 0.9)
    predicted = model.predict(X)
    one_width = np.quantile(np.abs(model._targets_fit - model._held_out), 0.9)
    along = np.abs(X[:, 0]) if noise == "column" else predicted
    parts = np.array_split(np.argsort(along), 4)
    followed = (lower <= y) & (y <= upper)
    alike = np.abs(y - predicted) <= one_width
    return tuple(np.array([inside[part].mean() for part in parts]) for inside in (followed, alike))


@pytest.mark.filterwarnings("ignore::ridgefold.errors.OutsideDataWarning")
@pytest.mark.parametrize("noise", ["column", "prediction", "alike"])
def test_intervals_hold_their_share_in_every_region(noise):
    regions = []
    for seed in range(3):
        model = HurriedRegressor(time_budget=1.5).fit(*draw(400, noise, seed))
        regions.append(coverage_by_region(model, noise, 100 + seed))
    followed, alike = np.mean(regions, axis=0)
    assert np.all((followed > 0.8) & (followed < 0.98))
    if noise != "alike":
        assert np.ptp(followed) < 0.7 * np.ptp(alike)
        assert alike.min() < 0.8


def test_weightless_rows_tell_nothing_of_errors():
    X, y = draw(300, "column", 5)
    wild = np.concatenate([y, y[:50] + 1000.0])
    rows = np.concatenate([X, X[:50]])
    weights = np.concatenate([np.ones(300), np.zeros(50)])
    model = HurriedRegressor(time_budget=1.5).fit(rows, wild, weights)
    lower, upper = model.predict_interval(X)
    assert np.median(upper - lower) < 8

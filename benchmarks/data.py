"""Real data sets for benchmarks: the bundled ones, and others where they are at hand.

Others are `NAME.npz` files with arrays X and y, looked for in the folder that RIDGEFOLD_DATA
names, or in `shared/data` beside the repository.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ridgefold.tables import bundled_names, load_bundled

ROOT = Path(__file__).resolve().parent.parent


def folder() -> Path:
    """Where data sets lie that are not bundled."""
    return Path(os.environ.get("RIDGEFOLD_DATA", ROOT.parent / "shared" / "data"))


def raw(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """All rows and targets as they are; None if the data set is not at hand."""
    if name in bundled_names():
        data = load_bundled(name)
        return data.X, data.y
    path = folder() / f"{name}.npz"
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as arrays:
        return arrays["X"].astype(np.float64), arrays["y"].astype(np.float64)


def standardised(
    name: str, n_rows: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """Training rows and targets, then all other rows, standardised by the training rows.

    None if the data set is not at hand or has too few rows.
    """
    found = raw(name)
    if found is None:
        return None
    X, y = found
    if len(y) < n_rows:
        return None
    order = np.random.default_rng(seed).permutation(len(y))
    train, rest = order[:n_rows], order[n_rows:]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(spread > 0, spread, 1.0)
    return X[train], y[train], X[rest], y[rest]


def median_distance(X: np.ndarray) -> float:
    """Median distance between rows, from the first 500."""
    from scipy.spatial.distance import pdist

    return float(np.median(pdist(X[:500])))

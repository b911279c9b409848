"""The tables whose models are frozen: generated, bundled, scikit-learn's, and others if at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn import datasets

from ridgefold.tables import load_bundled

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
TRAINING, TEST = 1400, 600


@dataclass(frozen=True)
class Table:
    """Rows to fit and rows held back, standardised by the former where they are numbers."""

    X: Any
    y: np.ndarray
    new: Any
    truth: np.ndarray
    classes: bool
    weights: np.ndarray | None = None

    def first(self, n_rows: int) -> Table:
        """The same with fewer rows to fit."""
        weights = None if self.weights is None else self.weights[:n_rows]
        return Table(self.X[:n_rows], self.y[:n_rows], self.new, self.truth, self.classes, weights)

    def shaken(self, seed: int) -> Table:
        """The same but for the last digits of its columns, as another processor rounds."""
        if not isinstance(self.X, np.ndarray):
            return self
        units = np.random.default_rng(seed).integers(-16, 17, self.X.shape[1])
        factors = (1.0 + units * np.finfo(self.X.dtype).eps).astype(self.X.dtype)
        return Table(
            self.X * factors, self.y, self.new * factors, self.truth, self.classes, self.weights
        )


def _split(X: np.ndarray, y: np.ndarray, classes: bool, seed: int = 0) -> Table:
    order = np.random.default_rng(seed).permutation(len(y))
    n = min(TRAINING, (2 * len(y)) // 3)
    train, test = order[:n], order[n : n + TEST]
    spread = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    if not classes:
        y = (y - y[train].mean(axis=0)) / y[train].std(axis=0)
    return Table(X[train], y[train], X[test], y[test], classes)


def _generated(d: int, seed: int) -> tuple[np.random.Generator, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng, rng.uniform(-2.0, 2.0, (TRAINING + TEST, d))


def _smooth() -> Table:
    rng, X = _generated(3, 1)
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(len(X))
    return _split(X, y, False)


def _smooth_in_single_precision() -> Table:
    t = _smooth()
    one = np.float32
    return Table(t.X.astype(one), t.y.astype(one), t.new.astype(one), t.truth, False)


def _weighted() -> Table:
    t = _smooth()
    rng = np.random.default_rng(2)
    weights = rng.integers(0, 4, len(t.y)).astype(float)
    noise = rng.standard_normal(len(t.y)) / np.sqrt(np.maximum(weights, 0.25))
    return Table(t.X, t.y + 0.3 * noise, t.new, t.truth, False, weights)


def _rough() -> Table:
    rng, X = _generated(2, 3)
    y = np.abs(X[:, 0]) + np.sign(X[:, 1] - X[:, 0]) + 0.1 * rng.standard_normal(len(X))
    return _split(X, y, False)


def _additive() -> Table:
    rng, X = _generated(6, 4)
    y = np.sin(X * np.arange(1, 7) / 2).sum(axis=1) + 0.2 * rng.standard_normal(len(X))
    return _split(X, y, False)


def _irrelevant() -> Table:
    rng, X = _generated(15, 5)
    y = np.sin(2.0 * X[:, 3]) + X[:, 7] ** 2 + 0.1 * rng.standard_normal(len(X))
    return _split(X, y, False)


def _heteroscedastic() -> Table:
    rng, X = _generated(1, 6)
    y = np.sin(3.0 * X[:, 0]) + 0.3 * np.abs(X[:, 0]) * rng.standard_normal(len(X))
    return _split(X, y, False)


def _repeated() -> Table:
    rng, X = _generated(2, 7)
    X = np.round(2.0 * X) / 2.0
    y = np.cos(X[:, 0]) * X[:, 1] + 0.2 * rng.standard_normal(len(X))
    return _split(X, y, False)


def _many_targets() -> Table:
    rng, X = _generated(3, 8)
    y = np.sin(X @ rng.standard_normal((3, 5)))
    y += np.array([0.02, 0.1, 0.3, 1.0, 3.0]) * rng.standard_normal(y.shape)
    return _split(X, y, False)


def _two_classes() -> Table:
    rng, X = _generated(2, 9)
    inside = (X**2).sum(axis=1) + 0.3 * rng.standard_normal(len(X)) < 2.0
    return _split(X, inside.astype(int), True)


def _five_classes() -> Table:
    rng, X = _generated(3, 10)
    centres = rng.uniform(-2.0, 2.0, (5, 3))
    distances = ((X[:, None] - centres) ** 2).sum(axis=2) + rng.standard_normal((len(X), 5))
    return _split(X, np.array(list("abcde"))[distances.argmin(axis=1)], True)


def _imbalanced() -> Table:
    rng, X = _generated(4, 11)
    rare = X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.standard_normal(len(X)) > 4.0
    return _split(X, rare.astype(int), True)


def _mixed(classes: bool) -> Table:
    """Text, numbers and gaps, as a table of pyarrow."""
    rng, X = _generated(3, 12)
    colours = np.array(["red", "green", "blue", "grey"])
    colour = rng.integers(0, 4, len(X))
    y = np.sin(2.0 * X[:, 0]) + np.array([-1.0, 0.0, 1.0, 0.5])[colour] * X[:, 1]
    y += 0.1 * rng.standard_normal(len(X))
    gaps = rng.random(len(X)) < 0.1
    frame = pa.table(
        {
            "a": X[:, 0],
            "b": X[:, 1],
            "c": pa.array(X[:, 2], mask=gaps),
            "colour": pa.array(colours[colour].tolist()),
        }
    )
    truth = np.where(y > 0, "high", "low") if classes else y
    n = TRAINING
    return Table(frame[:n], truth[:n], frame[n:], truth[n:], classes)


def _of_scikit_learn(name: str, classes: bool) -> Callable[[], Table]:
    def make() -> Table:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return _split(X, y, classes)

    return make


def _bundled(name: str, classes: bool) -> Callable[[], Table]:
    def make() -> Table:
        data = load_bundled(name)
        return _split(data.X, data.y, classes)

    return make


def _shared(name: str, classes: bool) -> Callable[[], Table]:
    def make() -> Table:
        with np.load(SHARED / f"{name}.npz", allow_pickle=False) as arrays:
            return _split(arrays["X"].astype(np.float64), arrays["y"], classes, seed=1)

    return make


_ELSEWHERE = {
    "cpusmall": False,
    "kin8nm": False,
    "california": False,
    "protein": False,
    "puma32h": False,
    "magic": True,
    "banana": True,
}
"""Tables that do not come with the library, and whether they have classes."""

TABLES: dict[str, Callable[[], Table]] = {
    "smooth": _smooth,
    "smooth in single precision": _smooth_in_single_precision,
    "weighted": _weighted,
    "rough": _rough,
    "additive": _additive,
    "irrelevant columns": _irrelevant,
    "heteroscedastic": _heteroscedastic,
    "repeated rows": _repeated,
    "five targets": _many_targets,
    "two classes": _two_classes,
    "five classes": _five_classes,
    "imbalanced": _imbalanced,
    "mixed columns": lambda: _mixed(False),
    "mixed columns, classes": lambda: _mixed(True),
    "ccpp": _bundled("ccpp", False),
    "german": _bundled("german", True),
    "diabetes": _of_scikit_learn("diabetes", False),
    "linnerud": _of_scikit_learn("linnerud", False),
    "wine": _of_scikit_learn("wine", True),
    "breast cancer": _of_scikit_learn("breast_cancer", True),
    "digits": _of_scikit_learn("digits", True),
    "iris": _of_scikit_learn("iris", True),
    **{name: _shared(name, classes) for name, classes in _ELSEWHERE.items()},
}


def at_hand(name: str) -> bool:
    """Whether the table is on this machine: all but those from elsewhere always are."""
    return name not in _ELSEWHERE or (SHARED / f"{name}.npz").exists()


@cache
def table(name: str) -> Table:
    return TABLES[name]()

"""Small real data sets that come with the package, for the demo, examples and tests."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files

import numpy as np

from ridgefold.errors import InvalidInputError

_NAMES = ("ccpp", "german")


@dataclass(frozen=True)
class Dataset:
    """Rows, targets and the names of the columns."""

    X: np.ndarray
    y: np.ndarray
    feature_names: tuple[str, ...]


def bundled_names() -> tuple[str, ...]:
    return _NAMES


def load_bundled(name: str) -> Dataset:
    """A data set by name: "ccpp" (regression) or "german" (two classes)."""
    if name not in _NAMES:
        raise InvalidInputError(f"name must be one of {', '.join(_NAMES)}, got {name!r}")
    resource = files("ridgefold.tables") / "bundled_data" / f"{name}.npz"
    with as_file(resource) as path, np.load(path, allow_pickle=False) as arrays:
        X = arrays["X"].astype(np.float64)
        names = (
            [str(n) for n in arrays["feature_names"]]
            if "feature_names" in arrays.files
            else [f"x{j}" for j in range(X.shape[1])]
        )
        return Dataset(X, arrays["y"], tuple(names))

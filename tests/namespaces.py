"""The array libraries and memory layouts that everything must run on."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import array_api_strict
import numpy as np
import torch


def _read_only(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a.flags.writeable = False
    return a


def _memory_mapped(a: np.ndarray) -> np.ndarray:
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file.name, a)
        return np.load(Path(file.name), mmap_mode="r")


def _strided(a: np.ndarray) -> np.ndarray:
    wide = np.full([2 * size for size in a.shape], 7.0, dtype=a.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in a.shape)]
    view[...] = a
    return view


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": np.array,
    "read-only": _read_only,
    "memory-mapped": _memory_mapped,
    "strided": _strided,
    "fortran": np.asfortranarray,
}
"""Ways in which NumPy may hold the same numbers."""

LIBRARIES: dict[str, Callable[[np.ndarray], Any]] = {
    "torch": lambda a: torch.from_numpy(np.array(a)),
}
"""Libraries whose arrays come in and go out as they are."""

if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
    # It leaves promotion to NumPy, which follows the standard's rules from 2.0 on.
    LIBRARIES["array-api-strict"] = lambda a: array_api_strict.asarray(np.array(a))

EVERYWHERE = {**LAYOUTS, **LIBRARIES}


def to_numpy(a: Any) -> np.ndarray:
    return np.asarray(a) if isinstance(a, np.ndarray | float) else np.from_dlpack(a)

"""Arrays in files, mapped into memory, with the mapped pages let go once they were read.

A mapped page counts as memory of the process until the system takes it back, which it does
only when memory is short. Work that promises to stay within a budget lets them go itself; the
file's bytes stay in the system's cache, from which the next read has them again.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np


def mapping_of(array: Any) -> mmap.mmap | None:
    """The map that an array (or the array it is a view of) lies in; None if it is in memory."""
    while array is not None:
        if isinstance(array, mmap.mmap):
            return array
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return None


def release(array: Any) -> None:
    """Let the pages of a mapped file go; nothing is lost, and arrays in memory are untouched."""
    found = mapping_of(array)
    # Private pages that were written to exist nowhere else.
    if found is not None and hasattr(found, "madvise") and _is_shared(array):
        found.madvise(mmap.MADV_DONTNEED)


def _is_shared(array: Any) -> bool:
    while array is not None and not isinstance(array, np.memmap):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return array is not None and array.mode in ("r", "r+", "w+")


def new_array(path: Path, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """A mapped array in a new .npy file, zeros at first."""
    return np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)


def open_array(path: Path) -> np.ndarray:
    """An array in an .npy file, mapped for reading."""
    found: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    return found

"""Checked training data, and the checks that need nothing but the data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ridgefold.crossval import Deadline
from ridgefold.errors import InvalidInputError, RidgefoldError, UnsupportedInputError
from ridgefold.linalg import Array, Namespace
from ridgefold.linalg.blocks import CACHE_BYTES, row_blocks

_NUMBERS = np.finfo(np.float64)
_LEAST_TARGET = float(np.sqrt(_NUMBERS.tiny) / _NUMBERS.eps)
"""The squares of rounding errors of such targets still have all their digits."""
_LARGEST_TARGET = float(np.sqrt(_NUMBERS.max * _NUMBERS.eps))
"""Sums over 10⁹ rows of squares of residuals a thousand times as large as such targets do not
overflow."""


@dataclass(frozen=True)
class TrainingData:
    """Checked training data in one array library, dtype and device."""

    namespace: Namespace
    X: Array
    y: Array
    """Targets as given: one or two dimensions."""
    weights: Array | None
    copied_bytes: float = 0.0
    """What rows take that had to be copied, to be of one type."""
    deadline: Deadline | None = None
    """When the call has to have ended."""

    @property
    def like(self) -> Array:
        return self.X.data if scipy.sparse.issparse(self.X) else self.X


@contextmanager
def as_ridgefold_errors(wanted: str) -> Iterator[None]:
    """Turn scikit-learn's ValueError and TypeError into ridgefold's own.

    Its messages give the value; `wanted` adds which argument it is about and what would do.
    """
    try:
        yield
    except RidgefoldError:
        raise
    except ValueError as error:
        raise InvalidInputError(f"{error}\n{wanted}") from None
    except TypeError as error:
        raise UnsupportedInputError(f"{error}\n{wanted}") from None


def seconds_left(time_budget: Any, data: TrainingData) -> Any:
    """What is left of a time budget; a budget that is none is left to whoever refuses it."""
    return time_budget if data.deadline is None else data.deadline.left


def require_usable_weights(weights: np.ndarray | None) -> None:
    """None is negative, and not all are zero."""
    if weights is None:
        return
    if np.any(weights < 0):
        raise InvalidInputError(
            f"sample_weight must be >= 0, got a smallest value of {weights.min():g}"
        )
    if not np.any(weights > 0):
        raise InvalidInputError("sample_weight is zero for every row: at least one must be > 0")


def require_comparable(targets: Any, weights: Any = None) -> None:
    """Targets (n, t) whose squares are numbers: models are chosen by mean squares of residuals.

    Without weights every row counts, as it does in scores. Targets and weights may be on disk, and
    are read a block at a time.
    """
    sizes = np.zeros(targets.shape[1])
    for rows in row_blocks(targets.shape[0], 8.0 * targets.shape[1], CACHE_BYTES):
        block = np.asarray(targets[rows])
        counted = np.ones((1, 1), dtype=bool)
        if weights is not None:
            counted = (np.asarray(weights[rows]) > 0)[:, None]
        high = np.max(block, axis=0, where=counted, initial=0.0)
        low = np.min(block, axis=0, where=counted, initial=0.0)
        sizes = np.maximum(sizes, np.maximum(high, -low))
    for size in sizes[(sizes > _LARGEST_TARGET) | ((sizes > 0.0) & (sizes < _LEAST_TARGET))]:
        beyond = "overflow" if size > 1.0 else "have too few digits"
        raise InvalidInputError(
            f"targets in y go up to {size:.1e}, and their squares {beyond}, but models are chosen "
            f"by mean squares of residuals: pass y / {size:.0e}, and multiply predictions by that"
        )

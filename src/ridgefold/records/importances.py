"""How much every column matters to a fitted model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Importances:
    """How far held-out errors rise when the values of a column are exchanged between rows.

    Errors are in units of what knowing no column would leave: of numbers, the mean squared error
    over the variance of the target (1 − R²); of classes, the log-loss over that of the classes'
    frequencies. So a rise of 0.3 takes 0.3 off R².
    """

    names: tuple[str, ...]
    """The columns, in the order of the table."""
    rises: np.ndarray
    """What each of them raises the error by, the mean over repeats; shape (n_columns,)."""
    standard_errors: np.ndarray
    """Standard errors of the rises, as other rows would have given others; shape (n_columns,)."""
    repeats: np.ndarray
    """The rise in every repeat, shape (n_columns, n_repeats)."""
    error: float
    """The held-out error of these rows with nothing exchanged."""
    measure: str
    """What is measured, in words."""
    n_rows: int
    """Rows that were held out and looked at."""
    how: str
    """Which models predicted them, in words."""

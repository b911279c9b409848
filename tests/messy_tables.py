"""A clean table, and the ways in which people write it down."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np

N = 120


@dataclass(frozen=True)
class Clean:
    """Columns as they are meant."""

    x: np.ndarray
    """Numbers with two decimals, some above a thousand."""
    count: np.ndarray
    """Whole numbers."""
    colour: list[str]
    y: np.ndarray

    def columns(self, **more):
        """Columns of numbers and of text, with further ones before the target."""
        return {"x": self.x, "count": self.count, "colour": self.colour, **more, "y": self.y}


def clean(n: int = N, seed: int = 0) -> Clean:
    rng = np.random.default_rng(seed)
    x = np.round(rng.uniform(0.5, 9000.0, n), 2) + 0.01
    x = np.round(np.where(np.abs(100 * x % 1) > 0, np.round(x, 2), x), 2)
    count = rng.integers(1, 60, n)
    colour = [("red", "blue", "green")[j] for j in rng.integers(0, 3, n)]
    y = np.round(x / 1000 + count * rng.normal(1, 0.3, n), 3)
    return Clean(x, count, colour, y)


def text(columns, *, separator=",", number=repr, end="\n", names=None):
    """A file of these columns; numbers are written by `number`, None is nothing."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator=end)
    writer.writerow(list(columns) if names is None else names)

    def cell(value):
        if value is None or isinstance(value, str):
            return value or ""
        if isinstance(value, (np.floating, float)):
            return number(float(value))
        return str(value)

    for row in zip(*columns.values(), strict=True):
        writer.writerow([cell(value) for value in row])
    return out.getvalue()


def decimal_comma(value: float) -> str:
    return repr(value).replace(".", ",")


def german(value: float) -> str:
    """1.013,50"""
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def english(value: float) -> str:
    """1,013.50"""
    return f"{value:,.2f}"

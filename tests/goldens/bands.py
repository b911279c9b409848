"""What a fit should come out as: a band for each number, a set for each choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

RELATIVE = {
    "error": 0.005,
    "held-out error": 0.005,
    "log loss": 0.005,
    "held-out score": 0.01,
    "interval": 0.01,
    "dimension": 0.02,
    "rows in cells": 0.01,
}
"""The least half-width of a band as a share of the number. Rounding moves nearly all of them by
less than a thousandth of this, a heuristic that matters by more than it."""
ABSOLUTE = {
    "accuracy": 0.005,
    "coverage": 0.01,
    "log2 width": 0.05,
    "log10 alpha": 0.05,
    "relevance": 0.02,
    "coarse model": 0.02,
}
"""The same in the units of the number. Grids of widths and ridges have steps of 0.5 (in log2) and
of 0.25 and more (in log10); of cells, means over all of them count."""
BEYOND_SEEN = 3.0
"""Rounding moves a number on an unknown processor by at most so many times what it did on those
known: six runs show about two standard deviations to either side."""

Expectation = dict[str, Any]


def expectation(runs: Sequence[dict[str, Any]]) -> Expectation:
    """From the facts of several runs that differ by rounding alone.

    A fact that not all of them have depends on a tie: it is left out.
    """
    found: Expectation = {}
    for fact in runs[0]:
        values = [run.get(fact) for run in runs]
        if any(value is None for value in values):
            continue
        if fact in RELATIVE or fact in ABSOLUTE:
            low, high = min(values), max(values)
            middle = (low + high) / 2.0
            least = RELATIVE.get(fact, 0.0) * abs(middle) + ABSOLUTE.get(fact, 0.0)
            found[fact] = [_short(middle), _short(max(least, BEYOND_SEEN * (high - low) / 2.0))]
        else:
            found[fact] = {"any of": sorted({_hashable(value) for value in values}, key=str)}
    return found


def deviations(expected: Expectation, facts: dict[str, Any]) -> list[str]:
    """In words, what is not as expected."""
    out = []
    for fact, wanted in expected.items():
        value = facts.get(fact)
        if isinstance(wanted, dict):
            choices = [_hashable(choice) for choice in wanted["any of"]]
            if _hashable(value) not in choices:
                out.append(f"{fact} is {value}, was {' or '.join(map(str, choices))}")
        elif value is None or not abs(value - wanted[0]) <= wanted[1]:
            out.append(f"{fact} is {value}, was {wanted[0]} ± {wanted[1]}")
    return out


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _short(number: float) -> float:
    """Six significant digits: no band is narrower than a thousandth."""
    return float(np.format_float_positional(number, precision=6, fractional=False))

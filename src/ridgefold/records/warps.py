"""Monotone functions of one column, as numbers; `kernels.warped` computes them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Standardise:
    """(x − centre)/spread."""

    centre: float = 0.0
    spread: float = 1.0


@dataclass(frozen=True)
class SignedLog:
    """sign(u)·log(1 + |u|)/spread with u = (x − centre)/unit: heavy tails on both sides."""

    centre: float = 0.0
    unit: float = 1.0
    spread: float = 1.0


@dataclass(frozen=True)
class Quantile:
    """Piecewise linear through (knots, values), constant beyond the ends."""

    knots: tuple[float, ...]
    values: tuple[float, ...]


Warp = Standardise | SignedLog | Quantile

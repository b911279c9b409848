"""Monotone functions of one column, as numbers; `kernels.warped` computes them."""

from __future__ import annotations

from dataclasses import dataclass

from ridgefold.records.kinds import Finite, Positive


@dataclass(frozen=True)
class Standardise:
    """(x − centre)/spread."""

    centre: Finite = 0.0
    spread: Positive = 1.0


@dataclass(frozen=True)
class SignedLog:
    """sign(u)·log(1 + |u|)/spread with u = (x − centre)/unit: heavy tails on both sides."""

    centre: Finite = 0.0
    unit: Positive = 1.0
    spread: Positive = 1.0


@dataclass(frozen=True)
class Quantile:
    """Piecewise linear through (knots, values), constant beyond the ends."""

    knots: tuple[Finite, ...]
    values: tuple[Finite, ...]


Warp = Standardise | SignedLog | Quantile

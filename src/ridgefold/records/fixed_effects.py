"""Which columns of a fitted model are not penalised, and how sure their coefficients are."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ridgefold.records.kinds import Count


@dataclass(frozen=True)
class FixedEffects:
    """The unpenalised columns beside the bias."""

    columns: tuple[Count, ...]
    """Their numbers, in the order of the coefficients."""
    transform: np.ndarray = field(repr=False)
    """What makes coefficients, of the bias (if there is one) and then of these columns, from
    coordinates in an orthonormal basis of all of them on the rows of the fit; shape (q, rank)."""
    std: np.ndarray = field(repr=False)
    """Standard errors of the coefficients, shape (n_fixed, n_targets); NaN for coefficients that
    the rows do not determine."""

"""A fitted model: all that prediction needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FittedModel:
    """f(x) = Σ a_i k(x_i, x) + b, or Φ(x)w + b where the feature space is small.

    Arrays belong to the library of the training rows (NumPy, torch, …).
    """

    dual_coef: Any
    """a, of shape (n_rows, n_targets)."""
    intercept: Any
    """b, of shape (n_targets,)."""
    primal_coef: Any | None = None
    """w, of shape (n_features, n_targets), when the model was solved in the primal."""
    certificate: Any | None = None
    """‖y − (K + αI)a‖ for each target, when an iterative solver found a."""
    further: tuple[FittedModel, ...] = ()
    """In a stack, what its other kernels add to f, in their order."""

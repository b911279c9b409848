"""A fitted model: all that prediction needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FittedModel:
    """The function f(x) = Σ a_i k(x_i, x) + b, or Φ(x)w + b where the feature space is small.

    With further unpenalised columns φ, φ(x)ᵀβ is added.

    Arrays belong to the library of the training rows (NumPy, torch, …).
    """

    dual_coef: Any
    """The coefficients a, of shape (n_rows, n_targets)."""
    intercept: Any
    """The bias b, of shape (n_targets,); zero without one."""
    primal_coef: Any | None = None
    """The weights w, of shape (n_features, n_targets), if the model was solved in the primal."""
    certificate: Any | None = None
    """The residual norm ‖y − (K + αI)a‖ of each target, if an iterative solver found a."""
    further: tuple[FittedModel, ...] = ()
    """In a stack, what its other kernels add to f, in their order."""
    fixed_coef: Any | None = None
    """The coefficients β of the unpenalised columns beside the bias, of shape (n_fixed, n_targets),
    if there are any."""

"""The arguments that named kernels share, as scikit-learn's KernelRidge has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KernelSettings:
    """The arguments that scikit-learn's KernelRidge has for named kernels."""

    gamma: float | None = None
    degree: float = 3
    coef0: float = 1
    parameters: Mapping[str, Any] | None = None


Builder = Callable[[KernelSettings, int], Mapping[str, Any]]


def from_gamma(settings: KernelSettings, n_columns: int) -> Mapping[str, Any]:
    return {"gamma": 1.0 / n_columns if settings.gamma is None else settings.gamma}


def from_polynomial(settings: KernelSettings, n_columns: int) -> Mapping[str, Any]:
    return {
        **from_gamma(settings, n_columns),
        "degree": settings.degree,
        "coef0": settings.coef0,
    }


def from_sigmoid(settings: KernelSettings, n_columns: int) -> Mapping[str, Any]:
    return {**from_gamma(settings, n_columns), "coef0": settings.coef0}


def from_chi2(settings: KernelSettings, n_columns: int) -> Mapping[str, Any]:
    return {"gamma": 1.0 if settings.gamma is None else settings.gamma}


def without_arguments(settings: KernelSettings, n_columns: int) -> Mapping[str, Any]:
    return {}

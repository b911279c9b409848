"""Shapes that a learned kernel may have, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ridgefold.errors import InvalidInputError
from ridgefold.kernels import RBF, Kernel, Laplacian, Matern, RationalQuadratic
from ridgefold.kernels.distances import DistanceKernel

FAMILIES: dict[str, DistanceKernel] = {
    "laplacian": Laplacian(),
    "matern12": Matern(nu=0.5),
    "matern32": Matern(nu=1.5),
    "matern52": Matern(nu=2.5),
    "rational_quadratic": RationalQuadratic(),
    "rbf": RBF(),
}
"""Every family that `kernel="auto"` chooses from; the length scales here do not matter."""


def family_of(kernel: Any) -> DistanceKernel:
    """The kernel that a name of a family, or a kernel object, stands for."""
    if isinstance(kernel, DistanceKernel):
        return kernel
    if isinstance(kernel, str) and kernel in FAMILIES:
        return FAMILIES[kernel]
    if isinstance(kernel, Kernel):
        raise InvalidInputError(
            f"scales can be learned for one kernel of distances (RBF, Matern, Laplacian, "
            f"RationalQuadratic), got {kernel!r}"
        )
    raise InvalidInputError(f"family must be one of {', '.join(FAMILIES)}, got {kernel!r}")


def with_scales(family: DistanceKernel, scales: np.ndarray) -> DistanceKernel:
    """The family's kernel with these length scales."""
    return replace(family, length_scale=tuple(float(s) for s in scales))

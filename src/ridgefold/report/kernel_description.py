"""A kernel in a few words."""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgefold.kernels import Columns, Kernel, Rotated, Warped
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.report.formatting import clean, number, setting

_LONGEST = 90
"""Characters of a kernel that is not one of distances: about a line of the page."""


def described_kernel(kernel: Any) -> str:
    """Its name and width; a kernel with many scales says that it has them."""
    if not isinstance(kernel, Kernel):
        return "the given kernel matrix"
    inner: Any = kernel
    while isinstance(inner, (Columns, Warped, Rotated)):
        inner = inner.kernel
    if isinstance(inner, DistanceKernel):
        name = type(inner).__name__
        nu = getattr(inner, "nu", None)
        if nu is not None:
            name += f" {_halves(float(nu))}"
        scales = np.ravel(inner.length_scale)
        width = (
            f"of length scale {setting(float(scales[0]))}"
            if len(scales) == 1
            else f"with {len(scales)} length scales"
        )
        directions = number_of_directions(kernel)
        along = f" along {directions} directions" if directions else ""
        return f"{name} {width}{along}{_on_which_columns(kernel)}"
    return clean(repr(kernel), _LONGEST)


def number_of_directions(kernel: Any) -> int:
    """How many directions that mix columns a learned kernel has scales of; 0 if of columns."""
    while isinstance(kernel, (Columns, Warped)):
        kernel = kernel.kernel
    return len(kernel.directions) if isinstance(kernel, Rotated) else 0


def _on_which_columns(kernel: Kernel) -> str:
    inner = kernel.kernel if isinstance(kernel, Columns) else kernel
    kind = "transformed columns" if isinstance(inner, Warped) else "columns"
    if isinstance(kernel, Columns):
        return f" on {len(kernel.columns)} {kind}"
    return f" on {kind}" if isinstance(inner, Warped) else ""


def _halves(nu: float) -> str:
    return f"{round(2 * nu)}/2" if 2 * nu == round(2 * nu) else number(nu)

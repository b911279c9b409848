"""One matrix of distances serves kernels that differ in width, in any precision."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from ridgefold.kernels import RBF, Laplacian, Matern, WidthTable
from ridgefold.kernels.width_table import differ_in_width

X = np.random.default_rng(0).standard_normal((150, 3))
WIDTHS = (0.5, 1.0, 4.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-20, 1.0, 1e20])
@pytest.mark.parametrize("family", [RBF, Matern, Laplacian])
def test_lower_triangles_are_those_of_each_kernel(dtype, size, family):
    """Squares of distances of 1e20 are beyond single precision, their ratios to widths are not."""
    kernels = tuple(family(length_scale=size * width) for width in WIDTHS)
    table = WidthTable(kernels, size * X)
    for k, kernel in enumerate(kernels):
        out = np.zeros((150, 150), dtype=dtype)
        table.write_lower(k, out)
        # Distances are differences of squares, each of which is rounded.
        largest = np.max(np.sum(X**2, axis=1)) / WIDTHS[k] ** 2
        rounding = np.finfo(dtype).eps + np.finfo(np.float64).eps * largest
        np.testing.assert_allclose(
            np.tril(out), np.tril(kernel(size * X)), rtol=0, atol=4 * rounding
        )


def test_kernels_that_differ_in_more_than_their_width_share_no_distances():
    assert differ_in_width((RBF(1.0), RBF(2.0)), 8)
    assert not differ_in_width((RBF(1.0), Matern(length_scale=2.0)), 8)
    assert not differ_in_width((Matern(nu=0.5), Matern(nu=1.5)), 8)
    assert not differ_in_width((RBF(1.0), RBF(1e200)), 8)
    assert differ_in_width((Laplacian(1.0), Laplacian(2.0)), 8)
    assert not differ_in_width((Laplacian(1.0), RBF(2.0)), 8)


@dataclass(frozen=True)
class Described(RBF):
    """A kernel that cannot be hashed, as one of a user's own may be."""

    words: list[str] = field(default_factory=list)


def test_kernels_need_no_hash():
    table = WidthTable((Described(1.0), Described(2.0)), X)
    out = np.zeros((150, 150))
    table.write_lower(1, out)
    np.testing.assert_allclose(np.tril(out), np.tril(RBF(2.0)(X)), rtol=1e-13)

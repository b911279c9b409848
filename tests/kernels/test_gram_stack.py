"""Stacks of Gram matrices against the matrices one by one."""

from __future__ import annotations

import numpy as np
import pytest

from namespaces import LIBRARIES, to_numpy
from ridgefold.errors import InvalidInputError, NumericalError
from ridgefold.kernels import RBF, KernelGram, Laplacian, Matern, Polynomial, RationalQuadratic
from ridgefold.kernels.gram_stack import GramStack, across_stack

COUNTS = np.array([5, 9, 1, 7])
KERNELS = {
    "one width": (RBF(1.3),),
    "a scale a column": (RBF((0.5, 1.0, 2.0)),),
    "widths": tuple(RBF(width) for width in (0.5, 1.0, 2.0)),
    "rough": (Matern(1.0, nu=0.5),),
    "rough widths": (Matern(0.7), Matern(1.4)),
    "other distances": (Laplacian(1.0), Laplacian(2.0)),
    "families": (RationalQuadratic(1.0), Laplacian(1.0), Polynomial(2)),
    "a sum": (2.0 * RBF(0.7) + Polynomial(2),),
}
CONVERSIONS = {"numpy": np.array, "torch": LIBRARIES["torch"]}


def sets(dtype=np.float64, columns=3):
    rng = np.random.default_rng(0)
    X = np.zeros((len(COUNTS), 9, columns), dtype=dtype)
    for k, n in enumerate(COUNTS):
        X[k, :n] = 50.0 + rng.standard_normal((n, columns))
    X[1, 3] = X[1, 5]  # equal rows
    return X


@pytest.mark.parametrize("library", CONVERSIONS)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_stack_holds_the_matrix_of_every_set(library, name, dtype):
    X, kernels = sets(dtype), KERNELS[name]
    new = (50.0 + np.random.default_rng(1).standard_normal((len(COUNTS), 4, 3))).astype(dtype)
    stack = GramStack(kernels, CONVERSIONS[library](X), COUNTS)
    some = np.array([0, 1, 3])
    close = 30 * 50 * float(np.finfo(dtype).eps)
    for j, kernel in enumerate(kernels):
        matrices = to_numpy(stack.matrices(j, some))
        across = to_numpy(
            across_stack(kernel, CONVERSIONS[library](new), CONVERSIONS[library](X), COUNTS)
        )
        assert matrices.dtype == across.dtype == dtype
        for place, k in enumerate(some):
            n = COUNTS[k]
            expected = KernelGram(kernel, X[k, :n]).full()
            size = np.abs(expected).max()
            difference = np.tril(matrices[place, :n, :n]) - np.tril(expected)
            assert np.abs(difference).max() <= close * size
            expected = KernelGram(kernel, new[k], X[k, :n]).full()
            assert np.abs(across[k, :, :n] - expected).max() <= close * np.abs(expected).max()


def test_equal_rows_are_equal_under_a_rough_kernel():
    stack = GramStack((Matern(1.0, nu=0.5),), sets(), COUNTS)
    assert stack.matrices(0, np.arange(4))[1, 5, 3] == 1.0


def test_rows_that_a_kernel_cannot_take_are_named():
    with pytest.raises(InvalidInputError, match="length_scale has 2 entries but X has 3"):
        GramStack((RBF((1.0, 2.0)),), sets(), COUNTS)
    overflows = pytest.raises(NumericalError, match="squared distances between the rows of X over")
    with overflows, np.errstate(over="ignore", invalid="ignore"):
        GramStack((RBF(1.0),), 1e200 * sets(), COUNTS).matrices(0, np.arange(4))

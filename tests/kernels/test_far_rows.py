"""Rows far from the others, as fill values make them, against distances taken from differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse

from cases import rows
from namespaces import LIBRARIES, to_numpy
from ridgefold.kernels import (
    RBF,
    Categorical,
    Columns,
    KernelGram,
    Laplacian,
    Matern,
    RationalQuadratic,
)
from ridgefold.kernels.gram_stack import GramStack, across_stack
from ridgefold.kernels.scale_gradient import DifferentiableGram
from ridgefold.kernels.width_table import WidthTable

FILLS = [1e3, -1e5, 1e7, 1e9, 1e12]
SHARES = [0.01, 0.1, 0.3, 0.5, 0.7]
SCALES = (0.7, 1.0, 1.5, 2.0)
KERNELS = {
    "rbf": RBF(1.2),
    "rbf, a scale a column": RBF(SCALES),
    "matern 1/2": Matern(1.3, nu=0.5),
    "matern 3/2": Matern(SCALES, nu=1.5),
    "matern 5/2": Matern(1.1, nu=2.5),
    "rational quadratic": RationalQuadratic(0.9, shape=1.5),
    "laplacian": Laplacian(2.0),
    "laplacian, a scale a column": Laplacian(SCALES),
    "categorical": Categorical(1.5),
}
CONVERSIONS = {"numpy": np.array, **LIBRARIES}


def filled(n, share, fill, columns, *, dtype=np.float64, seed=0):
    """Ordinary rows, in some columns of which a share of the values is unknown."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, len(SCALES)))
    X[n // 2] = X[n // 3]  # equal rows
    for column in columns:
        X[generator.random(n) < share, column] = fill
    return X.astype(dtype)


def exact(kernel, X, Y):
    """The kernel's formula on differences, which lose nothing, in extended precision."""
    differences = X.astype(np.longdouble)[:, None, :] - Y.astype(np.longdouble)[None, :, :]
    if isinstance(kernel, Categorical):
        return np.exp(-np.sum((differences != 0) / np.longdouble(kernel.length_scale), axis=2))
    z = differences / np.asarray(kernel.length_scale, dtype=np.longdouble)
    if isinstance(kernel, Laplacian):
        return np.exp(-np.sum(np.abs(z), axis=2))
    squares = np.sum(z * z, axis=2)
    if isinstance(kernel, RBF):
        return np.exp(-squares / 2)
    if isinstance(kernel, RationalQuadratic):
        return (1 + squares / (2 * kernel.shape)) ** -kernel.shape
    r = np.sqrt(2 * kernel.nu * squares)
    factor = {0.5: 1, 1.5: 1 + r, 2.5: 1 + r + r * r / 3}[kernel.nu]
    return factor * np.exp(-r)


def close_to(kernel, dtype):
    """Rounding of the result, and of squares as large as those of rows that are not yet far."""
    if dtype == np.float32:
        return {"rtol": 0, "atol": 2e-7}
    # The root of a rounding error of 1e-12 beside a distance of about 0.1.
    return {"rtol": 0, "atol": 1e-10 if getattr(kernel, "nu", None) == 0.5 else 1e-11}


CASES = [(share, fill, columns) for share in SHARES for fill in FILLS for columns in ((1,), (0, 2))]
SAMPLE = CASES[::11]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("library", CONVERSIONS)
def test_far_rows_have_the_kernel_values_of_their_differences(library, name, dtype):
    kernel, convert = KERNELS[name], CONVERSIONS[library]
    for share, fill, columns in SAMPLE:
        X = filled(60, share, fill, columns, dtype=dtype)
        new = filled(20, share, fill, columns, dtype=dtype, seed=1)
        within = close_to(kernel, dtype)
        gram = KernelGram(kernel, convert(X))
        np.testing.assert_allclose(to_numpy(gram.full()), exact(kernel, X, X), **within)
        lower = np.tril(to_numpy(gram.lower()))
        np.testing.assert_allclose(lower, np.tril(exact(kernel, X, X)), **within)
        found = to_numpy(gram.against(convert(new)).block())
        np.testing.assert_allclose(found, exact(kernel, new, X), **within)


@pytest.mark.full
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("share", "fill", "columns"), CASES)
def test_any_share_of_any_fill_value_has_the_values_of_differences(
    share, fill, columns, name, dtype
):
    kernel = KERNELS[name]
    for seed in range(3):
        X = filled(400, share, fill, columns, dtype=dtype, seed=seed)
        within = close_to(kernel, dtype)
        np.testing.assert_allclose(KernelGram(kernel, X).full(), exact(kernel, X, X), **within)


@pytest.mark.parametrize("fill", FILLS)
def test_noise_about_a_far_value_keeps_its_digits(fill):
    generator = np.random.default_rng(0)
    X = generator.standard_normal((80, 4))
    X[generator.random(80) < 0.4, 1] += fill
    for kernel in KERNELS.values():
        if isinstance(kernel, Laplacian):
            continue  # x/ℓ is rounded before the difference is taken
        found = KernelGram(kernel, X).full()
        np.testing.assert_allclose(found, exact(kernel, X, X), **close_to(kernel, np.float64))


@pytest.mark.parametrize("name", ["rbf", "matern 3/2", "rational quadratic", "laplacian"])
def test_sparse_far_rows_have_the_values_of_differences(name):
    kernel = KERNELS[name]
    for share, fill, columns in SAMPLE:
        X = filled(60, share, fill, columns)
        X[np.abs(X) < 0.7] = 0.0
        found = KernelGram(kernel, scipy.sparse.csr_array(X)).full()
        np.testing.assert_allclose(found, exact(kernel, X, X), **close_to(kernel, np.float64))


def test_wide_far_rows_have_the_values_of_differences():
    """Of so many columns, half a product is computed."""
    X = rows(150, 80, seed=2)
    X[::3, 7] = 1e9
    X[::4, 9] = -1e6
    kernel = RBF(6.0)
    np.testing.assert_allclose(
        np.tril(KernelGram(kernel, X).lower()), np.tril(exact(kernel, X, X)), atol=1e-11
    )


def test_a_pair_of_rows_has_one_value_in_every_block():
    X = filled(300, 0.3, 1e9, (1,))
    for name in ("rbf", "matern 1/2"):
        gram = KernelGram(KERNELS[name], X)
        K = gram.full()
        some = np.random.default_rng(1).permutation(300)[:70]
        np.testing.assert_allclose(gram.block(some, some[::-1]), K[some][:, some[::-1]], atol=1e-13)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("name", KERNELS)
def test_stacks_hold_the_values_of_differences(name, library):
    kernel, convert = KERNELS[name], CONVERSIONS[library]
    counts, stacked = np.array([30, 50, 41]), np.zeros((3, 50, 4))
    for k, (count, share) in enumerate(zip(counts, (0.3, 0.0, 0.5), strict=True)):
        stacked[k, :count] = filled(count, share, 1e9, (1,), seed=k)
    new = np.stack([filled(9, 0.5, 1e9, (1,), seed=k) for k in range(3)])
    stack = GramStack((kernel,), convert(stacked), counts)
    matrices = to_numpy(stack.matrices(0, np.arange(3)))
    across = to_numpy(across_stack(kernel, convert(new), convert(stacked), counts))
    for k, n in enumerate(counts):
        X, within = stacked[k, :n], close_to(kernel, np.float64)
        lower = np.tril(exact(kernel, X, X))
        np.testing.assert_allclose(np.tril(matrices[k, :n, :n]), lower, **within)
        np.testing.assert_allclose(across[k, :, :n], exact(kernel, new[k], X), **within)


@pytest.mark.parametrize("family", [RBF, Matern, RationalQuadratic, Laplacian])
def test_matrices_of_many_widths_hold_the_values_of_differences(family):
    kernels = [family(width) for width in (1e-2, 1.0, 30.0)]
    X, counts = filled(60, 0.3, 1e9, (1,)), np.array([60])
    table, stack = WidthTable(kernels, X), GramStack(kernels, X[None], counts)
    for index, kernel in enumerate(kernels):
        expected, within = np.tril(exact(kernel, X, X)), close_to(kernel, np.float64)
        out = np.zeros((60, 60))
        table.write_lower(index, out)
        np.testing.assert_allclose(np.tril(out), expected, **within)
        found = stack.matrices(index, np.array([0]))[0]
        np.testing.assert_allclose(np.tril(found), expected, **within)


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("family", [RBF, Matern, RationalQuadratic, Laplacian])
def test_gradients_in_the_length_scales_are_those_of_differences(family, fill):
    X = filled(70, 0.3, fill, (1,))
    kernel = family(SCALES)
    matrix = np.random.default_rng(3).standard_normal((70, 70))
    matrix += matrix.T
    gram = DifferentiableGram(X)
    K = gram.evaluate(kernel)
    np.testing.assert_allclose(np.tril(K), np.tril(exact(kernel, X, X)), atol=1e-10)
    found = gram.contract(np.array(matrix), np.zeros((70, 1)), np.zeros((70, 1)))
    step = 1e-6
    for j in range(4):
        sides = []
        for sign in (1, -1):
            scales = list(SCALES)
            scales[j] *= math.exp(sign * step)
            sides.append(exact(family(tuple(scales)), X, X))
        expected = float(np.sum(matrix * (sides[0] - sides[1])) / (2 * step))
        np.testing.assert_allclose(found[j], expected, rtol=1e-6, atol=1e-6)


def test_columns_of_a_kernel_keep_their_digits():
    X = filled(80, 0.3, 1e9, (1, 3))
    kernel = Columns(RBF((0.7, 1.5)), (1, 2))
    expected = exact(RBF((0.7, 1.5)), X[:, 1:3], X[:, 1:3])
    np.testing.assert_allclose(KernelGram(kernel, X).full(), expected, atol=1e-11)

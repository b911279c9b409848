"""The Gram matrix as a source: every way of asking gives the same numbers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse

from cases import INDEFINITE, KERNELS, rows
from namespaces import EVERYWHERE, to_numpy
from ridgefold.errors import InvalidInputError
from ridgefold.kernels import (
    RBF,
    Columns,
    KernelGram,
    Matern,
    PrecomputedGram,
    RationalQuadratic,
    WeightedGram,
)

X = rows(600, 3, seed=3, positive=True)  # more than one tile and one panel of 256 rows
INDICES = {
    "all": slice(None),
    "slice": slice(3, 311),
    "to the end": slice(590, None),
    "steps": slice(1, 500, 7),
    "backwards": slice(50, 10, -3),
    "array": np.array([5, 2, 2, 599, 0]),
    "empty": slice(4, 4),
}
ALL_KERNELS = {**KERNELS, **INDEFINITE}


def sources(kernel):
    gram = KernelGram(kernel, X)
    K = gram.full()
    roots = np.sqrt(np.arange(1.0, 601.0))
    some = np.arange(0, 600, 2)[::-1].copy()
    return {
        "kernel": (gram, K),
        "precomputed": (PrecomputedGram(K), K),
        "restricted": (gram.restricted(some), K[np.ix_(some, some)]),
        "weighted": (WeightedGram(gram, roots), K * np.outer(roots, roots)),
        "restricted precomputed": (
            PrecomputedGram(K).restricted(some),
            K[np.ix_(some, some)],
        ),
    }


@pytest.mark.parametrize("rows_index", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("columns_index", INDICES.values(), ids=INDICES)
def test_blocks_are_parts_of_the_whole(rows_index, columns_index):
    for gram, K in sources(KERNELS["rbf"]).values():
        limit = K.shape[0]
        if any(not isinstance(i, slice) and max(i) >= limit for i in (rows_index, columns_index)):
            continue
        expected = K[rows_index][:, columns_index]
        np.testing.assert_allclose(gram.block(rows_index, columns_index), expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", ALL_KERNELS.values(), ids=ALL_KERNELS)
def test_diagonal_is_that_of_the_full_matrix(kernel):
    for gram, K in sources(kernel).values():
        np.testing.assert_allclose(gram.diagonal(), np.diag(K), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("kernel", ALL_KERNELS.values(), ids=ALL_KERNELS)
def test_lower_triangle_is_that_of_the_full_matrix(kernel):
    for gram, K in sources(kernel).values():
        np.testing.assert_allclose(np.tril(gram.lower()), np.tril(K), rtol=1e-12, atol=1e-13)


def test_lower_triangle_of_chosen_rows():
    for gram, K in sources(KERNELS["matern 3/2"]).values():
        for index in (slice(10, 290), np.array([7, 3, 200, 11])):
            expected = np.tril(K[index][:, index])
            np.testing.assert_allclose(np.tril(gram.lower(index)), expected, rtol=1e-12)


WIDE = rows(300, 90, seed=5)  # of so many columns, half a block takes less time than all of it
WIDE_KERNELS = {
    "rbf": RBF(9.0),
    "a scale a column": RBF(tuple(np.linspace(5.0, 15.0, 90))),
    "matern 1/2": Matern(9.0, nu=0.5),
    "rational quadratic": RationalQuadratic(9.0),
    "multiple": 2.5 * Matern(9.0, nu=2.5),
    "some columns": Columns(RBF(8.0), tuple(range(3, 83))),
    "few columns": Columns(RBF(3.0), (1, 4)),
    "sum": RBF(9.0) + Matern(9.0),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", WIDE_KERNELS)
def test_lower_triangle_of_wide_rows_is_that_of_the_blocks(name, dtype):
    gram = KernelGram(WIDE_KERNELS[name], WIDE.astype(dtype))
    K = gram.full()
    within = {"rtol": 1e-12} if dtype == np.float64 else {"rtol": 1e-6}
    for index in (slice(None), slice(20, 21), slice(4, 4), np.array([7, 3, 299, 11])):
        expected = np.tril(K[index][:, index])
        np.testing.assert_allclose(np.tril(gram.lower(index)), expected, **within)


@pytest.mark.parametrize("convert", EVERYWHERE.values(), ids=EVERYWHERE)
def test_lower_triangle_of_wide_rows_in_every_library(convert):
    found = KernelGram(RBF(9.0), convert(WIDE)).lower()
    expected = np.tril(RBF(9.0)(WIDE))
    np.testing.assert_allclose(np.tril(to_numpy(found)), expected, rtol=1e-12)


def test_lower_triangle_is_written_into_any_storage():
    gram, expected = KernelGram(RBF(9.0), WIDE), np.tril(RBF(9.0)(WIDE))
    beside = np.full((300, 400), 7.0)
    gram.write_lower(beside[:, 50:350])
    np.testing.assert_allclose(np.tril(beside[:, 50:350]), expected, rtol=1e-12)
    assert np.all(beside[:, :50] == 7.0)
    assert np.all(beside[:, 350:] == 7.0)
    columns_first = np.empty((300, 300), order="F")
    gram.write_lower(columns_first)
    np.testing.assert_allclose(np.tril(columns_first), expected, rtol=1e-12)


def test_equal_wide_rows_have_the_kernel_value_one():
    repeated = np.repeat(WIDE[:40] + 100.0, 3, axis=0)
    K = KernelGram(Matern(9.0, nu=0.5), repeated).lower()
    for start in range(0, 120, 3):
        block = K[start : start + 3, start : start + 3]
        np.testing.assert_array_equal(np.tril(block), np.tril(np.ones((3, 3))))


def test_a_multiple_is_silent_about_what_stands_above_the_triangle():
    out = np.full((300, 300), 1e308)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelGram(1e3 * RBF(9.0), WIDE).write_lower(out)
    np.testing.assert_allclose(np.tril(out), 1e3 * np.tril(RBF(9.0)(WIDE)), rtol=1e-12)


@pytest.mark.parametrize("limit", [1, 5000.0, 1e5, 1e9])
def test_products_in_little_memory_are_the_whole_product(limit):
    for gram, K in sources(KERNELS["nested"]).values():
        V = np.random.default_rng(0).standard_normal((K.shape[0], 2))
        scale = np.abs(K).max() * K.shape[0]
        np.testing.assert_allclose(gram.matmat(V, limit=limit), K @ V, rtol=0, atol=1e-13 * scale)
        part = gram.matmat(V, slice(3, 9), limit=limit)
        np.testing.assert_allclose(part, (K @ V)[3:9], rtol=0, atol=1e-13 * scale)


def test_a_column_is_a_column():
    for gram, K in sources(KERNELS["laplacian"]).values():
        np.testing.assert_allclose(gram.column(17), K[:, 17], rtol=1e-12)


@pytest.mark.parametrize("kernel", ALL_KERNELS.values(), ids=ALL_KERNELS)
def test_new_rows_against_training_rows(kernel):
    new = rows(31, 3, seed=9, positive=True)
    expected = kernel(new, X)
    np.testing.assert_allclose(KernelGram(kernel, X).against(new).block(), expected, rtol=1e-13)


@pytest.mark.parametrize("name", [n for n, k in ALL_KERNELS.items() if k.accepts_sparse])
def test_sparse_rows_give_the_dense_matrix(name):
    kernel, thinned = ALL_KERNELS[name], np.where(X > 0.4, X, 0.0)[:50]
    # Squared distances are right to eps, the distances of Matérn 1/2 only to √eps.
    bound = 2e-8 if name == "matern 1/2" else 1e-13
    for form in (scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.csr_matrix):
        np.testing.assert_allclose(kernel(form(thinned)), kernel(thinned), atol=bound, rtol=1e-13)
        mixed = kernel(thinned[:9], form(thinned))
        np.testing.assert_allclose(mixed, kernel(thinned[:9], thinned), atol=bound, rtol=1e-13)


@pytest.mark.parametrize("convert", EVERYWHERE.values(), ids=EVERYWHERE)
def test_source_speaks_the_library_of_its_rows(convert):
    small = X[:20]
    gram, K = KernelGram(KERNELS["sum"], convert(small)), KERNELS["sum"](small)
    some = np.array([3, 1, 19])
    assert gram.itemsize == 8
    np.testing.assert_allclose(to_numpy(gram.block(some, slice(2, 9))), K[some, 2:9], rtol=1e-13)
    np.testing.assert_allclose(
        to_numpy(gram.restricted(some).full()), K[np.ix_(some, some)], rtol=1e-13
    )
    precomputed = PrecomputedGram(convert(K))
    np.testing.assert_allclose(to_numpy(precomputed.block(some, some)), K[np.ix_(some, some)])


def test_new_rows_with_other_columns_are_refused():
    with pytest.raises(InvalidInputError, match="2 columns, but the model was fitted on 3"):
        KernelGram(KERNELS["rbf"], X).against(X[:, :2])
    with pytest.raises(InvalidInputError, match="each of the 5 training rows, got 4"):
        PrecomputedGram(np.eye(5)).against(np.ones((2, 4)))


class _Squared(RBF):
    """A kernel that says how to write a block, and nothing about halves of it."""

    def write_block(self, namespace, left, right, out):
        super().write_block(namespace, left, right, out)
        out *= out


@pytest.mark.parametrize("kernel", [_Squared(9.0), 2.0 * _Squared(9.0)], ids=["alone", "scaled"])
def test_a_kernel_with_a_block_of_its_own_is_asked_for_blocks(kernel):
    lower = np.tril(KernelGram(kernel, WIDE).lower())
    np.testing.assert_allclose(lower, np.tril(kernel(WIDE)), rtol=1e-12)
    factor = 1.0 if isinstance(kernel, RBF) else 2.0
    np.testing.assert_allclose(lower, np.tril(factor * RBF(9.0)(WIDE) ** 2), rtol=1e-12)


def test_storage_of_a_weighted_triangle_may_be_used_again_and_again():
    """What stands above the diagonal is scaled with the rest, and must not overflow aloud."""
    gram = KernelGram(RBF(1.0), X)
    weighted = WeightedGram(gram, np.full(len(X), 1.4))
    storage = np.ones((len(X), len(X)))
    for _ in range(1200):
        weighted.write_lower(storage)
    expected = np.tril(1.4**2 * gram.full())
    np.testing.assert_allclose(np.tril(storage), expected, rtol=1e-14)


@pytest.mark.parametrize("far", [1e9, -1e12])
def test_one_far_row_does_not_take_the_digits_of_others(far):
    few = rows(40, 3, seed=5)
    expected = KernelGram(RBF(0.5), few).full()
    few[7, 1] = far
    others = np.arange(40) != 7
    found = KernelGram(RBF(0.5), few).full()
    np.testing.assert_allclose(found[others][:, others], expected[others][:, others], atol=1e-13)
    assert np.all(found[7, others] == 0)


@pytest.mark.parametrize("kernel", [RBF(0.01), Matern(0.01, nu=1.5)], ids=str)
def test_the_diagonal_is_exact_whichever_rows_and_weights(kernel):
    """Narrow kernels are off by hundreds of eps where a distance is computed to be zero."""
    gram, some = KernelGram(kernel, X[:200]), np.arange(3, 190, 2)
    roots = np.sqrt(np.arange(1.0, 201.0))
    assert np.all(np.diag(gram.restricted(some).full()) == 1.0)
    np.testing.assert_allclose(np.diag(WeightedGram(gram, roots).full()), roots**2, rtol=1e-15)

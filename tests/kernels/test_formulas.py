"""Every kernel against its textbook formula, one pair of rows at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics.pairwise import pairwise_kernels

from cases import INDEFINITE, KERNELS, rows
from kernel_formulas import by_formula
from namespaces import EVERYWHERE, LAYOUTS, to_numpy
from ridgefold.kernels import RBF, CallableKernel, Cosine, Laplacian, Polynomial

X, Y = rows(11, 3, seed=3, positive=True), rows(7, 3, seed=4, positive=True)


ALL_KERNELS = {**KERNELS, **INDEFINITE}
NUMPY_ONLY = ("chi2", "additive chi2")  # scikit-learn's compiled loops
EVERY_CASE = [
    (name, library)
    for name in ALL_KERNELS
    for library in (LAYOUTS if name in NUMPY_ONLY else EVERYWHERE)
]


@pytest.mark.parametrize("kernel", ALL_KERNELS.values(), ids=ALL_KERNELS)
def test_kernel_is_its_textbook_formula(kernel):
    # Rounding in a squared distance is √eps in the distance, which Matérn 1/2 is linear in.
    np.testing.assert_allclose(kernel(X, Y), by_formula(kernel, X, Y), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("kernel", ALL_KERNELS.values(), ids=ALL_KERNELS)
def test_kernel_of_rows_with_themselves_is_symmetric_with_the_known_diagonal(kernel):
    K = kernel(X)
    expected = by_formula(kernel, X, X)
    np.testing.assert_allclose(K, expected, rtol=1e-13, atol=1e-7)
    np.testing.assert_allclose(np.diag(K), np.diag(expected), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(("name", "library"), EVERY_CASE)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernel_is_the_same_everywhere(name, library, dtype):
    convert = EVERYWHERE[library]
    kernel, A, B = ALL_KERNELS[name], X.astype(dtype), Y.astype(dtype)
    K = kernel(convert(A), convert(B))
    expected = by_formula(kernel, A, B)
    assert type(K) is type(convert(A)) or isinstance(K, np.ndarray)
    assert to_numpy(K).dtype == dtype
    bound = 60 * np.finfo(dtype).eps
    np.testing.assert_allclose(to_numpy(K), expected, rtol=bound, atol=bound)


@pytest.mark.parametrize("gamma", [0.0, 1e-3, 0.5, 7.0])
@pytest.mark.parametrize(("cls", "metric"), [(RBF, "rbf"), (Laplacian, "laplacian")])
def test_gamma_means_what_scikit_learn_means(cls, metric, gamma):
    expected = pairwise_kernels(X, Y, metric=metric, gamma=gamma)
    np.testing.assert_allclose(cls(gamma=gamma)(X, Y), expected, rtol=1e-13)


@pytest.mark.parametrize("name", [n for n, k in KERNELS.items() if hasattr(k, "length_scale")])
def test_rows_far_from_the_origin_keep_their_digits(name):
    kernel = KERNELS[name]
    # Multiples of 2⁻¹⁰ are moved by 10⁶ without rounding, so the answer is the same.
    A, B = np.round(X * 1024) / 1024, np.round(Y * 1024) / 1024
    moved = kernel(A + 1e6, B + 1e6)
    np.testing.assert_allclose(moved, by_formula(kernel, A, B), rtol=1e-9, atol=1e-9)


def test_integer_and_nested_list_rows_count_as_float64():
    K = RBF(2.0)([[0, 1], [2, 3]])
    assert K.dtype == np.float64
    np.testing.assert_allclose(K, [[1.0, math.exp(-1.0)], [math.exp(-1.0), 1.0]], rtol=1e-15)


def test_cosine_of_a_row_of_zeros_is_zero():
    np.testing.assert_array_equal(Cosine()(np.array([[0.0, 0.0], [3.0, 4.0]]))[0], [0.0, 0.0])


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_cosine_does_not_depend_on_the_length_of_rows(scale):
    np.testing.assert_allclose(Cosine()(X * scale, Y), Cosine()(X, Y), rtol=1e-14)


def test_vectorized_callable_equals_the_one_for_pairs():
    def pairs(x, y, power):
        return float(x @ y) ** power

    def matrices(A, B, power):
        return (A @ B.T) ** power

    slow = CallableKernel(pairs, {"power": 2})
    fast = CallableKernel(matrices, {"power": 2}, vectorized=True)
    np.testing.assert_allclose(fast(X, Y), slow(X, Y), rtol=1e-14)
    np.testing.assert_allclose(fast(X, Y), Polynomial(2, coef0=0.0)(X, Y), rtol=1e-14)


@given(
    X=arrays(
        np.float64,
        st.tuples(st.integers(1, 8), st.just(3)),
        elements=st.floats(0, 1, allow_subnormal=False),
    ),
    name=st.sampled_from(list(KERNELS)),
)
def test_kernel_matrices_are_positive_semi_definite(X, name):
    values = np.linalg.eigvalsh(KERNELS[name](X))
    # Squared distances are right to eps, distances and Matérn 1/2 only to √eps.
    slack = 1e-7 if name == "matern 1/2" else 1e-13
    assert values.min() >= -slack * max(values.max(), 1e-300) * len(X)

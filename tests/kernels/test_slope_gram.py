"""Slopes of every kernel: those of differences of its textbook formula.

The formulas are `kernel_formulas`, never the library's own values: a wrong derivative fails here,
and so does a kernel that neither states one nor says that it has none.
"""

from __future__ import annotations

import numpy as np
import pytest

from cases import rows
from kernel_formulas import EXAMPLES, by_formula
from namespaces import LIBRARIES, to_numpy
from ridgefold.errors import NoSlopeError, UnsupportedInputError
from ridgefold.kernels import (
    RBF,
    CallableKernel,
    Categorical,
    Columns,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Sobolev,
)
from ridgefold.kernels.distances import EuclideanKernel
from ridgefold.kernels.slope_gram import SlopeGram

X = rows(7, 3, seed=3, positive=True)
Z = rows(9, 3, seed=4, positive=True)
STEP = 1e-6
WITHOUT = ("callable",)
"""Examples with no slope at all."""
CODES = ("categorical", "categorical, gamma", "columns of a product")
"""Examples with columns of codes, whose slopes are NaN."""
EVERY = pytest.mark.parametrize("name", [n for n in EXAMPLES if n not in WITHOUT])
COMPILED = {"chi2", "additive chi2"}
DERIVED_TWICE = [
    "rbf",
    "rbf, a scale a column",
    "matern 3/2",
    "matern 5/2",
    "rational quadratic",
    "linear",
    "polynomial",
    "polynomial, general",
    "polynomial, fifth",
    "sigmoid",
    "sum",
    "product",
    "columns",
    "rotated",
    "warped",
]


def by_differences(kernel: Kernel, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """∂k(a_r, b_i)/∂a_rj of the formula, shape (rows, others, columns)."""
    slopes = [
        (by_formula(kernel, A + STEP * e, B) - by_formula(kernel, A - STEP * e, B)) / (2 * STEP)
        for e in np.eye(A.shape[1])
    ]
    return np.stack(slopes, axis=2)


def no_codes(kernel: Kernel) -> np.ndarray:
    """Which columns hold no codes."""
    steps = SlopeGram(kernel, X, Z).column_slopes(np.ones_like(X))
    return np.isfinite(steps).all(axis=0)


@EVERY
def test_slopes_are_those_of_differences_of_the_formula(name):
    kernel, a = EXAMPLES[name], np.random.default_rng(0).standard_normal((9, 2))
    found = SlopeGram(kernel, X, Z).row_slopes(a)
    expected = np.einsum("rij,it->rjt", by_differences(kernel, X, Z), a)
    kept = no_codes(kernel)
    np.testing.assert_allclose(found[:, kept], expected[:, kept], rtol=1e-6, atol=1e-6)
    assert kept.all() == (name not in CODES)
    assert np.isnan(found[:, ~kept]).all()


@EVERY
def test_the_other_product_with_slopes_is_of_the_same_derivatives(name):
    kernel, u = EXAMPLES[name], np.random.default_rng(1).standard_normal(X.shape)
    found = SlopeGram(kernel, X, Z).column_slopes(u)
    expected = np.einsum("rij,rj->ij", by_differences(kernel, X, Z), u)
    kept = no_codes(kernel)
    np.testing.assert_allclose(found[:, kept], expected[:, kept], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", DERIVED_TWICE)
def test_covariances_of_slopes_are_those_of_differences_of_slopes(name):
    kernel, rng = EXAMPLES[name], np.random.default_rng(2)
    u, v = rng.standard_normal(X.shape), rng.standard_normal(Z.shape)
    found = SlopeGram(kernel, X, Z).mixed_sums(u, v)
    step, expected = 1e-5, np.empty(3)
    for j, e in enumerate(np.eye(3)):
        # Of x by the library, which is tested above; of z by differences.
        there, back = (
            SlopeGram(kernel, X, Z + s * step * e).column_slopes(u)[:, j] for s in (1, -1)
        )
        expected[j] = v[:, j] @ (there - back) / (2 * step)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kernel", [RBF((0.5, 0.3, 0.9)), Matern(0.5, nu=1.5), Matern(0.5, nu=2.5)])
def test_variances_of_slopes_are_right_where_rows_meet(kernel):
    """k″(0) of one column: 1/ℓ², 3/ℓ² and (5/3)/ℓ²."""
    u = np.ones((1, 3))
    found = SlopeGram(kernel, X[:1], X[:1]).mixed_sums(u, u)
    factor = 1.0 if isinstance(kernel, RBF) else {1.5: 3.0, 2.5: 5.0 / 3.0}[kernel.nu]
    np.testing.assert_allclose(found, factor / np.broadcast_to(kernel.length_scale, 3) ** 2)


@pytest.mark.parametrize("name", [n for n in EXAMPLES if n not in (*WITHOUT, *COMPILED)])
def test_slopes_are_the_same_in_torch(name):
    kernel, a = EXAMPLES[name], np.random.default_rng(0).standard_normal((9, 2))
    convert = LIBRARIES["torch"]
    found = SlopeGram(kernel, convert(X), convert(Z)).row_slopes(convert(a))
    assert type(found) is type(convert(X))
    expected = SlopeGram(kernel, X, Z).row_slopes(a)
    np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", [Laplacian(0.5), Matern(0.5, nu=0.5)])
def test_a_rough_kernel_has_no_slope_where_rows_meet(kernel):
    """Its kink there has the slopes ±s on its sides, whose mean is zero."""
    a = np.zeros((len(X), 1))
    a[2] = 1.0
    assert np.all(SlopeGram(kernel, X, X).row_slopes(a)[2] == 0.0)


def test_the_slope_at_a_kink_is_the_mean_of_both_sides():
    a = np.random.default_rng(0).standard_normal((len(X), 1))
    for kernel in (Laplacian(0.5), Matern(0.5, nu=0.5), Sobolev()):
        found = SlopeGram(kernel, X, X).row_slopes(a)[:, :, 0]
        for j, e in enumerate(np.eye(3)):
            # Only rows beyond 1e-7 in this column count as beside the kink.
            sides = by_formula(kernel, X + 1e-7 * e, X) - by_formula(kernel, X - 1e-7 * e, X)
            np.testing.assert_allclose(found[:, j], sides @ a[:, 0] / 2e-7, rtol=1e-4, atol=1e-4)


def test_far_columns_keep_their_digits():
    """A fill value of 1e9 in one row must not cost the slopes of others their digits."""
    kernel, far = Matern((1.0, 2.0), nu=2.5), rows(6, 2, seed=5)
    far[:, 0] += 1e9 * np.array([0, 0, 0, 1, 1, 1])
    a = np.random.default_rng(0).standard_normal((6, 1))
    found = SlopeGram(kernel, far, far).row_slopes(a)[3:]
    # The three far rows see one another alone, as rows of their own.
    own = far[3:] - np.array([1e9, 0.0])
    expected = SlopeGram(kernel, own, own).row_slopes(a[3:])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_a_kernel_without_a_slope_says_so():
    function = CallableKernel(lambda x, y: float(x @ y))
    with pytest.raises(NoSlopeError, match="no slope"):
        SlopeGram(function, X, Z).row_slopes(np.ones((9, 1)))

    class Plain(EuclideanKernel):
        def of_exponent(self, namespace, exponent):
            namespace.exp_in_place(exponent)

    with pytest.raises(NoSlopeError, match="does not state its slope"):
        SlopeGram(Plain(1.0), X, Z).row_slopes(np.ones((9, 1)))


@pytest.mark.parametrize(
    "kernel", [Laplacian(), Matern(nu=0.5), Sobolev(), Laplacian() + Linear(), 2 * Laplacian()]
)
def test_slopes_of_rough_functions_have_no_variance(kernel):
    with pytest.raises(NoSlopeError, match="variance"):
        SlopeGram(kernel, X, X).mixed_sums(X, X)


def test_sparse_rows_are_refused():
    import scipy.sparse

    with pytest.raises(UnsupportedInputError, match="toarray"):
        SlopeGram(RBF(), scipy.sparse.csr_array(X), scipy.sparse.csr_array(Z))


def test_a_product_of_kernels_on_different_columns_has_covariances_of_each():
    kernel = Columns(RBF(0.5), [0, 1]) * Columns(Categorical(0.5), [2])
    found = SlopeGram(kernel, X, X).mixed_sums(np.ones_like(X), np.ones_like(X))
    assert np.isfinite(found).tolist() == [True, True, False]

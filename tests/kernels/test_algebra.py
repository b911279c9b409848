"""Kernels as values: arithmetic, text, equality, features and parameters."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import scipy.sparse

import ridgefold.kernels
from cases import INDEFINITE, KERNELS, rows
from namespaces import EVERYWHERE, to_numpy
from ridgefold.errors import InvalidInputError, KernelDomainError, UnsupportedInputError
from ridgefold.kernels import (
    RBF,
    CallableKernel,
    Constant,
    Cosine,
    Kernel,
    KernelGram,
    KernelSettings,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Product,
    RationalQuadratic,
    Scaled,
    Sigmoid,
    Sobolev,
    Sum,
    resolve_kernel,
)
from ridgefold.linalg import namespace_of

X = rows(9, 3, seed=3, positive=True)
FINITE = {n: k for n, k in KERNELS.items() if k.feature_dimension(3) is not None}


def test_kernels_add_multiply_and_scale():
    left, right = RBF(0.5), Linear()
    assert left + right == Sum(left, right)
    assert left * right == Product(left, right)
    assert left + 1 == Sum(left, Constant(1.0))
    assert 1 + left == Sum(Constant(1.0), left)
    assert 2 * left == left * 2 == Scaled(2.0, left)
    np.testing.assert_allclose((left + right)(X), left(X) + right(X))
    np.testing.assert_allclose((left * right)(X), left(X) * right(X))
    np.testing.assert_allclose((2 * left)(X), 2 * left(X))


@pytest.mark.parametrize("number", [np.float64(2.0), np.int64(2), np.float32(2.0)])
def test_numpy_numbers_scale_and_add_like_others(number):
    assert number * RBF() == 2 * RBF()
    assert RBF() * number == 2 * RBF()
    assert number + RBF() == 2 + RBF()
    assert RBF() + number == RBF() + 2


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (RBF(0.5), "RBF(length_scale=0.5)"),
        (RBF((1, 2)), "RBF(length_scale=(1.0, 2.0))"),
        (RBF(0.5) + 1, "RBF(length_scale=0.5) + Constant(value=1.0)"),
        (2 * (Linear() + 1), "2.0 * (Linear() + Constant(value=1.0))"),
        ((Linear() + 1) * Cosine(), "(Linear() + Constant(value=1.0)) * Cosine()"),
        (Matern(nu=2.5), "Matern(length_scale=1.0, nu=2.5)"),
    ],
)
def test_text_of_a_kernel_builds_it_again(kernel, text):
    assert repr(kernel) == text
    assert eval(text, vars(ridgefold.kernels)) == kernel  # noqa: S307 - our own text


def test_equal_kernels_are_equal_and_hash_alike():
    first = [*KERNELS.values(), *INDEFINITE.values()]
    again = [eval(repr(k), vars(ridgefold.kernels)) for k in first]  # noqa: S307 - our own text
    for i, j in product(range(len(first)), repeat=2):
        same_text = repr(first[i]) == repr(again[j])
        if i == j:
            assert repr(first[i]) == repr(again[j])
            np.testing.assert_array_equal(first[i](X), again[j](X))
        assert same_text == (i == j)
    assert RBF([1, 2]) == RBF((1.0, 2.0))
    assert hash(RBF([1, 2])) == hash(RBF((1.0, 2.0)))
    assert RBF(gamma=0.5) == RBF(1.0)
    assert len({RBF(1.0), RBF(1.0), RBF(2.0), Laplacian(1.0)}) == 3
    function = CallableKernel(min, {"key": [1]})
    assert hash(function) == hash(CallableKernel(min, {"key": [1]}))
    assert function == CallableKernel(min, {"key": [1]})


def test_kernels_cannot_be_changed():
    with pytest.raises(AttributeError):
        RBF().length_scale = 2.0


@pytest.mark.parametrize("kernel", FINITE.values(), ids=FINITE)
@pytest.mark.parametrize("convert", EVERYWHERE.values(), ids=EVERYWHERE)
def test_features_multiply_to_the_kernel(kernel, convert):
    A = convert(X)
    phi = to_numpy(kernel.features(namespace_of(A), A))
    assert phi.shape == (len(X), kernel.feature_dimension(3))
    np.testing.assert_allclose(phi @ phi.T, kernel(X), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("kernel", FINITE.values(), ids=FINITE)
def test_features_of_sparse_rows_are_those_of_dense_ones(kernel):
    sparse = scipy.sparse.csr_array(np.where(X > 0.4, X, 0.0))
    numpy = namespace_of()
    np.testing.assert_allclose(
        kernel.features(numpy, sparse), kernel.features(numpy, sparse.toarray()), rtol=1e-14
    )


@pytest.mark.parametrize("degree", [0, 1, 2, 4])
@pytest.mark.parametrize("coef0", [0.0, 0.7])
@pytest.mark.parametrize("columns", [1, 2, 5])
def test_polynomial_features_are_counted_and_multiply_to_the_kernel(degree, coef0, columns):
    kernel, A = Polynomial(degree, gamma=0.3, coef0=coef0), rows(8, columns)
    phi = kernel.features(namespace_of(), A)
    assert phi.shape[1] == kernel.feature_dimension(columns)
    np.testing.assert_allclose(phi @ phi.T, kernel(A), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kernel", [RBF(), Matern(), Sigmoid(), Polynomial(1.5), RBF() + 1])
def test_infinite_feature_spaces_say_so(kernel):
    assert kernel.feature_dimension(3) is None
    with pytest.raises(UnsupportedInputError, match="dual"):
        kernel.features(namespace_of(), X)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RBF(0), r"length_scale must be > 0, got 0"),
        (lambda: RBF(-1.0), r"length_scale must be > 0, got -1.0"),
        (lambda: RBF(math.nan), r"length_scale must be > 0, got nan"),
        (lambda: RBF("wide"), r"length_scale must be a number > 0, got 'wide'"),
        (lambda: RBF([]), r"length_scale must hold at least one number"),
        (lambda: RBF([1, 0]), r"length_scale must be > 0"),
        (lambda: RBF(2.0, gamma=1.0), r"either length_scale or gamma"),
        (lambda: RBF(gamma=-1), r"gamma must be a finite number >= 0, got -1"),
        (lambda: RBF(gamma=math.inf), r"gamma must be a finite number >= 0, got inf"),
        (lambda: RBF(gamma="scale"), r"gamma must be a finite number >= 0, got 'scale'"),
        (lambda: Laplacian(gamma=1j), r"gamma must be a finite number >= 0, got 1j"),
        (lambda: Matern(nu=1.0), r"nu must be 0.5, 1.5 or 2.5, got 1.0"),
        (lambda: RationalQuadratic(shape=0), r"shape must be > 0, got 0"),
        (lambda: Polynomial(-1), r"degree must be >= 0, got -1"),
        (lambda: Polynomial("two"), r"degree must be a finite number, got 'two'"),
        (lambda: Polynomial(coef0=math.inf), r"coef0 must be a finite number, got inf"),
        (lambda: Sigmoid(gamma=None), r"gamma must be a finite number >= 0, got None"),
        (lambda: Constant(-1), r"value must be >= 0, got -1"),
        (lambda: RBF() + "one", r"value must be a finite number, got 'one'"),
        (lambda: -2 * RBF(), r"value must be >= 0, got -2"),
        (lambda: Sum(RBF(), 1), r"right must be a kernel, got 1"),
        (lambda: Scaled(2, "rbf"), r"kernel must be a kernel, got 'rbf'"),
        (lambda: CallableKernel("rbf"), r"function must be callable, got 'rbf'"),
    ],
)
def test_bad_parameters_are_named_with_their_value(build, message):
    with pytest.raises(InvalidInputError, match=message):
        build()


def test_one_length_scale_a_column_must_match_the_columns():
    with pytest.raises(InvalidInputError, match="length_scale has 2 entries but X has 3"):
        RBF((1.0, 2.0))(X)


@pytest.mark.parametrize("kernel", [Sobolev(), 2 * Sobolev() + 1, KERNELS["chi2"]])
def test_values_outside_the_domain_are_refused(kernel):
    with pytest.raises(KernelDomainError, match=r"values >= 0.*X holds -0.25"):
        kernel(np.array([[0.5, 0.5, -0.25]]))


@pytest.mark.parametrize("kernel", [Sobolev(), Sobolev() * RBF(), KERNELS["chi2"]])
def test_sparse_rows_are_refused_by_kernels_that_cannot_take_them(kernel):
    with pytest.raises(UnsupportedInputError, match=r"cannot take sparse X: pass X.toarray\(\)"):
        kernel(scipy.sparse.csr_array(X))


def test_kernels_compiled_for_numpy_refuse_other_libraries():
    with pytest.raises(UnsupportedInputError, match="Chi2 kernel takes NumPy arrays only"):
        KERNELS["chi2"](EVERYWHERE["torch"](X))


def test_rows_need_two_dimensions_and_floats():
    with pytest.raises(InvalidInputError, match="X must have two dimensions"):
        RBF()(X[0])
    with pytest.raises(UnsupportedInputError, match="X must be float32 or float64"):
        RBF()(EVERYWHERE["torch"](np.arange(6).reshape(3, 2)))
    with pytest.raises(InvalidInputError, match="same columns, got 3 and 2"):
        RBF()(X, X[:, :2])


@pytest.mark.parametrize("name", sorted(ridgefold.kernels.NAMED_KERNELS))
def test_names_give_kernels_with_scikit_learns_defaults(name):
    kernel = resolve_kernel(name, KernelSettings(), 4)
    assert isinstance(kernel, ridgefold.kernels.NAMED_KERNELS[name][0])
    if name == "rbf":
        assert kernel == RBF(gamma=0.25)
    if name in ("poly", "polynomial"):
        assert kernel == Polynomial(3, gamma=0.25, coef0=1)


def test_kernel_parameters_reach_named_kernels():
    settings = KernelSettings(parameters={"nu": 0.5, "length_scale": (1.0, 2.0)})
    assert resolve_kernel("matern", settings, 2) == Matern((1.0, 2.0), nu=0.5)
    with pytest.raises(InvalidInputError, match=r"kernel_params=\{'nu': 1\} does not suit .*rbf"):
        resolve_kernel("rbf", KernelSettings(parameters={"nu": 1}), 2)


def test_unknown_kernels_are_answered_with_the_known_ones():
    with pytest.raises(InvalidInputError, match=r"kernel must be one of .*rbf.* got 'gauss'"):
        resolve_kernel("gauss", KernelSettings(), 2)
    with pytest.raises(InvalidInputError, match="got 3"):
        resolve_kernel(3, KernelSettings(), 2)


def test_vectorized_callable_must_give_one_value_a_pair():
    kernel = CallableKernel(lambda A, B: np.zeros(3), vectorized=True)
    with pytest.raises(InvalidInputError, match=r"gave shape \(3,\) for 9 × 9 rows"):
        KernelGram(kernel, X).full()


def test_every_public_kernel_is_exported():
    classes = Kernel.__subclasses__()
    for cls in classes:
        classes.extend(cls.__subclasses__())
    inner = [c for c in classes if c.__module__.startswith("ridgefold.kernels.")]
    concrete = {c.__name__ for c in inner if not c.__abstractmethods__ and c.__name__[0] != "_"}
    assert concrete
    assert concrete <= set(ridgefold.kernels.__all__)

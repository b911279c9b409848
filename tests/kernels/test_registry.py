"""Every registered name and every class of kernels: its values, and what follows from them.

Values are compared with `kernel_formulas`, never with the library: a kernel that computes something
else fails here, and so does one without a formula.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

import ridgefold
from cases import rows
from kernel_formulas import EXAMPLES, FORMULAS, NAMED, by_formula, formula
from namespaces import LIBRARIES, to_numpy
from ridgefold import KernelRidge
from ridgefold.errors import UnsupportedInputError
from ridgefold.kernels import (
    NAMED_KERNELS,
    AdditiveChi2,
    CallableKernel,
    Chi2,
    Kernel,
    KernelGram,
    KernelSettings,
    WidthTable,
    resolve_kernel,
)
from ridgefold.kernels.distances import DistanceKernel
from ridgefold.kernels.scale_gradient import DifferentiableGram
from ridgefold.linalg import namespace_of
from ridgefold.metric import FAMILIES

# Some rows are there twice, as many kernels are at their worst where two rows meet.
X = np.vstack([rows(9, 3, seed=3, positive=True), rows(2, 3, seed=3, positive=True)])
Y = np.vstack([rows(7, 3, seed=4, positive=True), X[:2]])
COMPILED = (AdditiveChi2, CallableKernel, Chi2)
"""What they compute with knows NumPy alone."""
UNSAVED = (CallableKernel,)
"""A file holds no functions."""
EVERY = pytest.mark.parametrize("kernel", EXAMPLES.values(), ids=EXAMPLES)
EVERY_NAME = pytest.mark.parametrize("name", NAMED_KERNELS)
WITH_SCALES = {n: k for n, k in EXAMPLES.items() if isinstance(k, DistanceKernel)}


def parts(kernel):
    """The kernel and those that it is made of."""
    held = [v for v in vars(kernel).values() if isinstance(v, Kernel)]
    return [kernel, *itertools.chain.from_iterable(map(parts, held))]


def has(kernel, classes):
    return any(isinstance(part, classes) for part in parts(kernel))


def classes_below(cls):
    return {cls} | {deeper for child in cls.__subclasses__() for deeper in classes_below(child)}


def concrete_classes():
    """All kernels of the library, exported or not, that can be made."""
    return {
        cls
        for cls in classes_below(Kernel)
        if cls.__module__.startswith("ridgefold.")
        and not cls.__abstractmethods__
        and not cls.__name__.startswith("_")
    }


def close(found, expected, dtype=np.float64):
    """Within rounding."""
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(to_numpy(found), expected, rtol=60 * eps, atol=60 * eps)
    return True


# -- that nothing is left out ------------------------------------------------------------


def test_every_registered_name_has_a_formula():
    assert set(NAMED) == set(NAMED_KERNELS)


def test_every_class_has_a_formula_and_an_example():
    assert set(FORMULAS) == concrete_classes()
    assert {type(part) for kernel in EXAMPLES.values() for part in parts(kernel)} == set(FORMULAS)


def test_every_registered_class_is_one_of_these():
    assert {cls for cls, _ in NAMED_KERNELS.values()} <= set(FORMULAS)
    assert {type(kernel) for kernel in FAMILIES.values()} <= set(FORMULAS)


# -- values ------------------------------------------------------------------------------


@EVERY_NAME
@pytest.mark.parametrize(
    ("gamma", "degree", "coef0"), [(0.3, 3, 1.0), (1.7, 2, 0.5), (0.05, 4, 0.0)]
)
def test_a_name_stands_for_its_formula(name, gamma, degree, coef0):
    kernel = resolve_kernel(name, KernelSettings(gamma, degree, coef0), X.shape[1])
    asked = {"gamma": gamma, "degree": degree, "coef0": coef0}
    expected = [[NAMED[name](x, y, **asked) for y in Y.tolist()] for x in X.tolist()]
    assert close(kernel(X, Y), expected)
    # The same object by its class: the two tables of formulas agree.
    assert close(by_formula(kernel, X, Y), expected)


@pytest.mark.parametrize("name", sorted(set(NAMED_KERNELS) & set(PAIRWISE_KERNEL_FUNCTIONS)))
def test_a_name_means_what_scikit_learn_means_by_default(name):
    kernel = resolve_kernel(name, KernelSettings(), X.shape[1])
    assert close(kernel(X, Y), pairwise_kernels(X, Y, metric=name))


@EVERY
@pytest.mark.parametrize("spread", [1e-3, 1.0, 30.0])
def test_values_are_those_of_the_formula_near_and_far(kernel, spread):
    A, B = spread * X, spread * Y
    expected = by_formula(kernel, A, B)
    np.testing.assert_allclose(kernel(A, B), expected, rtol=1e-11, atol=1e-13)


@EVERY
def test_float32_rows_give_float32_values(kernel):
    A, B = X.astype(np.float32), Y.astype(np.float32)
    assert kernel(A, B).dtype == np.float32
    assert close(kernel(A, B), by_formula(kernel, A, B), np.float32)


@EVERY
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_are_the_same_in_every_library(kernel, library, dtype):
    A, B = X.astype(dtype), Y.astype(dtype)
    convert = LIBRARIES[library]
    if has(kernel, COMPILED):
        with pytest.raises(UnsupportedInputError, match="NumPy"):
            kernel(convert(A), convert(B))
        return
    found = kernel(convert(A), convert(B))
    assert type(found) is type(convert(A))
    assert close(found, by_formula(kernel, A, B), dtype)


@EVERY
def test_sparse_rows_give_the_same_values_or_are_refused(kernel):
    A, B = (np.where(each > 0.5, each, 0.0) + 0.0 for each in (X, Y))
    A[:, 0], B[:, 0] = X[:, 0], Y[:, 0]  # no row of zeros
    sparse = scipy.sparse.csr_array(A), scipy.sparse.csr_array(B)
    if not kernel.accepts_sparse:
        with pytest.raises(UnsupportedInputError, match=r"sparse|toarray"):
            kernel(*sparse)
    elif not has(kernel, CallableKernel):  # whose function takes what it takes
        np.testing.assert_allclose(kernel(*sparse), by_formula(kernel, A, B), rtol=1e-12)


@pytest.mark.parametrize("name", NAMED_KERNELS)
def test_wide_rows_whose_triangles_have_a_way_of_their_own(name):
    wide = rows(150, 80, seed=5, positive=True)
    kernel = resolve_kernel(name, KernelSettings(), wide.shape[1])
    lower = KernelGram(kernel, wide).lower()
    some = [(0, 0), (3, 1), (70, 2), (149, 0), (149, 148), (64, 63)]
    expected = [formula(kernel, wide[i].tolist(), wide[j].tolist()) for i, j in some]
    np.testing.assert_allclose([lower[pair] for pair in some], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kernel", WITH_SCALES.values(), ids=WITH_SCALES)
def test_many_widths_at_once_give_the_values_of_each(kernel):
    widths = [0.3, 1.0, 4.0]
    kernels = tuple(replace(kernel, length_scale=width) for width in widths)
    table = WidthTable(kernels, X)
    for index, each in enumerate(kernels):
        out = np.empty((len(X), len(X)))
        table.write_lower(index, out)
        expected = by_formula(each, X, X)
        np.testing.assert_allclose(np.tril(out), np.tril(expected), rtol=1e-12, atol=1e-7)


# -- what a matrix of a kernel is ---------------------------------------------------------


@EVERY
def test_the_matrix_is_symmetric_and_its_diagonal_is_known(kernel):
    K = kernel(X)
    np.testing.assert_allclose(K, K.T, rtol=1e-14)
    expected = [formula(kernel, x, x) for x in X.tolist()]
    np.testing.assert_allclose(np.diag(K), expected, rtol=1e-14)
    diagonal = kernel.diagonal(namespace_of(X), X)
    np.testing.assert_allclose(diagonal, expected, rtol=1e-14)
    np.testing.assert_allclose(KernelGram(kernel, X).diagonal(), expected, rtol=1e-14)


@EVERY
def test_blocks_are_parts_of_the_whole(kernel):
    gram = KernelGram(kernel, X, Y)
    whole = gram.full()
    some = np.array([7, 0, 3])
    for left, right in itertools.product((slice(2, 9), some), repeat=2):
        right = right if isinstance(right, np.ndarray) else slice(1, 6)  # noqa: PLW2901
        expected = whole[left][:, right]
        np.testing.assert_allclose(gram.block(left, right), expected, rtol=1e-12, atol=1e-14)
    own = KernelGram(kernel, X)
    lower, expected = own.lower(some), own.full()[np.ix_(some, some)]
    np.testing.assert_allclose(np.tril(lower), np.tril(expected), rtol=1e-12, atol=1e-14)


@EVERY
@pytest.mark.parametrize("seed", range(4))
def test_what_is_called_positive_semi_definite_is_so(kernel, seed):
    A = rows(25, 3, seed=seed, positive=True)
    A[20:] = A[:5]
    values = np.linalg.eigvalsh(by_formula(kernel, A, A))
    computed = np.linalg.eigvalsh(kernel(A))
    if kernel.semidefinite:
        slack = 1e-12 * len(A) * values.max()
        assert values.min() >= -slack
        assert computed.min() >= -1e-6 * values.max()


@pytest.mark.parametrize("name", ["sigmoid", "additive chi2", "callable"])
def test_what_is_not_known_to_be_semi_definite_does_not_say_so(name):
    assert not EXAMPLES[name].semidefinite
    assert not (EXAMPLES["rbf"] + EXAMPLES[name]).semidefinite


@EVERY
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_finite_features_have_the_kernel_as_their_products(kernel, library):
    namespace_rows = [np.array(A) if library == "numpy" else LIBRARIES["torch"](A) for A in (X, Y)]
    namespace = namespace_of(namespace_rows[0])
    width = kernel.feature_dimension(3)
    if width is None:
        with pytest.raises(UnsupportedInputError, match="no finite feature space"):
            kernel.features(namespace, namespace_rows[0])
        return
    left, right = (to_numpy(kernel.features(namespace, A)) for A in namespace_rows)
    assert left.shape == (len(X), width)
    np.testing.assert_allclose(left @ right.T, by_formula(kernel, X, Y), rtol=1e-12)


# -- derivatives ---------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", WITH_SCALES.values(), ids=WITH_SCALES)
def test_gradients_in_the_length_scales_are_those_of_differences(kernel):
    distinct = X[:9]  # at distance zero Matérn 1/2 has no derivative
    rng = np.random.default_rng(0)
    M, left = rng.standard_normal((9, 9)), rng.standard_normal((9, 2))
    M += M.T
    gram = DifferentiableGram(distinct)
    scales = np.broadcast_to(kernel.length_scale, 3).astype(float)
    kernel = replace(kernel, length_scale=tuple(scales))
    if type(kernel) not in {type(family) for family in FAMILIES.values()}:
        with pytest.raises(UnsupportedInputError, match="does not define its slope"):
            gram.evaluate(kernel)
        return
    values = np.tril(gram.evaluate(kernel))
    np.testing.assert_allclose(values, np.tril(by_formula(kernel, distinct, distinct)), rtol=1e-12)
    found = gram.contract(np.tril(M), left, left)
    weights, step = M + left @ left.T, 1e-5

    def objective(logarithms):
        moved = replace(kernel, length_scale=tuple(np.exp(logarithms)))
        return float(np.sum(weights * by_formula(moved, distinct, distinct)))

    at = np.log(scales)
    expected = [
        (objective(at + step * e) - objective(at - step * e)) / (2 * step) for e in np.eye(3)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_kernel_whose_scales_are_learned_has_gradients(family):
    assert any(type(family) is type(kernel) for kernel in WITH_SCALES.values())
    values = DifferentiableGram(X).evaluate(family)
    np.testing.assert_allclose(np.tril(values), np.tril(by_formula(family, X, X)), atol=1e-7)


# -- files ----------------------------------------------------------------------------------


@EVERY
def test_a_kernel_that_was_saved_has_the_same_values(kernel, tmp_path):
    y = X @ [1.0, -2.0, 0.5]
    model = KernelRidge(100.0, kernel=kernel).fit(X, y)
    path = tmp_path / "model.ridgefold"
    if has(kernel, UNSAVED):
        with pytest.raises(UnsupportedInputError, match="kernel"):
            model.save(path)
        return
    model.save(path)
    loaded = ridgefold.load(path)
    assert loaded.kernel == kernel
    np.testing.assert_array_equal(loaded.kernel(X, Y), kernel(X, Y))
    np.testing.assert_array_equal(loaded.predict(Y), model.predict(Y))
    # And what predictions are made of is the formula.
    expected = by_formula(kernel, Y, X) @ np.asarray(model.dual_coef_)
    scale = math.fsum(np.abs(model.dual_coef_)) * float(np.max(np.abs(by_formula(kernel, Y, X))))
    np.testing.assert_allclose(model.predict(Y), expected, atol=1e-12 * scale)


@EVERY
def test_kernels_are_values(kernel):
    assert kernel == replace(kernel)
    assert hash(kernel) == hash(replace(kernel))
    assert kernel != kernel + 1

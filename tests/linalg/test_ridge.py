"""Ridge systems with a bias: what is regular is solved twice, what is singular is centred."""

from __future__ import annotations

import numpy as np
import pytest

from cases import bordered, least_squares, rows, symmetric_matrix
from namespaces import LIBRARIES, to_numpy
from ridgefold.linalg import namespace_of, numpy_namespace
from ridgefold.linalg.leave_one_out import leave_one_out
from ridgefold.linalg.ridge import factorise_ridge, solve_ridge
from ridgefold.linalg.symmetric import CholeskyFactor, SpectralFactor
from ridgefold.linalg.unpenalised import bias_only

CONVERTERS = {"numpy": np.array, **LIBRARIES}
N = 40
FEATURES = rows(N, 3)
"""Of a kernel of rank three, in whose range there is no constant."""
Y = FEATURES @ rows(3, 2, seed=1) + [5.0, -2.0] + 0.3 * rows(N, 2, seed=2)
WEIGHTS = np.random.default_rng(3).uniform(0.3, 2.0, N)
# Rounding error of the features themselves, times how much a row may pull.
TOLERANCE = {np.float64: 1e-11, np.float32: 1e-4}


class System:
    """K̃, ỹ and s of a kernel matrix, its targets and weights, in one library and precision."""

    def __init__(self, K, y, weights=None, convert=np.array, dtype=np.float64):
        root = np.ones(len(K)) if weights is None else np.sqrt(weights)
        self.matrix = convert((K * np.outer(root, root)).astype(dtype))
        self.targets = convert((y * root[:, None]).astype(dtype))
        root = convert(root.astype(dtype))
        self.root, self.roots = root, None if weights is None else root
        self.namespace = namespace_of(self.matrix)
        self.space = bias_only(self.namespace, root)

    def write(self, out):
        out[...] = self.matrix

    def factorise(self, alpha):
        return factorise_ridge(self.namespace, self.write, self.targets, alpha, self.space)

    def solve(self, alpha):
        """a and b."""
        found = solve_ridge(self.namespace, self.write, self.targets, alpha, self.space)
        return self.unweighted(*found)

    def leave_one_out(self, alpha):
        """a, b and the residuals."""
        settings = {"space": self.space, "roots": self.roots}
        found = leave_one_out(self.namespace, self.write, self.targets, alpha, **settings)
        return *self.unweighted(found.coefficients, found.unpenalised), to_numpy(found.residuals)

    def unweighted(self, coefficients, unpenalised):
        return to_numpy(coefficients) * to_numpy(self.root)[:, None], to_numpy(unpenalised)[0]


@pytest.mark.parametrize("convert", CONVERTERS.values(), ids=CONVERTERS)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("alpha", [1e-15, 1e-30])
def test_a_ridge_below_rounding_gives_least_squares_with_an_intercept(
    convert, dtype, weights, alpha
):
    system = System(FEATURES @ FEATURES.T, Y, weights, convert, dtype)
    slopes, intercept = least_squares(FEATURES, Y, weights)
    for a, b, *_ in (system.solve(alpha), system.leave_one_out(alpha)):
        assert a.dtype == b.dtype == dtype
        np.testing.assert_allclose(FEATURES.T @ a, slopes, rtol=0, atol=TOLERANCE[dtype])
        np.testing.assert_allclose(b, intercept, rtol=0, atol=TOLERANCE[dtype])
        np.testing.assert_allclose(a.sum(axis=0), 0.0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("convert", CONVERTERS.values(), ids=CONVERTERS)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_residuals_of_singular_systems_are_those_of_least_squares_without_the_row(
    convert, dtype, weights
):
    expected = np.empty_like(Y)
    for i in range(N):
        rest = np.delete(np.arange(N), i)
        some = None if weights is None else weights[rest]
        slopes, intercept = least_squares(FEATURES[rest], Y[rest], some)
        expected[i] = Y[i] - FEATURES[i] @ slopes - intercept
    system = System(FEATURES @ FEATURES.T, Y, weights, convert, dtype)
    *_, residuals = system.leave_one_out(1e-15)
    np.testing.assert_allclose(residuals, expected, rtol=0, atol=TOLERANCE[dtype])


def test_a_matrix_that_is_singular_along_the_bias_alone_is_regular_once_centred():
    P = np.eye(N) - 1.0 / N
    K = P @ symmetric_matrix(N, 10.0) @ P
    system = System(K, Y)
    factor, centring = system.factorise(1e-17)
    assert isinstance(factor, CholeskyFactor)
    assert centring is not None
    expected = np.linalg.solve(bordered(K, 0.0), np.vstack([np.zeros((1, 2)), Y]))
    a, b, residuals = system.leave_one_out(1e-17)
    np.testing.assert_allclose(a, expected[1:], rtol=0, atol=1e-11)
    np.testing.assert_allclose(b, expected[0], rtol=0, atol=1e-11)
    inverse = np.linalg.inv(bordered(K, 0.0))[1:, 1:]
    expected = inverse @ Y / np.diag(inverse)[:, None]
    np.testing.assert_allclose(residuals, expected, rtol=0, atol=1e-11)


def test_indefinite_systems_are_solved_with_their_border():
    K = FEATURES @ FEATURES.T - 2.0 * np.eye(N)
    system = System(K, Y)
    factor, _ = system.factorise(0.5)
    assert isinstance(factor, SpectralFactor)
    inverse = np.linalg.inv(bordered(K, 0.5))
    a, b, residuals = system.leave_one_out(0.5)
    np.testing.assert_allclose(a, inverse[1:, 1:] @ Y, rtol=0, atol=1e-11)
    np.testing.assert_allclose(b, inverse[0, 1:] @ Y, rtol=0, atol=1e-11)
    np.testing.assert_allclose(residuals, a / np.diag(inverse)[1:, None], rtol=0, atol=1e-11)


def test_regular_systems_are_not_centred_nor_written_twice():
    written = []
    K = symmetric_matrix(N, 1e6)

    def write(out):
        written.append(out)
        out[...] = K

    factor, centring = factorise_ridge(numpy_namespace(), write, Y, 1e-3, np.ones(N))
    assert isinstance(factor, CholeskyFactor)
    assert centring is None
    assert len(written) == 1

"""Variances, likelihoods and weights of targets are those of the textbook's dense formulas."""

from __future__ import annotations

import numpy as np
import pytest

from cases import rows, targets
from ridgefold.errors import NumericalError, SingularSystemWarning
from ridgefold.exact.diagnostics import row_diagnostics
from ridgefold.exact.likelihood import spectrum
from ridgefold.exact.posterior import posterior, prior_variance
from ridgefold.kernels import RBF, KernelGram, Sigmoid

KERNEL, ALPHA, N = RBF(1.5), 0.3, 40
X, NEW = rows(N), rows(9, seed=7)
Y = targets(X, 2)
WEIGHTS = np.random.default_rng(3).random(N) + 0.3
NONE, ONES = np.empty((N, 0)), np.ones((N, 1))
BASES = {
    "nothing": lambda Z: np.empty((len(Z), 0)),
    "a bias": lambda Z: np.ones((len(Z), 1)),
    "a trend": lambda Z: np.column_stack([np.ones(len(Z)), Z[:, :2]]),
}
CASES = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
COLUMNS = pytest.mark.parametrize("basis", BASES.values(), ids=list(BASES))


class Dense:
    """Everything by inverses."""

    def __init__(self, basis, weights):
        w = np.ones(N) if weights is None else weights
        F, self.w, self.q = basis(X), w, basis(X).shape[1]
        self.A = KERNEL(X) + ALPHA * np.diag(1 / w)
        self.H = H = np.linalg.inv(self.A)
        self.G = np.linalg.inv(F.T @ H @ F)
        self.C = H - H @ F @ self.G @ F.T @ H
        self.F = F

    def log_likelihood(self, variance=None):
        forms, free = np.einsum("it,ij,jt->t", Y, self.C, Y), N - self.q
        s2 = forms / free if variance is None else variance
        logs = [
            np.linalg.slogdet(a)[1] for a in (self.A, self.F.T @ self.H @ self.F, self.F.T @ self.F)
        ]
        whole = logs[0] + logs[1] - logs[2]
        return -0.5 * (free * np.log(2 * np.pi * s2) + whole + forms / s2)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


@CASES
@COLUMNS
def test_variances_and_weights_of_values_are_those_of_universal_kriging(basis, weights):
    dense = Dense(basis, weights)
    found = posterior(KernelGram(KERNEL, X), ALPHA, weights, basis(X))
    k, phi = KERNEL(NEW, X).T, basis(NEW).T
    u = phi - dense.F.T @ dense.H @ k
    expected = KERNEL(NEW) - k.T @ dense.H @ k + u.T @ dense.G @ u
    close(found.covariance(KERNEL(NEW), k, phi), expected)
    close(found.variances(np.ones(len(NEW)), k, phi), np.diagonal(expected))
    close(found.weights_of_targets(k, phi), dense.C @ k + dense.H @ dense.F @ dense.G @ phi)
    close(prior_variance(found, Y), np.einsum("it,ij,jt->t", Y, dense.C, Y) / (N - dense.q))


@CASES
@COLUMNS
def test_one_decomposition_gives_the_restricted_likelihood_of_every_ridge(basis, weights):
    found = spectrum(KernelGram(KERNEL, X), Y, weights, basis(X))
    alphas = np.array([0.01, ALPHA, 10.0])
    dense = Dense(basis, weights)
    close(found.log_likelihoods(alphas, None)[1], dense.log_likelihood())
    given = np.array([0.5, 2.0])
    close(found.log_likelihoods(alphas, given)[1], dense.log_likelihood(given))


@CASES
@COLUMNS
def test_the_smoother_s_diagonals_are_those_of_its_matrix(basis, weights):
    dense = Dense(basis, weights)
    found = posterior(KernelGram(KERNEL, X), ALPHA, weights, basis(X))
    roots = np.sqrt(dense.w)
    C = dense.C / roots[:, None] / roots[None, :]
    close(found.diagonal, np.diagonal(C))
    close(found.inverse(), C)
    close(found.free, ALPHA * np.trace(C))
    close(found.dual(Y), C @ (Y * roots[:, None]))
    every = row_diagnostics(found, Y)
    smoother = np.eye(N) - ALPHA * dense.C / dense.w[:, None]
    close(every.leverage, np.diagonal(smoother))
    close(every.residuals, Y - smoother @ Y)
    close(every.degrees_of_freedom, np.trace(smoother))


def test_a_system_without_digits_is_refused_where_a_bias_would_be_lost_in_rounding():
    twice = np.concatenate([X, X])
    gram = KernelGram(RBF(30.0), twice)
    with pytest.raises(NumericalError, match="larger alpha"):
        posterior(gram, 1e-18, None, np.ones((2 * N, 1)))
    with pytest.warns(SingularSystemWarning):
        found = posterior(gram, 1e-18, None, np.empty((2 * N, 0)))
    k = RBF(30.0)(X, twice).T
    unit = found.variances(np.ones(N), k, np.empty((0, N)))
    assert np.all(unit < 1e-6)
    with pytest.raises(NumericalError, match="likelihood"):
        spectrum(gram, np.ones((2 * N, 1)), None, np.empty((2 * N, 0))).log_likelihoods(
            np.array([1e-18]), None
        )


def test_what_is_no_covariance_is_refused():
    gram = KernelGram(Sigmoid(2.0, -3.0), X)
    with pytest.raises(NumericalError, match="semi-definite"):
        posterior(gram, 1e-3, None, np.empty((N, 0)))


def test_columns_that_depend_on_one_another_are_refused():
    twice = np.column_stack([ONES, ONES])
    with pytest.raises(NumericalError, match="depend on one another"):
        spectrum(KernelGram(KERNEL, X), Y, None, twice)
    with pytest.raises(NumericalError, match="depend on one another"):
        posterior(KernelGram(KERNEL, X), ALPHA, None, np.column_stack([twice, X[:, 0]]))


def test_as_many_columns_as_rows_leave_nothing_to_tell_a_variance_from():
    few = X[:2]
    basis = np.column_stack([np.ones(2), few[:, 0]])
    found = posterior(KernelGram(KERNEL, few), ALPHA, None, basis)
    with pytest.raises(NumericalError, match="more rows"):
        prior_variance(found, Y[:2])
    with pytest.raises(NumericalError, match="more rows"):
        spectrum(KernelGram(KERNEL, few), Y[:2], None, basis)

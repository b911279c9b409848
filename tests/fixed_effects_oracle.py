"""Models with unpenalised columns, written as the bordered system, without the library."""

from __future__ import annotations

import numpy as np


def bordered_fit(K, F, y, alpha, weights=None):
    """a (n, t) and β (q, t) of (K + α W⁻¹) a + F β = y with Fᵀa = 0; F of full rank."""
    n, q = F.shape
    w = np.ones(n) if weights is None else weights
    matrix = np.zeros((n + q, n + q))
    matrix[:n, :n] = K + alpha * np.diag(1.0 / w)
    matrix[:n, n:], matrix[n:, :n] = F, F.T
    solution = np.linalg.solve(matrix, np.vstack([y, np.zeros((q, y.shape[1]))]))
    return solution[:n], solution[n:]


def bordered_predictions(K, F, y, alpha, train, test, weights=None):  # noqa: PLR0917
    """Predictions for rows `test` by the model of the rows `train` that have weight."""
    w = np.ones(len(K)) if weights is None else weights
    train = np.asarray(train)[w[train] > 0]
    a, beta = bordered_fit(K[np.ix_(train, train)], F[train], y[train], alpha, w[train])
    return K[np.ix_(test, train)] @ a + F[test] @ beta


def generalised_least_squares(K, F, y, alpha, weights=None):
    """β and its covariance from V = K + α W⁻¹ as the mixed-model textbooks have them.

    Of one target; the variance is estimated by restricted maximum likelihood.
    """
    n, q = F.shape
    w = np.ones(n) if weights is None else weights
    inverse = np.linalg.inv(K + alpha * np.diag(1.0 / w))
    spread = np.linalg.inv(F.T @ inverse @ F)
    beta = spread @ F.T @ inverse @ y
    left = y - F @ beta
    variance = float(left @ inverse @ left) / (n - q)
    return beta, variance * spread

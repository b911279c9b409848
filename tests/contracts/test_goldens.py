"""Ill-conditioned cases against 50-digit arithmetic: refits in float64 are no oracle there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import mpmath
import numpy as np
import pytest

from contracts.oracle import Case, attempt, disagreements
from ridgefold.crossval import METHODS, make_folds
from ridgefold.kernels import RBF, Kernel, Polynomial

DIGITS = 50
N = 11


def rbf(width):
    return lambda x, z: mpmath.exp(
        -sum((a - b) ** 2 for a, b in zip(x, z, strict=True)) / (2 * mpmath.mpf(width) ** 2)
    )


def polynomial(degree):
    return lambda x, z: (sum(a * b for a, b in zip(x, z, strict=True)) + 1) ** degree


@dataclass(frozen=True)
class Golden:
    kernel: Kernel | str
    formula: object
    columns: int
    relative_alphas: tuple[float, ...]
    bias: bool = False
    weighted: bool = False


GOLDENS = {
    "wide rbf": Golden(RBF(3.0), rbf(3.0), 1, (1e-6, 1e-9, 1e-12)),
    "wide rbf, bias": Golden(RBF(3.0), rbf(3.0), 2, (1e-6, 1e-9, 1e-12), bias=True),
    "wide rbf, weights": Golden(RBF(2.0), rbf(2.0), 1, (1e-8, 1e-11), weighted=True),
    "narrow rbf": Golden(RBF(0.1), rbf(0.1), 1, (1e-2, 1e-6, 1e-12)),
    "narrow rbf, bias and weights": Golden(
        RBF(0.2), rbf(0.2), 2, (1e-3, 1e-10), bias=True, weighted=True
    ),
    # Widths of a hundredth of the rows' spread lose digits when the kernel is evaluated, which
    # no solver can mend: given as numbers.
    "very narrow rbf": Golden("precomputed", rbf(0.01), 1, (1e-2, 1e-12), bias=True),
    "polynomial": Golden(Polynomial(5, gamma=1.0), polynomial(5), 2, (1e-7, 1e-10, 1e-13)),
    "polynomial, bias": Golden(Polynomial(7, gamma=1.0), polynomial(7), 1, (1e-8, 1e-12), True),
}
FOLDS = {
    "leave-one-out": [[i] for i in range(N)],
    "3 folds": [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8]],
    "overlapping": [[0, 1, 2], [2, 3], [9, 4, 7, 1]],
}


def case_of(golden: Golden, folds: str) -> Case:
    generator = np.random.default_rng(5)
    X = generator.random((N, golden.columns))
    y = np.sin(4 * X.sum(axis=1, keepdims=True)) + generator.standard_normal((N, 2))
    splits = [(np.setdiff1d(np.arange(N), test), np.asarray(test)) for test in FOLDS[folds]]
    with mpmath.workdps(DIGITS):
        exact = [[golden.formula(x, z) for z in _exact(X)] for x in _exact(X)]
    K = np.array([[float(entry) for entry in row] for row in exact])
    alphas = np.linalg.eigvalsh(K)[-1] * np.asarray(golden.relative_alphas)
    weights = generator.uniform(0.5, 2.0, N) if golden.weighted else None
    return Case(
        X,
        K,
        y,
        make_folds(splits, N),
        weights,
        alphas,
        golden.bias,
        np.dtype(np.float64),
        golden.kernel,
    )


def _exact(X):
    return [[mpmath.mpf(float(entry)) for entry in row] for row in X]


@cache
def fifty_digits(name: str, folds: str) -> np.ndarray:
    """Held-out predictions, every operation in 50 digits from the rows as they are."""
    golden = GOLDENS[name]
    case = case_of(golden, folds)
    weights = np.ones(N) if case.weights is None else case.weights
    out = np.empty((len(case.alphas), len(case.folds.stacked), 2))
    with mpmath.workdps(DIGITS):
        rows = _exact(case.X)
        K = [[golden.formula(x, z) for z in rows] for x in rows]
        if golden.kernel == "precomputed":
            K = _exact(case.K)
        for j, alpha in enumerate(case.alphas):
            for k, run_of_fold in enumerate(case.folds.runs):
                train = case.folds.training_rows(k).tolist()
                m, border = len(train), int(case.bias)
                A = mpmath.zeros(m + border)
                for p, i in enumerate(train):
                    for q, h in enumerate(train):
                        A[p, q] = K[i][h]
                    A[p, p] += mpmath.mpf(float(alpha)) / mpmath.mpf(float(weights[i]))
                    if border:
                        A[p, m] = A[m, p] = 1
                for target in range(2):
                    right = [mpmath.mpf(float(case.y[i, target])) for i in train] + [0] * border
                    a = mpmath.lu_solve(A, mpmath.matrix(right))
                    for row, test in zip(
                        range(run_of_fold.start, run_of_fold.stop), case.folds.test[k], strict=True
                    ):
                        value = sum(K[test][i] * a[p] for p, i in enumerate(train))
                        out[j, row, target] = float(value + (a[m] if border else 0))
    return out


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("folds", FOLDS)
@pytest.mark.parametrize("name", GOLDENS)
def test_every_method_is_as_close_to_fifty_digits_as_promised(name, folds, method):
    case = case_of(GOLDENS[name], folds)
    result = attempt(method, case)
    if result is not None:
        expected = fifty_digits(name, folds)
        assert disagreements(method, case, result, result.predictions, expected) == []


def test_the_arithmetic_itself_reproduces_a_model_without_ridge():
    """With one training row and no bias, the prediction is k(x, z)·y/(k(x, x) + alpha)."""
    golden = replace(GOLDENS["wide rbf"])
    X = np.array([[0.25], [0.75]])
    with mpmath.workdps(DIGITS):
        value = golden.formula(*_exact(X))
    assert abs(float(value) - np.exp(-0.25 / 18)) < 1e-16

"""Kernels that are not positive semi-definite: exact methods solve the system all the same."""

from __future__ import annotations

import numpy as np
import pytest

from cases import condition, rows, targets
from contracts.oracle import Case, Setting, attempt, disagreements, make_case, refits
from ridgefold import KernelRidge
from ridgefold.crossval import METHODS, make_folds
from ridgefold.kernels import RBF, Linear, Polynomial, Sigmoid
from ridgefold.linalg import namespace_of
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.describe import describe

FOLDS = make_folds([(np.arange(10, 30), np.arange(10)), (np.arange(20), np.arange(20, 30))], 30)

MATRICES = {
    "sigmoid": lambda X: np.tanh(2.0 * X @ X.T - 0.7),
    "negative squared distance": lambda X: -np.sum((X[:, None] - X[None]) ** 2, axis=2),
    "negative diagonal": lambda X: X @ X.T - 2.0 * np.eye(len(X)),
}


class Indefinite(Case):
    def tolerance(self, j: int, expected: np.ndarray) -> float:
        """As for other kernels, but a part of an indefinite matrix may be worse conditioned
        than the whole: the condition number is that of the worst fold's own system."""
        whole, roots = self.weighted_kernel(), np.sqrt(self.weights)
        parts = [whole]
        for k in range(len(self.folds)):
            train = self.folds.training_rows(k)
            parts.append(self.K[np.ix_(train, train)] * np.outer(roots[train], roots[train]))
        n = len(whole)
        worst = max(condition(part + self.alphas[j] * np.eye(len(part))) for part in parts)
        return 10.0 * (n + worst) * float(np.finfo(self.dtype).eps) * float(np.abs(expected).max())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("folds", ["3", "10", "leave-one-out", "repeated, 8", "nested"])
@pytest.mark.parametrize("matrix", MATRICES)
def test_exact_methods_agree_with_refitting_on_indefinite_kernels(matrix, folds, bias, method):
    case = make_case(
        Setting("precomputed", folds, bias, "random", 2, "float64", "numpy", "ordinary")
    )
    case = Indefinite(
        **{**vars(case), "K": MATRICES[matrix](case.X), "alphas": np.array([0.05, 0.7])}
    )
    result = attempt(method, case)
    if result is not None:
        wrong = disagreements(method, case, result, result.predictions, refits(case))
        assert wrong == []


@pytest.mark.parametrize(
    ("kernel", "known"),
    [
        ("rbf", True),
        ("sobolev", True),
        ("polynomial", True),
        (Polynomial(1.5, coef0=1.0), False),
        (Polynomial(2, coef0=-1.0), False),
        ("sigmoid", False),
        ("additive_chi2", False),
        (RBF(1.0) + Sigmoid(1.0), False),
        (2.0 * Sigmoid(1.0), False),
        (2.0 * RBF(1.0) * Linear(), True),
        pytest.param(lambda x, z: float(x @ z), False, id="a function"),
    ],
    ids=str,
)
def test_only_methods_that_need_no_bound_take_kernels_of_unknown_sign(kernel, known):
    X, y = rows(30, positive=True), targets(rows(30))
    model = KernelRidge(kernel=kernel)
    data = TrainingData(namespace_of(X), X, y, None)
    problem = describe(data, y[:, None], model._gram(X), np.ones(1), bias=False, folds=FOLDS)
    assert problem.semidefinite is known
    for method in METHODS.values():
        reason = method.can_run(problem)
        assert (reason is not None and "semi-definite" in reason) == (
            not known and not method.exact
        )

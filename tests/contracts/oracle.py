"""Plain refits, written without the library, and the cases that every method must agree on."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
)

from cases import tolerance
from ridgefold.crossval import METHODS, Folds, HeldOut, make_folds
from ridgefold.errors import ConditionWarning, MethodGaveUpError
from ridgefold.kernels import (
    RBF,
    Kernel,
    KernelGram,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    PrecomputedGram,
    Sobolev,
)
from ridgefold.linalg import namespace_of
from ridgefold.records import Problem
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.describe import describe

N_ROWS, N_COLUMNS = 29, 3

# -- kernels, each beside its formula ----------------------------------------------------


def _differences(X: np.ndarray) -> np.ndarray:
    return X[:, None, :] - X[None, :, :]


def _rbf(X: np.ndarray, width: float) -> np.ndarray:
    return np.exp(-np.sum(_differences(X) ** 2, axis=2) / (2 * width**2))


def _matern(X: np.ndarray, width: float) -> np.ndarray:
    r = np.sqrt(3 * np.sum(_differences(X) ** 2, axis=2)) / width
    return (1 + r) * np.exp(-r)


KERNELS: dict[str, tuple[Kernel | str, Callable[[np.ndarray], np.ndarray]]] = {
    "rbf": (RBF(0.6), lambda X: _rbf(X, 0.6)),
    "matern": (Matern(1.1, nu=1.5), lambda X: _matern(X, 1.1)),
    "laplacian": (
        Laplacian(0.9),
        lambda X: np.exp(-np.sum(np.abs(_differences(X)), axis=2) / 0.9),
    ),
    "polynomial": (Polynomial(3, gamma=0.5), lambda X: (0.5 * X @ X.T + 1) ** 3),
    "linear": (Linear(), lambda X: X @ X.T),
    "sobolev": (
        Sobolev(),
        lambda X: np.prod(1 + np.minimum(X[:, None, :], X[None, :, :]), axis=2),
    ),
    "sum": (RBF(0.8) + 1, lambda X: _rbf(X, 0.8) + 1),
    "product": (
        0.5 * Matern(1.3, nu=1.5) * Linear() + 2.0,
        lambda X: 0.5 * _matern(X, 1.3) * (X @ X.T) + 2.0,
    ),
    "precomputed": ("precomputed", lambda X: _rbf(X, 1.5)),
}

# -- folds -------------------------------------------------------------------------------

Splits = list[tuple[np.ndarray, np.ndarray]]


def _complements(tests: list[Any], n: int = N_ROWS) -> Splits:
    return [(np.setdiff1d(np.arange(n), test), np.asarray(test)) for test in tests]


def _split(splitter: Any, y: Any = None, groups: Any = None) -> Splits:
    return list(splitter.split(np.empty((N_ROWS, 1)), y, groups))


_ORDER = np.random.default_rng(11).permutation(N_ROWS)
_LABELS = np.random.default_rng(12).integers(0, 3, N_ROWS)
_GROUPS = np.random.default_rng(13).integers(0, 9, N_ROWS)

FOLDS: dict[str, Splits] = {
    "2": _split(KFold(2)),
    "3": _split(KFold(3)),
    "5": _split(KFold(5)),
    "10": _split(KFold(10)),
    "leave-one-out": _complements([[i] for i in range(N_ROWS)]),
    "leave-one-out, some rows, backwards": _complements([[i] for i in range(N_ROWS - 1, 4, -2)]),
    "leave-one-out, some rows twice": _complements([[i % N_ROWS] for i in range(N_ROWS + 5)]),
    "shuffled": _split(KFold(5, shuffle=True, random_state=0)),
    "shuffled, 9": _split(KFold(9, shuffle=True, random_state=0)),
    "repeated": _split(RepeatedKFold(n_splits=4, n_repeats=2, random_state=0)),
    "repeated, 8": _split(RepeatedKFold(n_splits=8, n_repeats=2, random_state=0)),
    "groups": _split(GroupKFold(4), groups=_GROUPS),
    "stratified": _split(StratifiedKFold(4), _LABELS),
    "random splits": _split(ShuffleSplit(4, test_size=0.3, random_state=0)),
    "many small random splits": _split(ShuffleSplit(9, test_size=0.1, random_state=0)),
    "rows never tested": _complements([_ORDER[:6], _ORDER[6:9], _ORDER[9:17]]),
    "one fold": _complements([_ORDER[:7]]),
    "one large fold": _complements([_ORDER[:23]]),
    "given": _complements(
        [
            _ORDER[:1],
            _ORDER[1:12],
            _ORDER[12:14],
            _ORDER[14:15],
            _ORDER[15:18],
            *_ORDER[18:22, None],
        ]
    ),
    "nested": _complements([_ORDER[:4], _ORDER[:9], _ORDER[2:16], _ORDER[5:6]]),
}

# -- the rest ----------------------------------------------------------------------------


def _some_zeros() -> np.ndarray:
    generator = np.random.default_rng(22)
    weights = generator.uniform(0.2, 2.0, N_ROWS)
    weights[generator.permutation(N_ROWS)[:7]] = 0.0
    return weights


def weights_of(kind: str, folds: Folds) -> np.ndarray | None:
    if kind == "none":
        return None
    generator = np.random.default_rng(21)
    if kind == "random":
        return generator.uniform(0.2, 2.0, N_ROWS)
    if kind == "over 24 decades":
        return 10.0 ** generator.uniform(-24.0, 0.0, N_ROWS)
    if kind == "falling by 20 decades":
        return 10.0 ** (-20.0 * np.arange(N_ROWS) / N_ROWS)
    if kind == "nearly all on one row":
        return np.where(np.arange(N_ROWS) == 3, 1.0, 1e-12 * generator.uniform(0.2, 2.0, N_ROWS))
    weights = _some_zeros()
    if kind == "a fold of zeros":
        weights = np.where(weights > 0, weights, 1.0)
        weights[folds.test[0]] = 0.0
    return weights


UNLIKE_WEIGHTS = ("over 24 decades", "falling by 20 decades", "nearly all on one row")
WEIGHTS = ("none", "random", "zeros", "a fold of zeros", *UNLIKE_WEIGHTS)
ALPHAS: dict[str, Callable[[float], np.ndarray]] = {
    "ordinary": lambda largest: np.array([0.01, 0.3, 10.0]),
    "tiny": lambda largest: largest * np.array([1e-8, 1e-10]),
}
DTYPES = ("float64", "float32")


@dataclass(frozen=True)
class Setting:
    """Everything but the method."""

    kernel: str
    folds: str
    bias: bool
    weights: str
    targets: int
    dtype: str
    library: str
    alphas: str

    def __str__(self) -> str:
        bias = "bias" if self.bias else "no bias"
        return (
            f"{self.kernel}-{self.folds}-{bias}-weights {self.weights}-{self.targets} targets-"
            f"{self.dtype}-{self.library}-{self.alphas}"
        )


def axes(libraries: list[str]) -> dict[str, list[Any]]:
    return {
        "kernel": list(KERNELS),
        "folds": list(FOLDS),
        "bias": [False, True],
        "weights": list(WEIGHTS),
        "targets": [1, 3],
        "dtype": list(DTYPES),
        "library": libraries,
        "alphas": list(ALPHAS),
    }


@dataclass(frozen=True)
class Case:
    """Numbers of a setting, and what plain refits make of them."""

    X: np.ndarray
    K: np.ndarray
    """In float64, of the rows as they are in the case's dtype."""
    y: np.ndarray
    folds: Folds
    weights: np.ndarray | None
    alphas: np.ndarray
    bias: bool
    dtype: Any
    kernel: Kernel | str

    @property
    def solvable(self) -> bool:
        """True if every fold has rows of positive weight to train on."""
        w = np.ones(len(self.K)) if self.weights is None else self.weights
        return all(np.any(w[self.folds.training_rows(k)] > 0) for k in range(len(self.folds)))

    def weighted_kernel(self) -> np.ndarray:
        """W^½KW^½ over the rows of positive weight: the matrix that is solved with."""
        if self.weights is None:
            return self.K
        kept = self.weights > 0
        roots = np.sqrt(self.weights[kept])
        return self.K[np.ix_(kept, kept)] * np.outer(roots, roots)

    def tolerance(self, j: int, expected: np.ndarray) -> float:
        """The promise: 10(n + cond)·eps·max|ŷ|.

        With weights the system is W^½KW^½ + alpha·I, so that is whose condition counts; a
        fold's own matrix is a part of it, and its condition number no larger.
        """
        return tolerance(self.weighted_kernel(), self.alphas[j], expected, self.dtype)


def make_case(setting: Setting, seed: int = 0) -> Case:
    generator = np.random.default_rng(seed)
    X = generator.random((N_ROWS, N_COLUMNS)).astype(setting.dtype)
    kernel, formula = KERNELS[setting.kernel]
    K = formula(X.astype(np.float64))
    if kernel == "precomputed":
        K = K.astype(setting.dtype).astype(np.float64)
    frequencies = np.arange(1, setting.targets + 1)
    y = np.sin(3 * X.sum(axis=1, keepdims=True) * frequencies)
    y = (y + 0.3 + 0.1 * generator.standard_normal(y.shape)).astype(setting.dtype)
    folds = make_folds(FOLDS[setting.folds], N_ROWS)
    weights = weights_of(setting.weights, folds)
    if weights is not None:
        weights = weights.astype(setting.dtype)
    largest = float(np.linalg.eigvalsh(K)[-1])
    return Case(
        X,
        K,
        y,
        folds,
        weights,
        ALPHAS[setting.alphas](largest),
        setting.bias,
        np.dtype(setting.dtype),
        kernel,
    )


def refit(case: Case, alpha: float, k: int) -> np.ndarray:
    """Predictions of fold k by the model of its training rows: one solve in float64."""
    K, y = case.K, case.y.astype(np.float64)
    train, test = case.folds.training_rows(k), case.folds.test[k]
    inverse_weights = np.ones(len(train))
    if case.weights is not None:
        train = train[case.weights[train] > 0]
        inverse_weights = 1.0 / case.weights[train].astype(np.float64)
    A = K[np.ix_(train, train)] + alpha * np.diag(inverse_weights)
    right = y[train]
    if not case.bias:
        return K[np.ix_(test, train)] @ np.linalg.solve(A, right)
    ones = np.ones((len(train), 1))
    bordered = np.block([[np.zeros((1, 1)), ones.T], [ones, A]])
    solution = np.linalg.solve(bordered, np.vstack([np.zeros((1, y.shape[1])), right]))
    return K[np.ix_(test, train)] @ solution[1:] + solution[:1]


def refits(case: Case) -> np.ndarray:
    """Shape (alphas, rows of all folds, targets)."""
    return np.stack(
        [
            np.concatenate([refit(case, float(alpha), k) for k in range(len(case.folds))])
            for alpha in case.alphas
        ]
    )


# -- running a method --------------------------------------------------------------------


def gram_of(case: Case, convert: Callable[[np.ndarray], Any]) -> KernelGram | PrecomputedGram:
    if isinstance(case.kernel, Kernel):
        return KernelGram(case.kernel, convert(case.X))
    return PrecomputedGram(convert(case.K.astype(case.dtype)))


def problem_of(case: Case, convert: Callable[[np.ndarray], Any] = np.asarray) -> Problem:
    gram = gram_of(case, convert)
    y = convert(case.y)
    weights = None if case.weights is None else convert(case.weights)
    X = convert(case.X) if isinstance(case.kernel, Kernel) else gram.like
    data = TrainingData(namespace_of(y), X, y, weights)
    return describe(data, y, gram, case.alphas, bias=case.bias, folds=case.folds)


def run(method: str, case: Case, convert: Callable[[np.ndarray], Any] = np.asarray) -> HeldOut:
    weights = None if case.weights is None else convert(case.weights)
    state = METHODS[method].prepare(gram_of(case, convert), case.folds, weights, case.bias)
    return METHODS[method].held_out(state, convert(case.y), case.alphas)


def weights_are_unlike(case: Case) -> bool:
    """True if a shortcut would lose digits: of a row that counts little beside others, or with a
    bias of a fold that holds nearly all the weight."""
    weights = case.weights
    if weights is None:
        return False
    far = weights.max() > N_ROWS * np.min(weights[weights > 0])
    left = [weights[case.folds.training_rows(k)].sum() for k in range(len(case.folds))]
    return bool(far or (case.bias and min(left) < 0.1 * weights.sum()))


TAKES_EVERYTHING = {"refit", "block_recursive"}
TAKES_LIKE_WEIGHTS = {"inverse_blocks", "eigendecomposition"}


def attempt(
    method: str, case: Case, convert: Callable[[np.ndarray], Any] = np.asarray
) -> HeldOut | None:
    """What a method gives, or None where it declines as it may.

    A method may say beforehand that it cannot take a problem, and one that is not exact may
    give up on data that do not suit it rather than be wrong; both with the reason.
    """
    reason = METHODS[method].can_run(problem_of(case, convert))
    if reason is not None:
        assert method not in TAKES_EVERYTHING
        assert method not in TAKES_LIKE_WEIGHTS or weights_are_unlike(case)
        assert len(reason) > 10
        return None
    with warnings.catch_warnings():
        # Tiny alphas are ill-conditioned, and refit says so for every fold.
        warnings.simplefilter("ignore", ConditionWarning)
        try:
            return run(method, case, convert)
        except MethodGaveUpError as error:
            if METHODS[method].exact or 'use method="auto"' not in str(error):
                raise
            return None


def certificate(method: str, result: HeldOut, j: int) -> float:
    """How far an inexact method itself says that it may be off at the j-th alpha, else 0."""
    if METHODS[method].exact:
        return 0.0
    assert result.certificate is not None
    return float(np.max(result.certificate[j]))


def disagreements(
    method: str, case: Case, result: HeldOut, predictions: np.ndarray, expected: np.ndarray
) -> list[str]:
    """One line for every alpha at which a method is further from refits than promised."""
    assert predictions.shape == expected.shape
    assert predictions.dtype == case.dtype
    wrong = []
    for j, alpha in enumerate(case.alphas):
        off = float(np.max(np.abs(predictions[j] - expected[j])))
        allowed = case.tolerance(j, expected[j]) + certificate(method, result, j)
        if not off <= allowed:
            wrong.append(f"{method}, alpha={alpha:.3g}: off by {off:.3g}, allowed {allowed:.3g}")
    return wrong


def every_combination(**axes: list[Any]) -> list[dict[str, Any]]:
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]

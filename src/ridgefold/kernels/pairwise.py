"""Kernels borrowed from scikit-learn, and callables: the only kernel file that imports it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from ridgefold.errors import InvalidInputError, KernelDomainError, UnsupportedInputError
from ridgefold.kernels.base import Kernel, Rows
from ridgefold.kernels.distances import as_gamma
from ridgefold.kernels.slope_terms import SlopeTerm
from ridgefold.linalg import Array, Namespace


def sparse_manhattan(a: Any, b: Any) -> Array:
    """Σ|a_j − b_j| between sparse rows."""
    from sklearn.metrics.pairwise import manhattan_distances

    return manhattan_distances(a, b)


class _NumpyKernel(Kernel):
    """A kernel that only NumPy arrays can be given to."""

    def check(self, namespace: Namespace, X: Array) -> None:
        super().check(namespace, X)
        if namespace.name != "numpy":
            raise UnsupportedInputError(
                f"the {type(self).__name__} kernel takes NumPy arrays only, got an array of "
                f"{namespace.name}: pass NumPy arrays, or another kernel"
            )

    def prepare(self, namespace: Namespace, X: Array, origin: Array | None) -> Rows:
        return Rows((X,))


class _ChiSquared(_NumpyKernel):
    takes_negative_values = False

    def check(self, namespace: Namespace, X: Array) -> None:
        super().check(namespace, X)
        lowest = float(np.min(X))
        if lowest < 0.0:
            raise KernelDomainError(
                f"Negative values in data: the {type(self).__name__} kernel is defined for values "
                f">= 0 (histograms), but X holds {lowest:.6g}: shift or clip the columns"
            )


def _additive_chi2(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    from sklearn.metrics.pairwise import additive_chi2_kernel

    # scikit-learn's compiled loop refuses read-only rows, though it only reads them.
    return np.asarray(additive_chi2_kernel(*(np.require(z, requirements="W") for z in (a, b))))


@dataclass(frozen=True)
class AdditiveChi2(_ChiSquared):
    """−Σ (x_j − x'_j)²/(x_j + x'_j), as scikit-learn defines it."""

    semidefinite = False

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        out[...] = _additive_chi2(left.arrays[0], right.arrays[0])

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        for j, slopes in enumerate(_chi2_slopes(left.arrays[0], right.arrays[0])):
            yield SlopeTerm(slopes, columns=np.asarray([j]))

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return np.zeros(X.shape[0], dtype=X.dtype)


@dataclass(frozen=True)
class Chi2(_ChiSquared):
    """exp(−γ Σ (x_j − x'_j)²/(x_j + x'_j)), as scikit-learn defines it.

    Parameters
    ----------
    gamma : float, default=1
        γ.
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", as_gamma(self.gamma))

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        out[...] = _additive_chi2(left.arrays[0], right.arrays[0])
        out *= self.gamma
        namespace.exp_in_place(out)

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        a, b = left.arrays[0], right.arrays[0]
        values = np.empty((len(a), len(b)), dtype=a.dtype)
        self.write_block(namespace, left, right, values)
        values *= self.gamma
        for j, slopes in enumerate(_chi2_slopes(a, b)):
            yield SlopeTerm(values * slopes, columns=np.asarray([j]))

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return np.ones(X.shape[0], dtype=X.dtype)


def _chi2_slopes(a: np.ndarray, b: np.ndarray) -> Iterator[np.ndarray]:
    """The derivatives of −Σ(x_j − x'_j)²/(x_j + x'_j) in x_j: −(x − x')(x + 3x')/(x + x')²."""
    for x, y in zip(a.T, b.T, strict=True):
        total = x[:, None] + y[None, :]
        share = (x[:, None] - y[None, :]) / np.where(total > 0, total, 1.0)
        yield -share * (2.0 - share)


def is_function_of_matrices(function: Any) -> bool:
    """True for scikit-learn's Gaussian-process kernels, which its KernelRidge also takes."""
    if "sklearn.gaussian_process.kernels" not in sys.modules:
        return False
    from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernel

    return isinstance(function, GaussianProcessKernel)


def _row(a: Any, i: int) -> Any:
    """A row as a vector, or as a matrix of one row if sparse: what scikit-learn passes on."""
    return a[[i], :] if scipy.sparse.issparse(a) else a[i]


@dataclass(frozen=True)
class CallableKernel(_NumpyKernel):
    """Any function of two rows that gives a number, as scikit-learn's KernelRidge takes it.

    Parameters
    ----------
    function : callable
        ``function(x, y, **parameters) -> float``; with ``vectorized=True``,
        ``function(X, Y, **parameters) -> array`` of all pairs, which is far faster.
    parameters : mapping, optional
        Passed to the function by name.
    vectorized : bool, default=False
        The function takes whole matrices.
    """

    function: Callable[..., Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    vectorized: bool = False

    accepts_sparse = True
    semidefinite = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidInputError(f"function must be callable, got {self.function!r}")

    def __hash__(self) -> int:
        return hash((self.function, self.vectorized))  # parameters may not be hashable

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        a, b = left.arrays[0], right.arrays[0]
        if self.vectorized:
            values = np.asarray(self.function(a, b, **self.parameters))
            if values.shape != out.shape:
                raise InvalidInputError(
                    f"the kernel function gave shape {values.shape} for {out.shape[0]} × "
                    f"{out.shape[1]} rows: it must give one value for each pair"
                )
            out[...] = values
            return
        for i in range(a.shape[0]):
            for j in range(b.shape[0]):
                out[i, j] = self.function(_row(a, i), _row(b, j), **self.parameters)

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        out = np.empty(X.shape[0], dtype=X.dtype)
        cell = np.empty((1, 1), dtype=X.dtype)
        for i in range(X.shape[0]):
            row = Rows((X[i : i + 1],))
            self.write_block(namespace, row, row, cell)
            out[i] = cell[0, 0]
        return out

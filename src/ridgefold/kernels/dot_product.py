"""Kernels of the product xᵀx': linear, polynomial, sigmoid, cosine, and the constant."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from ridgefold.errors import InvalidInputError
from ridgefold.kernels.base import Kernel, Rows
from ridgefold.kernels.distances import _ones_for_rows, as_gamma
from ridgefold.kernels.slope_terms import SlopeTerm
from ridgefold.linalg import Array, Namespace


def _squared_norms(namespace: Namespace, X: Array) -> Array:
    if scipy.sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return namespace.xp.sum(X * X, axis=1)


def _largest_magnitudes(namespace: Namespace, X: Array) -> Array:
    if scipy.sparse.issparse(X):
        return abs(X).max(axis=1).toarray().ravel()
    return namespace.xp.max(namespace.xp.abs(X), axis=1)


def _as_number(name: str, value: float) -> float:
    number = np.ndim(value) == 0 and isinstance(value, (int, float, np.number))
    if not number or isinstance(value, bool) or not math.isfinite(value):
        raise InvalidInputError(f"{name} must be a finite number, got {value!r}")
    return float(value)


@dataclass(frozen=True)
class Constant(Kernel):
    """The same value for every pair: added to a kernel, a penalised bias (Welling's Φ₀ = 1).

    Parameters
    ----------
    value : float, default=1
        A number >= 0.
    """

    evaluation = "dot"

    value: float = 1.0

    accepts_sparse = True

    def __post_init__(self) -> None:
        value = _as_number("value", self.value)
        if value < 0:
            raise InvalidInputError(f"value must be >= 0, got {self.value!r}")
        object.__setattr__(self, "value", value)

    def prepare(self, namespace: Namespace, X: Array, origin: Array | None) -> Rows:
        return Rows((_ones_for_rows(namespace, X),))

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        out[...] = self.value

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return _ones_for_rows(namespace, X) * self.value

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        """None: the kernel is constant."""
        yield from ()

    def mixed_terms(
        self, namespace: Namespace, X: Array, Z: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        yield from ()

    def feature_dimension(self, n_columns: int) -> int | None:
        return 1

    def features(self, namespace: Namespace, X: Array) -> Array:
        return _ones_for_rows(namespace, X)[:, None] * math.sqrt(self.value)


class _ProductKernel(Kernel):
    """A kernel φ(γxᵀx' + c), whose slope is φ'γx'."""

    @abstractmethod
    def slopes_of_product(
        self, namespace: Namespace, product: Array, *, second: bool
    ) -> tuple[Array, Array | None]:
        """γφ' at products xᵀx', and γ²φ" if the second derivative is asked for and not zero."""

    def _slopes(
        self, namespace: Namespace, left: Rows, right: Rows, *, second: bool
    ) -> tuple[Array, Array | None]:
        a, b = left.arrays[0], right.arrays[0]
        product = namespace.empty((a.shape[0], b.shape[0]), a)
        namespace.multiply_transposed(a, b, product)
        return self.slopes_of_product(namespace, product, second=second)

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        first, _ = self._slopes(namespace, left, right, second=False)
        yield SlopeTerm(first, right=right.arrays[0])

    def mixed_terms(
        self, namespace: Namespace, X: Array, Z: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        """γφ' + γ²φ"xx'."""
        first, second = self._slopes(namespace, left, right, second=True)
        yield SlopeTerm(first)
        if second is not None:
            yield SlopeTerm(second, left.arrays[0], right.arrays[0])


@dataclass(frozen=True)
class Linear(_ProductKernel):
    """xᵀx': ordinary ridge regression."""

    evaluation = "dot"

    accepts_sparse = True

    def prepare(self, namespace: Namespace, X: Array, origin: Array | None) -> Rows:
        return Rows((X,))

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        namespace.multiply_transposed(left.arrays[0], right.arrays[0], out)

    def slopes_of_product(
        self, namespace: Namespace, product: Array, *, second: bool
    ) -> tuple[Array, Array | None]:
        return namespace.xp.ones_like(product), None

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return _squared_norms(namespace, X)

    def feature_dimension(self, n_columns: int) -> int | None:
        return n_columns

    def features(self, namespace: Namespace, X: Array) -> Array:
        return X.toarray() if scipy.sparse.issparse(X) else X


MOST_FEATURES = 2**53
"""Dimensions of feature spaces are counted up to here: no computation could hold that many."""
_HIGHEST_POWER = 170
"""The features of higher degrees have factorials as coefficients that no float can hold."""


def _binomial(n: int, k: int) -> int:
    """n over k; where that is larger than `MOST_FEATURES`, any number larger than that."""
    k, coefficient = min(k, n - k), 1
    for i in range(1, k + 1):
        coefficient = coefficient * (n - k + i) // i
        if coefficient > MOST_FEATURES:
            break  # every further factor is larger than one
    return coefficient


@dataclass(frozen=True)
class Polynomial(_ProductKernel):
    """(γ xᵀx' + c)^d; the textbook form (1 + xᵀx')^d by default.

    Parameters
    ----------
    degree : float
    gamma, coef0 : float
        γ and c. scikit-learn's default γ is 1/n_columns: ``kernel="polynomial"`` means that.
    """

    evaluation = "dot"

    degree: float = 3
    gamma: float = 1.0
    coef0: float = 1.0

    accepts_sparse = True

    def __post_init__(self) -> None:
        degree = _as_number("degree", self.degree)
        if degree < 0:
            raise InvalidInputError(f"degree must be >= 0, got {self.degree!r}")
        object.__setattr__(self, "gamma", as_gamma(self.gamma))
        object.__setattr__(self, "coef0", _as_number("coef0", self.coef0))

    @property
    def semidefinite(self) -> bool:  # type: ignore[override]
        """By its expansion in powers of xᵀx', if no coefficient is negative."""
        return self.degree == int(self.degree) and min(self.gamma, self.coef0) >= 0

    def prepare(self, namespace: Namespace, X: Array, origin: Array | None) -> Rows:
        return Rows((X,))

    def _of_product(self, product: Array) -> None:
        product *= self.gamma
        product += self.coef0
        _power_in_place(product, self.degree)

    def slopes_of_product(
        self, namespace: Namespace, product: Array, *, second: bool
    ) -> tuple[Array, Array | None]:
        base = product * self.gamma + self.coef0
        first, degree = namespace.copy(base), self.degree
        if degree == 0:
            return namespace.xp.zeros_like(base), None
        _power_in_place(first, degree - 1)
        first *= degree * self.gamma
        if not second or degree == 1:
            return first, None
        _power_in_place(base, degree - 2)
        base *= degree * (degree - 1) * self.gamma**2
        return first, base

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        namespace.multiply_transposed(left.arrays[0], right.arrays[0], out)
        self._of_product(out)

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        norms = namespace.xp.asarray(_squared_norms(namespace, X), copy=True)
        self._of_product(norms)
        return norms

    def feature_dimension(self, n_columns: int) -> int | None:
        degree = self.degree
        if degree != int(degree) or degree > _HIGHEST_POWER or self.coef0 < 0:
            return None
        variables = n_columns if self.coef0 > 0 else n_columns - 1
        return min(MOST_FEATURES, _binomial(variables + int(degree), int(degree)))

    @np.errstate(over="ignore", invalid="ignore")
    def features(self, namespace: Namespace, X: Array) -> Array:
        """Monomials of z = √γ·x: ∏ z_j^m_j of p factors weighs d!/((d − p)!·∏ m_j!)·c^(d − p)."""
        if scipy.sparse.issparse(X):
            X = X.toarray()
        n, d = X.shape
        width = self.feature_dimension(d)
        if width is None:
            return super().features(namespace, X)
        out = namespace.empty((n, width), X)
        roots: list[float] = []
        degree, z = int(self.degree), X * math.sqrt(self.gamma)
        # Each monomial is one of a factor less, times a column; with it goes ∏ m_j!.
        monomials: dict[tuple[int, ...], tuple[Array, int]] = {(): (namespace.ones(n, X), 1)}
        for power in range(degree + 1):
            if self.coef0 > 0 or power == degree:
                rest = np.float64(self.coef0) ** (degree - power) * math.perm(degree, power)
                for columns, (product, repeats) in monomials.items():
                    out[:, len(roots)] = product
                    monomials[columns] = (out[:, len(roots)], repeats)
                    roots.append(float(np.sqrt(rest / repeats)))
            if power < degree:
                monomials = {
                    (*columns, j): (product * z[:, j], repeats * (1 + columns.count(j)))
                    for columns, (product, repeats) in monomials.items()
                    for j in range(columns[-1] if columns else 0, d)
                }
        out *= namespace.asarray(np.asarray(roots), out)[None, :]
        return out


def _power_in_place(a: Array, power: float) -> None:
    if power == int(power) and 0 <= power <= 16:
        _integer_power_in_place(a, int(power))
    else:
        a **= power


def _integer_power_in_place(a: Array, power: int) -> None:
    """a^power by squaring: many times faster than a general power."""
    if power == 0:
        a[...] = 1.0
        return
    base = None if power & (power - 1) == 0 else a * 1.0  # a copy: torch's +a is a itself
    for bit in bin(power)[3:]:
        a *= a
        if bit == "1":
            a *= base


@dataclass(frozen=True)
class Sigmoid(_ProductKernel):
    """tanh(γ xᵀx' + c): scikit-learn's; not positive definite in general.

    Parameters
    ----------
    gamma, coef0 : float, default=1
        γ and c.
    """

    evaluation = "dot"

    gamma: float = 1.0
    coef0: float = 1.0

    accepts_sparse = True
    semidefinite = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", as_gamma(self.gamma))
        object.__setattr__(self, "coef0", _as_number("coef0", self.coef0))

    def prepare(self, namespace: Namespace, X: Array, origin: Array | None) -> Rows:
        return Rows((X,))

    def _of_product(self, namespace: Namespace, product: Array) -> None:
        product *= self.gamma
        product += self.coef0
        namespace.tanh_in_place(product)

    def slopes_of_product(
        self, namespace: Namespace, product: Array, *, second: bool
    ) -> tuple[Array, Array | None]:
        value = namespace.copy(product)
        self._of_product(namespace, value)
        first = self.gamma * (1.0 - value * value)
        return first, (-2.0 * self.gamma) * value * first if second else None

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        namespace.multiply_transposed(left.arrays[0], right.arrays[0], out)
        self._of_product(namespace, out)

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        norms = namespace.xp.asarray(_squared_norms(namespace, X), copy=True)
        self._of_product(namespace, norms)
        return norms


@dataclass(frozen=True)
class Cosine(Kernel):
    """xᵀx'/(‖x‖‖x'‖); a row of zeros has kernel 0 with every row."""

    evaluation = "dot"

    accepts_sparse = True

    def _normalised(self, namespace: Namespace, X: Array) -> Array:
        # Largest entries first, so that no square overflows or vanishes.
        for size in (_largest_magnitudes, lambda n, z: n.xp.sqrt(_squared_norms(n, z))):
            sizes = size(namespace, X)
            sizes = namespace.xp.where(sizes == 0.0, namespace.xp.ones_like(sizes), sizes)
            if scipy.sparse.issparse(X):
                X = X.tocsr(copy=True)
                X.data /= np.repeat(sizes, np.diff(X.indptr))
            else:
                X = X / sizes[:, None]
        return X

    def prepare(self, namespace: Namespace, X: Array, origin: Array | None) -> Rows:
        return Rows((self._normalised(namespace, X),))

    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        namespace.multiply_transposed(left.arrays[0], right.arrays[0], out)

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        """With u = x/‖x‖: (u' − (uᵀu')u)/‖x‖; zero at a row of zeros, where the kernel jumps."""
        u, v = left.arrays[0], right.arrays[0]
        product = namespace.empty((u.shape[0], v.shape[0]), u)
        namespace.multiply_transposed(u, v, product)
        # x = ‖x‖u, so that ‖x‖ = xᵀu, without squares that overflow.
        lengths = namespace.xp.sum(X * u, axis=1)
        inverse = namespace.xp.where(lengths > 0.0, lengths, float("inf")) ** -1.0
        yield SlopeTerm(product, left=-inverse[:, None] * u)
        yield SlopeTerm(namespace.xp.ones_like(product), left=inverse[:, None], right=v)

    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        return _squared_norms(namespace, self._normalised(namespace, X))

    def feature_dimension(self, n_columns: int) -> int | None:
        return n_columns

    def features(self, namespace: Namespace, X: Array) -> Array:
        z = self._normalised(namespace, X)
        return z.toarray() if scipy.sparse.issparse(z) else z

"""What a kernel is: parameters, rows prepared once, blocks of the Gram matrix written in place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from ridgefold.errors import InvalidInputError, NoSlopeError, UnsupportedInputError
from ridgefold.kernels.slope_terms import SlopeTerm
from ridgefold.linalg import Array, Namespace, namespace_of


@dataclass(frozen=True)
class Rows:
    """Rows of X prepared for one kernel: whatever is worth computing once for every row.

    `arrays` all have one entry a row. Composite kernels keep the rows prepared for each of their
    kernels in `parts`.
    """

    arrays: tuple[Array, ...]
    parts: tuple[Rows, ...] = ()

    def __len__(self) -> int:
        return int(self.arrays[0].shape[0]) if self.arrays else len(self.parts[0])

    def take(self, namespace: Namespace, rows: slice | np.ndarray) -> Rows:
        """The rows named by a slice (no copy) or an index array."""
        return Rows(
            tuple(
                a[rows] if scipy.sparse.issparse(a) else namespace.take_rows(a, rows)
                for a in self.arrays
            ),
            tuple(prepared.take(namespace, rows) for prepared in self.parts),
        )


class Kernel(ABC):
    """A positive semi-definite function of two rows, as an immutable value.

    Kernels add, multiply and scale: ``RBF(0.5) + 1``, ``2 * Matern() * Linear()``.
    Calling one gives its Gram matrix as a plain array: ``RBF(0.5)(X, Y)``.

    A new kernel overrides `prepare`, `write_block` and `diagonal`; if its feature space is
    finite, also `feature_dimension` and `features`, and the primal solver can use it; with
    `slope_terms`, models with it have slopes, and with `mixed_terms` these have variances.
    """

    accepts_sparse: ClassVar[bool] = False
    takes_negative_values: ClassVar[bool] = True
    semidefinite: ClassVar[bool] = True
    """True if every Gram matrix of the kernel is known to be positive semi-definite."""
    evaluation: ClassVar[str] = "other"
    """What a value costs: see `records.Problem.kernel`."""

    # So that NumPy numbers leave arithmetic to the kernel: np.float64(2) * RBF().
    __array_ufunc__ = None

    # -- to override ---------------------------------------------------------------------

    def check(self, namespace: Namespace, X: Array) -> None:
        """Raise a typed error if the kernel cannot take these rows."""
        if scipy.sparse.issparse(X) and not self.accepts_sparse:
            raise UnsupportedInputError(
                f"the {type(self).__name__} kernel cannot take sparse X: pass X.toarray(), "
                "or use a kernel that can (RBF, Matern, Laplacian, Polynomial, Linear, Cosine)"
            )

    @abstractmethod
    def prepare(self, namespace: Namespace, X: Array, origin: Array | None) -> Rows:
        """Do what is needed once for every row.

        `origin` is a point near the data. Kernels of differences subtract it: distances do
        not change, and their rounding errors no longer grow with the distance from zero.
        """

    @abstractmethod
    def write_block(self, namespace: Namespace, left: Rows, right: Rows, out: Array) -> None:
        """Write k(left_i, right_j) into `out`, which may be a strided view."""

    def gains_by_halves(self, namespace: Namespace, rows: Rows) -> bool:
        """True if `write_lower` takes these rows, and takes less time than a whole block."""
        return False

    def takes_halves(self, namespace: Namespace, rows: Rows) -> bool:
        """Whether `write_lower` may be called in the place of `write_block`.

        It may not where a subclass overrides `write_block` alone: `write_lower` would then still
        be the base class's.
        """
        return _as_late(type(self), "write_lower", "write_block") and self.gains_by_halves(
            namespace, rows
        )

    def write_lower(self, namespace: Namespace, rows: Rows, out: Array) -> None:
        """Write the lower triangle of k(rows_i, rows_j) into `out`; the rest is left open."""
        self.write_block(namespace, rows, rows, out)

    @abstractmethod
    def diagonal(self, namespace: Namespace, X: Array) -> Array:
        """k(x_i, x_i) for every row."""

    def columns_used(self, n_columns: int) -> int:
        """How many of the columns of X the kernel computes with."""
        return n_columns

    def feature_dimension(self, n_columns: int) -> int | None:
        """Dimension of the feature space, or None if it is infinite or not available."""
        return None

    def features(self, namespace: Namespace, X: Array) -> Array:
        """Φ with Φ Φᵀ = K, for kernels whose `feature_dimension` is a number."""
        raise UnsupportedInputError(
            f"the {type(self).__name__} kernel has no finite feature space: solve in the dual"
        )

    def slope_terms(
        self, namespace: Namespace, X: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        """∂k(x_r, z_i)/∂x_rj as a sum of terms; X holds the left rows as they were given.

        A rough kernel has a kink where two rows meet; its slope there is the mean of the two
        sides (zero, for kernels of distances). Columns that hold codes have NaN.
        """
        raise NoSlopeError(
            f"the {type(self).__name__} kernel has no slope in the columns of its rows: use a "
            "kernel that has one (RBF, Matern, Laplacian, RationalQuadratic, Linear, Polynomial, "
            "…), or differences of predictions"
        )

    def mixed_terms(
        self, namespace: Namespace, X: Array, Z: Array, left: Rows, right: Rows
    ) -> Iterator[SlopeTerm]:
        """∂²k(x_r, z_i)/∂x_rj∂z_ij: the prior covariance of slopes, where functions have any."""
        raise NoSlopeError(
            f"functions of the {type(self).__name__} kernel have no slopes with a variance, or "
            "it does not state it: use RBF, Matern with nu=1.5 or 2.5, RationalQuadratic, Linear "
            "or Polynomial"
        )

    # -- arithmetic ----------------------------------------------------------------------

    def __add__(self, other: Kernel | float) -> Kernel:
        from ridgefold.kernels.composite import Sum, as_kernel

        return Sum(self, as_kernel(other))

    def __radd__(self, other: float) -> Kernel:
        from ridgefold.kernels.composite import Sum, as_kernel

        return Sum(as_kernel(other), self)

    def __mul__(self, other: Kernel | float) -> Kernel:
        from ridgefold.kernels.composite import Product, Scaled

        return Product(self, other) if isinstance(other, Kernel) else Scaled(other, self)

    def __rmul__(self, other: float) -> Kernel:
        from ridgefold.kernels.composite import Scaled

        return Scaled(other, self)

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """The Gram matrix between the rows of X and those of Y (or of X) as an array."""
        from ridgefold.kernels.gram import KernelGram

        namespace = namespace_of(X)
        X = _as_matrix(namespace, X)
        Y = None if Y is None else _as_matrix(namespace, Y)
        return KernelGram(self, X, Y).full()


def _as_late(kind: type, method: str, other: str) -> bool:
    """Whether `method` is defined in the class that defines `other`, or in one derived from it."""
    places = [
        next(place for place, base in enumerate(kind.__mro__) if name in vars(base))
        for name in (method, other)
    ]
    return places[0] <= places[1]


def _as_matrix(namespace: Namespace, X: Any) -> Array:
    if scipy.sparse.issparse(X):
        X = X.tocsr()
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    if namespace.name == "numpy":
        X = np.asarray(X)
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    elif namespace.xp.isdtype(X.dtype, "real floating"):
        X = namespace.detached(X)
    else:
        raise UnsupportedInputError(
            f"X must be float32 or float64, got {X.dtype}: convert it first"
        )
    if X.ndim != 2:
        raise InvalidInputError(f"X must have two dimensions (rows, columns), got shape {X.shape}")
    return X


def positive(name: str, value: float) -> float:
    """`value` as a float if it is a positive number, else a typed error."""
    if isinstance(value, bool) or not np.isscalar(value) or not np.isreal(value):
        raise InvalidInputError(f"{name} must be a number > 0, got {value!r}")
    number = float(value)  # type: ignore[arg-type]
    if not number > 0.0:
        raise InvalidInputError(f"{name} must be > 0, got {value!r}")
    return number

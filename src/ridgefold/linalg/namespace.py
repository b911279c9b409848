"""The routines the library needs from an array library, and how they are chosen.

SciPy does not dispatch: given a torch tensor it silently returns NumPy. So every
routine is a method of a `Namespace`, and the namespace is chosen from the arrays
themselves, never set globally.

The methods ending in `_in_place` overwrite their argument. Symmetric matrices are
C-contiguous with their *lower* triangle filled; the upper one is never read.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

import array_api_compat
import numpy as np

from ridgefold.errors import InvalidInputError, RidgefoldError
from ridgefold.linalg.blocks import CACHE_BYTES

Array: TypeAlias = Any
"""A NumPy array, torch tensor or other array: the libraries share no common type."""


class Namespace(ABC):
    """Array creation, element-wise work in place and factorisations for one array library."""

    name: str
    xp: Any
    """The standard array namespace (array-api-compat) behind this object."""
    gains_by_halves: bool = False
    """True if the lower triangle of a symmetric block takes less time than all of it."""

    # -- creation and conversion ---------------------------------------------------------

    def empty(self, shape: int | tuple[int, ...], like: Array, dtype: Any = None) -> Array:
        return self.xp.empty(shape, dtype=dtype or like.dtype, device=array_api_compat.device(like))

    def zeros(self, shape: int | tuple[int, ...], like: Array, dtype: Any = None) -> Array:
        return self.xp.zeros(shape, dtype=dtype or like.dtype, device=array_api_compat.device(like))

    def ones(self, shape: int | tuple[int, ...], like: Array, dtype: Any = None) -> Array:
        return self.xp.ones(shape, dtype=dtype or like.dtype, device=array_api_compat.device(like))

    def asarray(self, values: Any, like: Array, dtype: Any = None) -> Array:
        """`values` on the device of `like`, in its dtype unless another is asked for."""
        return self.xp.asarray(
            values, dtype=dtype or like.dtype, device=array_api_compat.device(like)
        )

    def placed(self, values: Any, like: Array) -> Array:
        """`values` on the device of `like`, in their own dtype."""
        return self.xp.asarray(values, device=array_api_compat.device(like))

    def detached(self, a: Array) -> Array:
        """`a` without a record of how it came about, where the library keeps one."""
        return a

    def indices(self, rows: np.ndarray, like: Array) -> Array:
        """Integer index array on the device of `like`."""
        return self.xp.asarray(rows, dtype=self.xp.int64, device=array_api_compat.device(like))

    @abstractmethod
    def to_numpy(self, a: Array) -> np.ndarray:
        """`a` as a NumPy array, copied from its device if need be."""

    def copy(self, a: Array) -> Array:
        return self.xp.asarray(a, copy=True)

    def astype(self, a: Array, dtype: Any) -> Array:
        return self.xp.astype(a, dtype, copy=False)

    def eps(self, a: Array) -> float:
        return float(self.xp.finfo(a.dtype).eps)

    def tile_bytes(self, like: Array) -> int:
        """How much is worked on at a time: what stays in a core's cache."""
        return CACHE_BYTES

    # -- where the work is done ----------------------------------------------------------

    def accelerator(self, like: Array) -> str | None:
        """The name of the device that holds `like`; None for the processor."""
        return None

    def free_bytes(self, like: Array) -> float | None:
        """Free memory of the device that holds `like`; None for the processor, or if unknown."""
        return None

    def held_after_reset(self, like: Array) -> float | None:
        """Start measuring the device's peak memory anew; returns the bytes held now."""
        return None

    def peak_bytes(self, like: Array) -> float | None:
        """The most bytes held on the device since `held_after_reset`; None for the processor."""
        return None

    def wait(self, like: Array) -> None:
        """Return when the device has done everything asked of it: at once on the processor."""
        return

    def itemsize(self, a: Array) -> int:
        return int(self.xp.finfo(a.dtype).bits) // 8

    def double(self) -> Any:
        """The namespace's float64 dtype."""
        return self.xp.float64

    def all_finite(self, a: Array) -> bool:
        return bool(self.xp.all(self.xp.isfinite(a)))

    def norm(self, a: Array) -> float:
        """Euclidean norm of all entries, safe from overflow."""
        largest = float(self.xp.max(self.xp.abs(a))) if 0 not in a.shape else 0.0
        if largest == 0.0 or not np.isfinite(largest):
            return largest
        scaled = a / largest
        return largest * math.sqrt(float(self.xp.sum(scaled * scaled)))

    def squares_of_rows(self, a: Array) -> Array:
        """Σ_j a_ij² of every row."""
        return self.xp.sum(a * a, axis=1)

    def diagonal(self, a: Array) -> Array:
        """The diagonal of a square matrix, as a copy."""
        return self.copy(self.xp.linalg.diagonal(a))

    def take_rows(self, a: Array, rows: Any) -> Array:
        """`a[rows]` for a slice or an integer index array."""
        if isinstance(rows, slice):
            return a[rows, ...]
        return self.xp.take(a, self.indices(rows, a), axis=0)

    @abstractmethod
    def add_to_diagonal_in_place(self, a: Array, values: Array | float) -> None: ...

    @abstractmethod
    def set_diagonal_in_place(self, a: Array, values: Array | float) -> None: ...

    @abstractmethod
    def fill_upper_in_place(self, a: Array) -> None:
        """Copy the lower triangle onto the upper one."""

    # -- element by element, in place ----------------------------------------------------

    @abstractmethod
    def exp_in_place(self, a: Array) -> None: ...

    @abstractmethod
    def sqrt_in_place(self, a: Array) -> None: ...

    @abstractmethod
    def tanh_in_place(self, a: Array) -> None: ...

    @abstractmethod
    def maximum_in_place(self, a: Array, low: float) -> None: ...

    @abstractmethod
    def minimum_in_place(self, a: Array, high: float) -> None: ...

    # -- products ------------------------------------------------------------------------

    @abstractmethod
    def multiply_transposed(self, a: Array, b: Array, out: Array) -> None:
        """out = a bᵀ; `a` and `b` may be SciPy sparse matrices where `out` is NumPy."""

    @abstractmethod
    def manhattan_distances(self, a: Array, b: Array, out: Array) -> None:
        """out_ij = Σ_k |a_ik − b_jk|."""

    def contract_manhattan(self, weights: Array, a: Array, b: Array) -> Array:
        """Σ_ij W_ij |a_ik − b_jk| for every column k."""
        sums = [
            self.xp.sum(weights * self.xp.abs(a[:, k][:, None] - b[:, k][None, :]))
            for k in range(a.shape[1])
        ]
        return self.xp.stack(sums)

    def add_gram_of_rows_in_place(self, lower: Array, a: Array) -> None:
        """A += a aᵀ, of which only the lower triangle need be right; A may be a strided view."""
        lower += a @ a.T

    @abstractmethod
    def gram_of_rows(self, a: Array) -> Array:
        """a aᵀ, of which only the lower triangle need be filled (syrk)."""

    def weighted_gram_of_rows(self, a: Array, weights: Array) -> Array:
        """a diag(weights) aᵀ, of which only the lower triangle need be filled."""
        return (a * weights[None, :]) @ a.T

    # -- factorisations ------------------------------------------------------------------

    @abstractmethod
    def cholesky_in_place(self, a: Array) -> bool:
        """Overwrite the lower triangle of `a` with its Cholesky factor; False if there is none."""

    @abstractmethod
    def solve_triangular(self, factor: Array, b: Array, *, transposed: bool = False) -> Array:
        """L⁻¹b, or L⁻ᵀb, for a lower-triangular factor; `b` is a matrix."""

    def solve_triangular_in_place(self, factor: Array, b: Array) -> None:
        """Overwrite the matrix `b` by L⁻¹b."""
        b[...] = self.solve_triangular(factor, b)

    def solve_cholesky(self, factor: Array, b: Array) -> Array:
        """(L Lᵀ)⁻¹b for a matrix `b`."""
        return self.solve_triangular(factor, self.solve_triangular(factor, b), transposed=True)

    @abstractmethod
    def inverse_from_cholesky_in_place(self, factor: Array) -> None:
        """Overwrite a factor by the lower triangle of (L Lᵀ)⁻¹."""

    def inverse_diagonal_from_cholesky_in_place(self, factor: Array) -> Array:
        """The diagonal of (L Lᵀ)⁻¹; the factor's storage is used, and holds it no more."""
        self.inverse_from_cholesky_in_place(factor)
        return self.diagonal(factor)

    @abstractmethod
    def eigh_in_place(self, a: Array) -> tuple[Array, Array]:
        """Ascending eigenvalues and eigenvectors of a symmetric matrix, whose storage is used."""

    # -- stacks of small matrices, shape (b, n, n) -----------------------------------------

    def cholesky_of_stack(self, a: Array) -> tuple[Array, np.ndarray]:
        """Cholesky factors of a stack, zero above the diagonal, and which matrices have one.

        Only the lower triangles are read. The entry of a matrix without a factor means nothing.
        """
        factors = [self.copy(a[k, :, :]) for k in range(a.shape[0])]
        has_factor = np.array([self.cholesky_in_place(factor) for factor in factors], dtype=bool)
        return self.xp.stack([self.xp.tril(factor) for factor in factors]), has_factor

    def solve_triangular_stack(self, factor: Array, b: Array, *, transposed: bool = False) -> Array:
        """`solve_triangular` for a stack of factors and one of matrices."""
        each = range(factor.shape[0])
        return self.xp.stack(
            [
                self.solve_triangular(factor[k, :, :], b[k, :, :], transposed=transposed)
                for k in each
            ]
        )


@functools.lru_cache(maxsize=1)
def numpy_namespace() -> Namespace:
    from ridgefold.linalg.numpy_routines import NumpyNamespace

    return NumpyNamespace()


@functools.lru_cache(maxsize=1)
def _torch_namespace() -> Namespace:
    from ridgefold.linalg.torch_routines import TorchNamespace

    return TorchNamespace()


@functools.lru_cache(maxsize=8)
def _standard_namespace(xp: Any) -> Namespace:
    from ridgefold.linalg.standard_routines import StandardNamespace

    return StandardNamespace(xp)


def is_foreign_array(x: Any) -> bool:
    """True for arrays that are not NumPy's and must not be silently turned into NumPy."""
    if isinstance(x, np.ndarray) or not hasattr(x, "shape"):
        return False
    return array_api_compat.is_torch_array(x) or (
        hasattr(x, "__array_namespace__") and array_api_compat.is_array_api_obj(x)
    )


def is_tensor(x: Any) -> bool:
    """True for tensors of torch, which may lie on a device."""
    return not isinstance(x, np.ndarray) and bool(array_api_compat.is_torch_array(x))


def namespace_of(*arrays: Array) -> Namespace:
    """The namespace of the first array that is not NumPy's, or NumPy's.

    SciPy sparse matrices and plain sequences count as NumPy.
    """
    foreign: Sequence[Array] = [a for a in arrays if is_foreign_array(a)]
    if not foreign:
        return numpy_namespace()
    if array_api_compat.is_torch_array(foreign[0]):
        return _torch_namespace()
    return _standard_namespace(array_api_compat.array_namespace(foreign[0]))


def is_out_of_memory(error: BaseException) -> bool:
    """True of what Python raises when there is no memory left, or torch when a device has none.

    Where there is none for the stack of a thread, Python says that it cannot start one.

    Not of a refusal of our own, which derives from the same error.
    """
    if isinstance(error, RidgefoldError):
        return False
    torch_says = type(error).__name__ == "OutOfMemoryError"
    no_thread = "can't start new thread" in str(error)
    return isinstance(error, MemoryError) or (
        (torch_says or no_thread) and isinstance(error, RuntimeError)
    )


def on_device(array: np.ndarray, device: str | None) -> Array:
    """A NumPy array as a torch tensor on a device; as it is if there is none."""
    if device is None:
        return array
    try:
        from ridgefold.linalg.torch_routines import tensor_on
    except ImportError:
        raise InvalidInputError(
            f'device={device!r} needs torch, which is not installed: pip install "ridgefold[torch]"'
        ) from None
    return tensor_on(array, device)

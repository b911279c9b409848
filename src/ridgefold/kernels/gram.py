"""The Gram matrix as a source of blocks, a diagonal and products; an array only on request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse

from ridgefold.errors import InvalidInputError, UnsupportedInputError
from ridgefold.kernels.base import Kernel
from ridgefold.kernels.middle import middle_of
from ridgefold.linalg import Array, Namespace, namespace_of
from ridgefold.linalg.blocks import CACHE_BYTES, row_blocks
from ridgefold.linalg.partial_cholesky import PartialCholesky

Index = slice | np.ndarray
ALL = slice(None)


def _length(index: Index, n: int) -> int:
    return len(range(*index.indices(n))) if isinstance(index, slice) else len(index)


def _part(index: Index, piece: slice) -> Index:
    """The entries `piece` of an index; slices must have been made definite."""
    if isinstance(index, slice):
        return slice(index.start + piece.start, index.start + piece.stop)
    return index[piece]


def _definite(index: Index, n: int) -> Index:
    if isinstance(index, slice):
        start, stop, step = index.indices(n)
        return slice(start, max(start, stop)) if step == 1 else np.arange(start, stop, step)
    return np.asarray(index)


class Gram(ABC):
    """The matrix k(x_i, z_j) between left rows x and right rows z, computed when asked for.

    A method that needs the whole matrix asks for it (`write_lower`, `full`); one that must not
    hold it asks for blocks. Blocks are written in tiles that stay in the cache.
    """

    namespace: Namespace
    shape: tuple[int, int]
    dtype: Any
    like: Array
    """An array with the dtype and device of the blocks."""

    @abstractmethod
    def _write_tile(self, rows: Index, columns: Index, out: Array) -> None:
        """Write one tile; `out` may be a strided view."""

    semidefinite: bool = False
    """True if the matrix is symmetric, and known to be positive semi-definite."""
    _gains_by_halves: bool = False
    """True if `_write_lower_tile` takes less time than a whole tile."""

    def _write_lower_tile(self, rows: Index, out: Array) -> None:
        """Write one tile on the diagonal, of which only the lower triangle need be filled."""
        self._write_tile(rows, rows, out)

    @abstractmethod
    def diagonal(self) -> Array:
        """k(x_i, x_i) for a symmetric Gram matrix."""

    @property
    def itemsize(self) -> int:
        return self.namespace.itemsize(self.like)

    def write_block(self, rows: Index, columns: Index, out: Array) -> None:
        """Write K[rows, columns] into `out`, tile by tile."""
        rows, columns = _definite(rows, self.shape[0]), _definite(columns, self.shape[1])
        m, n = out.shape
        tile = self.namespace.tile_bytes(self.like)
        wide = min(n, max(256, tile // (256 * self.itemsize)))
        for across in row_blocks(n, 1, wide):
            column_part = _part(columns, across)
            for down in row_blocks(m, wide * self.itemsize, tile):
                self._write_tile(_part(rows, down), column_part, out[down, across])

    def block(self, rows: Index = ALL, columns: Index = ALL) -> Array:
        """K[rows, columns] as a new array; rows and columns are slices or index arrays."""
        shape = (_length(rows, self.shape[0]), _length(columns, self.shape[1]))
        out = self.namespace.empty(shape, self.like)
        self.write_block(rows, columns, out)
        return out

    def full(self) -> Array:
        return self.block()

    def partial_cholesky(self) -> PartialCholesky:
        """A low-rank factor of the symmetric K, without columns yet."""
        return PartialCholesky(
            self.namespace,
            columns=lambda rows: self.block(ALL, rows),
            entries=lambda rows: self.block(rows, rows),
            diagonal=self.diagonal(),
        )

    def write_lower(self, out: Array, rows: Index = ALL) -> None:
        """Write the lower triangle of the symmetric K[rows, rows] into `out`.

        Entries above the diagonal are not written, except in small blocks on the diagonal.
        """
        rows = _definite(rows, self.shape[0])
        n = out.shape[0]
        tall = 256 * max(1, self.namespace.tile_bytes(self.like) // (32 * CACHE_BYTES))
        for down in row_blocks(n, 1, tall):
            left = slice(0, down.start if self._gains_by_halves else down.stop)
            if left.stop:
                self.write_block(_part(rows, down), _part(rows, left), out[down, left])
            if left.stop < down.stop:
                self._write_lower_tile(_part(rows, down), out[down, down])

    def lower(self, rows: Index = ALL) -> Array:
        """The symmetric K[rows, rows] as a new array with only its lower triangle filled."""
        n = _length(rows, self.shape[0])
        out = self.namespace.empty((n, n), self.like)
        self.write_lower(out, rows)
        return out

    def matmat(self, V: Array, rows: Index = ALL, limit: float = 16 * CACHE_BYTES) -> Array:
        """K[rows] V with at most `limit` bytes of K alive at once."""
        return self.product(rows, ALL, V, limit)

    def product(
        self, rows: Index, columns: Index, V: Array, limit: float = 4 * CACHE_BYTES
    ) -> Array:
        """K[rows, columns] V with at most `limit` bytes of K alive at once.

        On a device the limit is at least one of its tiles: with smaller blocks it mostly waits.
        """
        rows = _definite(rows, self.shape[0])
        limit = max(limit, self.namespace.tile_bytes(self.like))
        count = _length(rows, self.shape[0])
        out = self.namespace.empty((count, V.shape[1]), self.like)
        for down in row_blocks(count, V.shape[0] * self.itemsize, limit):
            out[down, :] = self.block(_part(rows, down), columns) @ V
        return out

    def column(self, i: int) -> Array:
        return self.block(ALL, np.asarray([i]))[:, 0]

    feature_dimension: int | None = None
    """Columns of `features`, or None where the kernel has no finite feature space."""

    def features(self, rows: Index = ALL) -> Array:
        """Φ[rows] with Φ Φᵀ = K."""
        raise UnsupportedInputError("this Gram matrix has no features: solve in the dual")

    def fixed_columns(self) -> Array | None:
        """Columns of the rows that the model takes without a penalty, (n, p), if there are any.

        A bias is not among them.
        """
        return None

    def restricted(self, rows: np.ndarray) -> Gram:
        """The symmetric Gram matrix of some of the rows."""
        return SubGram(self, rows)


def _stored_like(X: Array, other: Array) -> Array:
    """X dense or sparse as `other` is: rows to be compared must have been prepared alike."""
    if scipy.sparse.issparse(X) == scipy.sparse.issparse(other):
        return X
    return X.toarray() if scipy.sparse.issparse(X) else scipy.sparse.csr_array(X)


def columns_of(X: Array, columns: tuple[int, ...]) -> Array:
    """Some columns of rows, as a dense array."""
    if scipy.sparse.issparse(X):
        return scipy.sparse.csc_array(X)[:, list(columns)].toarray()
    namespace = namespace_of(X)
    return namespace.xp.take(X, namespace.indices(np.asarray(columns), X), axis=1)


class KernelGram(Gram):
    """The Gram matrix of a kernel on rows of X, and of Y if it is given.

    `fixed` are numbers of columns of X that the model takes without a penalty, too; `columns` are
    such columns where X does not have them as they are.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Array,
        Y: Array | None = None,
        *,
        fixed: tuple[int, ...] = (),
        columns: Array | None = None,
    ) -> None:
        self.kernel, self.fixed, self._columns = kernel, fixed, columns
        self.namespace = namespace_of(X)
        right = X if Y is None else Y
        if X.shape[1] != right.shape[1]:
            raise InvalidInputError(
                f"both sets of rows must have the same columns, got {X.shape[1]} and "
                f"{right.shape[1]}"
            )
        kernel.check(self.namespace, X)
        X = _stored_like(X, right)
        origin = None
        if not scipy.sparse.issparse(right):
            origin = middle_of(self.namespace, right)
        self._X = X
        self._right = kernel.prepare(self.namespace, right, origin)
        if Y is None:
            self._left = self._right
        else:
            kernel.check(self.namespace, Y)
            self._left = kernel.prepare(self.namespace, X, origin)
        self._symmetric = Y is None
        self.semidefinite = self._symmetric and kernel.semidefinite
        self._gains_by_halves = kernel.takes_halves(self.namespace, self._left)
        self.shape = (X.shape[0], right.shape[0])
        self.dtype = X.dtype
        self.like = X.data if scipy.sparse.issparse(X) else X
        self._origin = origin
        self.feature_dimension = kernel.feature_dimension(X.shape[1])

    def features(self, rows: Index = ALL) -> Array:
        X = self._X
        return self.kernel.features(
            self.namespace,
            X[rows] if scipy.sparse.issparse(X) else self.namespace.take_rows(X, rows),
        )

    def fixed_columns(self) -> Array | None:
        return columns_of(self._X, self.fixed) if self.fixed else self._columns

    def _write_tile(self, rows: Index, columns: Index, out: Array) -> None:
        namespace = self.namespace
        left = self._left.take(namespace, rows)
        right = self._right.take(namespace, columns)
        self.kernel.write_block(namespace, left, right, out)

    def _write_lower_tile(self, rows: Index, out: Array) -> None:
        self.kernel.write_lower(self.namespace, self._left.take(self.namespace, rows), out)

    def diagonal(self) -> Array:
        return self.kernel.diagonal(self.namespace, self._X)

    def write_lower(self, out: Array, rows: Index = ALL) -> None:
        super().write_lower(out, rows)
        # Rounding leaves k(x, x) of a distance kernel a little off; it is known exactly.
        self.namespace.set_diagonal_in_place(
            out, self.namespace.take_rows(self.diagonal(), _definite(rows, self.shape[0]))
        )

    def full(self) -> Array:
        out = super().full()
        if self._symmetric:
            self.namespace.set_diagonal_in_place(out, self.diagonal())
        return out

    def against(self, X: Array) -> KernelGram:
        """The Gram matrix between new rows and this one's right rows, prepared only once."""
        self.kernel.check(self.namespace, X)
        if X.shape[1] != self._X.shape[1]:
            raise InvalidInputError(
                f"X has {X.shape[1]} columns, but the model was fitted on {self._X.shape[1]}"
            )
        X = _stored_like(X, self._X)
        other = object.__new__(KernelGram)
        other.kernel, other.namespace, other.fixed = self.kernel, self.namespace, self.fixed
        other._columns = None
        other._X, other._origin, other._right = X, self._origin, self._right
        other._left = self.kernel.prepare(self.namespace, X, self._origin)
        other._symmetric = False
        other.shape = (X.shape[0], self.shape[1])
        other.dtype, other.like = self.dtype, self.like
        other.feature_dimension = self.feature_dimension
        return other


class SubGram(Gram):
    """K[rows, rows] of another Gram matrix, without a copy."""

    def __init__(self, gram: Gram, rows: np.ndarray) -> None:
        self._gram, self._rows = gram, np.asarray(rows)
        self.namespace, self.dtype, self.like = gram.namespace, gram.dtype, gram.like
        self.shape = (len(self._rows), len(self._rows))
        self.feature_dimension = gram.feature_dimension

    def _index(self, index: Index) -> np.ndarray:
        return self._rows[index]

    def _write_tile(self, rows: Index, columns: Index, out: Array) -> None:
        self._gram._write_tile(self._index(rows), self._index(columns), out)

    def full(self) -> Array:
        out = super().full()
        self.namespace.set_diagonal_in_place(out, self.diagonal())
        return out

    def write_lower(self, out: Array, rows: Index = ALL) -> None:
        self._gram.write_lower(out, self._index(rows))

    def diagonal(self) -> Array:
        return self.namespace.take_rows(self._gram.diagonal(), self._rows)

    def features(self, rows: Index = ALL) -> Array:
        return self._gram.features(self._index(rows))

    def fixed_columns(self) -> Array | None:
        columns = self._gram.fixed_columns()
        return None if columns is None else self.namespace.take_rows(columns, self._rows)


class WeightedGram(Gram):
    """W^½ K W^½ of another Gram matrix, for row weights given by their roots."""

    def __init__(self, gram: Gram, roots: Array) -> None:
        self._gram, self._roots = gram, roots
        self.namespace, self.dtype, self.like = gram.namespace, gram.dtype, gram.like
        self.shape = gram.shape

    def _scale(self, rows: Index, columns: Index, out: Array) -> None:
        out *= self.namespace.take_rows(self._roots, rows)[:, None]
        out *= self.namespace.take_rows(self._roots, columns)[None, :]

    def _write_tile(self, rows: Index, columns: Index, out: Array) -> None:
        self._gram._write_tile(rows, columns, out)
        self._scale(rows, columns, out)

    def full(self) -> Array:
        out = self._gram.full()
        self._scale(ALL, ALL, out)
        return out

    def write_lower(self, out: Array, rows: Index = ALL) -> None:
        self._gram.write_lower(out, rows)
        # What stands above the diagonal means nothing, and grows where storage is used again.
        with np.errstate(over="ignore", invalid="ignore"):
            self._scale(rows, rows, out)

    def diagonal(self) -> Array:
        return self._gram.diagonal() * self._roots * self._roots

    def fixed_columns(self) -> Array | None:
        return self._gram.fixed_columns()


class PrecomputedGram(Gram):
    """A Gram matrix that the caller has computed; it is only read."""

    def __init__(self, K: Array) -> None:
        self.namespace = namespace_of(K)
        self._K = K
        self.shape = (K.shape[0], K.shape[1])
        self.dtype = K.dtype
        self.like = K

    def _write_tile(self, rows: Index, columns: Index, out: Array) -> None:
        tile = self.namespace.take_rows(self._K, rows)
        if isinstance(columns, slice):
            out[...] = tile[:, columns]
        else:
            out[...] = self.namespace.xp.take(tile, self.namespace.indices(columns, tile), axis=1)

    def diagonal(self) -> Array:
        return self.namespace.diagonal(self._K)

    def matmat(self, V: Array, rows: Index = ALL, limit: float = 16 * CACHE_BYTES) -> Array:
        if isinstance(rows, slice) and rows == ALL:
            return self._K @ V  # it is all there: no blocks to make
        return super().matmat(V, rows, limit)

    def against(self, K: Array) -> PrecomputedGram:
        if K.shape[1] != self.shape[0]:
            raise InvalidInputError(
                f"a precomputed kernel needs one column for each of the {self.shape[0]} "
                f"training rows, got {K.shape[1]} columns"
            )
        return PrecomputedGram(K)

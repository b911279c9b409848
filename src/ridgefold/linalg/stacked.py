"""Many small ridge systems at once: stacks of kernel matrices, padded to one size.

A system of n rows in a stack of size m ≥ n has m − n rows more, with zero coupling, a diagonal
entry of their own and a right-hand side of zero. The matrix is then block diagonal, so that the
first n rows of its Cholesky factor, its inverse and its solution are those of the system alone.
The formulas are those of `linalg.unpenalised`, with one more axis in front.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.linalg.namespace import Array, Namespace
from ridgefold.linalg.symmetric import rounding_level
from ridgefold.linalg.unpenalised import without_penalty


@dataclass(frozen=True)
class StackedSystems:
    """What the systems of a stack have besides their matrices."""

    targets: Array
    """Weighted targets ỹ, of shape (b, m, t); zero in rows that pad."""
    present: Array
    """1 in rows that are there and 0 in those that pad, shape (b, m)."""
    basis: Array | None
    """The basis Q of the unpenalised columns (of `linalg.unpenalised`), of shape (b, m, r); zero in
    rows that pad, and in columns that a system has not. None without unpenalised columns."""
    transforms: Array | None
    """What makes coefficients of coordinates in Q, shape (b, q, r); None without such columns."""
    roots: Array | None
    """√w, one in rows that pad; None without weights."""
    counts: np.ndarray
    """Rows of each system, shape (b,)."""


@dataclass(frozen=True)
class StackedSolution:
    """Solutions of a stack; the entries of systems that are not `regular` mean nothing."""

    coefficients: Array
    """The coefficients ã, of shape (b, m, t)."""
    unpenalised: Array
    """The coefficients β of the unpenalised columns, shape (b, q, t)."""
    residuals: Array | None
    """Leave-one-out residuals w^(−½)·ã/C_ii, shape (b, m, t), if they were asked for."""
    regular: np.ndarray
    """True for systems with a Cholesky factor that is more than rounding error; shape (b,)."""


def pad_diagonals(namespace: Namespace, matrices: Array, rows: StackedSystems) -> None:
    """Give rows that pad the largest diagonal entry of their system: no other scale comes in."""
    diagonal = diagonals(namespace, matrices)
    largest = namespace.xp.max(diagonal * rows.present, axis=1)
    add_to_diagonals(namespace, matrices, (1.0 - rows.present) * largest[:, None])


def diagonals(namespace: Namespace, matrices: Array) -> Array:
    """The diagonals of a stack, shape (b, m), as a copy."""
    m = matrices.shape[1]
    flat = namespace.xp.reshape(matrices, (matrices.shape[0], m * m))
    return namespace.copy(flat[:, :: m + 1])


def add_to_diagonals(namespace: Namespace, matrices: Array, values: Array | float) -> None:
    """matrices[k] += diag(values[k]), in place; `matrices` is contiguous."""
    m = matrices.shape[1]
    flat = namespace.xp.reshape(matrices, (matrices.shape[0], m * m))
    flat[:, :: m + 1] += values


def solve_stack(
    namespace: Namespace, matrices: Array, alphas: Array, rows: StackedSystems, *, held_out: bool
) -> StackedSolution:
    """The solution of every system, with `held_out` its leave-one-out residuals too.

    Parameters
    ----------
    matrices : array of shape (b, m, m)
        Lower triangles of K̃ with padded diagonals. α is added to them in place.
    alphas : array of shape (b,)
    """
    xp = namespace.xp
    add_to_diagonals(namespace, matrices, alphas[:, None])
    largest = namespace.to_numpy(xp.max(diagonals(namespace, matrices), axis=1))
    factor, has_factor = namespace.cholesky_of_stack(matrices)
    regular = has_factor & _has_large_pivots(namespace, factor, rows, largest)
    if held_out and rows.basis is not None:
        regular = regular & ~_nearly_all_on_one_row(namespace, rows.basis, rows.counts)
    right = rows.targets
    if rows.basis is not None:
        right = xp.concat([right, rows.basis], axis=2)
    width = right.shape[2]
    if held_out:  # L⁻¹ beside L⁻¹ỹ: the diagonal of H is the sum of squares of its columns
        right = xp.concat([right, _identities(namespace, matrices)], axis=2)
    half = namespace.solve_triangular_stack(factor, right)
    inverse = half[:, :, width:]
    solved = namespace.solve_triangular_stack(factor, half[:, :, :width], transposed=True)
    diagonal = xp.sum(inverse * inverse, axis=1) if held_out else None
    coefficients = solved
    unpenalised = namespace.zeros((solved.shape[0], 0, solved.shape[2]), solved)
    if rows.basis is not None and rows.transforms is not None:
        coefficients, coordinates, diagonal = without_penalty(xp, solved, rows.basis, diagonal)
        unpenalised = rows.transforms @ coordinates
    residuals = None
    if diagonal is not None:
        if rows.basis is not None:
            alone = np.where(rows.counts == 1, np.nan, 1.0)  # as in `linalg.leave_one_out`
            diagonal = diagonal * namespace.asarray(alone, diagonal)[:, None]
        residuals = _unweighted(coefficients / diagonal[:, :, None], rows)
    return StackedSolution(coefficients, unpenalised, residuals, regular)


_LEAST_SHARE = 1e-3
"""Residuals of a row lose digits by the share of an unpenalised column (of all weight, beside a
bias) that the others have: such systems are solved alone (`linalg.leave_one_out`)."""


def _nearly_all_on_one_row(namespace: Namespace, basis: Array, counts: np.ndarray) -> np.ndarray:
    shares = namespace.xp.sum(basis * basis, axis=2)
    heaviest = namespace.to_numpy(namespace.xp.max(shares, axis=1))
    return np.asarray((counts > 1) & (heaviest > 1.0 - _LEAST_SHARE))


def _has_large_pivots(
    namespace: Namespace, factor: Array, rows: StackedSystems, largest: np.ndarray
) -> np.ndarray:
    """Whether no pivot is rounding error, as `linalg.symmetric.factorise` sees it."""
    pivots = namespace.to_numpy(diagonals(namespace, factor)) ** 2
    smallest = np.where(namespace.to_numpy(rows.present) > 0, pivots, np.inf).min(axis=1)
    eps = namespace.eps(factor)
    level = np.array([rounding_level(int(n), eps) for n in rows.counts])
    with np.errstate(invalid="ignore"):
        return np.asarray(np.isfinite(largest) & (smallest > level * largest))


def _identities(namespace: Namespace, matrices: Array) -> Array:
    out = namespace.zeros(tuple(matrices.shape), matrices)
    add_to_diagonals(namespace, out, 1.0)
    return out


def _unweighted(residuals: Array, rows: StackedSystems) -> Array:
    return residuals if rows.roots is None else residuals / rows.roots[:, :, None]

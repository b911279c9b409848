"""From cells back to the whole: conjugate gradients with cells as the preconditioner.

The whole system (K̃ + αI)ã = ỹ is solved to a certificate, or improved by a number of steps.
The preconditioner is the inverse of

    FFᵀ + B,    B = blockdiag over cells of (K̃ − FFᵀ + αI),

F a partial pivoted Cholesky factor of K̃: exact within every cell, and of low rank between
cells. Cells alone (block Jacobi, or Schwarz with overlap) leave the smooth part of K̃, which
joins all cells, to the iteration; F takes it. Woodbury's identity applies it with the cells'
Cholesky factors and one small matrix. B ⪰ αI, because the remainder K̃ − FFᵀ is semi-definite,
so it is a preconditioner for conjugate gradients whatever the cells are.

Unpenalised columns, of which Q is an orthonormal basis, are further right-hand sides: with
H = (K̃ + αI)⁻¹, ã = Hỹ − HQγ and γ = (QᵀHQ)⁻¹QᵀHỹ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ridgefold.cells.cell_rows import RowsToFit
from ridgefold.errors import ConvergenceWarning
from ridgefold.kernels import Gram, Kernel, KernelGram, WeightedGram
from ridgefold.kernels.gram import columns_of
from ridgefold.linalg import Array, namespace_of
from ridgefold.linalg.conjugate_gradients import MOST_STEPS, conjugate_gradients
from ridgefold.linalg.namespace import on_device
from ridgefold.linalg.pivoted_cholesky import pivoted_cholesky
from ridgefold.linalg.symmetric import CholeskyFactor, Factor, SpectralFactor, factorise
from ridgefold.linalg.unpenalised import unpenalised_space, without_penalty
from ridgefold.notices import warn

_RELATIVE_ERROR = 1e-10
"""The error of a prediction, relative to the largest target, that "exact" aims at."""
_BLOCK_BYTES, _SMALLEST_BLOCK = float(1 << 25), float(1 << 20)
_COPIES = 3
"""Copies of F that are held at once: itself, what the cells make of it, and a piece on the way."""
_FEWEST_COLUMNS = 8
"""Columns of F that are worked on at once at least, however little memory there is."""
_POWER_STEPS = 5
"""Steps of power iteration: the size of the matrix is needed to its order of magnitude only."""
_ROUNDING = 10.0
"""How many times the unit of rounding a residual may be off."""


@dataclass(frozen=True)
class Refined:
    """One model for all rows."""

    dual_coef: np.ndarray
    intercept: np.ndarray
    certificate: np.ndarray
    """‖y − (K + αW⁻¹)a − b‖ (weighted rows) for each target."""
    steps: int
    fixed_coef: np.ndarray | None = None
    """Coefficients of the unpenalised columns beside the bias, shape (p, t), if there are any."""


def coarse_rank(n_rows: int) -> int:
    """Columns of F: a few times √n costs less than the cells' own factors."""
    return min(n_rows, 100 + int(4 * math.sqrt(n_rows)))


def refine(
    training: RowsToFit,
    kernel: Kernel,
    alpha: float,
    groups: list[np.ndarray],
    start: np.ndarray,
    *,
    bias: bool,
    fixed: tuple[int, ...] = (),
    steps: int | None,
    memory_bytes: float,
    device: str | None = None,
    progress: Callable[[float], None],
) -> Refined:
    """Improve `start`, dual coefficients of all rows, on the whole system.

    Parameters
    ----------
    groups : list of row index arrays
        Disjoint cells that cover all rows.
    fixed : tuple of int
        Numbers of unpenalised columns beside the bias.
    steps : int, optional
        Steps to take; None goes on until the certificate is reached.
    device : str, optional
        A device of torch that does the work.
    """
    n_rows, dtype = len(training.X), training.targets.dtype
    training, groups, start, kept = _weighing_rows(training, groups, start)

    def placed(array: np.ndarray) -> Array:
        # In float64 whatever the rows are: rounding of products is what bounds the residual.
        return on_device(np.ascontiguousarray(array, dtype=np.float64), device)

    X, right, first = placed(training.X), placed(training.targets), placed(start)
    namespace = namespace_of(X)
    xp, t = namespace.xp, training.targets.shape[1]
    roots = None if training.weights is None else placed(np.sqrt(training.weights))
    space = unpenalised_space(
        namespace,
        columns_of(X, fixed) if fixed else None,
        roots,
        bias=bias,
        n_rows=int(X.shape[0]),
        like=X,
    )
    gram: Gram = KernelGram(kernel, X)
    if roots is not None:
        gram = WeightedGram(gram, roots)
        right, first = right * roots[:, None], first / roots[:, None]
    room = memory_bytes - bytes_of_cells(np.array([len(group) for group in groups]))
    multiply = _multiplier(gram, room)
    precondition = _two_level(gram, alpha, groups, _rank_within(gram, room))
    if space is not None:
        right = xp.concat([right, space.basis], axis=1)
        first = xp.concat([first, precondition(space.basis)], axis=1)
    target = _target(multiply, gram, alpha, right, first)
    worst = []

    def report(step: int, norms: Array) -> None:
        worst.append(float(xp.max(norms / target)))
        if steps is not None:
            progress(min(1.0, (step + 1) / max(steps, 1)))
        elif worst[0] > 1:
            fallen = math.log(worst[0] / max(worst[-1], 1.0)) / math.log(worst[0])
            progress(min(1.0, fallen))

    solved = conjugate_gradients(
        namespace,
        lambda v: multiply(v) + alpha * v,
        precondition,
        right,
        target,
        start=first,
        most_steps=MOST_STEPS if steps is None else steps,
        progress=report,
    )
    if steps is None and not solved.converged:
        warn(
            f'cells.refine="exact" stopped after {solved.steps} steps at '
            f"{float(xp.max(solved.residual / target)):.1e} times the residual aimed at: use a "
            "larger alpha, or KernelRidge if its memory can be had",
            ConvergenceWarning,
        )
    coefficients, intercept, others = solved.solution, namespace.zeros((t,), X), None
    if space is not None:
        coefficients, coordinates, _ = without_penalty(xp, coefficients, space.basis)
        right = right[:, :t] - space.basis @ coordinates
        unpenalised = space.coefficients(coordinates)
        intercept, others = space.intercept(unpenalised), space.others(unpenalised)
    left = right - multiply(coefficients) - alpha * coefficients
    if roots is not None:
        coefficients = coefficients * roots[:, None]
    found = namespace.to_numpy(coefficients)
    dual = np.zeros((n_rows, t), dtype=dtype)
    dual[kept] = found
    certificate = namespace.to_numpy(xp.sqrt(xp.sum(left * left, axis=0)))
    return Refined(
        dual,
        namespace.to_numpy(intercept).astype(dtype),
        certificate,
        solved.steps,
        None if others is None else namespace.to_numpy(others).astype(dtype),
    )


def _weighing_rows(
    training: RowsToFit, groups: list[np.ndarray], start: np.ndarray
) -> tuple[RowsToFit, list[np.ndarray], np.ndarray, np.ndarray | slice]:
    """The system without rows of weight zero, which are no part of it, and which rows stay."""
    weights = training.weights
    if weights is None or np.all(weights > 0):
        return training, groups, start, slice(None)
    kept = np.flatnonzero(weights > 0)
    place = np.full(len(weights), -1)
    place[kept] = np.arange(len(kept))
    inside = [place[group][place[group] >= 0] for group in groups]
    part = replace(
        training, X=training.X[kept], targets=training.targets[kept], weights=weights[kept]
    )
    return part, [group for group in inside if len(group)], start[kept], kept


def _target(
    multiply: Callable[[Array], Array],
    gram: Gram,
    alpha: float,
    right: Array,
    first: Array,
) -> Array:
    """Residual norms at which predictions are right to `_RELATIVE_ERROR`, or to rounding.

    |f(x) − f*(x)| ≤ √k(x,x)·‖ρ‖/(2√α), and no computed residual falls below
    eps·(‖y‖ + ‖K‖‖a‖): ‖K‖ by some power steps, ‖a‖ that of the first guess.
    """
    namespace, xp = gram.namespace, gram.namespace.xp

    def lengths(columns: Array) -> Array:
        return xp.sqrt(xp.sum(columns * columns, axis=0))

    reach = math.sqrt(float(xp.max(gram.diagonal()))) or 1.0
    largest = xp.max(xp.abs(right), axis=0)
    wanted = _RELATIVE_ERROR * largest * (2.0 * math.sqrt(alpha) / reach)
    vector, size = namespace.ones((right.shape[0], 1), right), 0.0
    for _ in range(_POWER_STEPS):
        vector = multiply(vector / (namespace.norm(vector) or 1.0))
        size = namespace.norm(vector)
    floor = _ROUNDING * namespace.eps(right) * (lengths(right) + (size + alpha) * lengths(first))
    tiny = xp.full_like(floor, float(xp.finfo(right.dtype).smallest_normal))
    return xp.maximum(xp.maximum(wanted, floor), tiny)


def bytes_of_cells(sizes: np.ndarray) -> float:
    """Memory of the factors of cells, and of two matrices of the largest while they are made."""
    squares = sizes.astype(np.float64) ** 2
    return 8.0 * float(squares.sum() + 2.0 * squares.max())


def _rank_within(gram: Gram, room: float) -> int:
    """Columns of F, fewer than usual where a third of the memory does not hold them."""
    n = gram.shape[0]
    return max(_FEWEST_COLUMNS, min(coarse_rank(n), int(room / (3 * _COPIES * 8.0 * n))))


def _multiplier(gram: Gram, room: float) -> Callable[[Array], Array]:
    """K̃ v: from a stored matrix if a third of the memory holds it, else computed anew."""
    n = gram.shape[0]
    if gram.itemsize * float(n) ** 2 <= room / 3:
        matrix = gram.full()
        return lambda v: matrix @ v
    block = min(_BLOCK_BYTES, max(_SMALLEST_BLOCK, room / 6))
    return lambda v: gram.matmat(v, limit=block)


def _two_level(
    gram: Gram, alpha: float, groups: list[np.ndarray], rank: int
) -> Callable[[Array], Array]:
    """v ↦ (FFᵀ + B)⁻¹v."""
    namespace = gram.namespace
    factor = pivoted_cholesky(
        namespace,
        gram.column,
        gram.diagonal(),
        rank=rank,
        trace_tolerance=0.1 * alpha,
    ).factor
    blocks: list[tuple[np.ndarray, Factor]] = []
    for rows in groups:
        part = namespace.take_rows(factor, rows)

        def refill(storage: Array, rows: np.ndarray = rows, part: Array = part) -> None:
            storage[...] = gram.block(rows, rows) - part @ part.T
            namespace.add_to_diagonal_in_place(storage, alpha)

        matrix = namespace.empty((len(rows), len(rows)), gram.like)
        refill(matrix)
        blocks.append((rows, _positive(factorise(namespace, matrix, refill, scale=1.0), alpha)))

    def solve_blocks(v: Array) -> Array:
        out = namespace.empty(v.shape, v)
        for rows, block in blocks:
            out[namespace.indices(rows, out), :] = block.solve(namespace.take_rows(v, rows))
        return out

    if factor.shape[1] == 0:
        return solve_blocks
    inner = solve_blocks(factor)
    small = factor.T @ inner
    namespace.add_to_diagonal_in_place(small, 1.0)

    def refill_small(storage: Array) -> None:
        storage[...] = factor.T @ inner
        namespace.add_to_diagonal_in_place(storage, 1.0)

    between = factorise(namespace, small, refill_small)

    def apply(v: Array) -> Array:
        solved = solve_blocks(v)
        return solved - inner @ between.solve(factor.T @ solved)

    return apply


def _positive(block: CholeskyFactor | SpectralFactor, alpha: float) -> Factor:
    """B ⪰ αI: eigenvalues that rounding has put below are raised to α."""
    if isinstance(block, CholeskyFactor):
        return block
    xp = block.namespace.xp
    raised = xp.maximum(block.values, xp.full_like(block.values, alpha))
    return SpectralFactor(block.namespace, raised, block.vectors)

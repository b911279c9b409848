"""Exact cross-validation in a few blocks of memory: neither K nor its inverse is ever held.

Block recursive inverse (Cosme et al., arXiv 1612.00001; do Nascimento et al. for LS-SVM
cross-validation). Rows are cut into b blocks, and all but one are eliminated from the system
by the recursion in `shared/elimination.py`. Each block is computed, used and dropped, so that
at most 2(b − 1) are alive; the price is that blocks are computed again and again, about 3.6
times more often for every further block.

One block is one fold where there are few folds: its model is solved for directly, by forward
and backward elimination of the others with [y s] as right-hand sides; the bias is then
b = sᵀH_cy/(sᵀH_cs), and no pivot is ever taken on the border. Where folds are many, a block
holds several: S over the block, inverted, is C there, and every fold's own C_kk is part of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgefold.crossval.shared.base import HeldOut, Progress, needs_complement, no_progress
from ridgefold.crossval.shared.elimination import BlockElimination, BlockMatrix
from ridgefold.crossval.shared.folds import Folds
from ridgefold.crossval.shared.shortcut import require_weighted_training_rows
from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.linalg.symmetric import factorise
from ridgefold.records import Cost, Problem

_MOST_SINGLE_FOLDS = 6
"""Up to this many folds, a block is a fold."""
_BLOCKS_OF_MANY_FOLDS = 4
"""With more folds, rows are cut into this many blocks of several folds."""


class BlockRecursive:
    """Blocks of K come from the data and go; memory falls with the square of their number."""

    name = "block_recursive"
    exact = True

    def can_run(self, problem: Problem) -> str | None:
        return needs_complement(problem)

    def cost(self, problem: Problem) -> Cost:
        blocks, several = _number_of_blocks(len(problem.test_sizes))
        size = max(*problem.test_sizes, -(-problem.n_rows // blocks))
        eliminated = blocks - 1
        flops = sum(_flops_diagonal(j) for j in range(eliminated)) + eliminated / 3
        if several:
            flops += _flops_diagonal(eliminated) + 2
        layers = -(-sum(problem.test_sizes) // problem.n_rows)
        kernel = 4.0**eliminated * size**2 * max(problem.n_columns, 1)
        repeats = layers * problem.n_alphas * blocks
        return Cost(
            flops={"product": repeats * flops * float(size) ** 3, "kernel": repeats * kernel},
            peak_bytes=problem.itemsize
            * (
                most_live_blocks(blocks, several) * float(size) ** 2
                + 4.0 * problem.n_rows * (problem.n_targets + 1)
                + problem.held_out_numbers
            ),
        )

    def prepare(self, gram: Gram, folds: Folds, weights: Array | None, bias: bool) -> _State:
        positive = np.ones(folds.n_rows, dtype=bool)
        roots = None
        if weights is not None:
            positive = gram.namespace.to_numpy(weights) > 0
            roots = gram.namespace.xp.sqrt(weights)
        require_weighted_training_rows(folds, positive)
        groups = tuple(
            group for layer in _layers(folds) for group in _groups(folds, layer, positive)
        )
        return _State(BlockMatrix(gram, roots, bias), folds, groups)

    def held_out(
        self, state: _State, targets: Array, alphas: np.ndarray, progress: Progress = no_progress
    ) -> HeldOut:
        namespace, folds = state.matrix.gram.namespace, state.folds
        shape = (len(alphas), len(folds.stacked), targets.shape[1])
        predictions = namespace.empty(shape, targets)
        done, total = 0, len(alphas) * len(state.groups)
        for j, alpha in enumerate(alphas):
            for group in state.groups:
                elimination = BlockElimination(state.matrix, float(alpha), group.pivots)
                if group.single:
                    rows = np.concatenate([folds.test[k] for k in group.folds])
                    values = elimination.predict(targets, rows)
                else:
                    values = _predict_inside(state, elimination, targets, group)
                start = 0
                for k in group.folds:
                    run = folds.runs[k]
                    size = run.stop - run.start
                    predictions[j, run, :] = values[start : start + size, :]
                    start += size
                done += 1
                progress(done / total)
        return HeldOut(predictions, np.full(len(alphas), np.nan))


@dataclass(frozen=True)
class _Group:
    """Folds computed together, and the blocks of training rows to eliminate for them."""

    folds: tuple[int, ...]
    pivots: tuple[np.ndarray, ...]
    single: bool
    """True if all folds of the group share one model."""


@dataclass(frozen=True)
class _State:
    matrix: BlockMatrix
    folds: Folds
    groups: tuple[_Group, ...]


def _predict_inside(
    state: _State, elimination: BlockElimination, targets: Array, group: _Group
) -> Array:
    """Predictions of several folds that lie in one block, from C over that block."""
    namespace, folds = state.matrix.gram.namespace, state.folds
    rows = np.concatenate([folds.test[k] for k in group.folds])
    t = targets.shape[1]
    corner = elimination.right_hand_side(targets, rows)
    square = 0.0
    if group.pivots:
        right = [elimination.right_hand_side(targets, block) for block in group.pivots]
        solved = elimination.solve(right)
        for block, part in zip(group.pivots, solved, strict=True):
            corner = corner - elimination.multiply(rows, block, part)
        along = [part[:, t:].T @ x for part, x in zip(right, solved, strict=True)]
        border = sum(along[1:], along[0])  # sᵀH_c[y s]
    else:
        border = namespace.zeros((1, t + 1), targets) if state.matrix.bias else None
    # With S, [d s] what elimination leaves of K_pp and [y 1]: a = C_pp d', and with a bias
    # C_pp = (S + ssᵀ/τ)⁻¹, d' = d − s·(1ᵀH_cy)/τ.
    residual = corner[:, :t]

    def fill(storage: Array) -> None:
        storage[...] = elimination.diagonal_block(rows, group.pivots)
        if state.matrix.bias:
            s = corner[:, t]
            step = 512
            for start in range(0, storage.shape[0], step):
                part = slice(start, start + step)
                storage[part, :] += (s[part] / square)[:, None] * s[None, :]

    if state.matrix.bias:
        assert border is not None
        square = float(border[0, t])
        residual = residual - corner[:, t:] * (border[:, :t] / square)
    block = state.matrix.live.track(namespace.empty((len(rows), len(rows)), targets))
    fill(block)
    factor = factorise(namespace, block, fill)
    coefficients = factor.solve(residual)
    inverse = factor.inverse_in_place()
    out = namespace.empty((len(rows), t), targets)
    start = 0
    for k in group.folds:
        part = slice(start, start + len(folds.test[k]))

        def refill(storage: Array, part: slice = part) -> None:
            storage[...] = inverse[part, part]

        own = namespace.copy(inverse[part, part])
        d = factorise(namespace, own, refill).solve(coefficients[part, :])
        if state.matrix.roots is not None:
            d = d / namespace.take_rows(state.matrix.roots, folds.test[k])[:, None]
        out[part, :] = namespace.take_rows(targets, folds.test[k]) - d
        start = part.stop
    return out


# -- grouping ----------------------------------------------------------------------------


def _number_of_blocks(n_folds: int) -> tuple[int, bool]:
    """How many blocks the rows are cut into, and whether a block holds several folds."""
    if n_folds <= _MOST_SINGLE_FOLDS:
        return max(n_folds, 2), False
    return _BLOCKS_OF_MANY_FOLDS, True


def most_live_blocks(blocks: int, several: bool) -> int:
    """The most blocks alive at once: S_pq after r eliminations needs 2r + 1, S_pp 2r."""
    eliminated = blocks - 1
    one_model = max(1, 2 * (eliminated - 1))
    return max(one_model, 2 * eliminated + 1) if several else max(one_model, eliminated)


def _flops_diagonal(eliminated: int) -> float:
    """Work for S_pp in units of (block size)³: factor 1/3, solve 1, symmetric product 1."""
    if eliminated == 0:
        return 0.0
    below = eliminated - 1
    return 2 * _flops_diagonal(below) + _flops_off_diagonal(below) + 7 / 3


def _flops_off_diagonal(eliminated: int) -> float:
    """Work for S_pq: factor 1/3, two solves, a product 2."""
    if eliminated == 0:
        return 0.0
    below = eliminated - 1
    return 3 * _flops_off_diagonal(below) + _flops_diagonal(below) + 13 / 3


def _layers(folds: Folds) -> list[list[int]]:
    """Folds in sets that do not overlap (the repeats of a repeated split)."""
    if folds.disjoint:
        return [list(range(len(folds)))]
    layers: list[tuple[list[int], np.ndarray]] = []
    for k, test in enumerate(folds.test):
        for members, taken in layers:
            if not taken[test].any():
                members.append(k)
                taken[test] = True
                break
        else:
            taken = np.zeros(folds.n_rows, dtype=bool)
            taken[test] = True
            layers.append(([k], taken))
    return [members for members, _ in layers]


def _groups(folds: Folds, layer: list[int], positive: np.ndarray) -> list[_Group]:
    """Cut one layer of disjoint folds into groups, each with the blocks to eliminate for it."""
    blocks, several = _number_of_blocks(len(layer))
    size = -(-folds.n_rows // blocks)
    if not several:
        return [_Group((k,), _pivots(folds, (k,), positive, size), True) for k in layer]
    unseen = tuple(k for k in layer if not positive[folds.test[k]].any())
    mixed = [k for k in layer if k not in unseen and not positive[folds.test[k]].all()]
    groups = [_Group((k,), _pivots(folds, (k,), positive, size), True) for k in mixed]
    if unseen:  # their models are all the model of every weighted row
        groups.append(_Group(unseen, _pivots(folds, unseen, positive, size), True))
    members: list[int] = []
    filled = 0
    for k in layer:
        if k in unseen or k in mixed:
            continue
        if members and filled + folds.sizes[k] > size:
            groups.append(_Group(tuple(members), _pivots(folds, members, positive, size), False))
            members, filled = [], 0
        members.append(k)
        filled += folds.sizes[k]
    if members:
        single = len(members) == 1
        groups.append(_Group(tuple(members), _pivots(folds, members, positive, size), single))
    return groups


def _pivots(
    folds: Folds, members: list[int] | tuple[int, ...], positive: np.ndarray, size: int
) -> tuple[np.ndarray, ...]:
    """The weighted rows outside the group, in blocks of at most `size` rows."""
    kept = positive.copy()
    for k in members:
        kept[folds.test[k]] = False
    rows = np.flatnonzero(kept)
    count = -(-len(rows) // size)
    return tuple(np.array_split(rows, count)) if count else ()

"""Exact cross-validation in a few blocks of memory: neither K nor its inverse is ever held.

Block recursive inverse (Cosme et al., arXiv 1612.00001; do Nascimento et al. for LS-SVM
cross-validation). Rows are cut into b blocks, and all but one are eliminated from the system
by the recursion in `shared/elimination.py`. Each block is computed, used and dropped, so that
at most 2(b − 1) are alive; the price is that blocks are computed again and again, about 3.6
times more often for every further block.

One block is one fold where there are few folds: its model is solved for directly, by forward
and backward elimination of the others with targets and unpenalised columns as right-hand sides, and
no pivot is ever taken on the border. Where folds are many, a block
holds several: S over the block, inverted, is C there, and every fold's own C_kk is part of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ridgefold.crossval.shared.base import HeldOut, Judge, Progress, needs_complement, no_progress
from ridgefold.crossval.shared.elimination import BlockElimination, BlockMatrix
from ridgefold.crossval.shared.folds import Folds
from ridgefold.crossval.shared.shortcut import require_weighted_training_rows
from ridgefold.crossval.shared.weight_spread import WeightSpread, share_of_training
from ridgefold.kernels import Gram
from ridgefold.linalg import Array
from ridgefold.linalg.blocks import WORKSPACE_BYTES
from ridgefold.linalg.panels import subtract_gram_in_place
from ridgefold.linalg.symmetric import factorise
from ridgefold.records import Cost, Problem

_MOST_SINGLE_FOLDS = 6
"""Up to this many disjoint folds, a block is a fold."""
_GROUPS_OF_FOLDS = 4
"""With more folds, they are put together into this many blocks."""
_PIVOTS_FOR_SMALL_FOLDS, _MOST_PIVOTS = 3, 5
"""Work grows by 3.6 with every further pivot block, memory falls ever less: see `_pivot_count`."""


class BlockRecursive:
    """Blocks of K come from the data and go; memory falls with the square of their number."""

    name = "block_recursive"
    exact = True
    may_give_up = False
    last_resort = False

    def can_run(self, problem: Problem) -> str | None:
        return needs_complement(problem)

    def cost(self, problem: Problem) -> Cost:
        product = kernel = most = calls = 0.0
        smallest = float(problem.n_rows)
        for rows, pivots, several in _shapes(problem):
            size = max(float(rows), (problem.n_rows - rows) / pivots)
            if several:
                work = _flops_diagonal(pivots) + 1
            else:
                work = sum(_flops_diagonal(j) for j in range(pivots)) + pivots / 3
            product += work * size**3
            kernel += 4.0**pivots * size**2
            calls += 3.0**pivots
            smallest = min(smallest, size)
            most = max(most, most_live_blocks(pivots, several) * size**2)
        return Cost(
            flops={
                "product": problem.n_alphas * product,
                "kernel": problem.n_alphas * kernel,
                "calls": problem.n_alphas * calls,
            },
            size=smallest,
            peak_bytes=problem.itemsize
            * (
                most
                + 4.0 * problem.n_rows * (problem.n_targets + 1 + problem.n_columns)
                + problem.held_out_numbers
            )
            + WORKSPACE_BYTES,
        )

    def prepare(self, gram: Gram, folds: Folds, weights: Array | None, bias: bool) -> _State:
        counted, roots = np.ones(folds.n_rows), None
        if weights is not None:
            counted = gram.namespace.to_numpy(weights).astype(np.float64)
            roots = gram.namespace.xp.sqrt(weights)
        require_weighted_training_rows(folds, counted > 0)
        groups = tuple(
            group for layer in _layers(folds) for group in _groups(folds, layer, counted, bias)
        )
        if gram.fixed_columns() is not None:
            groups = _determined(groups, gram, folds, weights, bias=bias)
        return _State(BlockMatrix(gram, roots, bias), folds, groups)

    def held_out(
        self,
        state: _State,
        targets: Array,
        alphas: np.ndarray,
        progress: Progress = no_progress,
        judge: Judge | None = None,
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
    t, has_columns = targets.shape[1], elimination.columns is not None
    block, corner, border = elimination.eliminated(targets, rows, group.pivots)
    # With S, [d g] what elimination leaves of K_pp and [y G], and M = GᵀH_cG:
    # C_pp = (S + gM⁻¹gᵀ)⁻¹ and a_p = C_pp(d − gM⁻¹(GᵀH_cy)).
    residual = corner[:, :t]
    if has_columns:
        residual = residual - corner[:, t:] @ namespace.xp.linalg.solve(
            border[:, t:], border[:, :t]
        )

    def add_columns(block: Array) -> Array:
        if has_columns:
            values, vectors = namespace.eigh_in_place(namespace.copy(border[:, t:]))
            # Negative only where the kernel is indefinite.
            g = corner[:, t:] @ vectors / namespace.xp.sqrt(namespace.xp.abs(values))[None, :]
            subtract_gram_in_place(block, g.T, -namespace.xp.sign(values))
        return block

    def refill_schur(storage: Array) -> None:
        storage[...] = add_columns(elimination.diagonal_block(rows, group.pivots))

    factor = elimination.regular(
        factorise(namespace, add_columns(block), refill_schur, state.matrix.scale)
    )
    del block
    coefficients = factor.solve(residual)
    inverse = factor.inverse_in_place()
    out = namespace.empty((len(rows), t), targets)
    start = 0
    for k in group.folds:
        inside = slice(start, start + len(folds.test[k]))

        def refill(storage: Array, inside: slice = inside) -> None:
            storage[...] = inverse[inside, inside]

        own = namespace.copy(inverse[inside, inside])
        d = factorise(namespace, own, refill).solve(coefficients[inside, :])
        if state.matrix.roots is not None:
            d = d / namespace.take_rows(state.matrix.roots, folds.test[k])[:, None]
        out[inside, :] = namespace.take_rows(targets, folds.test[k]) - d
        start = inside.stop
    return out


# -- how much ----------------------------------------------------------------------------


def most_live_blocks(pivots: int, several: bool) -> int:
    """The most blocks alive at once when `pivots` blocks are eliminated.

    S_pq after r eliminations needs 2r + 1 blocks, S_pp 2r (one if r = 0). One model needs the
    factors of all S_jj, of which the last and largest is computed while no other is kept;
    several folds in a block need its S_pp too.
    """
    return max(1, 2 * pivots) if several else max(1, pivots, 2 * (pivots - 1))


def _shapes(problem: Problem) -> list[tuple[int, int, bool]]:
    """(rows, pivot blocks, several folds) of every group, as `_groups` will make them.

    Which folds overlap is not known here: those of a repeated split are taken to follow each
    other, repeat by repeat.
    """
    n = problem.n_rows
    sizes = np.repeat([f.test for f in problem.folds], [f.count for f in problem.folds])
    layers = max(1, -(-int(sizes.sum()) // n))
    shapes = []
    for layer in np.array_split(sizes, min(layers, len(sizes))):
        if len(layer) <= _MOST_SINGLE_FOLDS:
            shapes += [(int(m), _pivot_count(n - int(m), int(m)), False) for m in layer]
            continue
        for members in np.array_split(layer, _GROUPS_OF_FOLDS):
            shapes.append((min(n, int(members.sum())), _GROUPS_OF_FOLDS - 1, True))
    return shapes


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


# -- grouping ----------------------------------------------------------------------------


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


def _groups(folds: Folds, layer: list[int], weights: np.ndarray, bias: bool) -> list[_Group]:
    """Cut one layer of disjoint folds into groups, each with the blocks to eliminate for it."""
    positive = weights > 0

    def alone(members: tuple[int, ...]) -> _Group:
        rest = _training_rows(folds, members, positive)
        rows = sum(folds.sizes[k] for k in members)
        return _Group(members, _cut(rest, _pivot_count(len(rest), rows)), True)

    if len(layer) <= _MOST_SINGLE_FOLDS:
        return [alone((k,)) for k in layer]
    # Rows of weight zero train no model: folds of nothing else all share the model of all
    # weighted rows, and a fold that has some is solved for by itself.
    unseen = tuple(k for k in layer if not positive[folds.test[k]].any())
    mixed = [k for k in layer if k not in unseen and not positive[folds.test[k]].all()]
    groups = [alone((k,)) for k in mixed]
    if unseen:
        groups.append(alone(unseen))
    ordinary = [k for k in layer if positive[folds.test[k]].all()]
    for members in _in_blocks(folds, ordinary, weights, bias):
        if len(members) == 1:
            groups.append(alone(members))
        elif members:
            rest = _training_rows(folds, members, positive)
            groups.append(_Group(members, _cut(rest, _GROUPS_OF_FOLDS - 1), False))
    return groups


def _determined(
    groups: tuple[_Group, ...], gram: Gram, folds: Folds, weights: Array | None, *, bias: bool
) -> tuple[_Group, ...]:
    """Groups whose blocks to eliminate determine the unpenalised columns; others fold by fold."""
    numbers = None if weights is None else gram.namespace.to_numpy(weights)
    positive = np.ones(folds.n_rows, dtype=bool) if numbers is None else numbers > 0
    determined: list[_Group] = []
    for group in groups:
        held_out = np.concatenate([folds.test[k] for k in group.folds])
        together = Folds(folds.n_rows, (held_out,))
        share = 1.0
        if not group.single:
            share = share_of_training(gram, together, numbers, bias=bias)
        if WeightSpread(folds.n_rows, least_training_share=share).enough_in_training(bias, True):
            determined.append(group)
            continue
        for k in group.folds:
            rest = _training_rows(folds, (k,), positive)
            cut = _cut(rest, _pivot_count(len(rest), folds.sizes[k]))
            determined.append(_Group((k,), cut, True))
    return tuple(determined)


def _in_blocks(
    folds: Folds, members: list[int], weights: np.ndarray, bias: bool
) -> list[tuple[int, ...]]:
    """Folds that share a block: one after the other, unless a block would hold too much weight.

    With a bias nothing is known of a block that holds nearly all of it (`shared.weight_spread`).
    The folds are then dealt out by their weight, and what still is too much is one fold's, which
    is solved for by itself.
    """
    in_order = [tuple(int(k) for k in block) for block in np.array_split(members, _GROUPS_OF_FOLDS)]
    spread = WeightSpread.of(weights, folds.n_rows, None)
    most = (1.0 - spread.least_share_with_bias) * float(weights.sum())
    held = {k: float(weights[folds.test[k]].sum()) for k in members}

    def too_much(block: Iterable[int]) -> bool:
        return bias and sum(held[k] for k in block) > most

    if not any(map(too_much, in_order)):
        return in_order
    heavy = [k for k in members if too_much((k,))]
    rest = sorted((k for k in members if k not in heavy), key=held.__getitem__, reverse=True)
    return [(k,) for k in heavy] + [
        tuple(rest[first::_GROUPS_OF_FOLDS]) for first in range(_GROUPS_OF_FOLDS)
    ]


def _training_rows(folds: Folds, members: tuple[int, ...], positive: np.ndarray) -> np.ndarray:
    """The weighted rows that no fold of the group tests."""
    kept = positive.copy()
    for k in members:
        kept[folds.test[k]] = False
    return np.flatnonzero(kept)


def _pivot_count(rest: int, rows: int) -> int:
    """Blocks of about the size of what is held out, or few if that is small.

    With p blocks, 2(p − 1)/p² of K is alive: 0.44 for three, 0.32 for five. That is not worth
    thirteen times the work, unless what is held out is itself a block of that size.
    """
    count = max(1, round(rest / max(rows, 1)))
    return count if count <= _MOST_PIVOTS else _PIVOTS_FOR_SMALL_FOLDS


def _cut(rows: np.ndarray, count: int) -> tuple[np.ndarray, ...]:
    return tuple(piece for piece in np.array_split(rows, count) if len(piece))

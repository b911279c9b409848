"""What methods hold in memory is no more than their cost says."""

from __future__ import annotations

import gc
import tracemalloc
from contextlib import nullcontext, suppress

import numpy as np
import pytest
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit

from cases import rows, targets
from ridgefold.crossval import METHODS, leave_one_out, make_folds
from ridgefold.crossval.block_recursive import most_live_blocks
from ridgefold.errors import MethodGaveUpError
from ridgefold.kernels import RBF, KernelGram
from ridgefold.linalg import namespace_of
from ridgefold.linalg.blocks import WORKSPACE_BYTES
from ridgefold.runtime.training_data import TrainingData
from ridgefold.selection.describe import describe

N = 240
ALPHAS = np.array([0.01, 1.0])
X, Y = rows(N, 4), targets(rows(N, 4), 2)
SHAPES = {
    "2": list(KFold(2).split(X)),
    "3": list(KFold(3).split(X)),
    "4": list(KFold(4, shuffle=True, random_state=0).split(X)),
    "6": list(KFold(6).split(X)),
    "10": list(KFold(10).split(X)),
    "repeated": list(RepeatedKFold(n_splits=5, n_repeats=2, random_state=0).split(X)),
    "repeated, 10": list(RepeatedKFold(n_splits=10, n_repeats=2, random_state=0).split(X)),
    "small random splits": list(ShuffleSplit(9, test_size=0.1, random_state=0).split(X)),
    "one large fold": [(np.arange(40), np.arange(40, N))],
    "one small fold": [(np.arange(20, N), np.arange(20))],
    "unequal": [
        (np.setdiff1d(np.arange(N), test), test)
        for test in np.split(np.random.default_rng(0).permutation(N), [110, 116, 190])
    ],
}


def folds_of(name):
    return leave_one_out(N) if name == "leave-one-out" else make_folds(SHAPES[name], N)


class RecordingGram(KernelGram):
    """Remembers the largest block that was asked for."""

    largest = 0

    def write_block(self, rows, columns, out):
        self.largest = max(self.largest, out.shape[0] * out.shape[1])
        super().write_block(rows, columns, out)

    def block(self, *args):
        out = super().block(*args)
        self.largest = max(self.largest, out.shape[0] * out.shape[1])
        return out

    def write_lower(self, out, *args):
        self.largest = max(self.largest, out.shape[0] * out.shape[1])
        super().write_lower(out, *args)


def prepared(method, shape, *, bias=True, weights=None, gram=KernelGram):
    folds = folds_of(shape)
    source = gram(RBF(1.0), X)
    data = TrainingData(namespace_of(X), X, Y, weights)
    problem = describe(data, Y, source, ALPHAS, bias=bias, folds=folds)
    return source, folds, problem


@pytest.mark.parametrize(
    ("shape", "weighted"),
    [*((shape, False) for shape in SHAPES), ("leave-one-out", False)]
    + [(shape, True) for shape in ("3", "10", "repeated", "leave-one-out")],
)
@pytest.mark.parametrize("method", METHODS)
def test_peak_memory_is_at_most_what_cost_says(method, shape, weighted):
    weights = np.random.default_rng(1).uniform(0.5, 2.0, N) if weighted else None
    if weights is not None:
        weights[::11] = 0.0
    gram, folds, problem = prepared(method, shape, weights=weights)
    if METHODS[method].can_run(problem) is not None:
        return
    gc.collect()
    tracemalloc.start()
    try:
        state = METHODS[method].prepare(gram, folds, weights, True)
        # An attempt that is given up must keep to the memory too.
        with suppress(MethodGaveUpError) if METHODS[method].may_give_up else nullcontext():
            METHODS[method].held_out(state, Y, ALPHAS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= METHODS[method].cost(problem).peak_bytes


@pytest.mark.parametrize("shape", [*SHAPES, "leave-one-out"])
@pytest.mark.parametrize("bias", [False, True])
def test_block_recursive_never_has_more_blocks_alive_than_it_says(shape, bias):
    gram, folds, _ = prepared("block_recursive", shape, bias=bias)
    method = METHODS["block_recursive"]
    state = method.prepare(gram, folds, None, bias)
    method.held_out(state, Y, ALPHAS[:1])
    allowed = max(most_live_blocks(len(g.pivots), not g.single) for g in state.groups)
    assert 0 < state.matrix.live.most <= allowed
    assert state.matrix.live.alive == 0


@pytest.mark.parametrize("shape", [*SHAPES, "leave-one-out"])
def test_the_cost_of_block_recursive_covers_the_blocks_of_every_group(shape):
    gram, folds, problem = prepared("block_recursive", shape)
    state = METHODS["block_recursive"].prepare(gram, folds, None, True)
    numbers = 0
    for group in state.groups:
        held_out = 0 if group.single else sum(folds.sizes[k] for k in group.folds)
        size = max(held_out, *(len(block) for block in group.pivots))
        numbers = max(numbers, most_live_blocks(len(group.pivots), not group.single) * size**2)
    predicted = METHODS["block_recursive"].cost(problem).peak_bytes - WORKSPACE_BYTES
    assert 8 * numbers <= predicted


@pytest.mark.parametrize(
    ("shape", "blocks"), [("3", 3), ("4", 4), ("6", 6), ("10", 4), ("leave-one-out", 4)]
)
def test_block_recursive_never_asks_for_more_than_a_block_of_the_kernel_matrix(shape, blocks):
    gram, folds, _ = prepared("block_recursive", shape, gram=RecordingGram)
    gram.largest = 0  # not counting the look that a planner took
    method = METHODS["block_recursive"]
    method.held_out(method.prepare(gram, folds, None, True), Y, ALPHAS[:1])
    # A fold is never cut in two, so a block is as large as the folds that share it.
    most_folds = -(-len(folds) // blocks)
    assert 0 < gram.largest <= (most_folds * max(folds.sizes)) ** 2


def test_the_spy_sees_a_method_that_takes_the_whole_matrix():
    gram, folds, _ = prepared("eigendecomposition", "3", gram=RecordingGram)
    METHODS["eigendecomposition"].prepare(gram, folds, None, False)
    assert gram.largest == N * N

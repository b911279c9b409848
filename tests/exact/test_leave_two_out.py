"""Predictions without two folds are those of plain refits without them."""

from __future__ import annotations

import numpy as np
import pytest

from cases import rows, targets
from namespaces import LIBRARIES, to_numpy
from ridgefold import KernelRidge
from ridgefold.crossval import Folds, leave_one_out
from ridgefold.exact.leave_two_out import leave_two_out
from ridgefold.kernels import RBF, KernelGram, Laplacian

N = 36
X, Y = rows(N, 3), targets(rows(N, 3), 2) + 50.0
ORDER = np.random.default_rng(5).permutation(N)
FOLDS = Folds(N, tuple(np.array_split(ORDER, 4)))
FOUR = tuple(np.asarray([k]) for k in range(4))
WEIGHTS = np.random.default_rng(3).uniform(0.2, 3.0, N)
SOME_ZERO = np.where(np.arange(N) % 7 == 0, 0.0, WEIGHTS)
ONE_HEAVY = np.where(np.arange(N) == 5, 1e6, WEIGHTS)


def by_refits(kernel, alphas, folds, groups, *, weights, bias):
    expected = np.full((len(groups), N, 2), np.nan)
    for g, group in enumerate(groups):
        for k in set(range(len(folds))) - set(group.tolist()):
            gone = np.concatenate([folds.test[k], *(folds.test[j] for j in group)])
            kept = np.setdiff1d(np.arange(N), gone)
            model = KernelRidge(alphas, kernel=kernel, fit_intercept=bias)
            model.fit(X[kept], Y[kept], None if weights is None else weights[kept])
            expected[g, folds.test[k]] = model.predict(X[folds.test[k]])
    if weights is not None:
        expected[:, weights == 0] = np.nan
    return expected


@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("weights", [None, WEIGHTS, SOME_ZERO, ONE_HEAVY])
@pytest.mark.parametrize("kernel", [RBF(2.0), Laplacian(3.0)], ids=["rbf", "laplacian"])
@pytest.mark.parametrize("alphas", [[0.1, 0.1], [0.02, 3.0]], ids=["one alpha", "two alphas"])
def test_two_folds_left_out_are_refits_without_both(kernel, alphas, weights, bias):
    found = leave_two_out(
        KernelGram(kernel, X), Y, np.asarray(alphas), FOLDS, FOUR, weights=weights, bias=bias
    )
    expected = by_refits(kernel, alphas, FOLDS, FOUR, weights=weights, bias=bias)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weights", [None, SOME_ZERO], ids=["", "weights"])
def test_single_rows_and_groups_of_them_are_left_out_together(weights):
    folds, groups = leave_one_out(N), tuple(np.arange(start, N, 5) for start in range(5))
    alphas = np.asarray([0.1, 0.3])
    found = leave_two_out(
        KernelGram(RBF(2.0), X), Y, alphas, folds, groups, weights=weights, bias=True
    )
    expected = by_refits(RBF(2.0), alphas, folds, groups, weights=weights, bias=True)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_a_group_may_be_several_folds():
    groups = (np.asarray([0, 2]), np.asarray([1, 3]))
    alphas = np.asarray([0.1, 0.1])
    found = leave_two_out(
        KernelGram(RBF(2.0), X), Y, alphas, FOLDS, groups, weights=WEIGHTS, bias=True
    )
    expected = by_refits(RBF(2.0), alphas, FOLDS, groups, weights=WEIGHTS, bias=True)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_array_library_gives_the_same(library):
    convert = LIBRARIES[library]
    alphas = np.asarray([0.1, 0.1])
    ours = leave_two_out(
        KernelGram(RBF(2.0), convert(X)),
        convert(Y),
        alphas,
        FOLDS,
        FOUR,
        weights=convert(WEIGHTS),
        bias=True,
    )
    expected = leave_two_out(
        KernelGram(RBF(2.0), X), Y, alphas, FOLDS, FOUR, weights=WEIGHTS, bias=True
    )
    np.testing.assert_allclose(to_numpy(ours), expected, rtol=1e-9, atol=1e-9)

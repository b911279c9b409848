"""Both ways through the band agree with plain refits."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, TimeSeriesSplit

from cases import rows, targets, tolerance
from namespaces import LIBRARIES, to_numpy
from ridgefold.crossval import METHODS, banded, leave_one_out, make_folds
from ridgefold.kernels import RBF, KernelGram
from ridgefold.linalg import banded as band
from ridgefold.records import FoldShape, Problem

N = 48
ALPHAS = np.array([1e-8, 1e-3, 1.0])


def folds_of(splitter):
    return make_folds(list(splitter.split(np.zeros(N))), N)


def missing_rows():
    tests = (np.arange(0, 20, 2), np.arange(31, 44))
    return make_folds([(np.setdiff1d(np.arange(N), test), test) for test in tests], N)


FOLDS = {
    "5": folds_of(KFold(5)),
    "10 shuffled": folds_of(KFold(10, shuffle=True, random_state=0)),
    "leave-one-out": leave_one_out(N),
    "repeated": folds_of(RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)),
    "shuffle split": folds_of(ShuffleSplit(3, test_size=0.2, random_state=0)),
    "missing rows": missing_rows(),
}


def weights_of(kind):
    if kind is None:
        return None
    weights = np.random.default_rng(3).uniform(0.2, 2.0, N)
    if kind == "zeros":
        weights[[0, 5, 6, 31, 40, 41, 42, 43, 44]] = 0.0
    return weights


def both(gram, folds, weights, y, *, bias, alphas=ALPHAS):
    results = []
    for name in ("banded", "refit"):
        method = METHODS[name]
        result = method.held_out(method.prepare(gram, folds, weights, bias), y, alphas)
        results.append(to_numpy(result.predictions))
    return results


def assert_close(gram, got, expected, weights=None, alphas=ALPHAS):
    K = to_numpy(gram.full())
    if weights is not None:
        root = np.sqrt(weights[weights > 0])
        K = K[weights > 0][:, weights > 0] * root[:, None] * root[None, :]
    for j, alpha in enumerate(alphas):
        limit = tolerance(K, alpha, expected[j], expected.dtype)
        assert np.max(np.abs(got[j] - expected[j])) <= limit


@pytest.fixture(params=["fold by fold", "all at once"])
def _way(request, monkeypatch):
    fold_by_fold = request.param == "fold by fold"
    monkeypatch.setattr(banded, "_fold_by_fold_is_faster", lambda *shape: fold_by_fold)


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("kind", [None, "positive", "zeros"])
@pytest.mark.parametrize("name", FOLDS)
def test_both_ways_agree_with_refitting(name, kind, bias):
    X, weights = rows(N), weights_of(kind)
    gram = KernelGram(RBF(0.8), X)
    got, expected = both(gram, FOLDS[name], weights, targets(X, 2), bias=bias)
    assert_close(gram, got, expected, weights)


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("name", ["5", "leave-one-out", "shuffle split"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("convert", LIBRARIES.values(), ids=LIBRARIES)
def test_other_array_libraries_agree_with_refitting(convert, dtype, name):
    X = rows(N).astype(dtype)
    gram = KernelGram(RBF(0.8), convert(X))
    weights = weights_of("zeros").astype(dtype)
    y = convert(targets(X, 2).astype(dtype))
    got, expected = both(gram, FOLDS[name], convert(weights), y, bias=True)
    assert_close(gram, got, expected, weights)


@pytest.mark.usefixtures("_way")
@pytest.mark.filterwarnings("ignore::ridgefold.errors.SingularSystemWarning")
@pytest.mark.parametrize("name", ["5", "leave-one-out"])
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
def test_an_alpha_at_rounding_level_gives_the_solution_of_least_norm(name, bias):
    # Every row twice, otherwise well apart: half of the eigenvalues are α and nothing else. Rows
    # over the width are multiples of 1/4, so that sums of their squares are exact in any order:
    # otherwise entries between equal rows are off by some eps·‖x/ℓ‖², and no row is there twice.
    apart = 0.0625 * np.round(rows(N // 2) / 0.0625)
    X = np.concatenate([apart, apart])
    gram, alphas = KernelGram(RBF(0.25), X), np.array([1e-18, 1e-2])
    got, expected = both(gram, FOLDS[name], None, targets(X, 1), bias=bias, alphas=alphas)
    assert_close(gram, got[1:], expected[1:], alphas=alphas[1:])
    assert np.all(np.isfinite(got))
    np.testing.assert_allclose(got[0], expected[0], rtol=0, atol=1e-9)


def test_training_sets_may_be_given():
    X = rows(N)
    gram = KernelGram(RBF(0.8), X)
    folds = folds_of(TimeSeriesSplit(4))
    assert not folds.complement
    got, expected = both(gram, folds, weights_of("zeros"), targets(X, 1), bias=True)
    assert_close(gram, got, expected, weights_of("zeros"))


def problem(n, sizes, alphas=30, **other):
    folds = tuple(FoldShape(m, n - m, count) for m, count in Counter(sizes).items())
    return Problem(n, 8, n_alphas=alphas, folds=folds, **other)


def test_cost_follows_the_cheaper_way():
    method = METHODS["banded"]
    few, many = method.cost(problem(4000, (800,) * 5)), method.cost(problem(4000, (1,) * 4000))
    assert few.flops["band_reduction"] == pytest.approx(5 * 4 / 3 * 3200**3)
    assert many.flops["band_reduction"] == pytest.approx(4 / 3 * 4000**3)
    assert few.peak_bytes < 8 * 1.3 * 3200**2
    assert many.peak_bytes < 8 * 1.5 * 4000**2
    singular = method.cost(problem(4000, (800,) * 5, smallest_alpha=0.0))
    assert singular.peak_bytes > 2 * few.peak_bytes


def test_no_more_than_one_matrix_is_alive(monkeypatch):
    made = []
    reduce = band.reduce_to_band

    def counted(namespace, lower, bandwidth):
        made.append(lower.shape)
        return reduce(namespace, lower, bandwidth)

    monkeypatch.setattr(banded, "reduce_to_band", counted)
    X = rows(N)
    gram, method = KernelGram(RBF(0.8), X), METHODS["banded"]
    state = method.prepare(gram, FOLDS["leave-one-out"], None, True)
    assert made == []
    method.held_out(state, targets(X, 3), ALPHAS)
    assert made == [(N, N)]

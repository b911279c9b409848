"""Work that depends on the spectrum is predicted from a look at it, and given up in time."""

import re
from dataclasses import replace

import numpy as np
import pytest

from ridgefold.crossval import METHODS, anchored, make_folds, preconditioned
from ridgefold.crossval.shared import masked_gradients
from ridgefold.crossval.shared.masked import mask_folds
from ridgefold.crossval.shared.spectrum import (
    lanczos_steps,
    lost_in_rounding,
    preconditioned_steps,
    traces_beyond,
)
from ridgefold.errors import MethodGaveUpError
from ridgefold.kernels import RBF, KernelGram, Polynomial
from ridgefold.kernels.gram import ALL
from ridgefold.linalg.partial_cholesky import PartialCholesky
from ridgefold.records import FoldShape, Problem
from ridgefold.selection.probe import probe_remainders, probe_spectrum

ALPHA = 0.1


def data(n, d, width):
    rng = np.random.default_rng(0)
    gram = KernelGram(RBF(width * np.sqrt(2.0 * d)), rng.standard_normal((n, d)))
    half = np.arange(n) < n // 2
    folds = make_folds([(np.flatnonzero(~half), np.flatnonzero(half)) for half in (half, ~half)], n)
    return gram, rng.standard_normal((n, 1)), folds


def described(gram, d):
    n = gram.shape[0]
    return Problem(
        n_rows=n,
        n_columns=d,
        n_alphas=1,
        smallest_alpha=ALPHA,
        spectrum=probe_spectrum(gram),
        folds=(FoldShape(n // 2, n - n // 2, 2),),
    )


@pytest.mark.parametrize(
    ("n", "d", "width"), [(2000, 4, 0.5), (2000, 8, 1.0), (1500, 3, 0.5), (1500, 12, 1.0)]
)
def test_low_rank_gives_up_long_before_its_cap(n, d, width):
    gram, y, folds = data(n, d, width)
    method = METHODS["low_rank"]
    state = method.prepare(gram, folds, None, False)
    with pytest.raises(MethodGaveUpError, match="its rank is too high") as raised:
        method.held_out(state, y, np.array([ALPHA]))
    columns = int(re.search(r"after (\d+) of", str(raised.value))[1])
    assert columns <= 0.5 * 0.3 * (n - n // 2) + 40  # a quarter of the cap's work, and a round


@pytest.mark.parametrize(("n", "d", "width"), [(1500, 1, 0.2), (1500, 2, 1.0), (2500, 3, 2.0)])
def test_low_rank_goes_on_where_the_end_is_in_reach(n, d, width):
    gram, y, folds = data(n, d, width)
    method = METHODS["low_rank"]
    assert method.can_run(described(gram, d)) is None
    state = method.prepare(gram, folds, None, False)
    found = method.held_out(state, y, np.array([ALPHA]))
    assert found.certificate.max() < 1e-6
    # What it cost was foreseen.
    work = method.cost(described(gram, d)).flops["kernel"]
    assert 0.5 < work / (n * state.partial.rank) < 2.0


@pytest.mark.parametrize(("n", "d"), [(1500, 3), (2500, 4), (1500, 8), (2500, 8)])
def test_steps_of_conjugate_gradients_are_foreseen(n, d, monkeypatch):
    gram, y, folds = data(n, d, 1.0)
    passes, original = [], KernelGram.matmat

    def counted(self, *arguments, **named):
        passes.append(1)
        return original(self, *arguments, **named)

    monkeypatch.setattr(KernelGram, "matmat", counted)
    masked_gradients.solve_one_alpha(
        mask_folds(gram, folds, None, False), y, ALPHA, lambda share: None
    )
    rank = masked_gradients.preconditioner_rank(n, 2)
    foreseen = 1.0 + preconditioned_steps(described(gram, d), rank, ALPHA, 1e-8)
    assert 0.5 < foreseen / len(passes) < 2.0


@pytest.mark.parametrize("decades", [1, 3, 5])
@pytest.mark.parametrize("width", [0.5, 1.0])
def test_solves_with_anchors_are_foreseen(decades, width, monkeypatch):
    n, d = 1200, 8
    gram, y, folds = data(n, d, width)
    alphas = np.geomspace(1e-3, 1e-3 * 10.0**decades, 12)
    solves, original = [], anchored._Anchor.solve
    monkeypatch.setattr(
        anchored._Anchor, "solve", lambda self, v: solves.append(1) or original(self, v)
    )
    method = METHODS["anchored"]
    method.held_out(method.prepare(gram, folds, None, False), y, alphas)
    problem = replace(
        described(gram, d), smallest_alpha=alphas[0], largest_alpha=alphas[-1], n_alphas=12
    )
    _, foreseen = anchored._likely_solves(problem)
    assert 0.6 < foreseen / (len(solves) / len(folds)) < 1.7


@pytest.mark.parametrize(("n", "d", "width"), [(1500, 4, 0.5), (1500, 6, 1.0), (2000, 8, 1.0)])
def test_what_a_factor_leaves_is_foreseen(n, d, width):
    gram, _, _ = data(n, d, width)
    problem = replace(described(gram, d), remainders=probe_remainders(gram, probe_spectrum(gram)))
    partial = PartialCholesky(
        gram.namespace,
        columns=lambda rows: gram.block(ALL, rows),
        entries=lambda rows: gram.block(rows, rows),
        diagonal=gram.diagonal(),
    )
    while partial.rank < 400:
        partial.grow(min(32, 400 - partial.rank))
    (foreseen,) = traces_beyond(problem, np.array([400]))
    assert 0.2 < foreseen / partial.trace < 5.0


def test_pivoted_columns_are_not_looked_at_where_they_tell_nothing():
    few, _, _ = data(100, 3, 1.0)
    assert probe_remainders(few, probe_spectrum(few)) == ()
    of_low_rank, _, _ = data(1000, 1, 2.0)
    ((columns, left),) = probe_remainders(of_low_rank, probe_spectrum(of_low_rank))
    assert left == 0.0
    assert columns < 100


def test_pivoted_columns_of_many_rows_are_not_looked_at():
    class Many:
        shape = (100_000, 100_000)

    assert probe_remainders(Many(), tuple(np.ones(96))) == ()


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize(("d", "width"), [(5, 0.7), (8, 1.0), (8, 2.0)])
def test_steps_behind_a_factor_are_foreseen(d, width, judged, monkeypatch):
    n = 1500
    gram, _, folds = data(n, d, width)
    rng = np.random.default_rng(1)
    truth = np.sin(np.asarray(gram.block(slice(0, n), np.arange(3))).sum(axis=1))
    y = (truth + 0.1 * rng.standard_normal(n))[:, None]
    alphas = np.geomspace(1e-3, 1.0, 12)
    looks, original = [], preconditioned._Search.look
    monkeypatch.setattr(
        preconditioned._Search, "look", lambda self, w: looks.append(1) or original(self, w)
    )
    best = np.full((12, 2), np.inf)

    def judge(fold, predictions, error):
        off = np.abs(predictions[:, :, 0] - y[folds.test[fold], 0][None, :])
        best[:, fold] = np.mean(np.maximum(off - error, 0.0) ** 2, axis=1)
        reached = np.mean((off + error) ** 2, axis=1).min()
        return best[:, fold] <= reached

    method = METHODS["preconditioned"]
    state = method.prepare(gram, folds, None, False)
    method.held_out(state, y, alphas, judge=judge if judged else None)
    spectrum = probe_spectrum(gram)
    problem = replace(
        described(gram, d),
        smallest_alpha=alphas[0],
        largest_alpha=alphas[-1],
        n_alphas=12,
        judged=judged,
        remainders=probe_remainders(gram, spectrum),
    )
    assert method.can_run(problem) is None
    _, trace = preconditioned._likely_rank(problem)
    assert 0.4 < preconditioned._sizes(problem).steps(trace) / len(looks) < 2.5


def test_a_factor_that_leaves_too_much_is_given_up():
    gram, y, folds = data(1500, 12, 0.3)
    method = METHODS["preconditioned"]
    alphas = np.geomspace(1e-5, 1.0, 12)
    spectrum = probe_spectrum(gram)
    problem = replace(
        described(gram, 12),
        smallest_alpha=alphas[0],
        n_alphas=12,
        remainders=probe_remainders(gram, spectrum),
    )
    assert "falls so slowly" in method.can_run(problem)
    with pytest.raises(MethodGaveUpError, match="of the trace of the kernel matrix"):
        method.held_out(method.prepare(gram, folds, None, False), y, alphas)


@pytest.mark.parametrize(("alpha", "solved"), [(1e-4, False), (0.1, True), (1.0, True)])
def test_what_is_lost_in_rounding_is_foreseen(alpha, solved):
    """A polynomial kernel's matrix is of low rank; over a small alpha, rounding errors are not.

    With λ₁/α of 5e8, 5e5 and 5e4. Up to 1e6 nothing is refused; from there to 1e7 it depends on
    the order of sums, and on whether products are rounded before they are added, who is lost.
    """
    rng = np.random.default_rng(0)
    gram = KernelGram(Polynomial(degree=3), rng.standard_normal((600, 5)))
    y = rng.standard_normal((600, 1))
    halves = np.array_split(np.arange(600), 2)
    folds = make_folds([halves, halves[::-1]], 600)
    method = METHODS["preconditioned"]
    problem = replace(
        described(gram, 5),
        smallest_alpha=alpha,
        remainders=probe_remainders(gram, probe_spectrum(gram)),
        feature_dimension=56,
    )
    refusal = method.can_run(problem)
    state = method.prepare(gram, folds, None, False)
    if solved:
        assert refusal is None
        method.held_out(state, y, np.array([alpha]))
    else:
        assert "rounding errors are too large for alpha=0.0001" in refusal
        with pytest.raises(MethodGaveUpError):
            method.held_out(state, y, np.array([alpha]))
    assert method.can_run(replace(problem, judged=True)) is None


@pytest.mark.parametrize(("d", "actual"), [(8, 94), (40, 94), (500, 50)])
def test_steps_of_flat_spectra_are_foreseen_within_a_factor_of_two(d, actual):
    """Measured steps for 600 rows, α = 0.01: the more columns, the flatter the spectrum."""
    gram, _, _ = data(600, d, 1.0)
    spectrum = probe_spectrum(gram)
    problem = replace(described(gram, d), remainders=probe_remainders(gram, spectrum))
    steps = lanczos_steps(problem, 0.01, 1e-8)
    assert 0.8 * actual <= steps <= 2.0 * actual


@pytest.mark.parametrize(("alpha", "lost"), [(2e-3, True), (2e-2, False)])
@pytest.mark.parametrize("least", [0.0, 1.0])
def test_single_precision_is_lost_sooner(alpha, lost, least):
    """At λ₁/α of 5e6 and 5e5; a spectrum that does not fall to nothing is never lost."""
    problem = Problem(500, 3, smallest_alpha=alpha, spectrum=(1e4, 10.0, least))
    assert lost_in_rounding(problem) is (lost and least == 0.0)
    single = replace(problem, itemsize=4)
    assert lost_in_rounding(single) is (least == 0.0)
    assert not lost_in_rounding(replace(single, smallest_alpha=0.1))  # λ₁/α of 1e5

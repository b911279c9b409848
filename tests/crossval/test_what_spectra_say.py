"""Work that depends on the spectrum is predicted from a look at it, and given up in time."""

import re
from dataclasses import replace

import numpy as np
import pytest

from ridgefold.crossval import METHODS, anchored, make_folds
from ridgefold.crossval.shared import masked_gradients
from ridgefold.crossval.shared.masked import mask_folds
from ridgefold.crossval.shared.spectrum import preconditioned_steps
from ridgefold.engine.probe import probe_spectrum
from ridgefold.errors import MethodGaveUpError
from ridgefold.kernels import RBF, KernelGram
from ridgefold.records import FoldShape, Problem

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
        mask_folds(gram, folds, None, False), y, ALPHA, 1e-8, lambda share: None
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

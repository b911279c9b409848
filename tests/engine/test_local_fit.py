"""One cell: what was scored is not solved again."""

from __future__ import annotations

import numpy as np
import pytest

from cases import rows
from ridgefold.engine import local_fit
from ridgefold.engine.local_fit import CellData, CellSystem
from ridgefold.kernels import RBF

X = rows(40, 3, seed=1)
Y = rows(40, 2, seed=2)
KERNELS = (RBF(1.0), RBF(3.0))


def system(weights=None):
    return CellSystem(CellData(X, Y, weights, None), KERNELS, bias=True)


@pytest.mark.parametrize("weights", [None, np.arange(40.0) % 3])
def test_a_fit_after_scoring_is_the_fit_without(weights):
    scored = system(weights)
    for kernel in (0, 1):
        for alpha in (0.1, 1.0):
            scored.score(kernel, alpha)
    found, expected = (s.fit(1, 0.1, held_out=True) for s in (scored, system(weights)))
    for name in ("dual_coef", "intercept", "residuals"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert (found.kernel, found.alpha) == (1, 0.1)


def test_a_pair_that_was_scored_is_solved_once(monkeypatch):
    solved = []
    once = local_fit.leave_one_out

    def counted(*arguments, **settings):
        solved.append(arguments[3])
        return once(*arguments, **settings)

    monkeypatch.setattr(local_fit, "leave_one_out", counted)
    cell = system()
    cell.score(0, 0.5)
    cell.fit(0, 0.5, held_out=True)
    cell.score(0, 0.5)
    assert solved == [0.5]
    cell.fit(1, 0.5, held_out=True)
    assert solved == [0.5, 0.5]


@pytest.mark.parametrize("held_out", [False, True])
def test_weights_of_one_are_no_weights_and_of_zero_no_rows(held_out):
    found, expected = (s.fit(0, 0.1, held_out=held_out) for s in (system(np.ones(40)), system()))
    np.testing.assert_array_equal(found.dual_coef, expected.dual_coef)
    np.testing.assert_array_equal(found.intercept, expected.intercept)
    some = np.arange(40) % 4 > 0
    found = system(some.astype(float)).fit(0, 0.1, held_out=held_out)
    fewer = CellSystem(CellData(X[some], Y[some], None, None), KERNELS, bias=True)
    expected = fewer.fit(0, 0.1, held_out=held_out)
    np.testing.assert_array_equal(found.dual_coef[some], expected.dual_coef)
    assert not np.any(found.dual_coef[~some])
    if held_out:
        np.testing.assert_array_equal(found.residuals[some], expected.residuals)

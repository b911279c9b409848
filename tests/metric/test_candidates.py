"""Candidates for a model that combines several kernels: distinct, usable, and in order."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold import LSSVMRegressor
from ridgefold.kernels import Laplacian, Matern
from ridgefold.metric import candidates


def interactions(n: int = 300, d: int = 8):
    """Three columns matter, two of them only through their product; the others are noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.tanh(X[:, 0] * X[:, 2]) + 0.5 * np.sin(2 * X[:, 1])
    return X, y + 0.05 * rng.normal(size=n)


@pytest.fixture(scope="module")
def found():
    X, y = interactions()
    return candidates(X, y, [Laplacian(), Matern(nu=1.5)], preprocess="auto", max_rows=200)


def test_every_family_comes_isotropic_from_slopes_and_descended(found):
    of_family = {
        name: {each.origin for each in found if each.family == name}
        for name in (repr(Laplacian()), repr(Matern(nu=1.5)))
    }
    assert all(o == {"isotropic", "slopes", "descended"} for o in of_family.values())
    assert len({each.kernel for each in found}) == len(found)


def test_those_of_the_least_error_come_first(found):
    errors = [each.error for each in found]
    assert errors == sorted(errors)
    assert found[0].origin != "isotropic"


def test_candidates_are_kernels_on_raw_rows_with_a_ridge_of_their_own(found):
    X, y = interactions()
    new, truth = interactions(500)[0][300:], interactions(500)[1][300:]
    for each in found:
        model = LSSVMRegressor(each.alpha, kernel=each.kernel).fit(X, y)
        error = np.mean((model.predict(new) - truth) ** 2)
        assert error < 1.5 * each.error + 0.05
    assert all(each.seconds > 0 and each.rows <= 200 for each in found)

"""What iterations in float32 may leave of a residual."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold import cross_val_path
from ridgefold.errors import MethodGaveUpError

X = np.random.default_rng(4).normal(size=(400, 3))
Y = 450.0 + 17.0 * np.sin(2 * X[:, 0]) + 4.0 * np.random.default_rng(5).normal(size=400)


@pytest.mark.filterwarnings("ignore::ridgefold.errors.ConditionWarning")
@pytest.mark.parametrize("gamma", [0.05, 0.5])
@pytest.mark.parametrize("method", ["preconditioned", "krylov", "anchored"])
def test_iterations_are_right_to_a_hundredth_of_the_noise_or_give_up(method, gamma):
    """Targets far from zero are no excuse: rounding in proportion to them is not what is left."""
    settings = {"alpha": [0.01], "kernel": "laplacian", "gamma": gamma, "fit_intercept": True}
    expected = cross_val_path(X, Y, cv=5, method="refit", **settings).predictions
    single = X.astype(np.float32), Y.astype(np.float32)
    try:
        found = cross_val_path(*single, cv=5, method=method, **settings).predictions
    except MethodGaveUpError:
        return
    assert np.abs(found - expected).max() < 0.04

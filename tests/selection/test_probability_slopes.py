"""Derivatives of calibrated probabilities are those of differences."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold.selection.probabilities import probabilities
from ridgefold.selection.probability_slopes import probability_slopes

STEP = 1e-5


@pytest.mark.parametrize("columns", [1, 3])
def test_both_derivatives_are_those_of_differences(columns):
    rng = np.random.default_rng(0)
    decisions, curves = rng.standard_normal((6, columns)), rng.standard_normal((columns, 2))
    found = probability_slopes(decisions, curves)
    every = probabilities(decisions, curves)
    np.testing.assert_allclose(found.values, every[:, -found.values.shape[1] :])
    for t, e in enumerate(np.eye(columns)):
        up, down = (probability_slopes(decisions + s * STEP * e, curves) for s in (1, -1))
        first = (up.values - down.values) / (2 * STEP)
        second = (up.first - down.first) / (2 * STEP)
        np.testing.assert_allclose(found.first[:, :, t], first, atol=1e-8)
        np.testing.assert_allclose(found.second[:, :, :, t], second, atol=1e-8)


def test_where_no_class_has_any_probability_nothing_changes():
    found = probability_slopes(np.full((1, 3), -1e5), np.array([[1.0, 0.0]] * 3))
    assert np.all(found.values == 1 / 3)
    assert not found.first.any()

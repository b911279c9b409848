"""Data that comes with the package."""

from __future__ import annotations

import numpy as np
import pytest

from ridgefold.errors import InvalidInputError
from ridgefold.tables import bundled_names, load_bundled


@pytest.mark.parametrize("name", bundled_names())
def test_bundled_data_is_complete(name):
    data = load_bundled(name)
    assert data.X.shape == (len(data.y), len(data.feature_names))
    assert data.X.dtype == np.float64
    assert np.all(np.isfinite(data.X))
    assert len(set(data.feature_names)) == len(data.feature_names)


def test_power_plant_is_a_regression_and_german_credit_has_two_classes():
    assert load_bundled("ccpp").X.shape == (9568, 4)
    assert len(np.unique(load_bundled("german").y)) == 2


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(InvalidInputError, match="name must be one of ccpp, german, got 'iris'"):
        load_bundled("iris")

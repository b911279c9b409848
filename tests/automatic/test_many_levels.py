"""Columns of many levels are codes that never hold a row's own target."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ridgefold
from ridgefold import RidgefoldRegressor
from ridgefold.records import CategoryColumn, CodedColumn


class StillRegressor(RidgefoldRegressor):
    """For whom time stands still: what is planned depends on predictions alone."""

    _clock = staticmethod(lambda: 0.0)


def places(n, seed=0):
    """Rows of 120 places, each with an effect of its own."""
    rng = np.random.default_rng(seed)
    effects = np.random.default_rng(99).normal(size=120)
    place = rng.integers(120, size=n)
    size = rng.normal(size=n)
    table = pd.DataFrame({"place": [f"place {k}" for k in place], "size": size})
    return table, effects[place] + np.sin(size) + 0.2 * rng.normal(size=n), effects[place]


@pytest.fixture(scope="module")
def fitted():
    table, y, _ = places(600)
    return StillRegressor(time_budget=3.0, random_state=0).fit(table, y)


def kinds(model):
    return {column.name: type(column) for column in model._encoder.columns.columns}


def test_many_levels_become_codes(fitted):
    assert kinds(fitted)["place"] is CodedColumn
    new, y, _ = places(500, seed=1)
    error = np.sqrt(np.mean((fitted.predict(new) - y) ** 2))
    assert error < 0.6 * np.std(y)
    # Rows of the fit have codes from half of the rows only, which here are two or three a place.
    assert 0.9 * error < fitted.held_out_error_ < 1.8 * error


def test_a_column_that_says_nothing_does_not_look_as_if_it_did():
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {"name": [f"name {k}" for k in rng.integers(150, size=600)], "size": rng.normal(size=600)}
    )
    y = rng.normal(size=600)
    model = StillRegressor(time_budget=3.0, random_state=0).fit(table, y)
    assert model.held_out_error_ > 0.97 * np.std(y)


def test_rows_that_belong_together_have_no_codes():
    table, y, _ = places(600)
    groups = np.repeat(np.arange(60), 10)
    model = StillRegressor(time_budget=1.0, random_state=0).fit(table, y, groups=groups)
    assert kinds(model)["place"] is CategoryColumn


def test_codes_are_kept_in_model_files(tmp_path):
    table, y, _ = places(600)
    model = RidgefoldRegressor(time_budget=8.0, random_state=0).fit(table, y)
    assert kinds(model)["place"] is CodedColumn
    model.save(tmp_path / "model.ridgefold")
    again = ridgefold.load(tmp_path / "model.ridgefold")
    new, _, _ = places(50, seed=2)
    np.testing.assert_array_equal(again.predict(new), model.predict(new))


def test_levels_that_were_never_seen_count_as_no_effect(fitted):
    new, _, _ = places(50, seed=2)
    elsewhere, nowhere = (fitted.predict(new.assign(place=p)) for p in ("elsewhere", "nowhere"))
    np.testing.assert_array_equal(elsewhere, nowhere)
    assert abs(np.mean(elsewhere)) < 0.5


def test_the_importance_of_a_coded_column_is_one_number(fitted):
    shares = fitted.feature_importances_
    assert shares.shape == (2,)
    assert np.all(shares > 0.1)

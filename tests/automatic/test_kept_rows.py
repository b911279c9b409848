"""The models that choose everything say which columns count, what they do, and when they guess."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.inspection import permutation_importance

import ridgefold
from ridgefold import (
    CellOptions,
    PartitionedLSSVMRegressor,
    RidgefoldClassifier,
    RidgefoldRegressor,
)
from ridgefold.automatic.members import Member
from ridgefold.errors import InvalidInputError, OutsideDataWarning


class HurriedRegressor(RidgefoldRegressor):
    """For whom time stands still: what is planned depends on predictions alone."""

    _clock = staticmethod(lambda: 0.0)


class HurriedClassifier(RidgefoldClassifier):
    _clock = staticmethod(lambda: 0.0)


RNG = np.random.default_rng(0)
N = 300
TABLE = pd.DataFrame(
    {
        "noise": RNG.normal(size=2 * N),
        "size": RNG.normal(50, 10, size=2 * N),
        "age": RNG.uniform(-2, 2, size=2 * N),
        "colour": RNG.choice(["red", "green", "blue"], 2 * N),
    }
)
Y = (
    0.3 * TABLE["size"]
    + 2.0 * (TABLE["colour"] == "red")
    + 2 * np.sin(2 * TABLE["age"])
    + 0.5 * RNG.normal(size=2 * N)
).to_numpy()
LABELS = np.where(np.median(Y) < Y, "high", "low")


@pytest.fixture(scope="module")
def regressor():
    return HurriedRegressor(time_budget=5).fit(TABLE[:N], Y[:N])


@pytest.fixture(scope="module")
def classifier():
    return HurriedClassifier(time_budget=5).fit(TABLE[:N], LABELS[:N])


def test_importance_has_the_order_of_test_rows(regressor):
    found = regressor.held_out_importances()
    assert found.names == ("noise", "size", "age", "colour")
    assert np.argsort(-found.rises)[:3].tolist() == [1, 2, 3]
    test = permutation_importance(regressor, TABLE[N:], Y[N:], n_repeats=3, random_state=0)
    near = 4 * found.standard_errors + 0.15 * test.importances_mean + 0.01
    assert np.all(np.abs(found.rises - test.importances_mean) <= near)
    np.testing.assert_array_equal(regressor.feature_importances_, found.rises)


def test_rows_with_nothing_exchanged_have_about_the_held_out_error(regressor):
    found = regressor.held_out_importances(max_rows=N)
    assert found.error * np.var(Y[:N]) == pytest.approx(regressor.held_out_error_**2, rel=0.1)


def test_importance_of_classes_has_the_order_of_test_rows(classifier):
    found = classifier.held_out_importances()
    assert np.argsort(-found.rises)[:3].tolist() == [1, 2, 3]
    assert found.rises[0] < 2 * found.standard_errors[0] + 0.01


def test_columns_that_were_left_out_have_no_importance():
    table = TABLE[:N].assign(id=np.arange(N) * 7 + 3)[["id", *TABLE.columns]]
    model = HurriedRegressor(time_budget=5).fit(table, Y[:N])
    assert model.feature_importances_.shape == (5,)
    assert model.feature_importances_[0] == 0.0
    assert np.argmax(model.feature_importances_) == 2


def test_an_identifier_that_is_forced_in_has_no_importance():
    table = TABLE[:N].assign(id=RNG.permutation(N) * 7 + 3)
    model = HurriedRegressor(time_budget=5, columns={"id": "number"}).fit(table, Y[:N])
    found = model.held_out_importances()
    assert found.names[-1] == "id"
    assert found.rises[-1] < 2 * found.standard_errors[-1] + 0.01


def test_members_in_cells_leave_rows_out_of_their_cells_or_of_cells_fitted_again():
    rows, y = TABLE[["size", "age"]].to_numpy()[:N], Y[:N]
    fold_of = np.arange(N) % 3
    model = PartitionedLSSVMRegressor(n_partitions=3, cells=CellOptions(clip=False)).fit(rows, y)
    member = Member("cells", model, None, np.array([0.5]))
    some = np.array([250, 3, 4, 5])
    one_by_one = member.left_out(some, fold_of, one_by_one=True)(rows[some])
    expected = 0.5 * (y - np.ravel(model.held_out_residuals_))[some]
    np.testing.assert_allclose(one_by_one[:, 0], expected, rtol=1e-6)
    by_folds = member.left_out(some, fold_of, one_by_one=False)(rows[some])
    for place, row in enumerate(some):
        kept = fold_of != fold_of[row]
        again = clone(model).fit(rows[kept], y[kept])
        assert by_folds[place, 0] == pytest.approx(0.5 * again.predict(rows[[row]])[0])


@pytest.mark.full
def test_of_many_cells_some_are_looked_at():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(60_000, 3))
    y = 2 * rows[:, 0] + np.sin(3 * rows[:, 1]) + 0.3 * rng.normal(size=60_000)
    model = HurriedRegressor(time_budget=60).fit(rows, y)
    assert any(each.in_cells for each in model.stack_)
    found = model.held_out_importances()
    assert np.argsort(-found.rises).tolist() == [0, 1, 2]
    assert found.rises[0] == pytest.approx(8 / np.var(y), abs=4 * found.standard_errors[0] + 0.05)


def test_curves_are_in_the_units_of_the_table(regressor, classifier):
    curves = {curve.name: curve for curve in regressor.effect_curves()}
    assert curves["size"].positions[0] > 10
    slope = np.polyfit(curves["size"].positions, curves["size"].means, 1)[0]
    assert slope == pytest.approx(0.3, abs=0.03)
    assert set(curves["colour"].levels) == {"red", "green", "blue"}
    red = curves["colour"].levels.index("red")
    others = np.delete(curves["colour"].means, red)
    assert curves["colour"].means[red] - others.mean() == pytest.approx(2.0, abs=0.4)
    curve = classifier.effect_curves(["size"])[0]
    assert curve.quantity == "mean probability of low"
    assert np.all((curve.means >= 0) & (curve.means <= 1))


def test_far_rows_are_told_bounded_and_given_wide_intervals(regressor):
    new = TABLE[N : N + 40].copy()
    new.loc[new.index[0], "size"] = 50 + 22 * 10
    with pytest.warns(OutsideDataWarning, match="1 of 40 rows has a value far beyond those"):
        predicted = regressor.predict(new)
    assert regressor.is_outside(new)[0]
    assert regressor.is_outside(new[1:]).mean() < 0.1
    assert Y[:N].min() <= predicted.min()
    assert predicted.max() <= Y[:N].max()
    lower, upper = regressor.predict_interval(new, 0.9)
    low, high = np.quantile(Y[:N], [0.06, 0.94])
    assert lower[0] < low
    assert upper[0] > high
    assert np.median(upper[1:] - lower[1:]) < 0.5 * (upper[0] - lower[0])


def test_a_model_from_a_file_knows_the_same(tmp_path):
    fits = [
        RidgefoldRegressor(time_budget=60).fit(TABLE[:60], Y[:60]),
        RidgefoldClassifier(time_budget=60).fit(TABLE[:60], LABELS[:60]),
    ]
    for k, model in enumerate(fits):
        model.save(tmp_path / f"{k}")
        again = ridgefold.load(tmp_path / f"{k}")
        found, loaded = model.held_out_importances(), again.held_out_importances()
        np.testing.assert_allclose(loaded.rises, found.rises, rtol=1e-9, atol=1e-12)
        far = TABLE[N:].assign(size=2 * TABLE["size"][N:])
        np.testing.assert_array_equal(again.is_outside(far), model.is_outside(far))


def test_of_targets_that_are_all_alike_there_is_no_importance():
    model = HurriedRegressor(time_budget=5).fit(TABLE[:40], np.ones(40))
    assert np.all(model.feature_importances_ == 0.0)
    if not model.stack_:
        with pytest.raises(InvalidInputError, match="predicts the same for every row"):
            model.held_out_importances()


def test_models_of_some_rows_leave_out_those_that_they_have_seen():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(6000, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=6000)
    model = HurriedRegressor(time_budget=0.9, random_state=0).fit(X, y)
    some = [each for each in model.stack_ if each.places is not None]
    assert some, str(model.leaderboard_)
    rows = np.arange(0, 6000, 7)
    for each in some:
        assert np.isin(rows, each.places).any()
        changed = X[rows]
        changed[:, 1] = 0.0
        found = each.left_out(rows, model._fold_of, one_by_one=True)(changed)
        unseen = ~np.isin(rows, each.places)
        # Rounding of models in float32, and far more than that for rows they were fitted to.
        np.testing.assert_allclose(found[unseen], each.predict(changed[unseen]), atol=1e-4)
        shifts = np.abs(found[~unseen] - each.predict(changed[~unseen]))
        assert np.mean(shifts > 1e-4) > 0.9, np.quantile(shifts, [0.1, 0.5])
    shares = model.feature_importances_
    assert shares[0] > 0.5
    assert np.all(np.abs(shares[1:]) < 0.05)

"""Slopes, effects and standard deviations of the models that choose everything."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest

from ridgefold import KernelRidge, RidgefoldClassifier, RidgefoldRegressor, load
from ridgefold.automatic.members import Member
from ridgefold.automatic.table_slopes import _AsOneModel
from ridgefold.errors import InvalidInputError
from ridgefold.estimators.partitioned import PartitionedLSSVMRegressor
from ridgefold.kernels import RBF, Columns, Laplacian, Warped
from ridgefold.records import SignedLog, Standardise
from ridgefold.report.displays import EffectsDisplay


class HurriedRegressor(RidgefoldRegressor):
    """For whom time stands still: what is planned depends on predictions alone."""

    _clock = staticmethod(lambda: 0.0)


class HurriedClassifier(RidgefoldClassifier):
    _clock = staticmethod(lambda: 0.0)


RNG = np.random.default_rng(2)
N = 260
DAYS = RNG.integers(0, 2000, N)
TABLE = pd.DataFrame(
    {
        "size": RNG.normal(50, 10, N),
        "age": RNG.uniform(-2, 2, N),
        "old": RNG.random(N) < 0.5,
        "colour": RNG.choice(["blue", "green", "red"], N),
        "sold": pd.Timestamp("2015-01-01") + pd.to_timedelta(DAYS, unit="D"),
        "constant": np.ones(N),
    }
)
Y = (
    0.3 * TABLE["size"]
    + 2.0 * (TABLE["colour"] == "red")
    + np.sin(2 * TABLE["age"])
    - 1.5 * TABLE["old"]
    + 0.002 * DAYS
    + 0.2 * RNG.normal(size=N)
).to_numpy()
LABELS = np.digitize(Y, np.quantile(Y, [0.3, 0.6])).astype(str)
NUMBERS = ["size", "age"]


@pytest.fixture(scope="module")
def regressor():
    return HurriedRegressor(time_budget=4).fit(TABLE, Y)


@pytest.fixture(scope="module")
def two_classes():
    return HurriedClassifier(time_budget=4).fit(TABLE, np.median(Y) < Y)


@pytest.fixture(scope="module")
def three_classes():
    return HurriedClassifier(time_budget=4).fit(TABLE, LABELS)


def by_differences(predict, column, step):
    ends = [predict(TABLE.assign(**{column: TABLE[column] + s})) for s in (step, -step)]
    return (ends[0] - ends[1]) / (2 * step)


def test_slopes_are_differences_in_the_units_of_the_table(regressor):
    slopes = regressor.predict_gradient(TABLE)
    assert slopes.shape == (N, 6)
    for column, step in (("size", 1e-3), ("age", 1e-4)):
        expected = by_differences(regressor.predict, column, step)
        off = np.abs(slopes[:, TABLE.columns.get_loc(column)] - expected)
        # A rough kernel has a kink at every row of the fit, which one step may cross.
        assert np.median(off) < 1e-5 * np.abs(expected).max()
    assert np.all(np.isnan(slopes[:, 2:5]))
    assert np.all(slopes[:, 5] == 0.0)


@pytest.mark.parametrize("classes", ["two_classes", "three_classes"])
def test_classifiers_have_slopes_of_log_odds(classes, request):
    model = request.getfixturevalue(classes)
    slopes = model.predict_gradient(TABLE)[:, 0]
    expected = by_differences(model.decision_function, "size", 1e-3)
    assert np.median(np.abs(slopes - expected)) < 1e-5 * np.abs(expected).max()


def test_effects_are_averages_in_the_units_of_the_table(regressor):
    found = regressor.marginal_effects()
    effects = dict(zip(found.names, found.average, strict=True))
    assert effects["size"] == pytest.approx(regressor.predict_gradient(TABLE)[:, 0].mean())
    assert effects["size"] == pytest.approx(0.3, abs=0.03)
    red = regressor.predict(TABLE.assign(colour="red"))
    blue = regressor.predict(TABLE.assign(colour="blue"))
    assert effects["colour: blue → red"] == pytest.approx(np.mean(red - blue), abs=1e-9)
    old, young = (regressor.predict(TABLE.assign(old=value)) for value in (True, False))
    assert effects["old: false → true"] == pytest.approx(np.mean(old - young), abs=1e-9)
    (name,) = (each for each in found.names if each.startswith("sold"))
    early, late = (pd.Timestamp(each) for each in name.removeprefix("sold: ").split(" → "))
    ends = [regressor.predict(TABLE.assign(sold=day)) for day in (late, early)]
    assert effects[name] == pytest.approx(np.mean(ends[0] - ends[1]), abs=1e-6)
    quartiles = np.quantile(DAYS, [0.25, 0.75])
    assert abs((early - pd.Timestamp("2015-01-01")).days - quartiles[0]) < 60
    assert abs((late - pd.Timestamp("2015-01-01")).days - quartiles[1]) < 60
    assert not any("constant" in each for each in found.names)
    few = regressor.marginal_effects(TABLE[:7], standard_errors=False)
    assert few.average[0] == pytest.approx(regressor.predict_gradient(TABLE[:7])[:, 0].mean())


@pytest.mark.parametrize("classes", ["two_classes", "three_classes"])
def test_effects_on_probabilities_are_those_of_predict_proba(classes, request):
    model = request.getfixturevalue(classes)
    found = model.marginal_effects()
    place = found.names.index("colour: blue → red")
    ends = [model.predict_proba(TABLE.assign(colour=each)) for each in ("red", "blue")]
    expected = np.mean(ends[0] - ends[1], axis=0)
    own = found.average[place]
    np.testing.assert_allclose(own, expected[1] if own.ndim == 0 else expected, atol=1e-9)
    slopes = np.mean(by_differences(model.predict_proba, "size", 1e-3), axis=0)
    own = found.average[found.names.index("size")]
    np.testing.assert_allclose(own, slopes[1] if own.ndim == 0 else slopes, atol=1e-5)
    assert found.standard_error is None
    assert "several classifiers" in found.note
    log_odds = model.marginal_effects(decision=True).average[found.names.index("size")]
    np.testing.assert_allclose(log_odds, np.mean(model.predict_gradient(TABLE)[:, 0], axis=0))


def test_standard_errors_are_those_of_the_weighted_smoothers_of_models_of_all_rows(regressor):
    """Every average is Lᵀy, and that of unit targets is L."""
    members, found = regressor.stack_, regressor.marginal_effects()
    assert not any(each.in_cells or each.places is not None for each in members)
    numbers = regressor._numbers(TABLE)
    scale = regressor.columns_.columns[0].scale
    L, smoother = np.zeros(N), np.zeros((N, N))
    for each in members:
        units = KernelRidge(each.ridges[0], kernel=each.kernel, fit_intercept=True)
        units.fit(numbers, np.eye(N))
        L += each.weights[0] * units.predict_gradient(numbers)[:, 0].mean(axis=0) / scale
        smoother += each.weights[0] * units.predict(numbers)
    residuals = Y - regressor._decision_of_numbers(numbers)[:, 0]
    variance = residuals @ residuals / (N - np.trace(smoother))
    error = found.standard_error[found.names.index("size")]
    assert error == pytest.approx(np.sqrt(variance * L @ L), rel=1e-5)


def test_standard_deviations_are_the_weighted_sum_of_those_of_the_models(regressor):
    mean, std = regressor.predict(TABLE[:20], return_std=True)
    np.testing.assert_array_equal(mean, regressor.predict(TABLE[:20]))
    numbers = regressor._numbers(TABLE[:20])
    expected = np.zeros(20)
    for each in regressor.stack_:
        expected += each.weights[0] * np.ravel(each.model.predict(numbers, return_std=True)[1])
    np.testing.assert_allclose(std, expected, rtol=1e-12)
    _, noisy = regressor.predict(TABLE[:20], return_std=True, noise=True)
    assert np.all(noisy > std)
    with pytest.raises(InvalidInputError, match="return_std=True"):
        regressor.predict(TABLE[:20], noise=True)


def test_a_model_file_has_the_same_slopes_and_deviations(tmp_path):
    model = RidgefoldRegressor(time_budget=1).fit(TABLE, Y)
    model.save(tmp_path / "model.rfm")
    again, new = load(tmp_path / "model.rfm"), TABLE[:9]
    np.testing.assert_array_equal(again.predict_gradient(new), model.predict_gradient(new))
    ours, theirs = (each.predict(new, return_std=True)[1] for each in (model, again))
    np.testing.assert_allclose(ours, theirs)
    assert str(again.marginal_effects()) == str(model.marginal_effects())


def test_effects_are_drawn_and_reported(regressor, tmp_path):
    EffectsDisplay.from_estimator(regressor)
    regressor.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "How predictions change" in page


def test_members_in_coordinates_have_slopes_along_the_columns_of_numbers():
    rows = RNG.normal(size=(200, 3))
    y = rows[:, 0] + np.sin(2 * rows[:, 2])
    warps = (Standardise(0.5, 2.0), SignedLog(0.0, 1.0, 1.5))
    kernel = Columns(Warped(Laplacian((0.7, 1.3)), warps), (0, 2))
    member = Member("cells", None, kernel, np.array([0.5]))
    inner = PartitionedLSSVMRegressor(n_partitions=3, alpha=0.1, kernel=RBF(1.0))
    inner.fit(member._rows(rows), y)
    member = Member("cells", inner, kernel, np.array([0.5]))
    found, step = member.gradients(rows[:40]), 1e-5
    for j in range(3):
        ends = [member.predict(rows[:40] + s * np.eye(3)[j]) for s in (step, -step)]
        np.testing.assert_allclose(
            found[:, j], (ends[0] - ends[1]) / (2 * step), rtol=1e-4, atol=1e-5
        )


def test_a_table_that_says_nothing_has_flat_predictions_and_no_effects():
    model = HurriedRegressor(time_budget=1).fit(np.ones((30, 2)), np.arange(30.0) % 3)
    assert np.all(model.predict_gradient(np.ones((4, 2))) == 0.0)
    with pytest.raises(InvalidInputError, match="no effects"):
        model.marginal_effects()


def test_slopes_of_sums_in_cells_come_without_errors_and_say_so(regressor):
    inner = PartitionedLSSVMRegressor(n_partitions=3).fit(regressor._numbers(TABLE), Y)
    model = copy.copy(regressor)
    model.stack_ = (*model.stack_[:1], Member("cells", inner, None, np.array([0.4]), None))
    assert "in cells" in (_AsOneModel(model)._why_no_effect_errors() or "")
    found = model.marginal_effects()
    assert found.standard_error is None
    assert "in cells" in found.note
    _, std = model.predict(TABLE[:5], return_std=True)
    assert np.all(std > 0)

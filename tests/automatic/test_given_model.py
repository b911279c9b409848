"""A model of one's own at the front door: fitted as it is, to columns as they are understood."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ridgefold
from cases import rows, targets
from ridgefold import (
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    MetricLearning,
    PartitionedLSSVMRegressor,
    RidgefoldClassifier,
    RidgefoldRegressor,
)
from ridgefold.errors import (
    InvalidInputError,
    ModelFileError,
    UnknownLevelWarning,
)
from ridgefold.estimators.saving import pack_estimator, unpack_estimator
from ridgefold.kernels import RBF, Categorical, Columns
from ridgefold.records import CategoryColumn, NumberColumn, NumberText, TableColumns
from ridgefold.storage import read_model
from ridgefold.storage.model_file import write_model
from ridgefold.tables.wide_columns import packed_columns, unpacked_columns

X = rows(60, 3) * [1.0, 100.0, 1e-3] + [5.0, -1e4, 0.0]
Y = targets(rows(60, 3))
COLOURS = np.array(["red", "green", "blue"])[np.arange(60) % 3]
NUMBERS = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}
MIXED = {**NUMBERS, "colour": COLOURS, "flag": np.arange(60) % 2 == 0}
FRAMES = [pa.table, pd.DataFrame, pl.DataFrame]
frames = pytest.mark.parametrize("frame", FRAMES, ids=["pyarrow", "pandas", "polars"])


@frames
def test_tables_of_numbers_are_a_pipeline_with_standardised_columns(frame):
    inner = LSSVMRegressorCV([0.1, 1.0], cv=4)
    model = RidgefoldRegressor(model=inner).fit(frame(NUMBERS), Y)
    pipeline = make_pipeline(StandardScaler(), clone(inner)).fit(X, Y)
    np.testing.assert_allclose(model.predict(frame(NUMBERS)), pipeline.predict(X), rtol=1e-12)
    assert model.model_.alpha_ == pipeline[-1].alpha_
    lower, _ = model.predict_interval(frame(NUMBERS))
    expected, _ = pipeline[-1].predict_interval(pipeline[0].transform(X))
    np.testing.assert_allclose(lower, expected, rtol=1e-10)
    assert model.score(frame(NUMBERS), Y) == pytest.approx(pipeline.score(X, Y))


@frames
def test_text_becomes_one_column_a_category(frame):
    model = RidgefoldRegressor(model=KernelRidge(0.1, kernel="rbf")).fit(frame(MIXED), Y)
    assert model.columns_.feature_names == (
        "a",
        "b",
        "c",
        "colour=blue",
        "colour=green",
        "colour=red",
        "flag",
    )
    table = pd.DataFrame(MIXED)
    encoder = make_column_transformer(
        (StandardScaler(), ["a", "b", "c"]),
        (OneHotEncoder(), ["colour"]),
        (StandardScaler(), ["flag"]),
    )
    expected = make_pipeline(encoder, KernelRidge(0.1, kernel="rbf")).fit(table, Y).predict(table)
    np.testing.assert_allclose(model.predict(frame(MIXED)), expected, rtol=1e-10)


@frames
def test_the_order_of_columns_and_further_ones_do_not_matter(frame):
    model = RidgefoldRegressor(model=KernelRidge(0.1, kernel="rbf"))
    model.fit(frame({**MIXED, "y": Y}), target="y")
    other = {"more": np.zeros(60), **dict(reversed(MIXED.items()))}
    np.testing.assert_array_equal(model.predict(frame(other)), model.predict(frame(MIXED)))
    with pytest.raises(InvalidInputError, match="the table lacks 'colour'"):
        model.predict(frame(NUMBERS))


def test_numbers_can_be_categories():
    table = pa.table({"a": X[:, 0], "code": np.arange(60) % 4})
    model = RidgefoldRegressor(model=KernelRidge(), columns={"code": "category"}).fit(table, Y)
    assert model.columns_.feature_names[1:] == ("code=0", "code=1", "code=2", "code=3")
    with pytest.raises(InvalidInputError, match="'z'"):
        RidgefoldRegressor(model=KernelRidge(), columns={"z": "category"}).fit(table, Y)


def with_holes(frame):
    a = [None if i % 10 == 0 else float(v) for i, v in enumerate(X[:, 0])]
    colour = [None if i % 15 == 1 else str(v) for i, v in enumerate(COLOURS)]
    return frame({"a": a, "b": X[:, 1], "colour": colour})


@frames
def test_gaps_are_filled_and_told_in_features_of_their_own(frame):
    model = RidgefoldRegressor(model=KernelRidge(0.1, kernel="rbf")).fit(with_holes(frame), Y)
    assert model.columns_.feature_names == (
        *("a", "a missing", "b", "colour=blue", "colour=green", "colour=red", "colour missing"),
    )
    known = np.array([i % 10 != 0 for i in range(60)])
    column = model.columns_.columns[0]
    assert column.fill == pytest.approx(np.median(X[known, 0]))
    assert column.mean == pytest.approx(X[known, 0].mean())
    assert column.scale == pytest.approx(X[known, 0].std())
    filled = (np.where(known, X[:, 0], np.median(X[known, 0])) - column.mean) / column.scale
    np.testing.assert_allclose(model.model_.X_fit_[:, 0], filled)
    np.testing.assert_array_equal(model.model_.X_fit_[:, 1], ~known)
    assert np.all(np.isfinite(model.predict(with_holes(frame))))
    # What was never missing in the fit is filled, too.
    whole = RidgefoldRegressor(model=KernelRidge(0.1, kernel="rbf")).fit(frame(MIXED), Y)
    gap = {**MIXED, "a": [None, *MIXED["a"].tolist()[1:]]}
    middle = {**MIXED, "a": [float(np.median(X[:, 0])), *MIXED["a"].tolist()[1:]]}
    np.testing.assert_allclose(whole.predict(frame(gap)), whole.predict(frame(middle)), rtol=1e-12)


def test_long_labels_are_not_cut_to_the_length_of_the_targets():
    label = np.where(Y > 0, "cat", "category")
    model = RidgefoldClassifier(model=LSSVMClassifierCV([1.0], cv=3))
    for table in (pa.table(NUMBERS), with_holes(pa.table)):
        model.fit(table, label)
        expected = np.mean(model.predict(table) == "cat")
        assert 0 < expected < 1
        for all_cats in (np.full(60, "cat"), np.full(60, "cat", dtype=object)):
            assert model.score(table, all_cats) == pytest.approx(expected)


@frames
def test_unseen_categories_are_none_of_the_known_with_a_note(frame):
    model = RidgefoldRegressor(model=KernelRidge(0.1, kernel="rbf")).fit(frame(MIXED), Y)
    other = {**MIXED, "colour": np.where(np.arange(60) == 7, "mauve", COLOURS)}
    with pytest.warns(UnknownLevelWarning, match=r"1 rows \(row 8: 'mauve'\)"):
        predictions = model.predict(frame(other))
    same = np.arange(60) != 7
    np.testing.assert_array_equal(predictions[same], model.predict(frame(MIXED))[same])


@frames
def test_columns_of_one_value_are_left_out(frame):
    table = frame({"a": X[:, 0], "one": np.full(60, 0.1)})
    model = RidgefoldRegressor(model=KernelRidge(0.1, kernel="rbf")).fit(table, Y)
    assert model.columns_.names == ("a",)
    assert model.diagnosis_.column("one").kind == "constant"
    assert np.all(np.isfinite(model.predict(table)))


def test_numbers_stay_as_they_are_where_a_diagnosis_says_so():
    diagnosis = ridgefold.diagnose(pa.table({**NUMBERS, "y": Y}), "y", standardise=False)
    inner = KernelRidge(0.1, kernel="rbf", gamma=1e-6)
    model = RidgefoldRegressor(model=inner).fit(diagnosis)
    np.testing.assert_array_equal(model.model_.X_fit_, X)
    np.testing.assert_allclose(model.predict(X), inner.fit(X, Y).predict(X), rtol=1e-12)


def test_many_levels_become_codes_that_hold_no_target_of_their_row():
    rng = np.random.default_rng(0)
    city = rng.integers(0, 90, 600)
    effect = rng.normal(size=90)
    y = effect[city] + 0.3 * rng.normal(size=600)
    table = {"city": [f"town {c}" for c in city], "x": rng.normal(size=600)}
    model = RidgefoldRegressor(model=KernelRidgeCV()).fit(table, y)
    assert model.columns_.feature_names == ("city code", "x")
    assert 0.3 < model.held_out_error_ < 0.6 * y.std()


# -- what is known of it -----------------------------------------------------------------------


def test_it_is_the_one_candidate_of_the_list():
    table = {**MIXED, "y": Y}
    table["y"] = [None if i == 7 else float(v) for i, v in enumerate(Y)]
    model = RidgefoldRegressor(model=KernelRidgeCV(cv=4)).fit(table, target="y")
    (only,) = model.leaderboard_
    assert (only.candidate, only.share) == ("KernelRidgeCV", 1.0)
    assert [member.model for member in model.stack_] == [model.model_]
    held_out = model.held_out_predictions_
    assert np.flatnonzero(np.isnan(held_out)).tolist() == [7]
    others = np.arange(60) != 7
    np.testing.assert_array_equal(held_out[others], model.model_.held_out_predictions_)
    error = np.sqrt(np.mean((held_out - Y)[others] ** 2))
    assert model.held_out_error_ == only.held_out_error == pytest.approx(error)
    assert str(model.explain()) == str(model.model_.explain())
    assert np.argmax(model.feature_importances_) == 0


def test_a_model_that_holds_nothing_out_says_so():
    model = RidgefoldRegressor(model=KernelRidge(0.1, kernel="rbf")).fit(X, Y)
    assert np.isnan(model.held_out_error_)
    assert np.isnan(model.held_out_predictions_).all()
    assert "it keeps no predictions of rows held out" in str(model.leaderboard_)
    with pytest.raises(InvalidInputError, match="nothing was kept to predict intervals with"):
        model.predict_interval(X)


def test_classes_have_the_decisions_and_probabilities_of_the_model():
    label = np.where(Y > 0, "up", "down")
    model = RidgefoldClassifier(model=LSSVMClassifierCV([1.0], cv=3, probability=True))
    model.fit(MIXED, label)
    inner, rows = model.model_, model.model_.X_fit_
    np.testing.assert_array_equal(model.predict(MIXED), inner.predict(rows))
    np.testing.assert_array_equal(model.decision_function(MIXED), inner.decision_function(rows))
    np.testing.assert_array_equal(model.predict_proba(MIXED), inner.predict_proba(rows))
    np.testing.assert_array_equal(model.held_out_decisions_, inner.held_out_decisions_)
    wrong = np.mean(model.held_out_predictions_ != label)
    assert model.held_out_error_ == pytest.approx(wrong)
    silent = RidgefoldClassifier(model=LSSVMClassifier(1.0)).fit(MIXED, label)
    assert set(silent.held_out_predictions_) == {None}
    with pytest.raises(InvalidInputError, match="probability=True"):
        silent.predict_proba(MIXED)


def test_weights_and_groups_are_those_of_the_model():
    groups = np.arange(60) // 6
    weights = 1.0 + np.arange(60) % 3
    model = RidgefoldRegressor(model=KernelRidgeCV([0.1, 1.0], cv=GroupKFold(3)))
    model.fit(X, Y, weights, groups=groups)
    rows = model.model_.X_fit_
    shares = weights / weights.sum()
    np.testing.assert_allclose(shares @ rows, 0.0, atol=1e-12)  # a row of weight 2 is two rows
    alone = KernelRidgeCV([0.1, 1.0], cv=GroupKFold(3)).fit(rows, Y, weights, groups=groups)
    np.testing.assert_allclose(model.predict(X), alone.predict(rows), rtol=1e-9, atol=1e-12)
    with pytest.raises(InvalidInputError, match="KernelRidge holds no rows out"):
        RidgefoldRegressor(model=KernelRidge()).fit(X, Y, groups=groups)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (RidgefoldRegressor(model=3), "model must be None, or an estimator of ridgefold"),
        (RidgefoldRegressor(model=Ridge()), "model must be None, or an estimator of ridgefold"),
        (RidgefoldRegressor(model=RidgefoldRegressor()), "model must be None, or an estimator"),
        (RidgefoldRegressor(model=LSSVMClassifier()), "pass it to RidgefoldClassifier"),
        (RidgefoldClassifier(model=KernelRidge()), "pass it to RidgefoldRegressor"),
        (RidgefoldRegressor(model=KernelRidge(), time_budget=3), "time_budget=3 is for models"),
        (RidgefoldRegressor(model=KernelRidgeCV(), cv=7), "say it to the KernelRidgeCV"),
        (
            RidgefoldClassifier(model=LSSVMClassifier(), class_weight="balanced"),
            "class_weight='balanced' is for models that RidgefoldClassifier chooses",
        ),
    ],
)
def test_what_a_given_model_does_not_go_with_is_said(estimator, words):
    with pytest.raises(InvalidInputError, match=words):
        estimator.fit(X, Y > 0 if isinstance(estimator, RidgefoldClassifier) else Y)


def test_its_arguments_are_searched_by_name():
    search = GridSearchCV(
        RidgefoldRegressor(model=KernelRidge(kernel="rbf")), {"model__alpha": [0.01, 100.0]}, cv=3
    )
    assert search.fit(pd.DataFrame(MIXED), Y).best_params_ == {"model__alpha": 0.01}
    assert search.best_estimator_.model_.alpha == 0.01


def test_another_fit_may_choose_again():
    model = RidgefoldRegressor(model=KernelRidge(0.1, kernel="rbf", fixed=["a"]))
    model.fit(NUMBERS, Y).set_params(model=None, time_budget=0.5)
    assert list(model.fixed_names_) == ["a"]
    model.fit(NUMBERS, Y)
    assert len(model.leaderboard_) > 1
    assert not hasattr(model, "model_")
    assert not hasattr(model, "fixed_coef_")


def test_matrices_are_taken_too():
    model = RidgefoldRegressor(model=KernelRidge(0.1, kernel="rbf")).fit(X, Y)
    by_name = RidgefoldRegressor(model=KernelRidge(0.1, kernel="rbf")).fit(pa.table(NUMBERS), Y)
    np.testing.assert_allclose(model.predict(X), by_name.predict(pa.table(NUMBERS)), rtol=1e-12)


def test_files_hold_the_columns_with_the_model(tmp_path):
    for front_door, inner, y in (
        (RidgefoldRegressor, LSSVMRegressorCV([0.1, 1.0], cv=3), Y),
        (RidgefoldClassifier, LSSVMClassifierCV([0.1, 1.0], cv=3, probability=True), Y > 0),
    ):
        model = front_door(model=inner).fit(with_holes(pa.table), y)
        model.save(tmp_path / "m", dtype="float32" if y is Y else None)
        again = ridgefold.load(tmp_path / "m")
        assert again.columns_ == model.columns_
        assert again.model.get_params() == inner.get_params()
        assert again.held_out_error_ == pytest.approx(model.held_out_error_, rel=1e-5)
        assert str(again.leaderboard_) == str(model.leaderboard_)
        np.testing.assert_allclose(
            again.predict(with_holes(pd.DataFrame)).astype(float),
            model.predict(with_holes(pa.table)).astype(float),
            rtol=1e-4,
            atol=1e-4,
        )
        assert again.model_.X_fit_.dtype == (np.float32 if y is Y else np.float64)


def test_a_file_whose_columns_do_not_fit_its_model_is_refused(tmp_path):
    model = RidgefoldRegressor(model=KernelRidge()).fit(pa.table(NUMBERS), Y)
    other = RidgefoldRegressor(model=KernelRidge()).fit(pa.table(MIXED), Y)
    contents = pack_estimator(model)
    contents["state"]["columns"] = other.columns_
    with pytest.raises(ModelFileError, match="must name the columns"):
        unpack_estimator(contents)
    contents = pack_estimator(model)
    contents["state"]["fitted"] = pack_estimator(LSSVMClassifier().fit(X, Y > 0))
    with pytest.raises(ModelFileError, match="must fit RidgefoldRegressor"):
        unpack_estimator(contents)
    contents["state"]["fitted"] = pack_estimator(model)
    with pytest.raises(ModelFileError, match="must be a model of numbers"):
        unpack_estimator(contents)


def wide_table(width):
    """Columns of numbers, gaps, true and false, and categories."""
    rng = np.random.default_rng(0)
    columns = {f"c{j}": rng.normal(size=12) for j in range(width - 3)}
    columns["flag"] = np.arange(12) % 2 == 0
    columns["colour"] = np.array(["red", "blue", None] * 4, dtype=object)
    columns["gaps"] = [None, *range(11)]
    return pa.table({name: columns[name] for name in reversed(columns)})


def test_files_hold_many_thousand_columns(tmp_path):
    numbers = [NumberColumn(f"c{j}", float(j), 2.0, text=NumberText()) for j in range(8000)]
    columns = TableColumns((CategoryColumn("colour", ("blue", "red")), *numbers))
    write_model(tmp_path / "c", {"columns": packed_columns(columns)}, None)
    assert unpacked_columns("columns", read_model(tmp_path / "c").model["columns"]) == columns
    table = wide_table(1200)
    model = RidgefoldRegressor(model=KernelRidge(0.1, kernel="rbf")).fit(table, Y[:12])
    model.save(tmp_path / "m")
    again = ridgefold.load(tmp_path / "m")
    assert again.columns_ == model.columns_
    np.testing.assert_array_equal(again.predict(table), model.predict(table))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("names", lambda names: names[1:]),
        ("names", lambda names: ["x", *names[1:]]),
        ("names", lambda names: [1, *names[1:]]),
        ("mean", lambda values: values[1:]),
        ("mean", lambda values: values * np.nan),
        ("scale", lambda values: values[:, None]),
        ("fill", lambda values: values > 0),
        ("is_plain", lambda values: ~values),
        ("boolean", lambda values: values.astype(float)),
        ("others", lambda values: []),
    ],
)
def test_many_columns_that_do_not_fit_together_are_refused(name, change):
    table = wide_table(1200)
    contents = pack_estimator(RidgefoldRegressor(model=KernelRidge()).fit(table, Y[:12]))
    stored = contents["state"]["columns"]
    names = [*stored["names"]]
    # The last columns are numbers, so that a wrong name is one of a category.
    assert names[1] == "colour"
    if name == "names" and change(names)[0] == "x":
        stored["names"] = [names[0], "x", *names[2:]]
    else:
        stored[name] = change(stored[name])
    with pytest.raises(ModelFileError, match="columns"):
        unpack_estimator(contents)


def with_categories(n: int = 240):
    generator = np.random.default_rng(0)
    size, codes = generator.normal(size=n), generator.integers(0, 4, (n, 2))
    table = {
        "size": size,
        "colour": np.array(["red", "green", "blue", "grey"])[codes[:, 0]],
        "shop": np.array(["A", "B", "C", "D"])[codes[:, 1]],
    }
    slopes = np.array([2.0, -1.0, 0.0, 0.5])
    return table, size, codes, slopes[codes[:, 0]] * size + 0.1 * generator.normal(size=n)


@frames
def test_every_column_of_categories_is_one_factor_of_a_product(frame, tmp_path):
    table, size, codes, y = with_categories()
    inner = LSSVMRegressorCV(metric=MetricLearning(groups=["colour", ["shop"]]))
    model = RidgefoldRegressor(model=inner).fit(frame(table), y)
    scales = model.model_.length_scales_
    assert model.columns_.category_features == ((1, 2, 3, 4), (5, 6, 7, 8))
    assert len(set(scales[1:5])) == len(set(scales[5:])) == 1
    standard = (size - size.mean()) / size.std()
    product = Columns(RBF(scales[0]), [0]) * Columns(
        Categorical([scales[1] ** 2, scales[5] ** 2]), [1, 2]
    )
    rows = np.column_stack([standard, codes])
    by_hand = LSSVMRegressor(model.model_.alpha_, kernel=product).fit(rows, y)
    np.testing.assert_allclose(model.predict(frame(table)), by_hand.predict(rows), atol=1e-6)
    model.save(tmp_path / "m")
    again = ridgefold.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(frame(table)), model.predict(frame(table)))
    display = ridgefold.LengthScalesDisplay.from_estimator(again)
    assert display.names == ("size", "colour", "shop")
    assert display.shares[1] > 10 * display.shares[2]


def test_names_of_groups_are_those_of_the_table():
    table, _, _, y = with_categories(60)
    inner = LSSVMRegressorCV(metric=MetricLearning(groups=["color"]))
    with pytest.raises(InvalidInputError, match=r"metric\.groups names the column 'color'"):
        RidgefoldRegressor(model=inner).fit(table, y)


def test_cells_are_cut_in_the_metric_of_a_product():
    table, _, _, y = with_categories(400)
    inner = PartitionedLSSVMRegressor(
        n_partitions=3, kernel="laplacian", metric=MetricLearning(groups=["colour", "shop"])
    )
    model = RidgefoldRegressor(model=inner).fit(pa.table(table), y)
    assert len(set(model.model_.length_scales_[1:5])) == 1
    assert model.score(pa.table(table), y) > 0.9


# -- effects and standard deviations ---------------------------------------------------------


def effects_table(n=120):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(100, 30, n),
            "garden": rng.integers(0, 2, n).astype(float),
            "colour": rng.choice(["red", "blue", "green"], n),
        }
    )
    y = 0.5 * frame["size"] + 8 * frame.garden + 5.0 * (frame.colour == "red")
    return frame, y + rng.normal(0, 0.5, n)


def test_effects_are_in_the_units_of_the_table():
    frame, y = effects_table()
    model = RidgefoldRegressor(model=LSSVMRegressor(0.01, gamma=0.05)).fit(frame, y)
    found = model.marginal_effects()
    assert found.names == (
        "size",
        "garden: 0 → 1",
        "colour: blue → green",
        "colour: blue → red",
    )
    np.testing.assert_allclose(found.average, [0.5, 8.0, 0.0, 5.0], atol=0.5)
    step = 1e-4
    above, below = (frame.assign(size=frame["size"] + s * step) for s in (1, -1))
    slopes = (model.predict(above) - model.predict(below)) / (2 * step)
    np.testing.assert_allclose(found.pointwise[:, 0], slopes, atol=1e-6)
    pair = [model.predict(frame.assign(colour=each)) for each in ("red", "blue")]
    np.testing.assert_allclose(found.pointwise[:, 3], pair[0] - pair[1], atol=1e-9)
    assert np.all(found.standard_error > 0)
    assert np.all(found.posterior_std > 0)
    at = model.marginal_effects(frame[:10])
    np.testing.assert_allclose(at.pointwise, found.pointwise[:10], atol=1e-9)


def test_tables_have_standard_deviations():
    frame, y = effects_table()
    model = RidgefoldRegressor(model=LSSVMRegressor(0.1, gamma=0.1)).fit(frame, y)
    new = frame[:5].assign(size=[1.0, np.nan, 90.0, 100.0, 110.0])
    mean, std = model.predict(new, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(new))
    assert np.argmax(std) == 0  # far from all others
    assert np.all(model.predict(new, return_std=True, noise=True)[1] > std)


@pytest.mark.parametrize("fixed", [["size", "town"], ["size", "town=Ulm"]])
def test_a_model_from_a_file_names_the_same_columns_of_other_tables(tmp_path, fixed):
    rng = np.random.default_rng(2)
    table = {
        "size": rng.uniform(20, 200, 90),
        "town": rng.choice(["Bonn", "Kiel", "Ulm"], 90),
        "price": rng.standard_normal(90),
    }
    own = KernelRidgeCV(fixed=fixed, fit_intercept=True)
    model = RidgefoldRegressor(model=own).fit(table, target="price")
    model.save(tmp_path / "model")
    again = ridgefold.load(tmp_path / "model")
    assert again.model.fixed == fixed
    fewer = {name: values[table["town"] != "Bonn"] for name, values in table.items()}
    found, expected = (clone(each).fit(fewer, target="price") for each in (again, model))
    assert found.fixed_names_.tolist() == expected.fixed_names_.tolist()


def test_numbers_of_columns_are_those_of_a_matrix_and_refused_for_tables():
    rng = np.random.default_rng(2)
    table = {"size": rng.uniform(20, 200, 60), "price": rng.standard_normal(60)}
    own = KernelRidgeCV(fixed=[0], fit_intercept=True)
    with pytest.raises(InvalidInputError, match=r"fixed holds 0, .* give names, such as 'size'"):
        RidgefoldRegressor(model=own).fit(table, target="price")
    model = RidgefoldRegressor(model=own).fit(table["size"][:, None], table["price"])
    assert model.fixed_names_.tolist() == ["x0"]

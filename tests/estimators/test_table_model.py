"""Models of raw tables: numbers standardised, categories split, missing values as asked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ridgefold
from cases import rows, targets
from ridgefold import (
    KernelRidge,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    PartitionedLSSVMRegressor,
    TableModel,
)
from ridgefold.errors import (
    InvalidInputError,
    ModelFileError,
    UnknownLevelWarning,
    UnsupportedInputError,
)
from ridgefold.estimators.saving import pack_estimator, unpack_estimator
from ridgefold.kernels import RBF, Categorical, Columns

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
    model = TableModel(inner).fit(frame(NUMBERS), Y)
    pipeline = make_pipeline(StandardScaler(), clone(inner)).fit(X, Y)
    np.testing.assert_allclose(model.predict(frame(NUMBERS)), pipeline.predict(X), rtol=1e-12)
    assert model.model_.alpha_ == pipeline[-1].alpha_
    lower, _ = model.predict_interval(frame(NUMBERS))
    expected, _ = pipeline[-1].predict_interval(pipeline[0].transform(X))
    np.testing.assert_allclose(lower, expected, rtol=1e-10)
    assert model.score(frame(NUMBERS), Y) == pytest.approx(pipeline.score(X, Y))


@frames
def test_text_becomes_one_column_a_category(frame):
    model = TableModel(KernelRidge(0.1, kernel="rbf")).fit(frame(MIXED), Y)
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
    model = TableModel(KernelRidge(0.1, kernel="rbf")).fit(frame(MIXED), Y)
    other = {"more": np.zeros(60), **dict(reversed(MIXED.items()))}
    np.testing.assert_array_equal(model.predict(frame(other)), model.predict(frame(MIXED)))
    with pytest.raises(InvalidInputError, match="the table lacks 'colour'"):
        model.predict(frame(NUMBERS))


def test_numbers_can_be_categories():
    table = pa.table({"a": X[:, 0], "code": np.arange(60) % 4})
    model = TableModel(KernelRidge(), categorical=["code"]).fit(table, Y)
    assert model.columns_.feature_names[1:] == ("code=0", "code=1", "code=2", "code=3")
    with pytest.raises(InvalidInputError, match="categorical names 'z'"):
        TableModel(KernelRidge(), categorical=["z"]).fit(table, Y)


def with_holes(frame):
    a = [None if i % 10 == 0 else float(v) for i, v in enumerate(X[:, 0])]
    colour = [None if i % 15 == 1 else str(v) for i, v in enumerate(COLOURS)]
    return frame({"a": a, "b": X[:, 1], "colour": colour})


@frames
def test_missing_values_are_refused_with_the_ways_out(frame):
    with pytest.raises(InvalidInputError, match=r"'a' \(6\), 'colour' \(4\).*\"drop\""):
        TableModel(KernelRidge()).fit(with_holes(frame), Y)
    model = TableModel(KernelRidge()).fit(frame(MIXED), Y)
    for name in ("a", "colour"):
        holes = {**MIXED, name: [None, *MIXED[name].tolist()[1:]]}
        with pytest.raises(
            InvalidInputError, match=f"column '{name}' has no value in 1 rows.*row 1"
        ):
            model.predict(frame(holes))


@frames
def test_rows_with_missing_values_are_dropped(frame):
    table = with_holes(frame)
    model = TableModel(KernelRidge(0.1, kernel="rbf"), missing="drop").fit(table, Y)
    complete = np.array([i % 10 != 0 and i % 15 != 1 for i in range(60)])
    assert model.rows_used_ == complete.sum()
    alone = TableModel(KernelRidge(0.1, kernel="rbf")).fit(
        frame({"a": X[complete, 0], "b": X[complete, 1], "colour": COLOURS[complete]}), Y[complete]
    )
    predictions = model.predict(table)
    np.testing.assert_array_equal(np.isnan(predictions), ~complete)
    expected = alone.predict(frame({"a": X[:, 0], "b": X[:, 1], "colour": COLOURS}))
    np.testing.assert_allclose(predictions[complete], expected[complete], rtol=1e-10)


@frames
def test_missing_values_are_filled(frame):
    model = TableModel(KernelRidge(0.1, kernel="rbf"), missing="fill").fit(with_holes(frame), Y)
    assert model.columns_.feature_names[-1] == "colour missing"
    known = np.array([i % 10 != 0 for i in range(60)])
    filled = np.where(known, X[:, 0], X[known, 0].mean())
    assert model.columns_.columns[0].mean == pytest.approx(filled.mean())
    assert model.columns_.columns[0].scale == pytest.approx(filled.std())
    assert np.all(np.isfinite(model.predict(with_holes(frame))))


def test_classes_of_dropped_rows_are_none():
    model = TableModel(LSSVMClassifierCV([1.0], cv=3, probability=True), missing="drop")
    model.fit(with_holes(pa.table), np.where(Y > 0, "up", "down"))
    labels = model.predict(with_holes(pa.table))
    assert labels[0] is None
    assert set(labels[2:5]) <= {"up", "down"}
    assert np.isnan(model.predict_proba(with_holes(pa.table))[0]).all()
    assert not hasattr(model, "predict_interval")


def test_long_labels_are_not_cut_to_the_length_of_the_targets():
    label = np.where(Y > 0, "cat", "category")
    model = TableModel(LSSVMClassifierCV([1.0], cv=3), missing="drop")
    for table in (pa.table(NUMBERS), with_holes(pa.table)):
        model.fit(table, label)
        predicted = model.predict(table)
        used = np.array([value is not None for value in predicted])
        expected = np.mean(predicted[used] == "cat")
        assert 0 < expected < 1
        for all_cats in (np.full(60, "cat"), np.full(60, "cat", dtype=object)):
            assert model.score(table, all_cats) == pytest.approx(expected)


@frames
def test_unseen_categories_are_none_of_the_known_with_a_note(frame):
    model = TableModel(KernelRidge(0.1, kernel="rbf")).fit(frame(MIXED), Y)
    other = {**MIXED, "colour": np.where(np.arange(60) == 7, "mauve", COLOURS)}
    with pytest.warns(UnknownLevelWarning, match=r"1 rows \(row 8: 'mauve'\)"):
        predictions = model.predict(frame(other))
    same = np.arange(60) != 7
    np.testing.assert_array_equal(predictions[same], model.predict(frame(MIXED))[same])


@frames
def test_constant_columns_are_only_centred(frame):
    table = frame({"a": X[:, 0], "one": np.full(60, 0.1)})
    model = TableModel(KernelRidge(0.1, kernel="rbf")).fit(table, Y)
    assert model.columns_.columns[1].scale == 1.0
    assert np.all(np.isfinite(model.predict(table)))


def test_columns_that_cannot_be_used_are_named():
    dates = pa.table({"a": X[:, 0], "when": pd.date_range("2020", periods=60)})
    with pytest.raises(UnsupportedInputError, match="column 'when' holds Datetime"):
        TableModel(KernelRidge()).fit(dates, Y)
    names = pa.table({"name": [f"row {i}" for i in range(120)]})
    with pytest.raises(InvalidInputError, match="120 different values"):
        TableModel(KernelRidge()).fit(names, np.zeros(120))
    with pytest.raises(InvalidInputError, match="infinite number in row 3"):
        TableModel(KernelRidge()).fit(pa.table({"a": [1.0, 2.0, np.inf]}), [1.0, 2.0, 3.0])
    empty = pa.table({"a": X[:, 0], "empty": pa.nulls(60)})
    for missing in ("fill", "drop"):
        with pytest.raises(InvalidInputError, match=r"empty|no row is left"):
            TableModel(KernelRidge(), missing=missing).fit(empty, Y)
    with pytest.raises(InvalidInputError, match="missing must be"):
        TableModel(KernelRidge(), missing="mean").fit(pa.table(NUMBERS), Y)
    with pytest.raises(InvalidInputError, match="model must be an estimator"):
        TableModel().fit(pa.table(NUMBERS), Y)
    with pytest.raises(InvalidInputError, match="one entry a row"):
        TableModel(KernelRidge()).fit(pa.table(NUMBERS), Y[:5])
    with pytest.raises(UnsupportedInputError, match="X must be a pandas, polars or pyarrow table"):
        TableModel(KernelRidge()).fit([[1.0]], [1.0])


def test_matrices_are_taken_too():
    model = TableModel(KernelRidge(0.1, kernel="rbf")).fit(X, Y)
    by_name = TableModel(KernelRidge(0.1, kernel="rbf")).fit(pa.table(NUMBERS), Y)
    np.testing.assert_allclose(model.predict(X), by_name.predict(pa.table(NUMBERS)), rtol=1e-12)


def test_files_hold_the_columns_with_the_model(tmp_path):
    for inner, y in (
        (LSSVMRegressorCV([0.1, 1.0], cv=3), Y),
        (LSSVMClassifierCV([0.1, 1.0], cv=3, probability=True), Y > 0),
    ):
        model = TableModel(inner, missing="fill").fit(with_holes(pa.table), y)
        model.save(tmp_path / "m", dtype="float32" if y is Y else None)
        again = ridgefold.load(tmp_path / "m")
        assert again.columns_ == model.columns_
        assert again.model.get_params() == inner.get_params()
        np.testing.assert_allclose(
            again.predict(with_holes(pd.DataFrame)).astype(float),
            model.predict(with_holes(pa.table)).astype(float),
            rtol=1e-4,
            atol=1e-4,
        )
        assert again.model_.X_fit_.dtype == (np.float32 if y is Y else np.float64)


def test_a_file_whose_columns_do_not_fit_its_model_is_refused(tmp_path):
    model = TableModel(KernelRidge()).fit(pa.table(NUMBERS), Y)
    model.columns_ = TableModel(KernelRidge()).fit(pa.table(MIXED), Y).columns_
    model.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="must name the columns"):
        ridgefold.load(tmp_path / "m")


def wide_table(width):
    """Columns of numbers, gaps, true and false, and categories."""
    rng = np.random.default_rng(0)
    columns = {f"c{j}": rng.normal(size=12) for j in range(width - 3)}
    columns["flag"] = np.arange(12) % 2 == 0
    columns["colour"] = np.array(["red", "blue", None] * 4, dtype=object)
    columns["gaps"] = [None, *range(11)]
    return pa.table({name: columns[name] for name in reversed(columns)})


def test_files_hold_many_thousand_columns(tmp_path):
    table = wide_table(8000)
    model = TableModel(KernelRidge(0.1, kernel="rbf"), missing="fill").fit(table, Y[:12])
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
        ("filled", lambda values: values.astype(float)),
        ("is_plain", lambda values: ~values),
        ("others", lambda values: []),
        ("missing", lambda value: 3),
    ],
)
def test_many_columns_that_do_not_fit_together_are_refused(name, change):
    table = wide_table(1200)
    contents = pack_estimator(TableModel(KernelRidge(), missing="fill").fit(table, Y[:12]))
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
    inner = LSSVMRegressorCV(metric="learned")
    model = TableModel(inner, categories="product").fit(frame(table), y)
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
    assert again.categories == "product"
    np.testing.assert_array_equal(again.predict(frame(table)), model.predict(frame(table)))
    display = ridgefold.LengthScalesDisplay.from_estimator(again)
    assert display.names == ("size", "colour", "shop")
    assert display.shares[1] > 10 * display.shares[2]


def test_a_product_needs_scales_to_learn():
    table, _, _, y = with_categories(60)
    with pytest.raises(InvalidInputError, match='metric="learned", such as LSSVMRegressorCV'):
        TableModel(KernelRidge(), categories="product").fit(pa.table(table), y)
    with pytest.raises(InvalidInputError, match="categories must be"):
        TableModel(KernelRidge(), categories="codes").fit(pa.table(table), y)


def test_cells_are_cut_in_the_metric_of_a_product():
    table, _, _, y = with_categories(400)
    inner = PartitionedLSSVMRegressor(n_partitions=3, kernel="laplacian", metric="learned")
    model = TableModel(inner, categories="product").fit(pa.table(table), y)
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
    model = TableModel(LSSVMRegressor(0.01, gamma=0.05)).fit(frame, y)
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
    model = TableModel(LSSVMRegressor(0.1, gamma=0.1), missing="drop").fit(frame, y)
    gap = frame[:5].assign(size=[1.0, np.nan, 90.0, 100.0, 110.0])
    mean, std = model.predict(gap, return_std=True)
    assert np.isnan(std).tolist() == [False, True, False, False, False]
    np.testing.assert_array_equal(mean, model.predict(gap))
    assert np.all(model.predict(gap, return_std=True, noise=True)[1][2:] > std[2:])
    classes = TableModel(LSSVMClassifier(0.1)).fit(frame, y > 50)
    with pytest.raises(InvalidInputError, match="predict_proba"):
        classes.predict(frame, return_std=True)

"""What people with a table are promised: any table, honest errors, the same model from a file."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.sparse

import ridgefold
from automatic.tables import StillClassifier, StillRegressor, Ticking, mixed_table, rows_of
from ridgefold import RidgefoldClassifier, RidgefoldRegressor
from ridgefold.errors import BudgetError, InvalidInputError, ModelFileError

BRIEF = 0.5
"""Seconds in which, by predictions alone, there is no time to learn metrics."""


@pytest.fixture(scope="module")
def priced():
    return StillRegressor(time_budget=BRIEF).fit(mixed_table(400), target="price")


def rmse(model, X, y):
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


# -- tables ------------------------------------------------------------------------------


def test_a_table_with_units_gaps_categories_and_an_identifier_is_fitted_as_it_is(priced):
    kinds = {each.name: each.kind for each in priced.diagnosis_.columns}
    assert kinds["id"] == "identifier"
    assert priced.target_ == "price"
    assert list(priced.feature_names_in_) == ["id", "size", "colour"]
    new = mixed_table(300, seed=1)
    truth = np.array([float(text.strip("$").replace(",", "")) for text in new["price"]])
    assert rmse(priced, new, truth) < 0.5 * truth.std()
    assert priced.score(new, truth) > 0.75


def test_every_kind_of_table_gives_the_same_model(tmp_path):
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    X, y = rows_of(120)
    columns = {f"x{j}": X[:, j] for j in range(3)}
    path = tmp_path / "table.parquet"
    pl.DataFrame({**columns, "y": y}).write_parquet(path)
    expected = StillRegressor(time_budget=BRIEF).fit(X, y).predict(X[:9])
    for table in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns), columns):
        model = StillRegressor(time_budget=BRIEF).fit(table, y)
        np.testing.assert_allclose(model.predict(table)[:9], expected, rtol=1e-8)
    model = StillRegressor(time_budget=BRIEF).fit(str(path), target="y")
    np.testing.assert_allclose(model.predict(str(path))[:9], expected, rtol=1e-8)
    sparse = StillRegressor(time_budget=BRIEF).fit(scipy.sparse.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.predict(scipy.sparse.csr_matrix(X))[:9], expected, rtol=1e-8)


def test_several_targets_are_predicted_at_once():
    X, y = rows_of(90)
    both = np.column_stack([y, X[:, 1]])
    model = StillRegressor(time_budget=BRIEF).fit(X, both)
    assert model.predict(X[:4]).shape == (4, 2)
    assert model.held_out_predictions_.shape == (90, 2)
    lower, upper = model.predict_interval(X[:4])
    assert np.all(lower < upper)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.arange(5.0)[:, None], np.arange(5.0)),
        (np.zeros((12, 2)), np.arange(12.0)),
        (np.full((12, 2), np.nan), np.arange(12.0)),
        (np.arange(12.0)[:, None], np.full(12, 3.0)),
        (np.arange(4.0).reshape(2, 2), np.array([0.0, 1.0])),
    ],
    ids=["five rows", "constant columns", "nothing but gaps", "constant target", "two rows"],
)
def test_tables_that_say_little_have_an_answer_too(X, y):
    model = StillRegressor(time_budget=BRIEF).fit(X, y)
    predicted = model.predict(X)
    assert np.all(np.isfinite(predicted))
    assert np.ptp(predicted) <= 1.01 * np.ptp(y) + 1e-9
    if np.ptp(X) == 0 or np.isnan(X).all():
        np.testing.assert_allclose(predicted, y.mean())


def test_a_target_of_words_is_no_number():
    X, _ = rows_of(20)
    with pytest.raises(InvalidInputError, match=r"y is no number: .*RidgefoldClassifier"):
        RidgefoldRegressor().fit(X, ["red", "blue"] * 10)


def test_a_target_of_numbers_in_words_is_read():
    X, y = rows_of(40)
    model = StillRegressor(time_budget=BRIEF).fit(X, [f"{value:.2f} EUR" for value in y])
    expected = StillRegressor(time_budget=BRIEF).fit(X, np.round(y, 2))
    np.testing.assert_allclose(model.predict(X), expected.predict(X))


def test_rows_without_a_target_are_left_out():
    table = mixed_table(60)
    table["price"][7] = None
    model = StillRegressor(time_budget=BRIEF).fit(table, target="price")
    held_out = model.held_out_predictions_
    assert held_out.shape == (60,)
    assert np.flatnonzero(np.isnan(held_out)).tolist() == [7]


def test_columns_are_found_by_name_where_the_target_was_named(priced):
    new = mixed_table(5, seed=3)
    turned = {name: new[name] for name in ("price", "colour", "size", "id")}
    np.testing.assert_array_equal(priced.predict(turned), priced.predict(new))
    with pytest.raises(InvalidInputError, match="the table lacks 'size'"):
        priced.predict({"colour": new["colour"]})


# -- weights, groups and classes ---------------------------------------------------------


def test_a_row_of_weight_two_is_two_rows():
    X, y = rows_of(40)
    counts = np.random.default_rng(0).integers(0, 3, 40)
    which = np.repeat(np.arange(40), counts)
    fold = np.arange(40) % 3
    weighted = StillRegressor(time_budget=BRIEF, cv=split_by(fold)).fit(X, y, counts)
    repeated = StillRegressor(time_budget=BRIEF, cv=split_by(fold[which])).fit(X[which], y[which])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6)


def split_by(fold):
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]


def test_rows_of_a_group_are_held_out_together():
    X, y = rows_of(80)
    groups = np.repeat(np.arange(8), 10)
    y = y + 5.0 * np.random.default_rng(0).standard_normal(8)[groups]
    model = StillRegressor(time_budget=BRIEF).fit(X, y, groups=groups)
    for group in range(8):
        assert len(set(model._fold_of[groups == group])) == 1
    table = {"x": X[:, 0], "who": [f"p{g}" for g in groups], "y": y}
    by_name = StillRegressor(time_budget=BRIEF).fit(table, target="y", groups="who")
    np.testing.assert_array_equal(by_name._fold_of, model._fold_of)


@pytest.mark.parametrize("count", [2, 4])
def test_classes_have_probabilities_that_add_up(count):
    X, y = rows_of(200)
    labels = np.array(["a", "b", "c", "d"])[
        np.digitize(y, np.quantile(y, np.arange(1, count) / count))
    ]
    model = StillClassifier(time_budget=BRIEF).fit(X, labels)
    shares = model.predict_proba(X)
    assert shares.shape == (200, count)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.mean(model.classes_[np.argmax(shares, axis=1)] == model.predict(X)) == 1.0
    assert model.score(X, labels) > 0.7
    assert np.mean(model.held_out_predictions_ == labels) > 0.6


def test_a_named_target_of_numbers_can_be_classes():
    X, y = rows_of(100)
    table = {"a": X[:, 0], "b": X[:, 2], "grade": np.digitize(y, [10.0, 11.0])}
    model = StillClassifier(time_budget=BRIEF).fit(table, target="grade")
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict(table).dtype.kind == "i"


# -- honest errors -----------------------------------------------------------------------


def test_the_held_out_error_is_that_of_new_rows():
    X, y = rows_of(300)
    new, truth = rows_of(2000, seed=1)
    model = StillRegressor(time_budget=BRIEF).fit(X, y)
    assert model.leaderboard_.error == model.held_out_error_
    assert 0.85 < model.held_out_error_ / rmse(model, new, truth) < 1.15
    lower, upper = model.predict_interval(new, 0.9)
    assert 0.86 < np.mean((lower <= truth) & (truth <= upper)) < 0.95


def test_noise_is_not_predicted():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 10)), rng.standard_normal(200)
    model = StillRegressor(time_budget=BRIEF).fit(X, y)
    assert np.std(model.predict(rng.standard_normal((500, 10)))) < 0.35
    assert 0.95 * y.std() < model.held_out_error_ < 1.1 * y.std()


def test_the_leaderboard_names_every_candidate(priced):
    board = priced.leaderboard_
    assert abs(sum(each.share for each in board) - 1.0) < 1e-9
    assert "linear" in {each.candidate for each in board}
    members = {each.words for each in priced.stack_}
    assert members == {each.candidate for each in board if each.share > 0}
    assert str(board).splitlines()[0].startswith("candidate")
    assert set(board.to_dict()) >= {"candidate", "held_out_error", "share", "seconds", "note"}
    best = min(each.held_out_error for each in board if each.held_out_error is not None)
    assert board.error < 1.02 * best


def test_columns_count_by_what_rows_not_seen_lose_without_them(priced):
    found = priced.held_out_importances(n_repeats=3, max_rows=200)
    assert found.names == ("size", "colour")
    assert np.all(found.rises > 2 * found.standard_errors)
    shares = priced.feature_importances_
    assert shares.shape == (3,)
    assert shares[0] == 0.0  # the identifier
    assert np.argmax(shares) == np.argmax([0.0, *found.rises])


# -- time --------------------------------------------------------------------------------


def test_the_same_table_gives_the_same_model_where_time_does_not_bind():
    X, y = rows_of(120)
    first, second = (StillRegressor(time_budget=BRIEF).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.predict(X), second.predict(X))


@pytest.mark.parametrize("seconds", [BRIEF, 20.0])
def test_an_explanation_lists_the_steps_that_run(seconds):
    X, y = rows_of(200)
    model = StillRegressor(time_budget=seconds)
    foreseen = ridgefold.explain(model, n_samples=200, n_features=3).steps
    ran = [step["step"] for step in model.fit(X, y).explain().steps]
    planned = [step["step"] for step in foreseen if step["method"] is not None]
    # How many kernels are worth a fit of all rows, only learning tells.
    assert ran == planned[: len(ran)]
    assert ("learning metrics" in ran) == (seconds > BRIEF)
    if seconds == BRIEF:
        assert ran == planned
    assert planned[0] == "fitting a linear model"


def test_a_fit_ends_soon_after_its_budget():
    class Hurried(RidgefoldRegressor):
        _clock = Ticking(0.02)

    X, y = rows_of(600)
    model = Hurried(time_budget=2.0).fit(X, y)
    assert Hurried._clock.now < 1.15 * 2.0 + 1.0
    assert np.isfinite(model.held_out_error_)


def test_work_that_takes_too_long_is_left_out_and_named():
    class Slow(RidgefoldRegressor):
        _clock = Ticking(0.3)

    X, y = rows_of(600)
    model = Slow(time_budget=3.0).fit(X, y)
    missing = [each for each in model.leaderboard_ if each.outcome != "fitted"]
    assert missing
    assert all(each.note for each in missing)
    assert model.predict(X).shape == (600,)


def test_a_budget_without_time_for_anything_is_refused_with_the_least_that_would_do():
    class Late(RidgefoldRegressor):
        _clock = Ticking(2.0)

    X, y = rows_of(60)
    with pytest.raises(BudgetError, match="the least that would do is time_budget=") as refusal:
        Late(time_budget=0.5).fit(X, y)
    assert float(str(refusal.value).rpartition("=")[2]) > 2.0


def test_the_automatic_budget_grows_with_the_table():
    from ridgefold.automatic.promised_time import seconds_for

    few, more, many = (seconds_for("auto", n, 10) for n in (300, 4000, 100_000))
    assert 2.0 <= few < more < 20.0
    assert 45.0 < many < 90.0
    assert seconds_for("auto", 4000, 200) > more


@pytest.mark.parametrize("budget", [0, -1.0, "soon", True, np.inf])
def test_a_budget_that_is_none_is_refused(budget):
    with pytest.raises(InvalidInputError, match="time_budget must be"):
        RidgefoldRegressor(time_budget=budget).fit(*rows_of(20))


# -- model files and reports -------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    regressor, classifier = (
        RidgefoldRegressor(time_budget=20.0),
        RidgefoldClassifier(time_budget=20.0),
    )
    table = mixed_table(90)
    labels = [
        "dear" if float(t.strip("$").replace(",", "")) > 1000 else "cheap"
        for t in table.pop("price")
    ]
    X, y = rows_of(35)
    return {
        "regressor": (regressor.fit(X, y), X),
        "classifier": (classifier.fit(table, labels), table),
    }


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_a_loaded_model_is_the_same(fitted, kind, tmp_path):
    model, table = fitted[kind]
    model.save(tmp_path / "m.ridgefold")
    again = ridgefold.load(tmp_path / "m.ridgefold")
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    np.testing.assert_array_equal(again.held_out_predictions_, model.held_out_predictions_)
    assert str(again.leaderboard_) == str(model.leaderboard_)
    assert str(again.explain()) == str(model.explain())
    if kind == "classifier":
        np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    else:
        np.testing.assert_array_equal(again.predict_interval(table), model.predict_interval(table))


def test_a_file_without_intervals_says_so(fitted, tmp_path):
    model, X = fitted["regressor"]
    model.save(tmp_path / "m.ridgefold", intervals=False)
    again = ridgefold.load(tmp_path / "m.ridgefold")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(InvalidInputError, match="intervals=False"):
        again.predict_interval(X)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("offset", np.zeros(3)),
        ("counts", np.ones(4)),
        ("members", []),
        ("n_splits", -1),
    ],
)
def test_parts_that_do_not_fit_are_refused(fitted, entry, value):
    from ridgefold.estimators.saving import pack_estimator, unpack_estimator

    contents = pack_estimator(fitted["regressor"][0])
    contents["state"][entry] = value
    with pytest.raises(ModelFileError):
        unpack_estimator(contents)


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_a_report_is_one_page(fitted, kind, tmp_path):
    model, _ = fitted[kind]
    model.report(tmp_path / "report.html")
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")


# -- arguments ---------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [RidgefoldRegressor, RidgefoldClassifier])
def test_there_are_at_most_fourteen_arguments_and_both_classes_share_their_defaults(cls):
    arguments = inspect.signature(cls).parameters
    assert len(arguments) <= 14
    shared = inspect.signature(RidgefoldRegressor).parameters
    assert {n: p.default for n, p in arguments.items() if n in shared} == {
        n: p.default for n, p in shared.items()
    }


@pytest.mark.parametrize(
    ("arguments", "fit", "message"),
    [
        ({}, {}, "requires y to be passed"),
        ({}, {"y": np.zeros(20), "target": "x"}, "y and target='x' were given"),
        ({"cv": 1}, {"y": np.zeros(20)}, "cv must be at least 2 folds"),
        ({"columns": "zip"}, {"y": np.zeros(20)}, "columns must say what columns are"),
        ({"memory_budget": "much"}, {"y": np.zeros(20)}, "memory_budget must be"),
        ({}, {"y": np.zeros(20), "groups": [1, 2]}, "groups must be the name of a column"),
        ({}, {"y": np.zeros(19)}, "one target for each row"),
    ],
)
def test_what_cannot_be_used_is_named(arguments, fit, message):
    with pytest.raises(InvalidInputError, match=message):
        RidgefoldRegressor(**arguments).fit(rows_of(20)[0], **fit)

"""A few cells that hold no number do not turn a column of numbers into categories unseen."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import ridgefold
from ridgefold import KernelRidge, RidgefoldRegressor
from ridgefold.cli import app
from ridgefold.errors import (
    FarValueWarning,
    InvalidInputError,
    UnreadableNumberWarning,
)
from ridgefold.tables import csv_file
from ridgefold.tables.column_scale import ColumnValues
from ridgefold.tables.numbers_in_text import parse_numbers

N = 120
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + 0.5 * X[:, 1]
frames = pytest.mark.parametrize("frame", [pa.table, pd.DataFrame, pl.DataFrame])


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "300"})
    assert result.exit_code == code, (result.output, result.stderr)
    return result


def texts(wrong):
    """Column a as text, with some cells replaced."""
    cells = [repr(float(value)) for value in X[:, 0]]
    for row, text in wrong.items():
        cells[row] = text
    return cells


def table(frame, wrong):
    return frame({"a": texts(wrong), "b": X[:, 1]})


def model(**options):
    return RidgefoldRegressor(model=KernelRidge(1e-3, kernel="rbf"), **options)


def test_numbers_are_what_other_readers_take_for_numbers():
    cells = [
        "1",
        "+1.5",
        "-.5",
        "2.",
        "1e-3",
        " 7 ",
        "inf",
        "1.5.2",
        "1,5",
        "x",
        "NA",
        "",
        None,
        "１",
    ]
    values, unreadable = parse_numbers(pa.array(cells))
    expected = [1, 1.5, -0.5, 2, 1e-3, 7, np.inf, *[np.nan] * 7]
    np.testing.assert_array_equal(values, expected)
    assert [cells[i] for i in np.flatnonzero(unreadable)] == ["1.5.2", "1,5", "x", "１"]
    values, unreadable = parse_numbers(pa.array(["true", "FALSE", "1", "yes"]), boolean=True)
    np.testing.assert_array_equal(values, [1, 0, 1, np.nan])
    assert unreadable.tolist() == [False, False, False, True]


@frames
def test_a_typing_error_counts_as_missing_and_is_said_with_its_place(frame):
    wrong = {7: "1.5.2", 9: "?", 11: "?", 13: "?"}
    fitted = model().fit(table(frame, wrong), Y)
    said = [problem.message for problem in fitted.diagnosis_.problems if "a" in problem.columns]
    assert any("'1.5.2' in row 8" in each for each in said)
    holes = X[:, 0].copy()
    holes[list(wrong)] = np.nan
    clean = pd.DataFrame({"a": holes, "b": X[:, 1]})
    expected = model().fit(clean, Y)
    assert fitted.columns_.feature_names == ("a", "a missing", "b")
    with pytest.warns(UnreadableNumberWarning, match=r"1 of 117.*'1\.5\.2' in row 8"):
        found = fitted.predict(table(frame, wrong))
    np.testing.assert_allclose(found, expected.predict(clean), rtol=1e-12)


@frames
def test_the_same_rule_holds_at_prediction(frame):
    fitted = model().fit(X_frame(), Y)
    with pytest.warns(UnreadableNumberWarning, match=r"1 of 1 values is none: '1\.5\.2' in row 1"):
        fitted.predict(frame({"a": ["1.5.2"], "b": [1.0]}))
    np.testing.assert_array_equal(fitted.predict(table(frame, {})), fitted.predict(X_frame()))
    with pytest.raises(InvalidInputError, match="too many to be typing errors"):
        fitted.predict(frame({"a": ["red", "blue"], "b": [1.0, 2.0]}))


def X_frame():
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})


@frames
def test_what_is_said_to_be_a_category_is_one(frame):
    codes = frame({"code": [str(i % 12) for i in range(N)], "b": X[:, 1]})
    assert model().fit(codes, Y).columns_.feature_names == ("code", "b")
    named = model(columns={"code": "category"}).fit(codes, Y)
    assert len(named.columns_.feature_names) == 13
    mixed = frame({"code": ["x" if i == 3 else str(i % 12) for i in range(N)], "b": X[:, 1]})
    named = model(columns={"code": "category"}).fit(mixed, Y)
    assert {"code=11", "code other"} < set(named.columns_.feature_names)


def test_a_column_that_is_half_numbers_becomes_categories_with_a_note():
    grades = ["4 or more" if i % 4 == 3 else str(i % 4) for i in range(N)]
    fitted = model().fit(pa.table({"a": grades}), Y)
    assert len(fitted.columns_.feature_names) == 4
    said = [problem.message for problem in fitted.diagnosis_.problems if "a" in problem.columns]
    assert any("'4 or more'" in each for each in said)
    named = model(columns={"a": "category"}).fit(pa.table({"a": grades}), Y)
    assert not [each for each in named.diagnosis_.problems if "a" in each.columns]


def test_cells_that_are_objects_are_read_as_text():
    cells = [float(value) for value in X[:, 0]]
    cells[5] = "1.5.2"
    frame = pd.DataFrame({"a": np.array(cells, dtype=object), "b": X[:, 1]}, index=range(5, N + 5))
    fitted = model().fit(frame, Y)
    assert fitted.columns_.feature_names == ("a", "a missing", "b")
    assert fitted.diagnosis_.column("a").kind == "number"


def write(path, a, y=None):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["note", "a", "b", "y"])
        for i in range(N):
            writer.writerow(["two\nlines", a[i], X[i, 1], (Y if y is None else y)[i]])


FIXED = ("--alpha", 0.1, "--length-scale", 1, "--drop", "note")


@pytest.mark.parametrize("streamed", [False, True])
def test_lines_of_the_file_are_named_whole_and_streamed(streamed, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", 700)
    write(tmp_path / "t.csv", texts({80: "1.5.2"}))
    how = ("--partitions", 2, "--memory", "50kB") if streamed else ()
    fit = ("fit-kernel", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m", *FIXED, *how)
    assert "'1.5.2' in line 162" in run(*fit).stderr
    fitted = ridgefold.load(tmp_path / "m")
    assert fitted.columns_.feature_names == ("a", "a missing", "b")
    assert len(fitted.model_.X_fit_) == N
    said = run("predict", tmp_path / "m", tmp_path / "t.csv", "-o", tmp_path / "o.csv", "-q").stderr
    assert "1 of 120 values is none: '1.5.2' in line 162" in said
    assert not pd.read_csv(tmp_path / "o.csv")["prediction"].isna().any()


@pytest.mark.parametrize("streamed", [False, True])
def test_a_typing_error_in_the_target_does_not_make_classes(streamed, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", 700)
    y = [*Y[:90], "1.2.3", *Y[91:]]
    write(tmp_path / "t.csv", X[:, 0], y)
    how = ("--partitions", 2, "--memory", "50kB") if streamed else ()
    fit = ("fit-kernel", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m", *FIXED, *how)
    assert "'1.2.3' in line 182" in run(*fit).stderr
    fitted = ridgefold.load(tmp_path / "m")
    assert len(fitted.model_.X_fit_) == N - 1
    assert not hasattr(fitted.model_, "classes_")


@pytest.mark.parametrize("streamed", [False, True])
def test_text_that_begins_late_makes_the_same_categories(streamed, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", 700)
    write(tmp_path / "t.csv", ["01" if i < 80 else f"c{i % 3}" for i in range(N)])
    how = ("--partitions", 2, "--memory", "50kB") if streamed else ()
    run("fit-kernel", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m", *FIXED, *how)
    assert ridgefold.load(tmp_path / "m").columns_.columns[0].levels == ("01", "c0", "c1", "c2")


@pytest.mark.parametrize("far", [1e200, -1e200, 1.7e308, 1e9, 1e4])
def test_a_far_value_does_not_erase_its_column(far):
    a = X[:, 0].copy()
    a[17] = far
    fitted = model().fit(pd.DataFrame({"a": a, "b": X[:, 1]}), Y)
    assert any("a" in problem.columns for problem in fitted.diagnosis_.problems)
    others = np.arange(N) != 17
    assert fitted.score(X_frame()[others], Y[others]) > 0.99
    column = fitted.columns_.columns[0]
    assert column.mean == pytest.approx(a[others].mean())
    assert column.scale == pytest.approx(a[others].std())
    if abs(far) > 1e7:
        with pytest.warns(FarValueWarning, match="standard deviations from its mean"):
            assert np.all(np.isfinite(fitted.predict(pd.DataFrame({"a": a, "b": X[:, 1]}))))


@pytest.mark.parametrize("unit", [1.0, 1e-200, 1e200, 1e-310])
@pytest.mark.parametrize("n", [1, 2, 7, 19, 21, 400])
def test_mean_and_spread_do_not_depend_on_blocks_or_units(unit, n):
    values = np.random.default_rng(n).normal(3, 2, n)
    for parts in (1, 3, 7):
        column = ColumnValues()
        for part in np.array_split(values * unit, parts):
            column.add(part)
        found = column.scale()
        assert found.far == ()
        tolerance = 1e-12 if unit > 1e-300 else 1e-6
        assert found.mean / unit == pytest.approx(values.mean(), rel=tolerance)
        assert found.spread / unit == pytest.approx(values.std(), rel=tolerance, abs=1e-12)


def test_far_values_are_the_same_however_blocks_are_cut():
    values = np.random.default_rng(0).normal(size=1000)
    values[[3, 500, 999]] = [1e5, -1e8, 1e300]
    for order in (values, np.sort(values), np.sort(values)[::-1]):
        column = ColumnValues()
        for part in np.array_split(order, 13):
            column.add(part)
        found = column.scale()
        assert found.far == (-1e8, 1e5, 1e300)
        inner = np.delete(values, [3, 500, 999])
        assert found.mean == pytest.approx(inner.mean(), rel=1e-10)
        assert found.spread == pytest.approx(inner.std(), rel=1e-10)


def test_rare_marks_and_heavy_tails_are_part_of_the_data():
    rare = np.zeros(1000)
    rare[5] = 1.0
    heavy = np.random.default_rng(0).lognormal(0, 2, 1000)
    for values in (rare, heavy, np.append(np.zeros(50), 1e200)):
        column = ColumnValues()
        column.add(values)
        found = column.scale()
        assert found.far == ()
        assert found.spread > 0
